"""Context of the front page: numbers, audit profiles, and a card for every assay and view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rulescope.assays import ASSAYS, design_tables
from rulescope.assays.comparison import in_words
from rulescope.assays.published_agreement import AGREEMENT_RULE, Verdict
from rulescope.assays.results import Column, counted
from rulescope.audit.profile import FROZEN, RULE, Axis, Measure, Profile
from rulescope.audit.profile_folder import BOUNDED, STYLES, UNITS, rules, shown_beside, style_of
from rulescope.claims.ledger_tables import in_order, summarise
from rulescope.render.arm_styles import arm_style
from rulescope.render.tables import cell
from rulescope.report.atlas_page import histories
from rulescope.report.claims_page import DECIDED, badge_class
from rulescope.report.css_styles import css_colours, style_data
from rulescope.report.estimate_tables import compared_texts
from rulescope.report.learning_curves import (
    MEASURES,
    Panel,
    default_measure,
    most_separated,
    page_styles,
)
from rulescope.report.page_templates import render_page
from rulescope.report.site_model import AssayPage, Site, distinct_slugs
from rulescope.report.svg import Mark, shared_axis, strip, thumbnail
from rulescope.rules.rule_weights import short

AGREEMENT_TEXTS: dict[Verdict, str] = {
    "contradicted": "published values contradicted",
    "undecided": "published values undecided",
    "reproduced": "published values reproduced",
}
AXES = {axis.name: axis.assays for axis in design_tables.AXES} | {"A second rule": ("OPEN",)}
"""The axes of an audit, and the assays along each."""
ALL_AXES = "All axes"
"""Of assays that belong to no single axis."""
UNIT_NAMES = {**UNITS, "score": "score"}
Pages = Mapping[tuple[str, str, str], AssayPage]
"""Pages by assay, rule, and the world that the user named."""


def front_page(site: Site, panels: Mapping[str, list[Panel]]) -> str:
    """Return the front page; ``panels`` are the learning curves by page name."""
    pages = {_place(each): each for each in site.pages}
    slugs = distinct_slugs(f"profile-{name}" for name in site.profiles)
    profiles = zip(slugs, site.profiles.values(), strict=True)
    return render_page(
        "front_page",
        site,
        title="Rulescope",
        here="index.html",
        numbers=_numbers(site),
        histories=histories(site.atlas) if site.atlas else None,
        history_axes=site.atlas.axes if site.atlas else (),
        profiles=[_profile(slug, profile, site, pages) for slug, profile in profiles],
        claims=_claims(site),
        agreement=_agreement(site),
        cards=_cards(site, panels),
        views=[
            {
                "href": view.href,
                "title": view.exhibit.title,
                "rule": short(view.exhibit.rule),
                "question": view.exhibit.question,
                "picture": f"{view.folder}/{view.exhibit.label}.svg",
                "runs": len(view.exhibit.runs),
            }
            for view in site.views
        ],
    )


def _place(page: AssayPage) -> tuple[str, str, str]:
    """Return assay, rule and world of a page."""
    budget = page.plan.budget
    return page.plan.assay.id, budget.subject.rule, ", ".join(budget.references)


def _numbers(site: Site) -> list[tuple[str, str, str]]:
    """Return the size of the store and of the agreement: number, text, link."""
    found = [
        (f"{len(site.runs):,}", "lifetimes", "runs.html"),
        (f"{site.interactions / 1e6:,.1f} M", "interactions", "runs.html"),
        (f"{site.started} of {len(ASSAYS)}", "assays started", "#assays"),
    ]
    if site.ledger:
        words = [entry.verdict.word for entry in site.ledger.entries]
        decided = sum(word in DECIDED for word in words)
        found.append((f"{decided:,} of {len(words):,}", "claims decided", "claims.html"))
    judged = sum(site.agreement.values())
    if judged:
        found += [
            (f"{count:,} of {judged:,}", AGREEMENT_TEXTS[verdict], "#agreement")
            for verdict, count in site.agreement.items()
        ]
    return found


def _claims(site: Site) -> dict[str, Any] | None:
    """Return how many claims have each verdict, and those that are contradicted or reproduced."""
    if site.ledger is None:
        return None
    decided = [one for one in in_order(site.ledger.entries) if one.verdict.word in DECIDED]
    return {
        "summary": summarise([entry.verdict for entry in site.ledger.entries]),
        "decided": [
            (one.verdict.claim, one.verdict.word, badge_class(one.verdict.word))
            for one in decided
            if not one.verdict.claim.exact or one.verdict.word == "exact (fails)"
        ],
    }


def _agreement(site: Site) -> dict[str, Any] | None:
    """Return the published values that are contradicted, and the rule of comparison."""
    if not any(site.agreement.values()):
        return None
    contradicted = []
    for page, row in site.comparisons:
        if row.verdict == "contradicted":
            ours, theirs = compared_texts(row)
            detail = row.agreement.words.removeprefix(row.verdict)
            contradicted.append((page, row.key, f"{ours} against {theirs} published{detail}"))
    return {
        "summary": in_words(site.agreement),
        "rule": AGREEMENT_RULE,
        "contradicted": contradicted,
    }


def _profile(slug: str, profile: Profile, site: Site, pages: Pages) -> dict[str, Any]:
    return {
        "slug": slug,
        "rule": profile.rule,
        "learner": profile.learner,
        "preset": profile.preset,
        "coverage": _profile_coverage(profile, site),
        "answer": None if profile.answer is None else profile.answer.sentence,
        "decision": None if profile.answer is None else rules(profile),
        "axes": [_axis(axis, profile, pages) for axis in profile.axes],
        "notes": profile.notes,
    }


def _profile_coverage(profile: Profile, site: Site) -> str:
    """Return how many of the lifetimes behind a profile are in the report."""
    if not profile.runs:
        return "It does not list its lifetimes."
    hashes = {key: run.manifest.science_hash for key, run in site.runs.items()}
    present = sum(hashes.get(run) == science for run, science in profile.runs.items())
    planned = counted(len(profile.runs), "lifetime")
    if present == len(profile.runs):
        return f"It rests on {planned}, all of which are in this report."
    return f"It rests on {planned}, of which {present:,} are in this report."


def _axis(axis: Axis, profile: Profile, pages: Pages) -> dict[str, Any]:
    return {
        "name": axis.name.capitalize(),
        "question": axis.question,
        "verdict": axis.verdict,
        "measures": [_measure(measure, profile, pages) for measure in axis.measures],
    }


def _measure(measure: Measure, profile: Profile, pages: Pages) -> dict[str, Any]:
    """Return one measure: a row with interval and numbers for each learner."""
    column = Column(measure.title, measure.digits)
    found = {name: figure.estimate() for name, figure in measure.figures.items()}
    # Scores are drawn from random play to the optimum, so that a narrow interval looks narrow.
    ends = (0.0, 1.0) if measure.unit in BOUNDED and not measure.difference else (0.0,)
    axis = shared_axis(found.values(), *ends)
    zero = 0.0 if measure.difference else None
    rows = []
    for name, one in found.items():
        style = style_of(name) if name in STYLES or name.startswith(FROZEN) else arm_style(name)
        marks = [] if one.missing else [Mark(one, "arm", css_colours(style))]
        rows.append(
            {
                "name": profile.rule if name == RULE else name,
                "strip": strip(marks, axis, zero),
                "text": cell(None if one.missing else one, column),
                "detail": shown_beside(measure.figures[name]),
                "n": one.n,
            }
        )
    page = pages.get((measure.source, profile.content or profile.rule, profile.world))
    return {
        "title": measure.title,
        "unit": UNIT_NAMES.get(measure.unit, measure.unit),
        "source": measure.source,
        "href": None if page is None else page.href,
        "rows": rows,
    }


def _cards(site: Site, panels: Mapping[str, list[Panel]]) -> list[dict[str, Any]]:
    """Return a card for every assay page, axis by axis; within one, as in the catalogue."""
    axes = {name: axis for axis, names in AXES.items() for name in names}
    order = [*AXES, ALL_AXES]
    pages = [(axes.get(each.plan.assay.id, ALL_AXES), each) for each in site.pages]
    pages.sort(key=lambda each: order.index(each[0]))
    return [
        {
            "axis": axis,
            "page": page,
            "coverage": f"{page.present:,} of {counted(len(page.plan.runs), 'lifetime')}, "
            f"{page.complete} of {counted(len(page.plan.cells), 'cell')} complete",
            "curve": _curve(page, most_separated(panels[page.name])),
        }
        for axis, page in pages
    ]


def _curve(page: AssayPage, panel: Panel | None) -> dict[str, Any] | None:
    if panel is None:
        return None
    styles = page_styles(page)
    condition = ", ".join(f"{axis} {label}" for axis, label in panel.labels.items())
    return {
        "caption": MEASURES[default_measure(panel)] + (f" ({condition})" if condition else ""),
        "picture": thumbnail(panel, styles),
        "legend": [style_data(arm, styles[arm]) for arm in panel.arms],
    }
