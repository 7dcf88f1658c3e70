"""E-A4x, mapping: what is left of competence when what is seen, or what pays, is turned around?

The board is shown mirrored, or catches are charged and misses paid. Scores keep the references
from before the switch: when the sign of the reward is turned, random play is worth 0.857.
"""

from __future__ import annotations

from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.change.change_tables import SCORE
from rulescope.assays.change.levels import analyse_levels, level_grid
from rulescope.assays.change.switch_readouts import FROZEN_WORDS
from rulescope.assays.frame import Frame
from rulescope.assays.grid import Cell
from rulescope.assays.results import Results

ARMS = ("rule", "rule-freeze", "a2c")
CONDITIONS = ("observation-flip", "reward-sign", "none")
FROZEN_FROM = 3
"""The frozen arm keeps its state from a third of the lifetime on: 1,000 of 3,000 iterations."""


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every condition and arm of ``budget``."""
    return level_grid("E-A4x", budget, "catch", FROZEN_FROM)


def analyse(frame: Frame) -> Results:
    """Estimate the levels of every cell before and after the switch."""
    return analyse_levels(
        "E-A4x",
        frame,
        column="score",
        label="tab:unified-recovery-mapping",
        title="Catch: levels around a change of what is seen, or of what pays",
        unit=SCORE,
    )


PRESETS = {
    "smoke": Budget(
        seeds=1, iterations=120, arms=("rule", "a2c"), conditions=("observation-flip",)
    ),
    "quick": Budget(
        seeds=2, iterations=1000, arms=ARMS, conditions=("observation-flip", "reward-sign")
    ),
    "standard": Budget(seeds=4, iterations=3000, arms=ARMS, conditions=CONDITIONS),
    "paper": Budget(seeds=12, iterations=3000, arms=ARMS, conditions=CONDITIONS),
}

ASSAY = Assay(
    id="E-A4x",
    name="mapping",
    question="What is left of competence when what is seen, or what pays, is turned around?",
    arms=ARMS,
    tasks=("catch",),
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    conditions=CONDITIONS,
    columns=("score",),
    states=(),
    tables=("tab:unified-recovery-mapping",),
    figures=("v5:fig:recovery-overview", "v5:fig:recovery-mapping", "change-streams"),
    arm_words={"rule-freeze": FROZEN_WORDS},
)
