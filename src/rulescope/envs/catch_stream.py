"""CatchStream: Catch without episodes. The ball bounces, the paddle is never moved back."""

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
from rulescope.envs.references import catch_stream_references
from rulescope.envs.world_config import CatchStream


class CatchStreamEnv(ColumnWorld):
    """``lanes`` boards of [rows, columns], 1 at the ball and at the paddle; no episode ever ends.

    The ball starts on row 0 in a uniformly drawn column, going down, and the paddle in column
    ``columns // 2``. In one step the paddle moves (clipped at the walls), the ball moves one row
    on, and with probability ``drift`` also one column to a random side (clipped). On the last row
    a catch pays +1, a miss -1, and the ball turns up; on row 0 it turns down again. So there is a
    contact at step ``rows - 1`` and then every ``2 * (rows - 1)`` steps.
    """

    def __init__(self, config: CatchStream, lanes: int) -> None:
        super().__init__(lanes, config.columns)
        self.config = config
        self.actions = 3
        self.observation_shape = (config.rows, config.columns)
        self.references = catch_stream_references(config)
        # All lanes start on row 0 and every ball moves one row a step, so they share the row.
        self._row = 0
        self._direction = 1
        self._balls = np.zeros(lanes, np.int64)
        self._paddles = np.zeros(lanes, np.int64)

    def reset(self, seed: int) -> Array:
        """Start every lane anew from ``seed`` and return the first boards [N, rows, columns]."""
        self._seed(seed)
        self._row, self._direction = 0, 1
        self._balls = np.array([stream.integers(self.columns) for stream in self._streams])
        self._paddles = np.full(self.lanes, self.columns // 2)
        return self._boards()

    def step(self, actions: Actions) -> Step:
        """Move every paddle: 0 left, 1 stay, 2 right (``actions`` is [N])."""
        moves = np.array(self._checked(actions)) - 1
        wall = self.columns - 1
        self._paddles = clip_columns(self._paddles + moves, wall)
        self._row += self._direction
        self._balls = drift_columns(self._balls, self._draws(), self.config.drift, wall)
        payoff = np.zeros(self.lanes)
        if self._row == self.config.rows - 1:
            caught = self._paddles == np.array(self.rewarded)[self._balls]
            payoff = np.where(caught, 1.0, -1.0)
            self._direction = -1
        elif self._row == 0:
            self._direction = 1
        never = np.zeros(self.lanes, np.bool_)
        return Step(self._boards(), payoff.astype(np.float32), never, payoff, never.copy())

    def save(self) -> State:
        """Return ``row`` [], ``direction`` [], ``balls`` [N], ``paddles`` [N], ``streams`` [N, 6].

        ``direction`` is 1 for down and -1 for up.
        """
        return {
            "streams": self._packed(),
            "row": np.array(self._row),
            "direction": np.array(self._direction),
            "balls": self._balls.copy(),
            "paddles": self._paddles.copy(),
        }

    def load(self, state: State) -> None:
        """Restore a state that :meth:`save` returned, also in an env that was never reset."""
        lanes = (self.lanes,)
        shapes: dict[str, tuple[int, ...]] = {"row": (), "direction": ()}
        shapes |= {"balls": lanes, "paddles": lanes, "streams": (self.lanes, 6)}
        arrays = self._verified(state, shapes)
        self._row, self._direction = int(arrays["row"]), int(arrays["direction"])
        self._balls = np.array(arrays["balls"], np.int64)
        self._paddles = np.array(arrays["paddles"], np.int64)
        self._streams = [seeds.unpack(words) for words in arrays["streams"]]

    def _boards(self) -> Array:
        """Return the boards in a new array [N, *observation_shape]."""
        boards = np.zeros((self.lanes, *self.observation_shape), np.float32)
        lanes = np.arange(self.lanes)
        boards[lanes, self._row, self._balls] = 1.0
        boards[lanes, -1, self._paddles] = 1.0
        return boards
