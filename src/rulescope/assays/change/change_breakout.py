"""E-A4m, change-breakout: is competence rebuilt when left and right change places in Breakout?

Returns are absolute: the return of an optimal player is unknown.
"""

from __future__ import annotations

from dataclasses import replace

from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.change.levels import analyse_levels, level_grid
from rulescope.assays.change.switch_readouts import FROZEN_WORDS
from rulescope.assays.frame import Frame
from rulescope.assays.grid import Cell
from rulescope.assays.results import Results

TASK = "minatar-breakout"
ARMS = ("rule", "rule-freeze", "a2c", "ppo")
CONDITIONS = ("action-flip", "none")
RETURN = "mean_return"
FROZEN_FROM = 4
"""The frozen arm keeps its state from a quarter of the lifetime on: 2,000 of 8,000 iterations."""
EVERY = 40
"""Iterations between two log rows."""


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every condition and arm of ``budget``."""
    return level_grid("E-A4m", budget, TASK, FROZEN_FROM)


def analyse(frame: Frame) -> Results:
    """Estimate the returns of every cell before and after the switch."""
    return analyse_levels(
        "E-A4m",
        frame,
        column=RETURN,
        label="tab:unified-recovery-breakout",
        title="Breakout: returns around a change of what actions do",
        unit="absolute return of an episode (mean of the last 100)",
    )


PAPER = Budget(
    seeds=18, iterations=8000, arms=ARMS, tasks=(TASK,), conditions=CONDITIONS, log_every=EVERY
)
PRESETS = {
    "smoke": replace(
        PAPER, seeds=1, iterations=160, arms=("rule", "a2c"), conditions=("action-flip",)
    ),
    "quick": replace(PAPER, seeds=1, iterations=1600, conditions=("action-flip",)),
    "standard": replace(PAPER, seeds=4),
    "paper": PAPER,
}

ASSAY = Assay(
    id="E-A4m",
    name="change-breakout",
    question="Is competence rebuilt in Breakout, too, when left and right change places?",
    arms=ARMS,
    tasks=(TASK,),
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    conditions=CONDITIONS,
    columns=(RETURN,),
    states=(),
    tables=("tab:unified-recovery-breakout",),
    figures=("fig:behavior", "v5:fig:recovery-overview", "change-streams", "orig:behavior"),
    arm_words={"rule-freeze": FROZEN_WORDS},
)
