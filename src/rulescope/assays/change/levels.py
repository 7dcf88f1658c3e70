"""Grid, analysis and table of levels around a change in one task: E-A4x and E-A4m."""

from __future__ import annotations

from rulescope.assays.analysis import (
    CORE_DRAWS,
    collect_tail_warnings,
    estimate_cells,
    make_results,
    note_missing,
    table_note,
)
from rulescope.assays.budget import Budget
from rulescope.assays.change.change_tables import CONDITION_NAMES, TRIMMED, area, systems
from rulescope.assays.change.switch_readouts import (
    PRE_ROWS,
    change,
    frozen,
    readouts,
    streams,
    switch,
)
from rulescope.assays.estimates import Estimates, Label
from rulescope.assays.frame import Frame
from rulescope.assays.grid import Arm, Cell, make_runs, require_unit_scale, sweep
from rulescope.assays.pivot import Entry, Index, names, pivot_table
from rulescope.assays.results import Column, Results, Table
from rulescope.run_spec import RunSpec

READOUTS = ("pre", "trough", "auc", "endpoint")


def level_grid(assay: str, budget: Budget, task: str, frozen_from: int) -> list[Cell]:
    """Return a cell for every condition and arm of ``budget``, all in ``task``.

    The frozen arm keeps its state from one ``frozen_from``-th of a lifetime on.
    """
    require_unit_scale(budget, assay)
    at = switch(budget.iterations, budget.log_every)
    arms = {"rule-freeze": frozen(frozen_from)}

    def runs(labels: dict[str, Label]) -> tuple[RunSpec, ...]:
        condition, arm = map(str, labels.values())
        learner = arms.get(arm, Arm(arm))
        return make_runs(budget, learner, task=task, change=change(condition, at))

    return sweep({"condition": budget.conditions, "arm": budget.arms}, runs)


def analyse_levels(
    assay: str, frame: Frame, *, column: str, label: str, title: str, unit: str
) -> Results:
    """Estimate ``column`` before the switch, at its lowest, on average and at the end.

    ``frame`` has conditions and arms. ``label`` and ``title`` are those of the table, ``unit``
    describes the column.
    """
    read = readouts(frame, column)
    notes = note_missing(frame)
    found = Estimates()
    with collect_tail_warnings(notes):
        for readout in READOUTS:
            found.update(estimate_cells(frame, readout, read[readout], CORE_DRAWS))
        series = streams(frame, column)
    tables = (_table(label, title, unit, frame, found),)
    return make_results(assay, frame, found, tables, notes, series)


def _table(label: str, title: str, unit: str, frame: Frame, found: Estimates) -> Table:
    """Return the table of levels, its rows in the alphabetical order of their names."""
    changes = Index("Change", "condition", names(frame.axes["condition"], CONDITION_NAMES))
    return pivot_table(
        label,
        title,
        found,
        (by_name(changes), by_name(systems(frame))),
        (
            Entry(Column("Pre", interval=False), "pre"),
            Entry(Column("Post-switch AUC [95% CI]"), "auc"),
            Entry(Column("Endpoint [95% CI]"), "endpoint"),
        ),
        table_note(
            frame,
            f"pre: mean of the last {PRE_ROWS} log rows up to the switch; {area(frame)}; endpoint: "
            f"the last log row; {TRIMMED}; {unit}",
            CORE_DRAWS,
        ),
    )


def by_name(index: Index) -> Index:
    """Return a column of labels in the alphabetical order of their names."""
    return index._replace(names=dict(sorted(index.names.items(), key=lambda item: item[1])))
