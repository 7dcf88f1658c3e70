"""Grid, analysis and table of levels around a change in one task: E-A4x and E-A4m."""

from __future__ import annotations

from rulescope.assays.analysis import (
    CORE_DRAWS,
    below,
    estimate_cells,
    missing,
    noted,
    summed_up,
)
from rulescope.assays.assay import Arm, Budget, Cell, at_unit_scale, lifetimes, sweep
from rulescope.assays.change.change_tables import CONDITION_NAMES, TRIMMED, area, system_name
from rulescope.assays.change.switch_readouts import (
    PRE_ROWS,
    change,
    frozen,
    readouts,
    streams,
    switch,
)
from rulescope.assays.estimates import Estimates
from rulescope.assays.frame import Frame, Label
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.spec.run_spec import RunSpec

READOUTS = ("pre", "trough", "auc", "endpoint")
TABULATED = ("pre", "auc", "endpoint")


def level_grid(assay: str, budget: Budget, task: str, frozen_from: int) -> list[Cell]:
    """Return a cell for every condition and arm of ``budget``, all in ``task``.

    The frozen arm keeps its state from one ``frozen_from``-th of a lifetime on.
    """
    at_unit_scale(budget, assay)
    at = switch(budget.iterations, budget.log_every)
    arms = {"disco-freeze": frozen(budget.iterations, frozen_from)}

    def runs(labels: dict[str, Label]) -> tuple[RunSpec, ...]:
        condition, arm = map(str, labels.values())
        learner = arms.get(arm, Arm(arm))
        return lifetimes(budget, learner, task=task, change=change(condition, at))

    return sweep({"condition": budget.conditions, "arm": budget.arms}, runs)


def analyse_levels(
    assay: str, frame: Frame, *, column: str, label: str, title: str, unit: str
) -> Results:
    """Estimate ``column`` before the switch, at its lowest, on average and at the end.

    ``frame`` has conditions and arms. ``label`` and ``title`` are those of the table, ``unit``
    describes the column.
    """
    read = readouts(frame, column)
    notes = missing(frame)
    found = Estimates()
    with noted(notes):
        for readout in READOUTS:
            found.update(estimate_cells(frame, readout, read[readout], CORE_DRAWS))
        series = streams(frame, column)
    tables = (_table(label, title, unit, frame, found),)
    return summed_up(assay, frame, found, tables, notes, series)


def _table(label: str, title: str, unit: str, frame: Frame, found: Estimates) -> Table:
    """Return the table of levels, its rows in the alphabetical order of their names."""
    arms = {system_name(str(arm), frame): arm for arm in frame.axes["arm"]}
    conditions = {CONDITION_NAMES[str(name)]: name for name in frame.axes["condition"]}
    rows: list[tuple[Value, ...]] = [
        (
            change,
            system,
            *(
                found.at(readout, condition=conditions[change], arm=arms[system])
                for readout in TABULATED
            ),
        )
        for change in sorted(conditions)
        for system in sorted(arms)
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
