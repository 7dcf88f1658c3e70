"""The switch within a lifetime, and readouts before and after it.

At half of a lifetime one mapping of the world changes, while the learner keeps everything that it
carries. Time counts from this switch. In the condition ``none`` nothing changes; the same is read
at the same times.
"""

from __future__ import annotations

import numpy as np

from rulescope.assays.analysis import last_row, trajectories
from rulescope.assays.budget import Budget
from rulescope.assays.estimates import Label
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.grid import Arm
from rulescope.core.errors import SpecError
from rulescope.envs.world_config import CHANGES, Change
from rulescope.run_spec import Freeze
from rulescope.stats import post_switch_auc, rows_between, tail_from, tail_mean

NO_CHANGE = "none"
PRE_ROWS = 5
"""Log rows up to the switch whose mean is the level before it: as many as for mastery, because one
row moves by whole episodes."""
FINAL = 0.9
"""Share of a lifetime after which its final window begins."""
FROZEN_WORDS = "the history is kept from before the switch on, all else goes on learning"
"""Explains the frozen arm below figures."""
FIRST_STATE = 40
"""No state is frozen before this iteration: a learner first learns after 32."""


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


def frozen(part: int) -> Arm:
    """Return the arm that keeps its recurrent state from one ``part``-th of a lifetime on.

    Never before it has learned anything, unless the lifetime would be over by then.
    """

    def freeze(budget: Budget) -> tuple[Freeze]:
        return (Freeze(carrier="recurrent", at=frozen_at(budget.iterations, part)),)

    return Arm("rule", freeze, words=FROZEN_WORDS)


def frozen_at(iterations: int, part: int) -> int:
    """Return after which iteration that arm keeps its state.

    >>> frozen_at(3000, 3), frozen_at(60, 3)
    (1000, 40)
    """
    return min(max(iterations // part, FIRST_STATE), iterations - 1)


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
        "endpoint": last_row(frame, column),
    }


def cell_values(frame: Frame, values: Floats, **labels: Label) -> Floats | None:
    """Return ``values`` [*axes, seeds] of one cell, [seeds]; None if the frame has no such cell."""
    if any(labels[axis] not in known for axis, known in frame.axes.items()):
        return None
    found: Floats = values[tuple(known.index(labels[axis]) for axis, known in frame.axes.items())]
    return found


def streams(frame: Frame, column: str = "score") -> dict[str, Floats]:
    """Return the log of every cell with its band, its iterations and the switch, to be drawn."""
    return {
        "iteration": frame.iteration,
        "switch": np.array([float(switch_of(frame))]),
        **trajectories(frame, column),
    }
