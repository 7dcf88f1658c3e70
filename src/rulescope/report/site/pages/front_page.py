"""The front page: what this is, the profiles of rules, and every assay at a glance."""

from __future__ import annotations

from collections.abc import Mapping

from rulescope.assays import ASSAYS, design_tables
from rulescope.assays.comparison import in_words
from rulescope.assays.published_agreement import AGREEMENT_RULE, Verdict
from rulescope.assays.results import Column, counted
from rulescope.audit.profile import FROZEN, RULE, Axis, Figure, Measure, Profile
from rulescope.audit.profile_folder import BOUNDED, LOOKS, UNITS, look_of, rules, shown_beside
from rulescope.render.style import look
from rulescope.render.table_formats import cell
from rulescope.report.site.arm_colours import colours, swatch
from rulescope.report.site.estimate_tables import beside
from rulescope.report.site.html import Markup, el
from rulescope.report.site.learning_curves import MEASURES, Panel, arms_of, most_telling, typical
from rulescope.report.site.pages.mechanism_page import titled
from rulescope.report.site.pages.page_layout import meter, navigation, page, scrolling, section
from rulescope.report.site.site_model import AssayPage, Exhibited, Site
from rulescope.report.site.slugs import distinct
from rulescope.report.site.svg import Mark, span, stamp, strip

HERE = "index.html"
WITH_PUBLISHED: dict[Verdict, str] = {
    "differs": "differ from the published",
    "too few seeds to tell": "have too few seeds to tell",
    "agrees": "agree with the published",
}
LEAD = (
    "This report is about learned rules of learning: what becomes of a learner when the history "
    "that its rule carries along is erased, frozen, or exchanged for another’s. Everything in it "
    "is computed from recorded lifetimes, each of which can be looked at."
)
AXES = {axis.name: axis.assays for axis in design_tables.AXES} | {"A second rule": ("OPEN",)}
"""The axes of an audit, and the assays along each; the others are about all of them."""
ALL = "All axes"
WORDS = {**UNITS, "score": "score"}
"""Units, where a measure has a table of its own."""
Pages = Mapping[tuple[str, str], AssayPage]
"""Pages by assay and rule."""


def front(site: Site, panels: Mapping[str, list[Panel]]) -> str:
    """Return the page; ``panels`` are the learning curves by page name."""
    return page(
        "Rulescope",
        HERE,
        _figures(site),
        _profiles(site),
        _agreement(site),
        _assays(site, panels),
        _views(site),
        nav=navigation(site),
        lead=el("p", LEAD, class_="lede"),
    )


def _figures(site: Site) -> Markup:
    """Return the few numbers that say how much this rests on."""
    said: list[tuple[str, str, str]] = [
        (f"{len(site.lives):,}", "lifetimes", "runs.html"),
        (f"{site.interactions / 1e6:,.1f} M", "interactions", "runs.html"),
        (f"{site.begun} of {len(ASSAYS)}", "assays begun", "#assays"),
    ]
    if any(site.agreement.values()):
        judged = sum(site.agreement.values())
        said += [
            (f"{count:,} of {judged:,}", WITH_PUBLISHED[verdict], "#agreement")
            for verdict, count in site.agreement.items()
        ]
    return el(
        "ul",
        (
            el("li", el("a", el("strong", number), el("span", words), href=href))
            for number, words, href in said
        ),
        class_="numbers",
        aria_label="In numbers",
    )


def _agreement(site: Site) -> Markup | None:
    """Return what differs from the published values, and by which rule that is judged."""
    if not any(site.agreement.values()):
        return None
    items = [
        el(
            "li",
            el("a", each.title, href=f"{each.href}#estimates"),
            " ",
            el("code", row.key),
            f": {ours} against {theirs} published{row.agreement.words.removeprefix(row.verdict)}",
        )
        for each, row in site.comparisons
        if row.verdict == "differs"
        for ours, theirs in [beside(row)]
    ]
    none = el("p", "No estimate differs from its published value.", class_="empty")
    return section(
        "Beside the published values",
        el("ul", items, class_="notes") if items else none,
        el("p", AGREEMENT_RULE, class_="note"),
        id_="agreement",
        lead=f"{in_words(site.agreement)}." + (" Those that differ:" if items else ""),
    )


def _profiles(site: Site) -> Markup:
    found = site.profiles
    pages = {(each.plan.assay.id, each.plan.budget.rule): each for each in site.pages}
    if not found:
        say = (
            "No profile was found among the results. ",
            el("code", "rulescope audit"),
            " makes one: five axes, and what the rule’s history does along each.",
        )
        return section("Profile", el("p", say, class_="empty"), id_="profile")
    slugs = distinct(f"profile-{name}" for name in found)
    shown = zip(slugs, found.values(), strict=True)
    return el("div", (_profile(slug, profile, site, pages) for slug, profile in shown))


def _profile(slug: str, profile: Profile, site: Site, pages: Pages) -> Markup:
    notes = [el("p", text, class_="note") for text in profile.notes]
    cards = [_axis(axis, profile, pages) for axis in profile.axes]
    return section(
        f"Profile of {profile.rule}",
        _answer(profile),
        el("div", cards, class_="axes"),
        notes,
        id_=slug,
        lead=f"{profile.learner}; preset {profile.preset}. Dots are estimates, lines 95% intervals "
        f"(or, of one or two seeds, the range). {_resting(profile, site)}",
    )


def _answer(profile: Profile) -> Markup | None:
    """Return the answer of the audit, and how it is found; None in files that have none."""
    if profile.answer is None:
        return None
    return el(
        "div",
        el("p", el("strong", profile.answer.sentence), class_="verdict answer"),
        el("p", how, class_="note") if (how := rules(profile)) else None,
    )


def _resting(profile: Profile, site: Site) -> str:
    """Say how many of the lifetimes behind a profile can be looked at here."""
    if not profile.runs:
        return "It does not tell which lifetimes it rests on."
    kept = {run: life.manifest.science_hash for run, life in site.lives.items()}
    here = sum(kept.get(run) == science for run, science in profile.runs.items())
    planned = counted(len(profile.runs), "lifetime")
    if here == len(profile.runs):
        return f"It rests on {planned}, all of which are in this report."
    return f"It rests on {planned}, of which {here:,} are in this report."


def _axis(axis: Axis, profile: Profile, pages: Pages) -> Markup:
    return el(
        "article",
        el("h3", axis.name.capitalize()),
        el("p", axis.question, class_="question"),
        el("p", axis.verdict, class_="verdict"),
        (_measure(measure, profile, pages) for measure in axis.measures),
        class_="card axis",
    )


def _measure(measure: Measure, profile: Profile, pages: Pages) -> Markup:
    """Return one measure: a dot and a line for each column, and the numbers beside them."""
    column = Column(measure.title, measure.digits)
    found = {name: figure.estimate() for name, figure in measure.figures.items()}
    # From random play to the optimum, so that a narrow interval looks narrow.
    ends = (0.0, 1.0) if measure.unit in BOUNDED and not measure.difference else (0.0,)
    axis = span(found.values(), *ends)
    rows = []
    for name, one in found.items():
        how = look_of(name) if name in LOOKS or name.startswith(FROZEN) else look(name)
        shown = None
        if axis is not None and not one.missing:
            zero = 0.0 if measure.difference else None
            shown = strip([Mark(one, "arm", colours(how))], axis, zero)
        rows.append(
            el(
                "tr",
                el("th", profile.rule if name == RULE else name, scope="row"),
                el("td", shown, class_="picture"),
                el(
                    "td",
                    cell(None if one.missing else one, column),
                    _beside(measure.figures[name]),
                    class_="num",
                ),
                el("td", one.n, class_="num faint"),
            )
        )
    head = [
        el("th", el("span", "who", class_="visually-hidden"), scope="col"),
        el("th", el("span", "interval, drawn", class_="visually-hidden"), scope="col"),
        el("th", WORDS.get(measure.unit, measure.unit), scope="col", class_="num"),
        el("th", "n", scope="col", class_="num faint"),
    ]
    title = (measure.title, " ", _source(measure.source, profile.content or profile.rule, pages))
    table = el(
        "table",
        el("caption", title),
        el("thead", el("tr", head)),
        el("tbody", rows),
        class_="measure",
    )
    return scrolling(table, measure.title)


def _beside(figure: Figure) -> Markup | None:
    """Return what a number leaves out: class and ends of a window, two groups of lifetimes."""
    words = shown_beside(figure)
    return el("small", words, class_="faint beside") if words else None


def _source(assay: str, rule: str, pages: Pages) -> Markup:
    """Return the assay that a measure comes from, with a link if it has a page here."""
    each = pages.get((assay, rule))
    return el("span", assay if each is None else el("a", assay, href=each.href), class_="tag")


def _assays(site: Site, panels: Mapping[str, list[Panel]]) -> Markup:
    if not site.pages:
        say = "The store has no lifetime of any assay. Look at what it has: "
        link = el("a", "all lifetimes", href="runs.html")
        return section("Assays", el("p", say, link, ".", class_="empty"), id_="assays")
    named = {name: axis for axis, names in AXES.items() for name in names}
    order = [*AXES, ALL]
    sorted_ = sorted(
        site.pages, key=lambda each: order.index(named.get(each.plan.assay.id, ALL))
    )  # within an axis, as in the catalogue
    cards = [_card(each, named.get(each.plan.assay.id, ALL), panels[each.name]) for each in sorted_]
    words = "Each asks one question. The bar tells how many of the planned lifetimes there are."
    return section("Assays", el("ul", cards, class_="cards"), id_="assays", lead=words)


def _views(site: Site) -> Markup | None:
    """Return a card for every mechanism view, if there are any."""
    if not site.views:
        return None
    words = "Each looks inside of some lifetimes: what happens on the way."
    cards = [_glimpse(each) for each in site.views]
    return section("Mechanism", el("ul", cards, class_="cards"), id_="mechanism", lead=words)


def _glimpse(each: Exhibited) -> Markup:
    what = each.shown
    # The page has words for it.
    picture = el("img", src=f"{each.folder}/{what.label}.svg", alt="", loading="lazy")
    return el(
        "li",
        el("h3", el("a", titled(each), href=each.href)),
        el("p", what.question, class_="question"),
        el("div", picture, class_="glimpse"),
        el("p", f"{counted(len(what.runs), 'lifetime')} looked at", class_="coverage"),
        class_="card",
    )


def _card(each: AssayPage, axis: str, panels: list[Panel]) -> Markup:
    variant = el("span", each.group, class_="tag") if each.group else None
    planned = len(each.plan.runs)
    coverage = (
        f"{each.present:,} of {counted(planned, 'lifetime')}, "
        f"{each.complete} of {counted(len(each.plan.cells), 'cell')} complete"
    )
    telling = most_telling(panels)
    return el(
        "li",
        el("p", axis, class_="eyebrow"),
        el("h3", el("a", each.title, href=each.href), variant),
        el("p", each.plan.assay.question, class_="question"),
        None if telling is None else _picture(each, telling),
        el("div", meter(each.present, planned, "lifetimes"), el("p", coverage), class_="coverage"),
        class_="card",
    )


def _picture(each: AssayPage, panel: Panel) -> Markup:
    how = arms_of(each)
    where = ", ".join(f"{axis} {label}" for axis, label in panel.labels.items())
    legend = el(
        "ul",
        (el("li", swatch(how[arm]), how[arm].name) for arm in panel.arms),
        class_="legend small",
    )
    what = f"{MEASURES[typical(panel)]}{f' ({where})' if where else ''}"
    return el("figure", el("figcaption", what), stamp(panel, how), legend)
