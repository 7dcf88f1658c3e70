"""Discovery: is a deep sea hard because the goal is not found, or because it is not kept?

Here goals themselves are counted: a lifetime found the goal if it reached it in any of its
episodes. (E-A5 asks whether a logged mean return was ever above zero, which misses goals between
log rows; that is called "goal in the log" and is never more than this.) The first goal has a time
on three clocks; tail success is how often the goal is reached in the end. Uniformly random play
says what chance alone finds in as many episodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rulescope.assays.analysis import CORE_DRAWS, exactly, missing, noted, summed_up
from rulescope.assays.assay import Arm, Assay, Budget, Cell, lifetimes
from rulescope.assays.cohorts import EVENTS
from rulescope.assays.exploration.discovery_tables import CHANCE, tables
from rulescope.assays.exploration.staircase import budget, depth_of, share, task_at
from rulescope.assays.exploration.staircase import grid as staircase_grid
from rulescope.assays.frame import Floats, Frame, Label
from rulescope.assays.results import Results
from rulescope.stats import (
    Estimate,
    deep_sea_tail,
    estimate,
    finite_mean,
    found_goal,
    random_discovery,
    restricted_times,
    seed_blocks,
    tail_mean,
)

DEPTHS = (12, 14, 16)
ARMS = ("disco", "a2c", "dqn", CHANCE)


def campaigns(seeds: int) -> int:
    """Return how many random campaigns there are beside so many lifetimes of a learner.

    >>> campaigns(15)
    100
    """
    return seeds * 20 // 3


def grid(chosen: Budget) -> list[Cell]:
    """Return a cell for every depth and arm of ``chosen``; there are more random campaigns."""
    more = replace(chosen, seeds=campaigns(chosen.seeds))
    return [
        cell
        if cell.labels["arm"] != CHANCE
        else cell._replace(runs=lifetimes(more, Arm(CHANCE), task=str(cell.labels["task"])))
        for cell in staircase_grid(chosen)
    ]


class Events(NamedTuple):
    """What goals there were in one cell's lifetimes, as far as their logs go."""

    found: Floats
    """[seeds]: whether there was any until the horizon: 1, 0, or NaN for no lifetime."""
    success: Floats
    """[seeds]: share of episodes with a goal in the last fifth of a lifetime."""
    first: Mapping[str, Floats]
    """[seeds] by clock: when the first goal was; at the horizon if there was none until then."""
    horizon: Mapping[str, float]
    """By clock: the end of the episodes that the lifetime was planned for."""
    unlogged: int
    """Episodes before the horizon that come after the last log row: what happens there is in no
    log."""


def events(frame: Frame, task: Label, arm: Label) -> Events:
    """Read the goals of the lifetimes planned for one cell.

    The horizon is that of the plan: 12,000 episodes as published, whatever the log interval. A
    lifetime without a goal until then is censored there, and so is one whose first goal is later.
    """
    here = frame.part(task=task, arm=arm)
    log = {name: here.log(name)[here.planned] for name in frame.columns}
    each = here.interactions / here.iterations
    horizon = _horizon(here, depth_of(task))
    # A count that only grows: the last row that is there tells all.
    moments = {name: log[f"first_goal_{name}"][:, -1] for name in ("episode", "interaction")}
    times = {
        "episodes": moments["episode"],
        "interactions": moments["interaction"],
        "iterations": np.ceil(moments["interaction"] / each),
    }
    late = moments["episode"] > horizon["episodes"]
    flags = np.where(late, 0.0, found_goal(log["goals"]))
    episodes = log["episodes"][:, -1]
    logged = np.max(episodes, where=np.isfinite(episodes), initial=0.0)
    return Events(
        found=flags,
        success=tail_mean(log["success"], deep_sea_tail(here.iteration)),
        first={
            clock: np.where(np.isnan(flags), np.nan, restricted_times(time, horizon[clock]))
            for clock, time in times.items()
        },
        horizon=horizon,
        unlogged=max(int(horizon["episodes"] - logged), 0),
    )


def _horizon(here: Frame, depth: int) -> dict[str, float]:
    """Return the end of the planned episodes by clock.

    (A lifetime is whole iterations, so it may end a few interactions before or after. One that has
    many more, because there is a least number of updates, is counted to its own end.)
    """
    planned = here.episodes or 0
    if abs(planned * depth - here.interactions) > here.interactions / here.iterations:
        planned = here.interactions // depth
    return {
        "episodes": float(planned),
        "interactions": float(planned * depth),
        "iterations": float(here.iterations),
    }


def expected_first(depth: int, episodes: int) -> float:
    """Return the mean episode in which random play first reaches the goal, censored at the last.

    >>> round(expected_first(2, 2), 3)  # 1 or 2, of equal chance
    1.5
    """
    return random_discovery(depth, episodes) * 2.0 ** (depth - 1)


def analyse(frame: Frame) -> Results:
    """Estimate who found the goal, when, and how often it is reached in the end."""
    notes = missing(frame)
    made: dict[str, Estimate] = {}
    series: dict[str, Floats] = {}
    unlogged: dict[int, int] = {}
    with noted(notes):
        for task, arm, cell in _cells(frame):
            depth = depth_of(task)
            name = f"{arm}/{depth}"
            # One draw of seeds for all of a cell; random play has more seeds than learners.
            blocks = seed_blocks(len(cell.found), CORE_DRAWS)
            made[f"found/{name}"] = share(cell.found)
            made[f"success/{name}"] = estimate(cell.success, blocks)
            for clock, times in cell.first.items():
                made[f"first/{name}/{clock}"] = estimate(times, blocks, finite_mean)
            n, episodes = made[f"found/{name}"].n, int(cell.horizon["episodes"])
            if arm == CHANCE and n:
                made[f"chance/{depth}"] = exactly(random_discovery(depth, episodes), n)
                made[f"chance-first/{depth}"] = exactly(expected_first(depth, episodes), n)
            if n:
                series[f"incidence/{name}"] = incidence(cell)
                series[f"seeds/success/{name}"] = cell.success
                unlogged[depth] = cell.unlogged
    notes += _unlogged(unlogged)
    return summed_up("discovery", frame, made, tables(frame, made), notes, series)


def _unlogged(episodes: Mapping[int, int]) -> list[str]:
    """Return a note about the last episodes of lifetimes, by depth, that no log row tells of."""
    some = [f"{count} at depth {depth}" for depth, count in episodes.items() if count]
    if not some:
        return []
    return [f"episodes after the last log row, in which no goal is seen: {', '.join(some)}"]


def _cells(frame: Frame) -> Iterator[tuple[str, str, Events]]:
    for task in frame.axes["task"]:
        for arm in frame.axes["arm"]:
            yield str(task), str(arm), events(frame, task, arm)


def incidence(cell: Events) -> Floats:
    """Return [2, steps]: episodes, and the share of lifetimes that had found the goal by then.

    From the beginning to the horizon, with a step at every first goal.
    """
    here = np.isfinite(cell.found)
    when = np.sort(cell.first["episodes"][cell.found == 1.0])
    times = np.concatenate([[0.0], when, [cell.horizon["episodes"]]])
    counts = np.concatenate([np.arange(len(when) + 1), [len(when)]])
    return np.stack([times, counts / max(int(here.sum()), 1)])


PRESETS = {
    "smoke": budget(1, ("disco", CHANCE), (12,), episodes=300, log_every=10),
    "quick": budget(2, ARMS, (12,), episodes=3000),
    "standard": budget(4, ARMS, DEPTHS),
    "paper": budget(15, ARMS, DEPTHS),
}

ASSAY = Assay(
    id="discovery",
    name="discovery",
    question="Is a deep sea hard because the goal is not found, or because it is not kept?",
    arms=ARMS,
    tasks=tuple(task_at(depth) for depth in DEPTHS),
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    columns=("episodes", "goals", "success", "first_goal_interaction", "first_goal_episode"),
    states=(),
    figures=("deepsea-discovery",),
    cohort=EVENTS,
)
