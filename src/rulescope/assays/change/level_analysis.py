"""Analysis of the assays that tell levels around a change in one task: E-A4x and E-A4m."""

from __future__ import annotations

from collections.abc import Mapping

from rulescope.assays.analysis import CORE_DRAWS, below, by_seed, missing, noted, summed_up
from rulescope.assays.change.change_tables import CONDITION_NAMES, TRIMMED, area, named
from rulescope.assays.change.switch_readouts import PRE_ROWS, estimated, readouts, streams
from rulescope.assays.frame import Frame
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.stats import Estimate

READOUTS = ("pre", "trough", "auc", "endpoint")
TABULATED = ("pre", "auc", "endpoint")


def analyse_levels(
    assay: str, frame: Frame, *, column: str, label: str, title: str, unit: str
) -> Results:
    """Estimate ``column`` before, at its lowest, over all and at the end, in every cell.

    ``frame`` is of conditions and arms. ``label`` and ``title`` are those of the table, ``unit``
    says what the column is.
    """
    read = readouts(frame, column)
    notes = missing(frame)
    found: dict[str, Estimate] = {}
    with noted(notes):
        for name in READOUTS:
            found |= estimated(frame, read[name], name)
        series = streams(frame, column)
        for name in READOUTS:
            series |= by_seed(frame, read[name], name)
    tables = (_table(label, title, unit, frame, found),)
    return summed_up(assay, frame, found, tables, notes, series)


def _table(label: str, title: str, unit: str, frame: Frame, found: Mapping[str, Estimate]) -> Table:
    """Return the table of levels, its rows in the alphabetical order of their names."""
    rows: list[tuple[Value, ...]] = [
        (
            CONDITION_NAMES[condition],
            named(arm, frame),
            *(found[f"{name}/{condition}/{arm}"] for name in TABULATED),
        )
        for condition in sorted(map(str, frame.axes["condition"]), key=CONDITION_NAMES.__getitem__)
        for arm in sorted(map(str, frame.axes["arm"]), key=lambda arm: named(arm, frame))
    ]
    return Table(
        label,
        title,
        (
            Column("Change"),
            Column("Condition"),
            Column("Pre", interval=False),
            Column("Post-switch AUC [95% CI]"),
            Column("Endpoint [95% CI]"),
        ),
        tuple(rows),
        below(
            frame,
            f"pre: mean of the last {PRE_ROWS} log rows up to the switch; {area(frame)}; endpoint: "
            f"the last log row; {TRIMMED}; {unit}",
            CORE_DRAWS,
        ),
    )
