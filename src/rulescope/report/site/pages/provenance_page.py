"""The page on coverage and provenance: what is there, what is missing, where it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rulescope.assays import Cell
from rulescope.assays.results import counted
from rulescope.report.site.html import Child, Markup, el
from rulescope.report.site.pages.page_layout import (
    facts,
    meter,
    navigation,
    page,
    plain_table,
    scrolling,
    section,
)
from rulescope.report.site.record_sources import WORDS, Origin, rules, runtimes, shares, sources
from rulescope.report.site.site_model import AssayPage, Site, shown

HERE = "provenance.html"


def provenance(site: Site) -> str:
    """Return the page."""
    lead = (
        "Which cells are complete, which planned lifetimes are missing, on which machines and by "
        "which source they were lived, and whether an assay mixes them."
    )
    return page(
        "Coverage and provenance",
        HERE,
        _problems(site),
        _summary(site),
        _origins(site),
        _cells(site),
        _others(site),
        nav=navigation(site),
        lead=el("p", lead, class_="lede"),
    )


def _problems(site: Site) -> list[Markup]:
    """Tell of what is no part of the report although it should be."""
    found = []
    if site.problems:
        rows = [(el("code", run[:12]), reason) for run, reason in site.problems]
        words = "They are no part of this report. What is damaged has been put into quarantine."
        table = plain_table("Records that could not be read", ("Run", "Reason"), rows)
        found.append(section("Unreadable records", table, id_="problems", lead=words))
    if site.unanalysed:
        table = plain_table(
            "Assays that could not be analysed", ("Assay", "Reason"), site.unanalysed
        )
        found.append(section("Assays without a page", table, id_="unanalysed"))
    if site.damaged:
        table = plain_table(
            "Profiles and mechanism views that could not be read",
            ("Folder", "Reason"),
            site.damaged,
        )
        found.append(section("Results that are left out", table, id_="damaged"))
    return found


def _summary(site: Site) -> Markup:
    machines, versions, weights = runtimes(site), sources(site), rules(site)
    rows: list[list[Child]] = []
    for each in site.pages:
        lived, made = shares(each, machines), shares(each, versions)
        link = el("a", each.title, href=f"#cells-{each.name}")
        group = el("span", each.group, class_="tag") if each.group else None
        rows.append(
            [
                (link, group),
                meter(each.present, len(each.plan.runs), "lifetimes"),
                _mixture(lived),
                _mixture(made),
                _weights(shares(each, weights), weights),
                f"{each.complete:,}/{len(each.plan.cells):,}",
                f"{each.present:,}/{len(each.plan.runs):,}",
                _donors(each),
            ]
        )
    heads = ("Assay", "Coverage", "Runtimes", "Sources", "Weights", "Cells", "Lifetimes", "Donors")
    words = (
        "Lifetimes of one assay that come from several runtimes or sources are marked, and those "
        "whose rule has one name and several weights. Sources differ by commit, most of which "
        "change nothing about a lifetime; two runtimes can differ in the last bit, from which "
        "lifetimes diverge; two weights are two rules."
    )
    return section(
        "Coverage",
        plain_table("Assays, what there is of each, and where it comes from", heads, rows, 3),
        id_="coverage",
        lead=words,
    )


def _donors(each: AssayPage) -> str:
    planned = each.plan.donors
    here = sum(donor in each.plan.present for donor in planned)
    return f"{here:,}/{len(planned):,}" if planned else "—"


def _weights(counts: Mapping[str, int], found: Sequence[Origin]) -> Child:
    """Tell which weights there are. An assay may compare rules, but each has one version."""
    named = [str(origin.facts["name"]) for origin in found if origin.name in counts]
    return _mixture(counts, mixed=len(set(named)) < len(named))


def _mixture(counts: Mapping[str, int], *, mixed: bool | None = None) -> Child:
    said = ", ".join(f"{name} ({count})" for name, count in counts.items()) or "—"
    marked = len(counts) > 1 if mixed is None else mixed
    return (el("span", "mixed", class_="tag mixed"), " ", said) if marked else said


def _origins(site: Site) -> Markup:
    parts: list[Child] = []
    for title, found in (
        ("Runtimes", runtimes(site)),
        ("Sources", sources(site)),
        ("Rule weights", rules(site)),
    ):
        parts.append(el("h3", title))
        parts.append(_identity_table(title, found))
    return section("Identities", parts, id_="identities")


def _identity_table(title: str, found: Sequence[Origin]) -> Markup:
    if not found:
        return el("p", "None.", class_="empty")
    keys = list(dict.fromkeys(key for origin in found for key in origin.facts))
    heads = ["Name", *(WORDS.get(key, key) for key in keys), "Lifetimes"]
    rows: list[list[Child]] = [
        [origin.name, *(_fact(origin.facts.get(key)) for key in keys), f"{len(origin.runs):,}"]
        for origin in found
    ]
    caption = f"{title} in the store"
    if len(found) < len(keys):  # a page is longer than it is wide
        turned = zip(heads, *rows, strict=True)
        (_, *names), *lines = turned
        return plain_table(caption, ("Name", *map(str, names)), lines, titled=False)
    return plain_table(caption, heads, rows, 1, titled=False)


def _fact(value: Child | bool) -> Child:
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(value)
    if len(text) in (40, 64) and all(mark in "0123456789abcdef" for mark in text):
        return el("code", text[:12], title=text)
    return text


def _cells(site: Site) -> Markup:
    words = "Every planned cell, and the seeds that are missing."
    return section("Cells", (_by_cell(each) for each in site.pages), id_="cells", lead=words)


def _by_cell(each: AssayPage) -> Markup:
    axes = list(each.plan.cells[0].labels)
    body = [_cell(each, cell) for cell in each.plan.cells]
    heads = [el("th", axis, scope="col") for axis in axes]
    heads += [el("th", "lifetimes", scope="col", class_="num"), el("th", "missing", scope="col")]
    title = f"Cells of {each.title} {each.group}".strip()
    table = el(
        "table",
        el("caption", title, class_="visually-hidden"),
        el("thead", el("tr", heads)),
        el("tbody", body),
    )
    summary = el(
        "summary",
        el("strong", f"{each.title} {each.group}".strip()),
        " ",
        el(
            "span",
            f"{each.complete} of {counted(len(each.plan.cells), 'cell')} complete",
            class_="faint",
        ),
    )
    donors = [run for key, run in each.plan.donors.items() if key in each.plan.missing]
    missing = facts([("Donors still needed", f"{len(donors)}")]) if donors else None
    link = el("p", el("a", "To the assay", href=each.href))
    return el("details", summary, link, scrolling(table, title), missing, id=f"cells-{each.name}")


def _cell(each: AssayPage, cell: Cell) -> Markup:
    labels = [shown(label) for label in cell.labels.values()]
    done = each.plan.done(cell)
    gone = [run.seed for run in cell.runs if run.id not in each.plan.present]
    state = "complete" if not gone else "partial" if done else "none"
    return el(
        "tr",
        el("th", labels[0], scope="row"),
        (el("td", label) for label in labels[1:]),
        el("td", f"{done}/{len(cell.runs)}", class_="num"),
        el("td", f"seeds {spans(gone)}" if gone else "", class_="faint"),
        class_=state,
    )


def spans(seeds: Sequence[int]) -> str:
    """Return seeds with neighbours taken together.

    >>> spans([0, 1, 2, 5, 7, 8])
    '0–2, 5, 7–8'
    """
    runs: list[list[int]] = []
    for seed in sorted(seeds):
        if runs and seed == runs[-1][-1] + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def _others(site: Site) -> Markup | None:
    """Tell of lifetimes that are part of no page."""
    left = [run for run in site.lives if run not in site.places and run not in site.watched]
    if not left:
        return None
    links = [el("li", el("a", el("code", run[:12]), href=f"runs.html#{run}")) for run in left]
    words = f"{counted(len(left), 'lifetime')} of the store: of no grid and no view here."
    return section(
        "Other lifetimes",
        el("details", el("summary", "Which"), el("ul", links, class_="ids")),
        id_="others",
        lead=words,
    )
