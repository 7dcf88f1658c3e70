"""E-A5, exploration: how deep a sea is solved before chance alone no longer finds the goal?

Five learners run for 12,000 episodes in seas of five depths. The reward lies at the end of one path
of moves to the right, each of which costs a little.
"""

from __future__ import annotations

from rulescope.assays.assay import Assay
from rulescope.assays.exploration.staircase import ARMS, budget, grid, task_at
from rulescope.assays.exploration.staircase import analyse as analyse_staircase
from rulescope.assays.frame import Frame
from rulescope.assays.results import Results

DEPTHS = (8, 10, 12, 14, 16)


def analyse(frame: Frame) -> Results:
    """Estimate shares that solve each depth or log a goal, final returns, deepest majorities."""
    return analyse_staircase(frame, "E-A5", "v5:tab:app-exploration-reference", DEPTHS)


PRESETS = {
    "smoke": budget(1, ("rule", "a2c"), (8,), episodes=400, log_every=10),
    "quick": budget(2, ("rule", "a2c", "dqn"), (8, 10), episodes=4000),
    "standard": budget(4, ARMS, DEPTHS),
    "paper": budget(15, ARMS, DEPTHS),
}

ASSAY = Assay(
    id="E-A5",
    name="exploration",
    question="How deep does a reward have to lie until the rule no longer finds and keeps it?",
    arms=ARMS,
    tasks=tuple(task_at(depth) for depth in DEPTHS),
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    columns=("mean_return",),
    states=(),
    tables=("v5:tab:app-exploration-reference",),
    figures=("fig:behavior", "v5:fig:app-exploration", "orig:behavior"),
)
