"""What the DeepSea assays share: seas by depth, lifetimes of so many episodes, and their readouts.

A lifetime has the same number of episodes at every depth, so it is the longer the deeper the sea.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rulescope.assays.analysis import ATLAS_DRAWS, exactly, missing, noted, summed_up
from rulescope.assays.assay import Arm, Budget, Cell, at_unit_scale, lifetimes
from rulescope.assays.display_names import arm_name
from rulescope.assays.exploration.staircase_tables import GOAL_IN_LOG, staircase
from rulescope.assays.frame import Floats, Frame, Label
from rulescope.assays.results import Results
from rulescope.core.errors import SpecError
from rulescope.spec.world_config import WORLDS, DeepSea
from rulescope.stats import (
    Estimate,
    deep_sea_tail,
    deepest_majority,
    estimates,
    finite_count,
    found_goal,
    seed_blocks,
    solved,
    tail_mean,
    updates_for_depth,
    wilson,
)
from rulescope.stats.solve_rates import EPISODES

ARMS = ("disco", "disco-entropy", "a2c", "ppo", "dqn")


def task_at(depth: int) -> str:
    """Return the name of the sea of this depth."""
    return f"deep-sea-{depth}"


def depth_of(task: Label) -> int:
    """Return how deep a sea is."""
    world = WORLDS[str(task)]
    if not isinstance(world, DeepSea):
        raise SpecError(f"--tasks: {task!r} has no depth")
    return world.depth


def budget(
    seeds: int,
    arms: tuple[str, ...],
    depths: tuple[int, ...],
    *,
    episodes: int = EPISODES,
    log_every: int = 40,
) -> Budget:
    """Return a budget of lifetimes with so many ``episodes`` at each of ``depths``."""
    return Budget(
        seeds=seeds,
        iterations=max(updates_for_depth(depth, episodes) for depth in depths),
        arms=arms,
        tasks=tuple(task_at(depth) for depth in depths),
        log_every=log_every,
        episodes=episodes,
    )


def grid(chosen: Budget, arms: Mapping[str, Arm] | None = None) -> list[Cell]:
    """Return a cell for every depth and arm; ``arms`` tells what names that are no learner's are.

    DeepSea pays 1 at the goal, whatever the depth: there are no reward scales to vary.
    """
    at_unit_scale(chosen, "DeepSea")
    known = arms or {}
    return [
        Cell({"task": task, "arm": arm}, lifetimes(chosen, known.get(arm, Arm(arm)), task=task))
        for task in chosen.tasks
        for arm in chosen.arms
    ]


class Dives(NamedTuple):
    """What the lifetimes at one depth came to, each [arms, seeds]."""

    returns: Floats
    """Mean logged return of the last fifth of a lifetime."""
    solved: Floats
    """Whether that is at least half of what there is to gain: 1, 0, or NaN for no lifetime."""
    logged: Floats
    """Whether a logged return was ever above zero, which takes a goal: 1, 0 or NaN. Goals between
    log rows may leave no trace; the assay discovery counts the goals themselves."""


def dives(frame: Frame, task: Label) -> Dives:
    """Read the lifetimes of ``frame`` in one sea."""
    here = frame.part(task=task)
    log = here.log("mean_return")
    returns = tail_mean(log, deep_sea_tail(here.iteration))
    return Dives(returns, solved(returns), found_goal(log))


def share(flags: Floats) -> Estimate:
    """Return the share of one cell's lifetimes [seeds] whose flag is set, with its interval."""
    return wilson(int(np.nansum(flags)), int(finite_count(flags)))


def analyse(frame: Frame, assay: str, label: str, depths: tuple[int, ...]) -> Results:
    """Estimate who solves which depth, who has a goal in the log, final returns, and how deep.

    ``label`` is that of the table, ``depths`` are all that the assay has.
    """
    notes = missing(frame)
    made: dict[str, Estimate] = {}
    series: dict[str, Floats] = {}
    flags = []
    with noted(notes):
        for task in frame.axes["task"]:
            here = dives(frame, task)
            flags.append(here.solved)
            cells = estimates(here.returns, seed_blocks(len(frame.seeds), ATLAS_DRAWS))
            for i, arm in enumerate(frame.axes["arm"]):
                name = f"{arm}/{depth_of(task)}"
                made[f"solved/{name}"] = share(here.solved[i])
                made[f"{GOAL_IN_LOG}/{name}"] = share(here.logged[i])
                made[f"return/{name}"] = cells[i]
                series[f"seeds/return/{name}"] = here.returns[i]
    deepest, other_grid, told = _deepest(frame, np.stack(flags, axis=1), depths)
    made |= deepest
    table = staircase(
        label, frame, made, {str(task): depth_of(task) for task in frame.axes["task"]}
    )
    return summed_up(assay, frame, made, (table,), [*notes, *told], series, other_grid)


def _deepest(
    frame: Frame, flags: Floats, depths: tuple[int, ...]
) -> tuple[dict[str, Estimate], frozenset[str], list[str]]:
    """Return the deepest majority of every arm, from solved ``flags`` [arms, depths, seeds].

    And which of them are over other depths than ``depths``, and notes. A campaign in progress has
    a lifetime or two at depths where most are still missing: such a depth does not count until
    half of the seeds are there, because one lifetime is no majority.
    """
    every = np.array([depth_of(task) for task in frame.axes["task"]])
    counts = finite_count(flags)
    made: dict[str, Estimate] = {}
    other: set[str] = set()
    notes: list[str] = []
    for arm, each, n in zip(frame.axes["arm"], flags, counts, strict=True):
        kept = (n > 0) & (2 * n >= n.max())
        key = f"deepest/{arm}"
        value = deepest_majority(every[kept], each[kept]) if kept.any() else np.nan
        made[key] = exactly(float(value), int(n[kept].min(initial=n.max())))
        if set(every[kept].tolist()) != set(depths):
            other.add(key)
        thin = every[(n > 0) & ~kept].tolist()
        if thin:
            name = arm_name(str(arm), frame.subject)
            notes.append(
                f"the deepest majority of {name} leaves out depth {', '.join(map(str, thin))}, "
                "where less than half of the lifetimes are there"
            )
    return made, frozenset(other), notes
