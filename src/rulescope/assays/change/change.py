"""E3, change: how is competence rebuilt after a change, and does retained experience help?

The rule runs on two boards: with its state live, with its state frozen some time before the change,
and without its auxiliary losses. On the small board DQN runs with three replay memories: a large
one, one of the size of the rule's, and a large one that is emptied at the switch (also where
nothing changes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np

from rulescope.assays.analysis import (
    CORE_DRAWS,
    add_differences,
    collect_tail_warnings,
    estimate_cells,
    make_results,
    missing_estimate,
    note_missing,
)
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.change import change_tables, clear_event
from rulescope.assays.change.switch_readouts import (
    cell_values,
    change,
    frozen,
    readouts,
    streams,
    switch,
    switch_of,
)
from rulescope.assays.comparison_families import PRIMARY
from rulescope.assays.estimates import Estimates, Label
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.grid import Arm, Cell, arm_words, make_runs, require_unit_scale, sweep
from rulescope.assays.results import Results
from rulescope.core.errors import SpecError
from rulescope.envs.world_config import change_problem
from rulescope.run_spec import Reset, RunSpec
from rulescope.stats import (
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
SWITCHED = ("action-flip", "reward-move")
CONDITIONS = (*SWITCHED, "none")
DISCO = ("rule", "rule-freeze", "rule-no-aux")
REPLAYS = {"100k": "dqn", "28672": "dqn-28672", "cleared": "dqn-cleared"}
"""The arm of DQN with each replay memory, in the order of the primary family."""
REPLACING = {"a2c": "a2c-cbp", "ppo": "ppo-cbp", "dqn": "dqn-cbp"}
"""Baselines, and the arms in which they have Continual Backprop."""
DQN_TASK = "catch"
"""The board on which baselines run, too."""
THRESHOLDS = (0.8, 0.9)
"""Scores that count as competent again."""
FROZEN_FROM = 3
"""The frozen arm keeps its state from a third of the lifetime on: 1,000 of 3,000 iterations."""


def _clear_replay(budget: Budget) -> tuple[Reset]:
    """Return the intervention that empties the replay at the switch."""
    return (Reset(carrier="replay", at=switch(budget.iterations, budget.log_every)),)


ARMS = {
    "rule": Arm("rule"),
    "rule-freeze": frozen(FROZEN_FROM),
    "rule-no-aux": Arm("rule-no-aux", words="without auxiliary losses"),
    "dqn": Arm("dqn"),
    "dqn-28672": Arm(
        "dqn-28672", words="as many transitions in replay as the learner of Disco103 has"
    ),
    "dqn-cleared": Arm("dqn", _clear_replay, words="replay emptied at the switch"),
    "dqn-cleared-interactions": Arm("dqn-start-interactions", _clear_replay),
    "a2c": Arm("a2c"),
    "ppo": Arm("ppo"),
    **{
        arm: Arm(arm, words="hidden units of little use are replaced (Continual Backprop)")
        for arm in REPLACING.values()
    },
}
PUBLISHED = (*DISCO, *REPLAYS.values())
"""The other arms are in no preset: DQN whose updates go on at once after the clearing, see
:attr:`rulescope.learners.baseline_config.DQN.start_counts`; and baselines with Continual Backprop
and without."""


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every condition, task and arm of ``budget``; baselines run on one board."""
    require_unit_scale(budget, "E3")
    at = switch(budget.iterations, budget.log_every)

    def runs(labels: dict[str, Label]) -> tuple[RunSpec, ...]:
        condition, task, arm = map(str, labels.values())
        if arm not in DISCO and task != DQN_TASK and task in TASKS:
            return ()
        changed = change(condition, at)
        if changed is not None and change_problem(budget.world(task), changed) is not None:
            return ()
        return make_runs(budget, ARMS[arm], task=task, change=changed)

    axes = {"condition": budget.conditions, "task": budget.tasks, "arm": budget.arms}
    cells = sweep(axes, runs)
    if not cells and budget.worlds:
        raise SpecError(
            f"--conditions: none of {', '.join(budget.conditions)} is possible in "
            f"{', '.join(budget.tasks)}"
        )
    if not cells:
        raise SpecError(
            f"--tasks: baselines run in {DQN_TASK!r} only, and no other arm was asked for"
        )
    return cells


def analyse(frame: Frame) -> Results:
    """Estimate levels, times to competence, the rule minus DQN, and what auxiliary losses do."""
    read = readouts(frame)
    notes = note_missing(frame)
    found = Estimates()
    with collect_tail_warnings(notes):
        for readout in ("pre", "auc", "final"):
            found.update(estimate_cells(frame, readout, read[readout], CORE_DRAWS))
        if frame.normalised:
            found.update(_attainment(frame))
        found.update(_replay_contrasts(frame, read["auc"]))
        found.update(_auxiliary_effects(frame, read))
        found.update(_replacement_effects(frame, read))
        series = {**streams(frame), "horizon": np.array([_horizon(frame) * _thousands(frame)])}
    events = clear_event.clear_events(frame)
    found.update(clear_event.estimates(events))
    notes += clear_event.notes(events)
    made = (*change_tables.tables(frame, found), clear_event.table(events))
    tables = tuple(table for table in made if table.rows)
    return make_results("E3", frame, found, tables, notes, series)


def _attainment(frame: Frame) -> Estimates:
    """Estimate how many lifetimes become competent again after the switch, and how soon.

    ``rmd`` is the restricted mean delay in iterations and ``time`` the same in thousands of
    interactions: both over all lifetimes, those that never attain counting with the whole horizon.
    """
    at, horizon, thousands = switch_of(frame), _horizon(frame), _thousands(frame)
    blocks = seed_blocks(len(frame.seeds), CORE_DRAWS)
    score, episodes = frame.log("score"), frame.log("episodes")
    found = Estimates()
    for threshold in THRESHOLDS:
        times = attainment(frame.iteration, score, episodes, threshold, at)
        delays = np.where(frame.completed, restricted_times(times, horizon), np.nan)
        means = estimates(delays, blocks, finite_mean)
        for cell, place in frame.cells():
            labels = {**cell, "threshold": threshold}
            mean = means[place]
            reached = int(attained(times[place], horizon).sum())
            time = replace(
                mean,
                value=mean.value * thousands,
                low=mean.low * thousands,
                high=mean.high * thousands,
            )
            found.add("attained", wilson(reached, mean.n), labels)
            found.add("rmd", mean, labels)
            found.add("time", time, labels, seeds=delays[place] * thousands)
    return found


def _horizon(frame: Frame) -> float:
    """Return the iterations from the switch to the last log row."""
    return float(frame.iteration[-1]) - switch_of(frame)


def _thousands(frame: Frame) -> float:
    """Return the thousands of interactions in an iteration."""
    return frame.interactions / frame.iterations / 1000


def _replay_contrasts(frame: Frame, auc: Floats) -> Estimates:
    """Estimate the planned differences in area, the rule minus DQN within each seed."""
    size = PRIMARY.size
    blocks = seed_blocks(len(frame.seeds), CORE_DRAWS)
    statistics = {"contrast": trimmed_mean, "contrast-iqm": exact_iqm}
    found = Estimates()
    tasks = frame.axes["task"]
    board = DQN_TASK if DQN_TASK in tasks or not frame.worlds else tasks[0]
    for condition, (replay, arm) in product(SWITCHED, REPLAYS.items()):
        each = _differences(frame, auc, "rule", arm, condition, board)
        labels = {"condition": condition, "replay": replay}
        for quantity, statistic in statistics.items():
            one = (
                missing_estimate(size) if each is None else estimate(each, blocks, statistic, size)
            )
            found.add(quantity, one, labels, seeds=each)
    return found


def _auxiliary_effects(frame: Frame, read: Mapping[str, Floats]) -> Estimates:
    """Estimate how areas and final windows differ without the auxiliary losses, within seeds."""
    blocks = seed_blocks(len(frame.seeds), CORE_DRAWS)
    found = Estimates()
    for condition, task, readout in product(
        frame.axes["condition"], frame.axes["task"], ("auc", "final")
    ):
        each = _differences(frame, read[readout], "rule-no-aux", "rule", condition, task)
        if each is not None:
            labels = {"condition": condition, "task": task, "readout": readout}
            found.add("no-aux", estimate(each, blocks), labels, seeds=each)
    return found


def _replacement_effects(frame: Frame, read: Mapping[str, Floats]) -> Estimates:
    """Estimate how areas and final windows differ with Continual Backprop, within seeds."""
    found = Estimates()
    for condition, (arm, replacing), readout in product(
        frame.axes["condition"], REPLACING.items(), ("auc", "final")
    ):
        each = _differences(frame, read[readout], replacing, arm, condition, DQN_TASK)
        if each is not None:
            labels = {"condition": condition, "task": DQN_TASK, "arm": arm, "readout": readout}
            add_differences(found, "replacement", labels, each)
    return found


def _differences(
    frame: Frame, values: Floats, first: str, second: str, condition: Label, task: Label
) -> Floats | None:
    """Return one arm minus another within each seed [seeds]; None if either was not run."""
    pair = [
        cell_values(frame, values, condition=condition, task=task, arm=arm)
        for arm in (first, second)
    ]
    return None if pair[0] is None or pair[1] is None else paired_differences(pair[0], pair[1])


PAPER = Budget(seeds=18, iterations=3000, arms=PUBLISHED, tasks=TASKS, conditions=CONDITIONS)
_FLIP = replace(PAPER, tasks=("catch",), conditions=("action-flip",))
PRESETS = {
    "smoke": replace(
        _FLIP, seeds=1, iterations=120, arms=("rule", "rule-freeze", "dqn", "dqn-cleared")
    ),
    "quick": replace(
        _FLIP, seeds=2, iterations=1200, arms=("rule", "rule-freeze", *REPLAYS.values())
    ),
    "standard": replace(PAPER, seeds=4),
    "paper": PAPER,
}

ASSAY = Assay(
    id="E3",
    name="change",
    question="How is competence rebuilt after a change, and does retained experience help?",
    arms=tuple(ARMS),
    tasks=TASKS,
    any_world=True,
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    conditions=CONDITIONS,
    columns=("score", "episodes", clear_event.COLUMN),
    states=(),
    tables=(
        "tab:e3-all",
        "tab:e3-thresholds",
        "tab:unified-recovery-action_flip",
        "tab:unified-recovery-reward_move",
        "tab:unified-recovery-none",
        "tab:unified-recovery-noaux",
    ),
    figures=(
        "fig:detail-replay",
        "v5:fig:recovery-overview",
        "v5:fig:recovery-catch",
        "change-streams",
        "orig:behavior",
    ),
    arm_words=arm_words(ARMS),
)
