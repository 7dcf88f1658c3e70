"""What the assays of a change within a lifetime share: when it comes, and what is read around it.

At half of its lifetime a learner finds one mapping of the world changed, while all that it carries
is as it was. Time counts from this switch; in the condition ``none`` nothing changes, and the
same is read at the same times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from rulescope.assays.analysis import ATLAS_DRAWS, CORE_DRAWS, final
from rulescope.assays.assay import Arm, Budget, Cell, lifetimes
from rulescope.assays.frame import Floats, Frame, Label
from rulescope.core.errors import SpecError
from rulescope.spec.run_spec import Freeze
from rulescope.spec.world_config import CHANGES, Change
from rulescope.stats import (
    Estimate,
    Statistic,
    estimates,
    post_switch_auc,
    rows_between,
    seed_blocks,
    tail_from,
    tail_mean,
    trimmed_mean,
)

NO_CHANGE = "none"
PRE_ROWS = 5
"""Log rows up to the switch that tell how well a lifetime went before it: as many as tell what a
lifetime has mastered, because one row moves by whole episodes."""
FINAL = 0.9
"""Share of a lifetime after which its final window begins."""
FIRST_STATE = 40
"""Iterations before which a state is not worth freezing: a learner first learns after 32."""


def switch(iterations: int, log_every: int) -> int:
    """Return after which iteration the world changes: half of a lifetime, at a log row.

    >>> switch(3000, 20), switch(8000, 40)
    (1500, 4000)
    """
    at = iterations // 2 // log_every * log_every
    if not at:
        raise SpecError(
            f"--iterations: {iterations} has no log row (every {log_every}) on both sides of a "
            f"change at its half; nearest: {2 * log_every}"
        )
    return at


def change(condition: str, at: int) -> Change | None:
    """Return what changes under ``condition`` after iteration ``at``."""
    return None if condition == NO_CHANGE else CHANGES[condition](at=at)


def frozen(iterations: int, part: int) -> Arm:
    """Return the arm that keeps its recurrent state from one ``part``-th of a lifetime on.

    Not from before it has learned anything, unless the lifetime would be over by then.
    """
    return Arm("disco", (Freeze(carrier="recurrent", at=frozen_at(iterations, part)),))


def frozen_at(iterations: int, part: int) -> int:
    """Return after which iteration that arm keeps its state.

    >>> frozen_at(3000, 3), frozen_at(60, 3)
    (1000, 40)
    """
    return min(max(iterations // part, FIRST_STATE), iterations - 1)


def single_task_grid(
    budget: Budget, task: str, arms: Callable[[Budget], Mapping[str, Arm]]
) -> list[Cell]:
    """Return a cell for every condition and arm of ``budget``, all in one task."""
    at = switch(budget.iterations, budget.log_every)
    known = arms(budget)
    return [
        Cell(
            {"condition": condition, "arm": arm},
            lifetimes(budget, known[arm], task=task, change=change(condition, at)),
        )
        for condition in budget.conditions
        for arm in budget.arms
    ]


def switch_of(frame: Frame) -> int:
    """Return after which iteration the world changed in the lifetimes of ``frame``."""
    return switch(frame.iterations, int(frame.iteration[0]))


def readouts(frame: Frame, column: str = "score") -> dict[str, Floats]:
    """Return what is read of every lifetime around the switch, each [*axes, seeds].

    ``pre``: mean of the last five log rows up to the switch. ``trough``: the lowest row after it.
    ``auc``: mean height from the switch to the last row. ``final``: mean of the last tenth.
    ``endpoint``: the last row. A lifetime with a missing row after the switch has neither trough
    nor area.
    """
    grid, log = frame.iteration, frame.log(column)
    at, last, every = switch_of(frame), int(grid[-1]), int(grid[0])
    lowest: Floats = log[..., rows_between(grid, at + 1, last)].min(axis=-1)
    return {
        "pre": tail_mean(log, rows_between(grid, at - (PRE_ROWS - 1) * every, at)),
        "trough": lowest,
        "auc": post_switch_auc(grid, log, at, last),
        "final": tail_mean(log, tail_from(grid, FINAL, last)),
        "endpoint": final(frame, column),
    }


def cell(frame: Frame, values: Floats, **labels: Label) -> Floats | None:
    """Return ``values`` [*axes, seeds] of one cell, [seeds]; None if the frame has not got it."""
    if any(labels[axis] not in known for axis, known in frame.axes.items()):
        return None
    found: Floats = values[tuple(known.index(labels[axis]) for axis, known in frame.axes.items())]
    return found


def estimated(
    frame: Frame, values: Floats, name: str, statistic: Statistic = trimmed_mean
) -> dict[str, Estimate]:
    """Estimate every planned cell of ``values`` [*axes, seeds] under ``name/<its labels>``."""
    found = estimates(values, seed_blocks(len(frame.seeds), CORE_DRAWS), statistic)
    return {f"{name}/{key}": found[place] for key, place in frame.places()}


def streams(frame: Frame, column: str = "score") -> dict[str, Floats]:
    """Return the log of every cell that was lived as [value, low, high] x rows, to be drawn."""
    series = {"iteration": frame.iteration, "switch": np.array([float(switch_of(frame))])}
    blocks = seed_blocks(len(frame.seeds), ATLAS_DRAWS)
    for key, place in frame.places():
        if frame.counts[place]:
            rows = estimates(frame.columns[column][place].T, blocks)
            series[f"trajectory/{key}"] = np.stack([rows.value, rows.low, rows.high])
    return series
