"""Every estimate of an assay as tables, with the published value beside ours."""

from __future__ import annotations

import math
from typing import NamedTuple

from rulescope.assays.comparison import Comparison, apart
from rulescope.assays.published_agreement import as_estimate
from rulescope.assays.results import Column, Table, Value, counted, span
from rulescope.render.tables import cell
from rulescope.report.site_model import AssayPage
from rulescope.stats import Estimate

SMALL, LARGE = 0.1, 1000.0
"""Thresholds below which three decimals are too few, and above which they are too many."""
PUBLISHED = "Published"
OURS = 2
"""Index of our value in a row; the published one comes after it, if there is any."""


class Kind(NamedTuple):
    """The estimates of one kind: the first word of their keys."""

    name: str
    table: Table

    @property
    def published(self) -> bool:
        """Whether any of the estimates has a published value."""
        return any(column.heading == PUBLISHED for column in self.table.columns)

    def pair(self, index: int) -> list[Estimate | None]:
        """Return our estimate and the published one of a row; None where there is none."""
        row = self.table.rows[index]
        found = [row[OURS], row[OURS + 1] if self.published else None]
        return [one if isinstance(one, Estimate) else None for one in found]


def estimate_kinds(page: AssayPage) -> list[Kind]:
    """Return all estimates of ``page``, kind by kind, in the order of the analysis."""
    kinds: dict[str, dict[str, Estimate]] = {}
    for key, found in page.results.estimates.items():
        kinds.setdefault(key.partition("/")[0], {})[key] = found
    return [Kind(name, _table(page, name, found)) for name, found in kinds.items()]


def _table(page: AssayPage, name: str, found: dict[str, Estimate]) -> Table:
    compared = {key: row for key, row in page.comparisons.items() if key in found}
    theirs = {key: as_estimate(row.published) for key, row in compared.items()}
    digits = decimals([*found.values(), *theirs.values()])
    # Disagreements first; estimates without a published value last.
    ordered = [*compared, *(key for key in found if key not in compared)]
    rows: list[tuple[Value, ...]] = [
        (
            key.partition("/")[2] or name,
            one.n,
            None if one.missing else one,
            theirs.get(key),
            apart(compared[key]) if key in compared else None,
            compared[key].agreement.words if key in compared else None,
            one.family if one.family > 1 else None,
            _interval_method(one),
            span(page.results.windows, key),
        )
        for key, one in ((key, found[key]) for key in ordered)
    ]
    columns = (
        Column("Estimate"),
        Column("n", 0),
        Column("Ours", digits),
        Column(PUBLISHED, digits),
        Column("Ours − published", digits),
        Column("Verdict"),
        Column("Family", 0),
        Column("Interval"),
        Column("Window"),
    )
    used = [i for i in range(len(columns)) if i <= OURS or any(row[i] is not None for row in rows)]
    return Table(
        label=f"{page.results.assay}-{name}",
        title=f"Estimates of the kind {name}",
        columns=tuple(columns[i] for i in used),
        rows=tuple(tuple(row[i] for i in used) for row in rows),
        note="",
        tells_n=False,
    )


def compared_texts(row: Comparison) -> tuple[str, str]:
    """Return our estimate and the published one as printed."""
    theirs = as_estimate(row.published)
    column = Column("", decimals([row.ours, theirs]))
    return cell(row.ours, column), cell(theirs, column)


def decimals(found: list[Estimate]) -> int:
    """Return the number of decimals for these values: rewards per interaction are small."""
    ends = (end for one in found for end in (one.value, one.low, one.high))
    largest = max((abs(end) for end in ends if math.isfinite(end)), default=0.0)
    if 0.0 < largest < SMALL:
        return 6
    return 0 if largest >= LARGE else 3


def _interval_method(found: Estimate) -> str | None:
    """Return the kind of interval of an estimate in words."""
    if found.missing:
        return "not estimable"
    if found.method == "range":
        return "range of the seeds" if found.n > 1 else None
    if found.method == "none" or math.isnan(found.low):
        return None
    named = {"bootstrap": f"bootstrap, {found.draws:,} draws", "wilson": "Wilson"}
    adjusted = f", adjusted for {found.family}" if found.family > 1 else ""
    return f"95%, {named.get(found.method, found.method)}{adjusted}"


def interval_methods(page: AssayPage) -> str:
    """Return the kinds of intervals and the families of all estimates of ``page`` in words."""
    known = [one for one in page.results.estimates.values() if not one.missing]
    draws = sorted({one.draws for one in known if one.method == "bootstrap" and one.draws})
    texts = [f"95% percentile intervals of {draws[-1]:,} seed-block draws"] if draws else []
    texts += ["95% Wilson intervals"] if any(one.method == "wilson" for one in known) else []
    if any(one.method == "range" and one.n > 1 for one in known):
        texts.append("the range over the seeds where there are fewer than three")
    for family in sorted({one.family for one in known if one.family > 1}):
        count = counted(sum(one.family == family for one in known), "estimate")
        texts.append(f"{count} adjusted for a family of {family}")
    return "; ".join(texts) or "none"
