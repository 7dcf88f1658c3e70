"""Synthetic terminals: is it the truth about episode ends that helps, or any regular signal?

Catch resets as ever, but what the learner is told is a signal at every 7th, 29th or 100th step of
a lane, whatever the world does. Every 7th step of 8x8 Catch is the truth; a signal at every 29th
falls between two rollouts.
"""

from __future__ import annotations

from rulescope.assays.analysis import by_seed, missing, noted, summed_up
from rulescope.assays.assay import Arm, Assay, Budget, Cell, at_unit_scale, lifetimes
from rulescope.assays.cohorts import HISTORICAL
from rulescope.assays.frame import Frame
from rulescope.assays.results import Results
from rulescope.assays.streams.stream_readouts import exposed, late
from rulescope.assays.streams.stream_tables import synthetics
from rulescope.spec.world_config import Boundary

ID = "synthetic"
ARMS = ("disco", "a2c")
INTERVALS = {f"synth{steps}": steps for steps in (7, 29, 100)}
"""Steps of a lane between two signals."""


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every interval and arm of ``budget``."""
    at_unit_scale(budget, ID)
    return [
        Cell(
            {"condition": name, "arm": arm},
            lifetimes(
                budget,
                Arm(arm),
                boundary=Boundary(terminals="synthetic", interval=INTERVALS[name]),
            ),
        )
        for name in budget.conditions
        for arm in budget.arms
    ]


def analyse(frame: Frame) -> Results:
    """Estimate score, time to the threshold and share that reaches it."""
    notes = missing(frame)
    with noted(notes):
        found = exposed(frame)
    series = by_seed(frame, late(frame), "score")
    return summed_up(ID, frame, found, (synthetics(frame, found),), notes, series)


def _budget(seeds: int, iterations: int) -> Budget:
    return Budget(
        seeds=seeds,
        iterations=iterations,
        arms=ARMS,
        conditions=tuple(INTERVALS),
        log_every=40,
    )


ASSAY = Assay(
    id=ID,
    name="synthetic-terminals",
    question="Is it the truth about episode ends that helps a learner, or any regular signal?",
    arms=ARMS,
    tasks=("catch",),
    conditions=tuple(INTERVALS),
    presets={
        "smoke": _budget(1, 80),
        "quick": _budget(2, 1000),
        "standard": _budget(4, 6000),
        "paper": _budget(18, 6000),
    },
    grid=grid,
    analyse=analyse,
    columns=("rate_score",),
    states=(),
    figures=("synthetic-terminals",),
    cohort=HISTORICAL,
)
