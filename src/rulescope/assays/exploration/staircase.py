"""Grid, readouts, analysis and table that the DeepSea assays share.

A lifetime has the same number of episodes at every depth, so it is longer in a deeper sea.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rulescope.assays.analysis import (
    ATLAS_DRAWS,
    collect_tail_warnings,
    make_results,
    note_missing,
    table_note,
    without_interval,
)
from rulescope.assays.budget import Budget
from rulescope.assays.estimates import Estimates, Label
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.grid import Arm, Cell, make_runs, require_unit_scale, sweep
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.core.errors import SpecError
from rulescope.envs.world_config import WORLDS, DeepSea
from rulescope.render.arm_styles import arm_name
from rulescope.render.display_names import in_printed_order
from rulescope.run_spec import RunSpec
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

ARMS = ("rule", "rule-entropy", "a2c", "ppo", "dqn")
GOAL_IN_LOG = "goal-in-log"
"""The quantity that the published table calls "ever found"."""
READOUTS = (
    "tail return: mean logged return of the last fifth of a lifetime, integer-trimmed mean over "
    "seeds; solved: a tail return of at least 0.495; goal in the log: a logged mean return ever "
    "above 0 (goals between log rows may be missed: the assay discovery counts the goals "
    "themselves); "
    "deepest majority solved: the deepest sea that at least half of the lifetimes solved"
)


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
    """Return a cell for every depth and arm; ``arms`` defines names that are not a learner's.

    DeepSea pays 1 at the goal, whatever the depth: there are no reward scales to vary.
    """
    require_unit_scale(chosen, "DeepSea")
    known = arms or {}

    def runs(labels: dict[str, Label]) -> tuple[RunSpec, ...]:
        task, arm = map(str, labels.values())
        return make_runs(chosen, known.get(arm, Arm(arm)), task=task)

    return sweep({"task": chosen.tasks, "arm": chosen.arms}, runs)


class DepthReadouts(NamedTuple):
    """Readouts of the lifetimes at one depth, each [arms, seeds]."""

    returns: Floats
    """Mean logged return of the last fifth of a lifetime."""
    solved: Floats
    """Whether that is at least half of what there is to gain: 1, 0, or NaN for no lifetime."""
    logged: Floats
    """Whether a logged return was ever above zero, which takes a goal: 1, 0 or NaN. Goals between
    log rows may leave no trace; the assay discovery counts the goals themselves."""


def read_depth(frame: Frame, task: Label) -> DepthReadouts:
    """Read the lifetimes of ``frame`` in one sea."""
    here = frame.part(task=task)
    log = here.log("mean_return")
    returns = tail_mean(log, deep_sea_tail(here.iteration))
    return DepthReadouts(returns, solved(returns), found_goal(log))


def estimate_share(flags: Floats) -> Estimate:
    """Return the share of one cell's lifetimes [seeds] whose flag is set, with its interval."""
    return wilson(int(np.nansum(flags)), int(finite_count(flags)))


def analyse(frame: Frame, assay: str, label: str, depths: tuple[int, ...]) -> Results:
    """Estimate shares that solve each depth or log a goal, final returns, and the deepest majority.

    ``label`` is that of the table, ``depths`` are all that the assay has.
    """
    notes = note_missing(frame)
    found = Estimates()
    flags = []
    with collect_tail_warnings(notes):
        for task in frame.axes["task"]:
            here = read_depth(frame, task)
            flags.append(here.solved)
            returns = estimates(here.returns, seed_blocks(len(frame.seeds), ATLAS_DRAWS))
            for i, arm in enumerate(frame.axes["arm"]):
                labels = {"arm": arm, "depth": float(depth_of(task))}
                found.add("solved", estimate_share(here.solved[i]), labels)
                found.add(GOAL_IN_LOG, estimate_share(here.logged[i]), labels)
                found.add("return", returns[i], labels, seeds=here.returns[i])
    deepest, left_out = _deepest(frame, np.stack(flags, axis=1), depths)
    found.update(deepest)
    return make_results(assay, frame, found, (_table(label, frame, found),), [*notes, *left_out])


def _deepest(frame: Frame, flags: Floats, depths: tuple[int, ...]) -> tuple[Estimates, list[str]]:
    """Return the deepest majority of every arm, from solved ``flags`` [arms, depths, seeds].

    And notes. It rests on another grid if it is over other depths than ``depths``. While a campaign
    is in progress, some depths have only a few lifetimes: a depth does not count until half of the
    seeds are there, because one lifetime is no majority.
    """
    every = np.array([depth_of(task) for task in frame.axes["task"]])
    found = Estimates()
    notes: list[str] = []
    for arm, each, n in zip(frame.axes["arm"], flags, finite_count(flags), strict=True):
        kept = (n > 0) & (2 * n >= n.max())
        value = deepest_majority(every[kept], each[kept]) if kept.any() else np.nan
        found.add(
            "deepest",
            without_interval(float(value), int(n[kept].min(initial=n.max()))),
            {"arm": arm},
            other_grid=set(every[kept].tolist()) != set(depths),
        )
        thin = every[(n > 0) & ~kept].tolist()
        if thin:
            name = arm_name(str(arm), frame.subject)
            notes.append(
                f"the deepest majority of {name} leaves out depth {', '.join(map(str, thin))}, "
                "where less than half of the lifetimes are there"
            )
    return found, notes


def _table(label: str, frame: Frame, found: Estimates) -> Table:
    """Return a row for every learner and depth that was run."""
    rows: list[tuple[Value, ...]] = []
    for arm in in_printed_order(map(str, frame.axes["arm"])):
        deepest = found.at("deepest", arm=arm)
        for row in sorted(found.where("return", arm=arm), key=lambda row: row.labels["depth"]):
            if row.estimate.n:
                rows.append(
                    (
                        arm_name(arm, frame.subject),
                        int(row.labels["depth"]),
                        row.estimate.n,
                        found.at("solved", **row.labels),
                        found.at(GOAL_IN_LOG, **row.labels),
                        row.estimate,
                        "none" if deepest.missing else int(deepest.value),
                    )
                )
    return Table(
        label,
        "DeepSea by depth: who solves it, who has a goal in the log, and final returns",
        (
            Column("Algorithm"),
            Column("Depth"),
            Column("n"),
            Column("Solved fraction", 3, interval=False),
            Column("Goal in the log", 3, interval=False),
            Column("Tail return [95% CI]", 5),
            Column("Deepest majority solved"),
        ),
        tuple(rows),
        table_note(frame, READOUTS, ATLAS_DRAWS),
        tells_n=False,
    )
