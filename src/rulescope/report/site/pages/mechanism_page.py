"""The page of the mechanism views: what happens inside of lifetimes, and which those were."""

from __future__ import annotations

from rulescope.assays.results import counted
from rulescope.report.site.html import Child, Markup, el
from rulescope.report.site.pages.page_layout import (
    Sizes,
    facts,
    figure,
    files,
    navigation,
    page,
    plain_table,
    section,
    tabular,
)
from rulescope.report.site.site_model import Exhibited, Site, shown
from rulescope.rules.loading import short
from rulescope.spec.run_spec import RunSpec

HERE = "mechanism.html"
LEAD = (
    "Assays tell what comes of an intervention; these views show what happens on the way. The "
    "lifetimes are ordinary ones: being looked at changed nothing about them."
)


def mechanism(site: Site, sizes: Sizes) -> str:
    """Return the page; ``sizes`` are those of the figures."""
    return page(
        "Mechanism",
        HERE,
        _contents(site),
        (_view(site, each, sizes) for each in site.views),
        nav=navigation(site),
        lead=el("p", LEAD, class_="lede"),
    )


def titled(each: Exhibited) -> Child:
    """Return what a view is called, and whose lifetimes it shows."""
    return (each.shown.title, " ", _whose(each))


def _whose(each: Exhibited) -> Markup:
    return el("span", short(each.shown.rule), class_="tag")


def _contents(site: Site) -> Markup:
    links = [
        el("li", el("a", each.shown.title, href=f"#{each.slug}"), _whose(each))
        for each in site.views
    ]
    return el("nav", el("ul", links), class_="contents", aria_label="On this page")


def _view(site: Site, each: Exhibited, sizes: Sizes) -> Markup:
    what = each.shown
    base = f"{each.folder}/{what.label}"
    return section(
        titled(each),
        figure(
            base,
            f"{what.title}. The numbers are in the table below.",
            what.caption,
            what.label,
            sizes,
        ),
        el(
            "div",
            tabular(
                what.table,
                caption=(what.table.title, " ", files(base, ("csv", "md", "tex"), what.label)),
            ),
            class_="block",
        ),
        _made(each),
        _lifetimes(site, each),
        id_=each.slug,
        lead=what.question,
    )


def _made(each: Exhibited) -> Markup:
    what = each.shown
    return facts(
        [
            ("Rule", el("span", what.rule, class_="hash")),
            ("Reward scales", ", ".join(shown(scale) for scale in what.scales)),
            ("Seeds", f"{what.seeds:,}"),
            ("Iterations", f"{what.iterations:,} a lifetime"),
            ("Command", el("code", _command(each))),
        ]
    )


def _command(each: Exhibited) -> str:
    what = each.shown
    scales = ",".join(shown(scale) for scale in what.scales)
    asked = "" if what.scales == (1.0,) else f" --scales {scales}"
    return (
        f"rulescope mechanism {what.name} --rule {what.rule}{asked} --seeds {what.seeds} "
        f"--iterations {what.iterations}"
    )


def _lifetimes(site: Site, each: Exhibited) -> Markup:
    """Return the lifetimes that were looked at, each with a link if the store has it."""
    rows = [
        (
            el("code", run.name),
            _run(site, run.spec.id, run.science_hash),
            run.spec.learner.__struct_config__.tag,
            _arm(run.spec),
            el("code", run.science_hash[:12], title=run.science_hash),
            shown(run.spec.scale),
            f"{run.spec.seed}",
        )
        for run in each.shown.runs
    ]
    heads = ("Lifetime", "Run", "Learner", "Arm", "Science hash", "Scale", "Seed")
    table = plain_table(f"Lifetimes of {each.slug}", heads, rows, 2, titled=False)
    return el("details", el("summary", f"{counted(len(rows), 'lifetime')} looked at"), table)


def _arm(spec: RunSpec) -> str:
    done = (f"{each.operation} {each.carrier}" for each in spec.interventions)
    return " + ".join(done) or "live"


def _run(site: Site, run: str, science_hash: str) -> Child:
    life, code = site.lives.get(run), el("code", run[:12])
    if life is None:
        return (code, " ", el("span", "not in this store", class_="faint"))
    link = el("a", code, href=f"runs.html#{run}")
    same = life.manifest.science_hash == science_hash
    # Lived elsewhere, the same specification may end otherwise in the last bit.
    return link if same else (link, " ", el("span", "another result here", class_="tag mixed"))
