"""E3, change: how is competence rebuilt after a change, and does retained experience help?

The rule lives on two boards, with its state live, frozen a while before the change, or without its
auxiliary losses. On the small board DQN lives beside it with three replay memories: a large one,
one of the size of the rule's, and a large one that is emptied at the switch (also where nothing
changes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rulescope.assays.analysis import CORE_DRAWS, absent, by_seed, missing, noted, summed_up
from rulescope.assays.assay import Arm, Assay, Budget, Cell, at_unit_scale, lifetimes
from rulescope.assays.change import change_tables, clear_event
from rulescope.assays.change.switch_readouts import (
    cell,
    change,
    estimated,
    frozen,
    readouts,
    streams,
    switch,
    switch_of,
)
from rulescope.assays.comparison_families import PRIMARY, REPLAY
from rulescope.assays.frame import Floats, Frame, Label
from rulescope.assays.results import Results
from rulescope.core.errors import SpecError
from rulescope.spec.run_spec import Reset
from rulescope.stats import (
    Estimate,
    attained,
    attainment,
    estimate,
    estimates,
    exact_iqm,
    finite_mean,
    paired_differences,
    restricted_times,
    seed_blocks,
    trimmed_mean,
    wilson,
)

TASKS = ("catch", "catch-long")
CONDITIONS = ("action-flip", "reward-move", "none")
DISCO = ("disco", "disco-freeze", "disco-no-aux")
REPLAYS = {"100k": "dqn", "28672": "dqn-28672", "cleared": "dqn-cleared"}
"""DQN by its replay memory, as in the keys of the primary family."""
DQN_TASK = "catch"
"""The board on which DQN lives, too."""
ARMS = (*DISCO, *REPLAYS.values())
CONTROLS = ("dqn-cleared-interactions",)
"""Not in a preset: DQN whose updates go on at once after the clearing, see
:attr:`rulescope.spec.baseline_config.DQN.start_counts`."""
THRESHOLDS = (0.8, 0.9)
"""Scores that count as competent again."""
FROZEN_FROM = 3
"""The frozen arm keeps its state from a third of the lifetime on: 1,000 of 3,000 iterations."""


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every condition, task and arm of ``budget``; DQN lives on one board."""
    at_unit_scale(budget, "E3")
    at = switch(budget.iterations, budget.log_every)
    arms = _arms(budget, at)
    cells = [
        Cell(
            {"condition": condition, "task": task, "arm": arm},
            lifetimes(budget, arms[arm], task=task, change=change(condition, at)),
        )
        for condition in budget.conditions
        for task in budget.tasks
        for arm in budget.arms
        if arm in DISCO or task == DQN_TASK
    ]
    if not cells:
        raise SpecError(f"--tasks: DQN lives in {DQN_TASK!r} only, and no other arm was asked for")
    return cells


def _arms(budget: Budget, at: int) -> dict[str, Arm]:
    """Return the learner and interventions of each arm; ``at`` is the switch."""
    clear = (Reset(carrier="replay", at=at),)
    return {
        "disco": Arm("disco"),
        "disco-freeze": frozen(budget.iterations, FROZEN_FROM),
        "disco-no-aux": Arm("disco-no-aux"),
        "dqn": Arm("dqn"),
        "dqn-28672": Arm("dqn-28672"),
        "dqn-cleared": Arm("dqn", clear),
        "dqn-cleared-interactions": Arm("dqn-start-interactions", clear),
    }


def analyse(frame: Frame) -> Results:
    """Estimate levels, times to competence, the rule minus DQN, and what auxiliary losses do."""
    read = readouts(frame)
    notes = missing(frame)
    found: dict[str, Estimate] = {}
    with noted(notes):
        for name in ("pre", "auc", "final"):
            found |= estimated(frame, read[name], name)
        attained_, delays = _attainment(frame)
        found |= attained_
        found |= _replay_contrasts(frame, read["auc"])
        found |= _auxiliary_effects(frame, read)
        events = clear_event.clear_events(frame)
        found |= clear_event.estimates(events)
        notes += clear_event.notes(events)
        series = {**streams(frame), "horizon": np.array([_horizon(frame) * _thousands(frame)])}
        for name in ("pre", "auc", "final"):
            series |= by_seed(frame, read[name], name)
        series |= delays
    cleared = clear_event.table(events)
    tables = (*change_tables.tables(frame, found), *([cleared] if cleared.rows else []))
    return summed_up("E3", frame, found, tables, notes, series)


def _attainment(frame: Frame) -> tuple[dict[str, Estimate], dict[str, Floats]]:
    """Estimate how many lifetimes become competent again after the switch, and how soon.

    And return the time of every lifetime.

    ``rmd`` is the restricted mean delay in iterations and ``time`` the same in thousands of
    interactions: both over all lifetimes, those that never attain counting with the whole horizon.
    """
    at, horizon, thousands = switch_of(frame), _horizon(frame), _thousands(frame)
    blocks = seed_blocks(len(frame.seeds), CORE_DRAWS)
    found: dict[str, Estimate] = {}
    series: dict[str, Floats] = {}
    for threshold in THRESHOLDS:
        score, episodes = frame.log("score"), frame.log("episodes")
        times = attainment(frame.iteration, score, episodes, threshold, at)
        delays = np.where(frame.lived, restricted_times(times, horizon), np.nan)
        means = estimates(delays, blocks, finite_mean)
        for key, place in frame.places():
            reached, mean = int(attained(times[place], horizon).sum()), means[place]
            found[f"attained/{key}/{threshold}"] = wilson(reached, mean.n)
            found[f"rmd/{key}/{threshold}"] = mean
            series[f"seeds/time/{key}/{threshold}"] = delays[place] * thousands
            found[f"time/{key}/{threshold}"] = replace(
                mean,
                value=mean.value * thousands,
                low=mean.low * thousands,
                high=mean.high * thousands,
            )
    return found, series


def _horizon(frame: Frame) -> float:
    """Return the iterations from the switch to the last log row."""
    return float(frame.iteration[-1]) - switch_of(frame)


def _thousands(frame: Frame) -> float:
    """Return the thousands of interactions in an iteration."""
    return frame.interactions / frame.iterations / 1000


def _replay_contrasts(frame: Frame, auc: Floats) -> dict[str, Estimate]:
    """Estimate the planned differences in area, the rule minus DQN within each seed."""
    size = PRIMARY.size
    found = {key: absent(size) for name in REPLAY for key in (name, _sensitivity(name))}
    blocks = seed_blocks(len(frame.seeds), CORE_DRAWS)
    for name in REPLAY:
        _, condition, replay = name.split("/")
        each = _differences(frame, auc, "disco", REPLAYS[replay], condition, DQN_TASK)
        if each is not None:
            found[name] = estimate(each, blocks, trimmed_mean, size)
            found[_sensitivity(name)] = estimate(each, blocks, exact_iqm, size)
    return found


def _sensitivity(name: str) -> str:
    """Return the key of the same contrast by the exact interquartile mean."""
    return name.replace("contrast/", "contrast-iqm/")


def _auxiliary_effects(frame: Frame, read: Mapping[str, Floats]) -> dict[str, Estimate]:
    """Estimate how areas and final windows differ without the auxiliary losses, within seeds."""
    found: dict[str, Estimate] = {}
    blocks = seed_blocks(len(frame.seeds), CORE_DRAWS)
    for condition in frame.axes["condition"]:
        for task in frame.axes["task"]:
            for name in ("auc", "final"):
                each = _differences(frame, read[name], "disco-no-aux", "disco", condition, task)
                if each is not None:
                    found[f"no-aux/{condition}/{task}/{name}"] = estimate(each, blocks)
    return found


def _differences(
    frame: Frame, values: Floats, first: str, second: str, condition: Label, task: Label
) -> Floats | None:
    """Return one arm minus another within each seed [seeds]; None if either was not run."""
    pair = [cell(frame, values, condition=condition, task=task, arm=arm) for arm in (first, second)]
    return None if pair[0] is None or pair[1] is None else paired_differences(pair[0], pair[1])


PRESETS = {
    "smoke": Budget(
        seeds=1,
        iterations=120,
        arms=("disco", "disco-freeze", "dqn", "dqn-cleared"),
        tasks=("catch",),
        conditions=("action-flip",),
    ),
    "quick": Budget(
        seeds=2,
        iterations=1200,
        arms=("disco", "disco-freeze", *REPLAYS.values()),
        tasks=("catch",),
        conditions=("action-flip",),
    ),
    "standard": Budget(seeds=4, iterations=3000, arms=ARMS, tasks=TASKS, conditions=CONDITIONS),
    "paper": Budget(seeds=18, iterations=3000, arms=ARMS, tasks=TASKS, conditions=CONDITIONS),
}

ASSAY = Assay(
    id="E3",
    name="change",
    question="How is competence rebuilt after a change, and does retained experience help?",
    arms=(*ARMS, *CONTROLS),
    tasks=TASKS,
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    conditions=CONDITIONS,
    columns=("score", "episodes", clear_event.COLUMN),
    states=(),
    figures=(
        "fig:detail-replay",
        "v5:fig:recovery-overview",
        "v5:fig:recovery-catch",
        "change-streams",
        "orig:behavior",
    ),
)
