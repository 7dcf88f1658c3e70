"""Catch: a ball falls one row per step, a paddle on the last row moves to catch it."""

from __future__ import annotations

import numpy as np

from rulescope.core import seeds
from rulescope.envs.environment import Actions, Array, ColumnWorld, State, Step
from rulescope.envs.references import catch_references
from rulescope.envs.world_config import Catch

LEFT, STAY, RIGHT = 0, 1, 2


class CatchEnv(ColumnWorld):
    """``lanes`` boards of [rows, columns], 1 at the ball and at the paddle.

    An episode starts with the ball on row 0 in a uniformly drawn column and the paddle in column
    ``columns // 2``. In one step the paddle moves (clipped at the walls), the ball falls one row,
    and with probability ``drift`` it also moves one column to a random side (clipped). On the last
    row a catch pays +1, a miss -1. In dense Catch each step, the last one too, also costs
    ``|paddle - ball| / (columns - 1)``, measured after both have moved.
    """

    def __init__(self, config: Catch, lanes: int) -> None:
        super().__init__(lanes, config.columns)
        self.config = config
        self.actions = 3
        self.observation_shape = (config.rows, config.columns)
        self.references = catch_references(config)
        self._falling, self._landing = _payoffs(config)
        # With only a few lanes, plain ints are faster than small arrays.
        # Every episode lasts rows - 1 steps, so all lanes share one row and end together.
        self._row = 0
        self._balls: list[int] = []
        self._paddles: list[int] = []

    def reset(self, seed: int) -> Array:
        """Start every lane anew from ``seed`` and return the first boards [N, rows, columns]."""
        self._seed(seed)
        self._start_episodes()
        return self._boards()

    def step(self, actions: Actions) -> Step:
        """Move every paddle: 0 left, 1 stay, 2 right (``actions`` is [N])."""
        moves = self._checked(actions)
        wall = self.config.columns - 1
        self._paddles = [
            min(max(paddle + move - STAY, 0), wall)
            for paddle, move in zip(self._paddles, moves, strict=True)
        ]
        self._row += 1
        if self.config.drift > 0.0:
            self._drift_balls()
        landed = self._row == self.config.rows - 1
        table = self._landing if landed else self._falling
        pairs = zip(self._paddles, self._balls, strict=True)
        payoff = np.array([table[abs(paddle - self.rewarded[ball])] for paddle, ball in pairs])
        ended = np.array([landed] * self.lanes)
        if landed:
            self._start_episodes()
        return Step(self._boards(), payoff.astype(np.float32), ended.copy(), payoff, ended)

    def save(self) -> State:
        """Return ``row`` [], ``balls`` [N], ``paddles`` [N] and the packed ``streams`` [N, 6]."""
        return {
            "streams": self._packed(),
            "row": np.array(self._row),
            "balls": np.array(self._balls),
            "paddles": np.array(self._paddles),
        }

    def load(self, state: State) -> None:
        """Restore a state that :meth:`save` returned, also in an env that was never reset."""
        lanes, streams = (self.lanes,), (self.lanes, 6)
        shapes = {"row": (), "balls": lanes, "paddles": lanes, "streams": streams}
        arrays = self._verified(state, shapes)
        self._row = int(arrays["row"])
        self._balls = arrays["balls"].tolist()
        self._paddles = arrays["paddles"].tolist()
        self._streams = [seeds.unpack(words) for words in arrays["streams"]]

    def _start_episodes(self) -> None:
        columns = self.config.columns
        self._row = 0
        self._balls = [int(stream.integers(columns)) for stream in self._streams]
        self._paddles = [columns // 2] * self.lanes

    def _drift_balls(self) -> None:
        """Move each ball sideways with probability ``drift``; one draw per lane and step."""
        drift, wall = self.config.drift, self.config.columns - 1
        for lane, stream in enumerate(self._streams):
            draw = stream.random()
            if draw < drift / 2:
                self._balls[lane] = max(self._balls[lane] - 1, 0)
            elif draw < drift:
                self._balls[lane] = min(self._balls[lane] + 1, wall)

    def _boards(self) -> Array:
        """Return the boards in a new array [N, *observation_shape]."""
        boards = np.zeros((self.lanes, *self.observation_shape), np.float32)
        for lane in range(self.lanes):
            boards[lane, self._row, self._balls[lane]] = 1.0
            boards[lane, -1, self._paddles[lane]] = 1.0
        return boards


def _payoffs(config: Catch) -> tuple[list[float], list[float]]:
    """Return the payoffs [columns] by distance of paddle and ball: falling, and landing."""
    distances = range(config.columns)
    # "0.0 -" rather than a minus sign, so that no distance costs 0.0 and not -0.0
    falling = [0.0 - d / (config.columns - 1) if config.dense else 0.0 for d in distances]
    landing = [cost + (1.0 if d == 0 else -1.0) for d, cost in enumerate(falling)]
    return falling, landing
