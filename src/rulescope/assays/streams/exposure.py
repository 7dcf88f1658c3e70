"""Exposure: what changes when episode ends are not signalled, or when there are none?

The same learner runs in Catch with every episode end signalled (episodic), in Catch with none
signalled although the world still resets (masked), and in Tracking, which has no episodes
(natural).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from rulescope.assays.analysis import collect_tail_warnings, make_results, note_missing
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.cohorts import HISTORICAL
from rulescope.assays.estimates import Label
from rulescope.assays.frame import Frame
from rulescope.assays.grid import (
    CONTROLS,
    EPISODIC,
    MASKED,
    Arm,
    Cell,
    make_runs,
    require_unit_scale,
    sweep,
)
from rulescope.assays.results import Results
from rulescope.assays.streams.stream_readouts import estimate_exposures, learning_curves
from rulescope.assays.streams.stream_tables import exposure_table
from rulescope.core.errors import SpecError
from rulescope.envs.world_config import Boundary
from rulescope.run_spec import RunSpec

ID = "exposure"
ARMS = ("rule", "a2c", "ppo", "dqn")
NATURAL = "none (natural: Tracking)"
"""The exposure without ends, in words."""


class Exposure(NamedTuple):
    """A world, and which of its episode ends are signalled."""

    task: str
    boundary: Boundary


EXPOSURES = {
    "episodic": Exposure("catch", EPISODIC),
    "masked": Exposure("catch", MASKED),
    "natural": Exposure("tracking", EPISODIC),
}
TASKS = tuple(dict.fromkeys(exposure.task for exposure in EXPOSURES.values()))


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every exposure in a world of ``budget`` and every arm."""
    require_unit_scale(budget, ID)
    chosen = exposures(budget)
    if not chosen:
        raise SpecError(
            f"--tasks: none of {', '.join(budget.conditions)} is in {', '.join(budget.tasks)}; "
            "natural is in tracking, the others are in catch"
        )

    def runs(labels: dict[str, Label]) -> tuple[RunSpec, ...]:
        condition, arm = map(str, labels.values())
        task, boundary = chosen[condition]
        return make_runs(budget, CONTROLS.get(arm, Arm(arm)), task=task, boundary=boundary)

    return sweep({"condition": tuple(chosen), "arm": budget.arms}, runs)


def exposures(budget: Budget) -> dict[str, Exposure]:
    """Return the exposures of ``budget`` by condition.

    In a world that the user named: both that a world with episodes can have, or ``natural`` in one
    without.
    """
    if budget.worlds:
        task = budget.one_task("catch", ID)
        if budget.references[task].measure == "rate":
            found = {"natural": Exposure(task, EPISODIC)}
        else:
            found = {"episodic": Exposure(task, EPISODIC), "masked": Exposure(task, MASKED)}
        kept = {name: each for name, each in found.items() if name in budget.conditions}
        if not kept:
            raise SpecError(
                f"--conditions: {task!r} can be {' or '.join(found)}, not "
                f"{', '.join(budget.conditions)}"
            )
        return kept
    return {
        name: EXPOSURES[name] for name in budget.conditions if EXPOSURES[name].task in budget.tasks
    }


def analyse(frame: Frame) -> Results:
    """Estimate score, time to the threshold and share that reaches it; learning curves."""
    notes = note_missing(frame)
    with collect_tail_warnings(notes):
        found = estimate_exposures(frame)
        series = learning_curves(frame)
    natural = " in ".join(["none (natural)", *frame.worlds]) if frame.worlds else NATURAL
    table = exposure_table(
        "v5:tab:app-streams-exposures",
        f"Episode ends signalled (episodic), never signalled (masked), {natural}",
        frame,
        found,
    )
    return make_results(ID, frame, found, (table,), notes, series)


PAPER = Budget(
    seeds=18,
    iterations=6000,
    arms=ARMS,
    tasks=TASKS,
    conditions=tuple(EXPOSURES),
    log_every=40,
)
PRESETS = {
    "smoke": replace(PAPER, seeds=1, iterations=80, arms=("rule", "a2c")),
    "quick": replace(PAPER, seeds=2, iterations=1000, arms=("rule", "a2c")),
    "standard": replace(PAPER, seeds=4),
    "paper": PAPER,
}

ASSAY = Assay(
    id=ID,
    name="exposure",
    question="Does a learner need the signal of episode ends, or need there be any?",
    arms=(*ARMS, *CONTROLS),
    tasks=TASKS,
    any_world=True,
    conditions=tuple(EXPOSURES),
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    columns=("rate_score",),
    states=(),
    tables=("v5:tab:app-streams-exposures",),
    figures=("v5:fig:app-streams", "fig:behavior", "orig:behavior", "synthetic-terminals"),
    cohort=HISTORICAL,
)
