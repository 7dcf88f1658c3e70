"""E-POP, popart: over which reward scales does explicit normalisation of values help?

A2C with and without PopArt in Catch at three reward scales. A second question is put to PopArt at
the smallest: whether the floor below which its deviation cannot fall was ever what it divided by.
It is about every update, so those lifetimes log every one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rulescope.assays.analysis import (
    ATLAS_DRAWS,
    SCORE,
    below,
    in_words,
    missing,
    noted,
    summed_up,
    tail15,
)
from rulescope.assays.assay import Arm, Assay, Budget, Cell, lifetimes
from rulescope.assays.cohorts import NO_DISCO
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.results import Column, Results, Table, Value, scale_label
from rulescope.core.errors import SpecError
from rulescope.stats import Estimate, estimates, seed_blocks, wilson

ARMS = ("a2c", "a2c-popart")
SCALES = (1e-3, 1.0, 1e3)
CONDITIONS = ("score", "floor")
"""What lifetimes are for: to be scored, or to see how near the deviation comes to its floor."""
FLOOR = ("a2c-popart", 1e-3)
"""Whose deviation might come near its floor, and at which reward scale."""
LOGGED = {"floor": 1}
"""Iterations between log rows, if not those of the budget."""


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every arm and scale of ``budget``, and one for the floor."""
    cells = [
        Cell(
            {"condition": condition, "arm": arm, "scale": scale},
            lifetimes(
                replace(budget, log_every=LOGGED.get(condition, budget.log_every)),
                Arm(arm),
                scale=scale,
            ),
        )
        for condition in budget.conditions
        for arm in budget.arms
        for scale in sorted(budget.scales)
        if condition == "score" or (arm, scale) == FLOOR
    ]
    if not cells:
        raise SpecError(f"--conditions: the floor is that of {FLOOR[0]} at scale {FLOOR[1]:g}")
    return cells


def analyse(frame: Frame) -> Results:
    """Estimate the score of every cell, and in how many lifetimes the floor was never reached."""
    notes = missing(frame)
    found: dict[str, Estimate] = {}
    series: dict[str, Floats] = {}
    with noted(notes):
        if "score" in frame.axes["condition"]:
            part = frame.part(condition="score")
            scores = tail15(part)
            cells = estimates(scores, seed_blocks(len(part.seeds), ATLAS_DRAWS))
            for i, j in np.ndindex(cells.value.shape):
                found[f"score/{_name(part, i, j)}"] = cells[i, j]
                series[f"seeds/score/{_name(part, i, j)}"] = scores[i, j]
        if "floor" in frame.axes["condition"]:
            part = frame.part(condition="floor")
            for i, j in zip(*np.nonzero(part.lengths), strict=True):
                found[f"floor/{_name(part, i, j)}"] = _above(part, i, j)
    tables = tuple(table for table in (_scores(frame, found), _floor(frame, found)) if table.rows)
    return summed_up("E-POP", frame, found, tables, notes, series)


def _name(frame: Frame, i: int, j: int) -> str:
    return f"{frame.axes['arm'][i]}/{scale_label(float(frame.axes['scale'][j]))}"


def _above(frame: Frame, i: int, j: int) -> Estimate:
    """Return the share of lifetimes whose deviation was above its floor after every update."""
    lived = frame.lived[i, j]
    margins = frame.log("floor_margin")[i, j][lived]
    return wilson(int((margins > 0).all(axis=-1).sum()), int(lived.sum()))


def _scores(frame: Frame, found: Mapping[str, Estimate]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for scale in (scale_label(float(scale)) for scale in frame.axes["scale"]):
        for arm in frame.axes["arm"]:
            score = found.get(f"score/{arm}/{scale}")
            if score is not None:
                rows.append((str(arm), scale, score.n, score))
    return Table(
        "v5:tab:app-popart",
        "A2C with and without PopArt by reward scale",
        (Column("Algorithm"), Column("Reward scale"), Column("n"), Column("Score [95% CI]", 5)),
        tuple(rows),
        below(frame, SCORE.format(part="15 % of the log"), ATLAS_DRAWS),
        tells_n=False,
    )


def _floor(frame: Frame, found: Mapping[str, Estimate]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for key in (key for key in found if key.startswith("floor/")):
        _, arm, scale = key.split("/")
        above = found[key]
        count = None if above.missing else f"{round(above.value * above.n)}/{above.n}"
        rows.append((arm, scale, count, above))
    return Table(
        "tab:popart-floor",
        "Lifetimes in which the deviation stayed above its floor",
        (
            Column("Algorithm"),
            Column("Reward scale"),
            Column("Lifetimes"),
            Column("Share [95% CI]"),
        ),
        tuple(rows),
        f"{in_words(frame)}; above the floor after every single update; Wilson intervals.",
        tells_n=False,
    )


_ONE = Budget(seeds=1, iterations=2000, arms=ARMS, scales=SCALES, conditions=CONDITIONS)

PRESETS = {
    "smoke": replace(_ONE, iterations=60),
    "quick": replace(_ONE, seeds=2, iterations=600),
    "standard": replace(_ONE, seeds=4),
    "paper": replace(_ONE, seeds=12),
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
    figures=("v5:fig:app-baselines",),
    cohort=NO_DISCO,
)
