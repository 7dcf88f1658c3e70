"""E-POP, popart: over which reward scales does explicit normalisation of values help?

A2C with and without PopArt in Catch at three reward scales. A second question is put to PopArt at
the smallest: whether its deviation ever fell to its floor. It is about every update, so those
lifetimes log every one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rulescope.assays.analysis import (
    ATLAS_DRAWS,
    SCORE,
    collect_tail_warnings,
    describe_budget,
    estimate_cells,
    make_results,
    note_missing,
    table_note,
    tail15,
)
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.cohorts import NO_DISCO
from rulescope.assays.estimates import Estimates, Label, Row, label_text
from rulescope.assays.frame import Frame
from rulescope.assays.grid import Arm, Cell, make_runs, sweep
from rulescope.assays.pivot import Entry, Index, keep_filled, names, pivot_table
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.core.errors import SpecError
from rulescope.run_spec import RunSpec
from rulescope.stats import wilson

ARMS = ("a2c", "a2c-popart")
SCALES = (1e-3, 1.0, 1e3)
CONDITIONS = ("score", "floor")
"""What lifetimes are for: the score, or the distance of the deviation from its floor."""
FLOOR = ("a2c-popart", 1e-3)
"""The arm whose deviation might come near its floor, and the reward scale."""
LOGGED = {"floor": 1}
"""Iterations between log rows, if not those of the budget."""


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every arm and scale of ``budget``, and one for the floor."""

    def runs(at: Mapping[str, Label]) -> tuple[RunSpec, ...]:
        condition, arm, scale = str(at["condition"]), str(at["arm"]), float(at["scale"])
        if condition == "floor" and (arm, scale) != FLOOR:
            return ()
        log_every = LOGGED.get(condition, budget.log_every)
        return make_runs(replace(budget, log_every=log_every), Arm(arm), scale=scale)

    cells = sweep(
        {"condition": budget.conditions, "arm": budget.arms, "scale": sorted(budget.scales)}, runs
    )
    if not cells:
        raise SpecError(f"--conditions: the floor is that of {FLOOR[0]} at scale {FLOOR[1]:g}")
    return cells


def analyse(frame: Frame) -> Results:
    """Estimate the score of every cell, and in how many lifetimes the floor was never reached."""
    notes = note_missing(frame)
    found = Estimates()
    with collect_tail_warnings(notes):
        if "score" in frame.axes["condition"]:
            part = frame.part(condition="score")
            found.update(estimate_cells(part, "score", tail15(part), ATLAS_DRAWS))
        if "floor" in frame.axes["condition"]:
            found.update(_above(frame.part(condition="floor")))
    tables = keep_filled(_scores(frame, found), _floor(frame, found))
    return make_results("E-POP", frame, found, tables, notes)


def _above(frame: Frame) -> Estimates:
    """Estimate the share of lifetimes whose deviation was above its floor after every update."""
    found = Estimates()
    for labels, place in frame.cells():
        completed = frame.completed[place]
        above = (frame.log("floor_margin")[place][completed] > 0).all(axis=-1)
        found.add("floor", wilson(int(above.sum()), int(completed.sum())), labels)
    return found


def _scores(frame: Frame, found: Estimates) -> Table:
    rows: list[tuple[Value, ...]] = [
        (str(arm), label_text(scale), row.estimate.n, row.estimate)
        for scale in frame.axes["scale"]
        for arm in frame.axes["arm"]
        if (row := found.find("score", arm=arm, scale=scale)) is not None
    ]
    return Table(
        "v5:tab:app-popart",
        "A2C with and without PopArt by reward scale",
        (Column("Algorithm"), Column("Reward scale"), Column("n"), Column("Score [95% CI]", 5)),
        tuple(rows),
        table_note(frame, SCORE.format(part="15 % of the log"), ATLAS_DRAWS),
        tells_n=False,
    )


def _floor(frame: Frame, found: Estimates) -> Table:
    return pivot_table(
        "tab:popart-floor",
        "Lifetimes in which the deviation stayed above its floor",
        found,
        (
            Index("Algorithm", "arm", names(frame.axes["arm"])),
            Index("Reward scale", "scale", names(frame.axes["scale"])),
        ),
        (
            Entry(Column("Lifetimes"), "floor", show=_count_above),
            Entry(Column("Share [95% CI]"), "floor"),
        ),
        f"{describe_budget(frame)}; above the floor after every single update; Wilson intervals.",
        tells_n=False,
    )


def _count_above(row: Row) -> Value:
    share = row.estimate
    return None if share.missing else f"{round(share.value * share.n)}/{share.n}"


PAPER = Budget(seeds=12, iterations=2000, arms=ARMS, scales=SCALES, conditions=CONDITIONS)
PRESETS = {
    "smoke": replace(PAPER, seeds=1, iterations=60),
    "quick": replace(PAPER, seeds=2, iterations=600),
    "standard": replace(PAPER, seeds=4),
    "paper": PAPER,
}

ASSAY = Assay(
    id="E-POP",
    name="popart",
    question="Over which reward scales does explicit normalisation of values help?",
    arms=ARMS,
    tasks=("catch",),
    conditions=CONDITIONS,
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    columns=("score", "floor_margin"),
    states=(),
    tables=("v5:tab:app-popart",),
    figures=("v5:fig:app-baselines",),
    cohort=NO_DISCO,
)
