"""Small worlds as transition tables, and reward rates computed from them.

They verify the formulas of :mod:`rulescope.envs.references`. The tables are written from the
definitions, not from the code of the worlds, for one lane. They grow with the square of the board,
so they are for boards of the usual size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope.envs.world_config import CatchStream, DeepSea, Tracking

Table = NDArray[np.float64]


class Tables(NamedTuple):
    """Transition tables of S states and A actions with K outcomes each."""

    successors: NDArray[np.int64]
    """[S, A, K]"""
    payoffs: Table
    """[S, A, K]"""
    probabilities: Table
    """[K], the same for every state and action."""


def rate(
    tables: Tables,
    noise: float = 0.0,
    policy: NDArray[np.int64] | None = None,
    tolerance: float = 1e-13,
) -> float:
    """Return the long-run payoff per step of the optimal policy.

    With probability ``noise`` a step is random, so 0 gives the oracle, 1 a random policy, and
    values between them the best epsilon-greedy policy. A ``policy`` [S] replaces the optimal one.

    The rate must not depend on the initial state, as is the case in these tables.
    """
    values = np.zeros(len(tables.successors))
    rows = np.arange(len(values))
    while True:
        outcomes = tables.payoffs + values[tables.successors]
        action_values = outcomes @ tables.probabilities
        chosen = action_values.max(axis=1) if policy is None else action_values[rows, policy]
        after = (1 - noise) * chosen + noise * action_values.mean(axis=1)
        # The gains of one more step bound the rate from both sides, whatever the values.
        gained = after - values
        if np.ptp(gained) < tolerance:
            return float(gained.min() + gained.max()) / 2
        # Half a step: in a periodic world, whole steps would cycle forever.
        values = (values + after) / 2
        values -= values[0]


def tracking_tables(config: Tracking) -> Tables:
    """Return Tracking; the state is target * columns + cursor."""
    size = config.columns
    target, cursor = np.divmod(np.arange(size * size), size)
    cursor = _moved(cursor, [-1, 0, 1], size)[:, :, None]
    target = _moved(target, [-1, 0, 1], size)[:, None, :]
    payoffs = (cursor == target).astype(np.float64)
    return Tables(target * size + cursor, payoffs, _drift(config.drift))


def catch_stream_tables(config: CatchStream) -> Tables:
    """Return CatchStream; the state is (phase * columns + ball) * columns + paddle.

    The phase counts the steps since the ball was last on row 0.
    """
    size, period = config.columns, 2 * (config.rows - 1)
    phase, board = np.divmod(np.arange(period * size * size), size * size)
    ball, paddle = np.divmod(board, size)
    paddle = _moved(paddle, [-1, 0, 1], size)[:, :, None]
    ball = _moved(ball, [-1, 0, 1], size)[:, None, :]
    phase = ((phase + 1) % period)[:, None, None]
    paid = np.where(paddle == ball, 1.0, -1.0)
    payoffs = np.where(phase == config.rows - 1, paid, 0.0)
    return Tables((phase * size + ball) * size + paddle, payoffs, _drift(config.drift))


def deep_sea_tables(config: DeepSea) -> Tables:
    """Return DeepSea with action 1 for right; the state is row * depth + column.

    Every episode lasts ``depth`` steps, so its return is ``depth`` times the rate.
    """
    depth = config.depth
    row, column = np.divmod(np.arange(depth * depth), depth)
    column, last = _moved(column, [-1, 1], depth), (row == depth - 1)[:, None]
    goal = last & (column == depth - 1)
    payoffs = np.array([0.0, -0.01 / depth]) + goal
    successors = np.where(last, 0, (row + 1)[:, None] * depth + column)
    return Tables(successors[:, :, None], payoffs[:, :, None], np.ones(1))


def _moved(places: NDArray[np.int64], moves: Sequence[int], size: int) -> NDArray[np.int64]:
    """Return [S, moves]: each of ``places`` [S] after each of ``moves``, within the walls."""
    moved: NDArray[np.int64] = np.clip(places[:, None] + np.array(moves), 0, size - 1)
    return moved


def _drift(drift: float) -> Table:
    """Return the probabilities [3] of a move to the left, none, and to the right."""
    return np.array([drift / 2, 1 - drift, drift / 2])
