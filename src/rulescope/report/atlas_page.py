"""Context of the atlas page: the audited rules side by side, in tables that can be sorted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rulescope.audit.atlas_figure import LIVE, MARKED, WITHOUT, cell_of
from rulescope.audit.atlas_folder import NAME
from rulescope.audit.atlas_rows import Atlas, AtlasRow, AtlasRule, AxisWorth
from rulescope.audit.atlas_tables import (
    NO_HISTORY,
    axis_text,
    difference_text,
    explain,
    printed,
    result_text,
)
from rulescope.audit.profile import ProfileValue
from rulescope.audit.profile_folder import BOUNDED, shown_beside
from rulescope.render.tables import DASH
from rulescope.report.css_styles import css_colours, style_data
from rulescope.report.page_templates import Sizes, figure_view, render_page
from rulescope.report.site_model import PUBLICATION, Site
from rulescope.report.svg import Mark, Strip, shared_axis, strip

HREF = "atlas.html"
FOLDER = f"{PUBLICATION}/{NAME}"
"""Folder of its figure, tables and data for print and programs."""
BADGES = {"asset": "for", "burden": "against", "both": "open"}
"""The style of each verdict; others have a plain one."""
MAIN = "The main measures; the table below has every one."
Entry = dict[str, Any]


def atlas_page(site: Site, atlas: Atlas, sizes: Sizes) -> str:
    """Return the page; ``sizes`` are those of the figures."""
    alt = "Every rule at every measure, with and without its history; the numbers are in the table."
    without = {rule.label for rule in atlas.rules if rule.verdict == NO_HISTORY}
    return render_page(
        "atlas",
        site,
        title="Atlas",
        here=HREF,
        scripts=("load.js", "atlas.js"),
        reference=atlas.reference,
        histories=histories(atlas),
        axes=atlas.axes,
        sentences=atlas.sentences,
        notes=atlas.notes,
        explained=explain(atlas),
        figure=figure_view(f"{FOLDER}/{NAME}", alt, MAIN, NAME, sizes),
        files=f"{FOLDER}/{NAME}",
        legend=[
            style_data(name, how._replace(name=name))
            for how, name in ((LIVE, "as it is"), (WITHOUT, "without its history"))
        ],
        rows=[one for line in _lines(atlas.rows) for one in _line(line, without)],
    )


def histories(atlas: Atlas) -> list[Entry]:
    """Return every rule with its answer, as a whole and along each axis."""
    return [
        {
            "rule": rule.label,
            "learner": rule.learner,
            "preset": rule.preset,
            "verdict": rule.verdict or "unknown",
            "css": BADGES.get(rule.verdict or "", "none"),
            "axes": [_axis(rule, rule.axes.get(axis)) for axis in atlas.axes],
        }
        for rule in atlas.rules
    ]


def _axis(rule: AtlasRule, found: AxisWorth | None) -> Entry:
    """Return the verdict of a cell, and what stands behind it."""
    text = axis_text(rule, found)
    if found is None:
        return {"word": text, "css": "", "detail": ""}
    detail = text.removeprefix(found.verdict).lstrip(": ").removeprefix("(").removesuffix(")")
    return {
        "word": found.verdict,
        "css": BADGES.get(found.verdict, "none"),
        "detail": detail,
    }


def _lines(rows: Iterable[AtlasRow]) -> list[list[AtlasRow]]:
    """Return the rows of each measure."""
    found: dict[tuple[str, str, str], list[AtlasRow]] = {}
    for row in rows:
        found.setdefault(row.line, []).append(row)
    return list(found.values())


def _line(rows: Sequence[AtlasRow], without: set[str]) -> list[Entry]:
    """Return the rows of one measure, drawn on one axis; rules in ``without`` have no history."""
    values = [one for row in rows for one in (row.value, row.without) if one is not None]
    drawn = [cell_of(one) for one in values]
    first = rows[0]
    ends = (0.0, 1.0) if first.unit in BOUNDED and not first.is_difference else (0.0,)
    axis = shared_axis(drawn, *ends)
    return [
        _row(
            row,
            strip(_marks(row), axis, 0.0 if row.is_difference else None),
            history=row.rule not in without,
        )
        for row in rows
    ]


def _marks(row: AtlasRow) -> list[Mark]:
    """Return the value of a row and, below it, that without the history."""
    return [
        Mark(cell_of(one), "arm", css_colours(how))
        for one, how in ((row.value, LIVE), (row.without, WITHOUT))
        if one is not None and one.value is not None
    ]


def _row(row: AtlasRow, picture: Strip | None, *, history: bool) -> Entry:
    return {
        "rule": row.rule,
        "axis": row.axis,
        "measure": row.title,
        "unit": row.unit,
        "value": _number(row.value, row.digits)
        | {"strip": picture, "detail": shown_beside(row.value)},
        "n": row.value.n,
        "seeds": ", ".join(map(str, row.seeds)),
        "difference": _number(row.difference, row.digits)
        | {"text": difference_text(row) or DASH, "marked": row.note in MARKED},
        "worth": _number(row.worth, row.digits)
        | {"against": row.against}
        | ({} if history else {"text": NO_HISTORY}),
        "result": result_text(row) or "",
        "word": row.result or "",
        "css": BADGES.get(row.result or "", "none"),
        "detail": row.reason,
    }


def _number(found: ProfileValue | None, digits: int) -> Entry:
    """Return a number as it is read, and as rows are sorted by it (empty without one)."""
    value = None if found is None else found.value
    return {"text": printed(found, digits) or DASH, "sort": "" if value is None else repr(value)}
