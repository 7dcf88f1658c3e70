"""Tracking: keep a cursor on a randomly moving target; there are no episodes."""

from __future__ import annotations

import numpy as np

from rulescope.core import seeds
from rulescope.envs.environment import (
    Actions,
    Array,
    ColumnWorld,
    State,
    Step,
    clip_columns,
    drift_columns,
)
from rulescope.envs.references import tracking_references
from rulescope.envs.world_config import Tracking


class TrackingEnv(ColumnWorld):
    """``lanes`` boards of [2, columns]: row 0 shows the target, row 1 the cursor.

    The target starts in a uniformly drawn column, the cursor in ``columns // 2``. In one step the
    cursor moves (clipped at the walls), then the target moves one column to a random side with
    probability ``drift`` (clipped too). A step pays 1 if both are then in one column, else 0.
    """

    def __init__(self, config: Tracking, lanes: int) -> None:
        super().__init__(lanes, config.columns)
        self.config = config
        self.actions = 3
        self.observation_shape = (2, config.columns)
        self.references = tracking_references(config)
        self._targets = np.zeros(lanes, np.int64)
        self._cursors = np.zeros(lanes, np.int64)

    def reset(self, seed: int) -> Array:
        """Start every lane anew from ``seed`` and return the first boards [N, 2, columns]."""
        self._seed(seed)
        self._targets = np.array([stream.integers(self.columns) for stream in self._streams])
        self._cursors = np.full(self.lanes, self.columns // 2)
        return self._boards()

    def step(self, actions: Actions) -> Step:
        """Move every cursor: 0 left, 1 stay, 2 right (``actions`` is [N])."""
        moves = np.array(self._checked(actions)) - 1
        wall = self.columns - 1
        self._cursors = clip_columns(self._cursors + moves, wall)
        self._targets = drift_columns(self._targets, self._draws(), self.config.drift, wall)
        met = self._cursors == np.array(self.rewarded)[self._targets]
        payoff = met.astype(np.float64)
        never = np.zeros(self.lanes, np.bool_)
        return Step(self._boards(), payoff.astype(np.float32), never, payoff, never.copy())

    def save(self) -> State:
        """Return ``targets`` [N], ``cursors`` [N] and the packed ``streams`` [N, 6]."""
        return {
            "streams": self._packed(),
            "targets": self._targets.copy(),
            "cursors": self._cursors.copy(),
        }

    def load(self, state: State) -> None:
        """Restore a state that :meth:`save` returned, also in an env that was never reset."""
        shapes = {"targets": (self.lanes,), "cursors": (self.lanes,), "streams": (self.lanes, 6)}
        arrays = self._verified(state, shapes)
        self._targets = np.array(arrays["targets"], np.int64)
        self._cursors = np.array(arrays["cursors"], np.int64)
        self._streams = [seeds.unpack(words) for words in arrays["streams"]]

    def _boards(self) -> Array:
        """Return the boards in a new array [N, *observation_shape]."""
        boards = np.zeros((self.lanes, *self.observation_shape), np.float32)
        lanes = np.arange(self.lanes)
        boards[lanes, 0, self._targets] = 1.0
        boards[lanes, 1, self._cursors] = 1.0
        return boards
