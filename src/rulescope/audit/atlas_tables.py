"""Tables of an atlas: the answers, the measures, and every row for programs; sorted by a column."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from rulescope.assays.results import Column, Table, Value
from rulescope.audit.atlas_rows import IS_REFERENCE, SCORE, Atlas, AtlasRow, AtlasRule, AxisWorth
from rulescope.audit.atlas_sentences import COMPETENCE
from rulescope.audit.evidence import AT_SCALE
from rulescope.audit.history_answer import LEAST_SEEDS, describe_groups, with_interval
from rulescope.audit.profile import ProfileValue
from rulescope.core.errors import SpecError, nearest
from rulescope.render.tables import cell
from rulescope.stats import COMPETENT

NO_HISTORY = "no history"
NOT_ASKED = "not asked"
HEADLINES = (*COMPETENCE, "0.8")
"""Keys of the measures of the short table, beside those where the history is judged."""
HEADLINE_UNITS = ("return",)
INTERVALS = (
    "Square brackets are 95 % intervals over seeds; round brackets the lowest and highest seed, "
    "where there are too few for an interval."
)
SCORES = f"Score: 0 is random play, 1 is optimal, {COMPETENT:g} counts as competent."
"""In the worlds of the assays, whose optimal play is known."""
DIFFERENCES = (
    "Differences are taken within seeds, between rules with one budget; all of one "
    "measure share one error rate of 5 %. Worth of the history: the rule with its history minus "
    "the same rule without it, within seeds; where a result stands beside it, all such intervals "
    f"of one rule share one error rate. Nothing is claimed from fewer than {LEAST_SEEDS} seeds."
)

SORTS: dict[str, Callable[[AtlasRow], str | float | None]] = {
    "rule": lambda row: row.rule,
    "axis": lambda row: row.axis,
    "measure": lambda row: row.measure,
    "value": lambda row: row.value.value,
    "n": lambda row: float(row.value.n),
    "difference": lambda row: None if row.difference is None else row.difference.value,
    "worth": lambda row: None if row.worth is None else row.worth.value,
    "result": lambda row: row.result,
    "verdict": lambda row: row.verdict,
    "note": lambda row: row.note or None,
}
"""The columns by which rows are sorted: words from A to Z, numbers from the largest on."""


def sort_atlas(atlas: Atlas, column: str | None) -> Atlas:
    """Return ``atlas`` with its rows sorted by ``column``, or as it is if that is None.

    Rows without an entry there come last; rows that are equal there stay in their order.
    """
    if column is None:
        return atlas
    require_column(column)
    entries = [(SORTS[column](row), row) for row in atlas.rows]
    words = sorted((one for one in entries if isinstance(one[0], str)), key=lambda one: str(one[0]))
    numbers = sorted(
        (one for one in entries if isinstance(one[0], float)), key=lambda one: -float(one[0] or 0.0)
    )
    missing = [one for one in entries if one[0] is None]
    return replace(atlas, rows=tuple(row for _, row in (*words, *numbers, *missing)))


def require_column(column: str) -> None:
    """Raise unless rows can be sorted by ``column``."""
    if column not in SORTS:
        raise SpecError(f"--sort: no column {column!r}{nearest(column, SORTS)}")


def headlines(atlas: Atlas) -> list[AtlasRow]:
    """Return the rows of the short table: competence, and where any history is judged.

    Without the scores at single reward scales: their best and their window stand for them.
    """
    lines = {
        row.line
        for row in atlas.rows
        if (row.result is not None and not row.key.startswith(AT_SCALE))
        or row.key in HEADLINES
        or row.unit in HEADLINE_UNITS
    }
    return [row for row in atlas.rows if row.line in lines]


def histories_table(atlas: Atlas) -> Table:
    """Return the answer of every rule, as a whole and along each axis."""
    axes = atlas.axes
    rows: list[tuple[Value, ...]] = [
        (
            rule.label,
            rule.preset,
            rule.verdict or "unknown",
            *(axis_text(rule, rule.axes.get(axis)) for axis in axes),
        )
        for rule in atlas.rules
    ]
    heads = ("Rule", "Preset", "History", *(axis.capitalize() for axis in axes))
    return Table(
        "atlas-histories",
        "What the history of each rule is worth",
        tuple(map(Column, heads)),
        tuple(rows),
        "Of an asset or burden: the place that shows it most, live − without the history, with its "
        "interval; of both: the same for each direction; of neither: the largest difference; "
        "undecided: why.",
        tells_n=False,
    )


def axis_text(rule: AtlasRule, found: AxisWorth | None) -> str:
    """Return what the history of a rule does along an axis, in a cell of a table."""
    if found is None:
        return NO_HISTORY if rule.verdict == NO_HISTORY else NOT_ASKED
    if found.verdict == "undecided":
        return f"undecided ({found.reason})"
    if found.worth is None:
        return found.verdict
    shows = found.verdict != "neither" and found.places > 1
    at = f" {found.place}" if shows and found.place else ""
    text = f"{found.verdict}{at}: {with_interval(found.worth, found.digits)}"
    if found.opposite is None:
        return text
    where = f"{found.opposite_place}: " if found.opposite_place else ""
    return f"{text}; {where}{with_interval(found.opposite, found.digits)}"


def measures_table(atlas: Atlas, rows: Sequence[AtlasRow], title: str) -> Table:
    """Return ``rows`` as they are read; axis and measure stand in the first of several alike."""
    earlier = [None, *rows]
    without = {rule.label for rule in atlas.rules if rule.verdict == NO_HISTORY}
    return Table(
        "atlas",
        title,
        (
            Column("Axis"),
            Column("Measure"),
            Column("Rule"),
            Column("Value"),
            Column("n", 0),
            Column(f"− {atlas.reference}"),
            Column("Worth of history"),
            Column("Result"),
        ),
        tuple(
            (
                "" if before is not None and before.axis == row.axis else row.axis,
                "" if before is not None and before.line == row.line else row.title,
                row.rule,
                value_text(row),
                row.value.n,
                difference_text(row),
                NO_HISTORY if row.rule in without else printed(row.worth, row.digits),
                result_text(row),
            )
            for before, row in zip(earlier, rows, strict=False)
        ),
        explain(atlas),
        tells_n=False,
    )


def explain(atlas: Atlas) -> str:
    """Return what the numbers of an atlas are: in every world, what its scores are measured by."""
    parts = [INTERVALS]
    if any(not rule.world for rule in atlas.rules):
        parts.append(SCORES)
    for world, references in dict.fromkeys((rule.world, rule.references) for rule in atlas.rules):
        if world:
            scored = any(row.unit == SCORE for row in atlas.rows if row.world == world)
            competent = f" A score of {COMPETENT:g} counts as competent." if scored else ""
            parts.append(f"In {world}: {references or 'references unknown'}.{competent}")
    return " ".join([*parts, DIFFERENCES])


def value_text(row: AtlasRow) -> str | None:
    """Return a value with its interval, and the two groups of lifetimes or the window behind it."""
    number = printed(row.value, row.digits)
    if number is None:
        return None
    more = ""
    if row.value.window is not None:
        more = row.value.window.label
    elif row.value.groups is not None:
        more = describe_groups(row.value.groups)
    return f"{number}; {more}" if more else number


def difference_text(row: AtlasRow) -> str | None:
    """Return the difference from the reference, or why there is none."""
    if row.note:
        return f"({row.note})" if row.note == IS_REFERENCE else row.note
    return printed(row.difference, row.digits)


def result_text(row: AtlasRow) -> str | None:
    """Return what the history does in a row, with the reason where that is undecided."""
    if row.result == "undecided" and row.reason:
        return f"undecided: {row.reason}"
    return row.result


def printed(found: ProfileValue | None, digits: int) -> str | None:
    """Return a number as it is read; None without one."""
    if found is None or found.value is None:
        return None
    return cell(found.estimate(), Column("", digits))


def data_table(atlas: Atlas) -> Table:
    """Return every row with all that is known of it, a column for each number."""
    words = ("rule", "world", "axis", "measure", "key", "unit", "source", "budget")
    numbers = ("value", "difference", "without", "worth")
    parts = ("", "_low", "_high", "_n", "_interval")
    after = ("against", "result", "reason", "verdict", "note", "seeds", "by_seed")
    heads = (*words, *(f"{name}{part}" for name in numbers for part in parts), *after)
    rows: list[tuple[Value, ...]] = []
    for row in atlas.rows:
        rows.append(
            (
                *(getattr(row, name) for name in words),
                *(part for name in numbers for part in _parts(getattr(row, name))),
                *(row.against, row.result, row.reason, row.verdict, row.note),
                " ".join(map(str, row.seeds)),
                " ".join(repr(value) for value in row.value.seeds if value is not None),
            )
        )
    return Table("atlas", "Every row", tuple(map(Column, heads)), tuple(rows), "", tells_n=False)


def _parts(found: ProfileValue | None) -> tuple[Value, ...]:
    """Return value, bounds, n and kind of interval as plain values."""
    if found is None or found.value is None:
        return (None,) * 5
    bounds = (math.nan if one is None else one for one in (found.low, found.high))
    return (found.value, *bounds, found.n, found.method)
