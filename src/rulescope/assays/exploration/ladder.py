"""Ladder: the staircase of E-A5 from depth 4 to 30, by the rule as it was first indexed.

The historical convention appends a bootstrap observation and takes the trace coefficient one step
later (agent ``legacy``). No number of this ladder was published.
"""

from __future__ import annotations

from dataclasses import replace

from rulescope.assays.cohorts import LADDER
from rulescope.assays.exploration.exploration import ASSAY as EXPLORATION
from rulescope.assays.exploration.staircase import ARMS, budget, task_at
from rulescope.assays.exploration.staircase import analyse as analyse_staircase
from rulescope.assays.frame import Frame
from rulescope.assays.results import Results

DEPTHS = (4, 6, 8, 10, 12, 14, 16, 20, 24, 30)


def analyse(frame: Frame) -> Results:
    """Estimate shares that solve each depth or log a goal, final returns, deepest majorities."""
    return analyse_staircase(frame, "ladder", "ladder", DEPTHS)


PRESETS = {
    "smoke": budget(1, ("rule", "a2c"), (4, 6), episodes=400, log_every=10),
    "quick": budget(2, ("rule", "a2c", "dqn"), (4, 6, 8), episodes=4000),
    "standard": budget(2, ARMS, DEPTHS),
    "paper": budget(15, ARMS, DEPTHS),
}

ASSAY = replace(
    EXPLORATION,
    id="ladder",
    name="ladder",
    question="Where does each learner stop, from a sea of depth 4 to one of depth 30?",
    tasks=tuple(task_at(depth) for depth in DEPTHS),
    presets=PRESETS,
    analyse=analyse,
    tables=(),
    figures=("ladder",),
    cohort=LADDER,
)
