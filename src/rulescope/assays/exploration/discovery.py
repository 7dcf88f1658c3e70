"""Discovery: is a deep sea hard because the goal is not found, or because it is not kept?

This assay counts the goals themselves: a lifetime found the goal if it reached it in any episode.
(E-A5 asks whether a logged mean return was ever above zero, which misses goals between log rows;
that share is called "goal in the log" and is never larger.) The first goal has a time on three
clocks; tail success is how often the goal is reached in the end. Uniformly random play shows what
chance alone finds in as many episodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from rulescope.assays.analysis import (
    CORE_DRAWS,
    collect_tail_warnings,
    make_results,
    note_missing,
    table_note,
    without_interval,
)
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.cohorts import EVENTS
from rulescope.assays.estimates import Estimates, Label, Row, count_text, join_labels
from rulescope.assays.exploration.staircase import budget, depth_of, estimate_share, task_at
from rulescope.assays.exploration.staircase import grid as staircase_grid
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.grid import Arm, Cell, make_runs
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.render.arm_styles import arm_name
from rulescope.stats import (
    deep_sea_tail,
    estimate,
    finite_mean,
    found_goal,
    random_discovery,
    restricted_times,
    seed_blocks,
    tail_mean,
)

CHANCE = "random"
"""The arm that plays at random."""
CLOCKS = ("episodes", "interactions", "iterations")
FOUND = (
    "found: the goal was reached in at least one episode until the horizon (E-A5's \"goal in the "
    'log" misses goals between log rows), with 95 % Wilson intervals'
)
DEPTHS = (12, 14, 16)
ARMS = ("rule", "a2c", "dqn", CHANCE)


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
        else cell._replace(runs=make_runs(more, Arm(CHANCE), task=str(cell.labels["task"])))
        for cell in staircase_grid(chosen)
    ]


class Events(NamedTuple):
    """Goals in one cell's lifetimes, as far as their logs go."""

    found: Floats
    """[seeds]: whether there was any until the horizon: 1, 0, or NaN for no lifetime."""
    success: Floats
    """[seeds]: share of episodes with a goal in the last fifth of a lifetime."""
    first: Mapping[str, Floats]
    """[seeds] by clock: when the first goal was; at the horizon if there was none until then."""
    horizon: Mapping[str, float]
    """By clock: the end of the episodes that the lifetime was planned for."""
    unlogged: int
    """Episodes before the horizon that come after the last log row, and are in no log."""


def events(frame: Frame, task: Label, arm: Label) -> Events:
    """Read the goals of the lifetimes planned for one cell.

    The horizon is that of the plan: 12,000 episodes as published, whatever the log interval. A
    lifetime without a goal until then is censored there, and so is one whose first goal is later.
    """
    here = frame.part(task=task, arm=arm)
    log = {name: here.log(name)[here.planned] for name in frame.columns}
    each = here.interactions / here.iterations
    horizon = _horizon(here, depth_of(task))
    # The count only grows, so the last row is enough.
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
    """Estimate the share that found the goal, when, and how often it is reached in the end."""
    notes = note_missing(frame)
    found = Estimates()
    series: dict[str, Floats] = {}
    unlogged: dict[int, int] = {}
    with collect_tail_warnings(notes):
        for task, arm in product(frame.axes["task"], frame.axes["arm"]):
            cell, depth = events(frame, task, arm), depth_of(task)
            labels = {"arm": arm, "depth": float(depth)}
            share = estimate_share(cell.found)
            # One draw of seeds for all of a cell; random play has more seeds than learners.
            blocks = seed_blocks(len(cell.found), CORE_DRAWS)
            seeds = cell.success if share.n else None
            found.add("found", share, labels)
            found.add("success", estimate(cell.success, blocks), labels, seeds=seeds)
            for clock, times in cell.first.items():
                found.add("first", estimate(times, blocks, finite_mean), {**labels, "clock": clock})
            if not share.n:
                continue
            if arm == CHANCE:
                episodes = int(cell.horizon["episodes"])
                for quantity, value in (
                    ("chance", random_discovery(depth, episodes)),
                    ("chance-first", expected_first(depth, episodes)),
                ):
                    found.add(quantity, without_interval(value, share.n), {"depth": float(depth)})
            series[join_labels("incidence", *labels.values())] = incidence(cell)
            unlogged[depth] = cell.unlogged
    notes += _unlogged(unlogged)
    tables = tuple(table for table in (_profile(frame, found), _times(frame, found)) if table.rows)
    return make_results("discovery", frame, found, tables, notes, series)


def _unlogged(episodes: Mapping[int, int]) -> list[str]:
    """Return a note about the last episodes of lifetimes, by depth, that are in no log row."""
    some = [f"{count} at depth {depth}" for depth, count in episodes.items() if count]
    if not some:
        return []
    return [f"episodes after the last log row, in which no goal is seen: {', '.join(some)}"]


def incidence(cell: Events) -> Floats:
    """Return [2, steps]: episodes, and the share of lifetimes that had found the goal by then.

    From the beginning to the horizon, with a step at every first goal.
    """
    here = np.isfinite(cell.found)
    when = np.sort(cell.first["episodes"][cell.found == 1.0])
    times = np.concatenate([[0.0], when, [cell.horizon["episodes"]]])
    counts = np.concatenate([np.arange(len(when) + 1), [len(when)]])
    return np.stack([times, counts / max(int(here.sum()), 1)])


def _profile(frame: Frame, found: Estimates) -> Table:
    rows: list[tuple[Value, ...]] = [
        (
            int(row.labels["depth"]),
            arm_name(str(row.labels["arm"]), frame.subject),
            count_text(row.estimate),
            row.estimate,
            found.at("success", **row.labels),
            _by_chance(found, "chance", row),
        )
        for row in found.where("found")
        if row.estimate.n
    ]
    return Table(
        "tab:deepsea",
        "DeepSea: who finds the goal, and who reaches it in the end",
        (
            Column("Depth"),
            Column("Learner"),
            Column("Found"),
            Column("Share [Wilson CI]"),
            Column("Tail success [95% CI]"),
            Column("By chance, exact", 4),
        ),
        tuple(rows),
        table_note(
            frame,
            f"{FOUND}; tail success: share of episodes with a goal in the last fifth of a "
            "lifetime, integer-trimmed mean over seeds; by chance: 1 − (1 − 2^(1−N))^E at depth "
            "N, in the E episodes of a lifetime",
            CORE_DRAWS,
        ),
        tells_n=False,
    )


def _times(frame: Frame, found: Estimates) -> Table:
    rows: list[tuple[Value, ...]] = [
        (
            int(row.labels["depth"]),
            arm_name(str(row.labels["arm"]), frame.subject),
            row.estimate.n,
            *(found.at("first", **row.labels, clock=clock) for clock in CLOCKS),
            _by_chance(found, "chance-first", row),
        )
        for row in found.where("found")
        if row.estimate.n
    ]
    return Table(
        "deepsea-first-goals",
        "DeepSea: when the goal is first reached",
        (
            Column("Depth"),
            Column("Learner"),
            Column("n"),
            *(Column(f"{clock.capitalize()} [95% CI]", 0) for clock in CLOCKS),
            Column("Episodes by chance, exact", 0),
        ),
        tuple(rows),
        table_note(
            frame,
            "restricted mean: arithmetic mean over lifetimes, in which one without a goal counts "
            "with the horizon",
            CORE_DRAWS,
        ),
        tells_n=False,
    )


def _by_chance(found: Estimates, quantity: str, row: Row) -> Value:
    """Return the exact value of random play beside its own row; None beside a learner's."""
    return found.at(quantity, depth=row.labels["depth"]) if row.labels["arm"] == CHANCE else None


PRESETS = {
    "smoke": budget(1, ("rule", CHANCE), (12,), episodes=300, log_every=10),
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
    tables=("tab:deepsea",),
    figures=("deepsea-discovery",),
    cohort=EVENTS,
)
