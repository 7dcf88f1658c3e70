"""Synthetic terminals: does the true signal of episode ends help, or any regular signal?

Catch resets as usual, but an end is signalled at every 7th, 29th or 100th step of a lane, whatever
the world does. Every 7th step of 8x8 Catch is the truth; a signal at every 29th falls between two
rollouts.
"""

from __future__ import annotations

from dataclasses import replace

from rulescope.assays.analysis import collect_tail_warnings, make_results, note_missing
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.cohorts import HISTORICAL
from rulescope.assays.estimates import Label
from rulescope.assays.frame import Frame
from rulescope.assays.grid import Arm, Cell, make_runs, require_unit_scale, sweep
from rulescope.assays.results import Results
from rulescope.assays.streams.stream_readouts import estimate_exposures
from rulescope.assays.streams.stream_tables import exposure_table
from rulescope.envs.world_config import Boundary
from rulescope.run_spec import RunSpec

ID = "synthetic"
ARMS = ("rule", "a2c")
INTERVALS = {f"synth{steps}": steps for steps in (7, 29, 100)}
"""Steps of a lane between two signals."""


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every interval and arm of ``budget``."""
    require_unit_scale(budget, ID)

    def runs(labels: dict[str, Label]) -> tuple[RunSpec, ...]:
        condition, arm = map(str, labels.values())
        boundary = Boundary(terminals="synthetic", interval=INTERVALS[condition])
        return make_runs(budget, Arm(arm), boundary=boundary)

    return sweep({"condition": budget.conditions, "arm": budget.arms}, runs)


def analyse(frame: Frame) -> Results:
    """Estimate score, time to the threshold and share that reaches it."""
    notes = note_missing(frame)
    with collect_tail_warnings(notes):
        found = estimate_exposures(frame)
    table = exposure_table(
        "v5:tab:app-streams-synthetic",
        "Catch in which an end is signalled at every 7th, 29th or 100th step",
        frame,
        found,
    )
    return make_results(ID, frame, found, (table,), notes)


PAPER = Budget(seeds=18, iterations=6000, arms=ARMS, conditions=tuple(INTERVALS), log_every=40)
PRESETS = {
    "smoke": replace(PAPER, seeds=1, iterations=80),
    "quick": replace(PAPER, seeds=2, iterations=1000),
    "standard": replace(PAPER, seeds=4),
    "paper": PAPER,
}

ASSAY = Assay(
    id=ID,
    name="synthetic-terminals",
    question="Is it the truth about episode ends that helps a learner, or any regular signal?",
    arms=ARMS,
    tasks=("catch",),
    conditions=tuple(INTERVALS),
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    columns=("rate_score",),
    states=(),
    tables=("v5:tab:app-streams-synthetic",),
    figures=("synthetic-terminals",),
    cohort=HISTORICAL,
)
