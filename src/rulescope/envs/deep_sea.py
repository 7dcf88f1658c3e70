"""DeepSea: an exploration problem whose reward needs a long, costly and exact walk right."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rulescope.core import seeds
from rulescope.envs.environment import Actions, Array, SeededWorld, State, Step, clip_columns
from rulescope.envs.references import deep_sea_references
from rulescope.envs.world_config import DeepSea

COST = 0.01
"""Total cost of an episode of moves to the right."""


class DeepSeaEnv(SeededWorld):
    """``lanes`` boards of [depth, depth], 1 where the diver is.

    Every episode starts in row 0, column 0 and lasts ``depth`` steps, each of which goes one row
    down and one column to the right, at a cost of ``COST / depth``, or to the left, for free
    (both clipped). A diver that ends in the last column has reached the goal and gets 1.

    A first move to the left is clipped, so ``depth - 1`` moves to the right are enough: bsuite's
    DeepSea requires ``depth`` of them.
    """

    goals = True

    def __init__(self, config: DeepSea, lanes: int) -> None:
        super().__init__(lanes)
        self.config = config
        self.actions = 2
        self.observation_shape = (config.depth, config.depth)
        self.references = deep_sea_references(config)
        self._right = right_actions(config)
        # Every episode lasts depth steps, so all lanes share one row and end together.
        self._row = 0
        self._columns = np.zeros(0, np.int64)

    def reset(self, seed: int) -> Array:
        """Start every lane anew and return the first boards; the world is deterministic."""
        del seed
        self._start_episodes()
        return self._boards()

    def step(self, actions: Actions) -> Step:
        """Move every diver: 0 left, 1 right, or as given by ``mapping``."""
        depth = self.config.depth
        chosen = np.array(self._checked(actions))
        right = chosen == self._right[self._row, self._columns]
        self._columns = clip_columns(self._columns + 2 * right - 1, depth - 1)
        self._row += 1
        payoff = np.where(right, -COST / depth, 0.0)
        over = self._row == depth
        goal = over & (self._columns == depth - 1)
        payoff[goal] += 1.0
        ended = np.full(self.lanes, over)
        if over:
            self._start_episodes()
        return Step(self._boards(), payoff.astype(np.float32), ended.copy(), payoff, ended, goal)

    def save(self) -> State:
        """Return ``row`` [] and ``columns`` [N]."""
        self._require_start()
        return {"row": np.array(self._row), "columns": self._columns.copy()}

    def load(self, state: State) -> None:
        """Restore a state that :meth:`save` returned, also in an env that was never reset."""
        arrays = self._verified(state, {"row": (), "columns": (self.lanes,)})
        self._row = int(arrays["row"])
        self._columns = np.array(arrays["columns"], np.int64)

    @property
    def _started(self) -> bool:
        return len(self._columns) > 0

    def _start_episodes(self) -> None:
        self._row = 0
        self._columns = np.zeros(self.lanes, np.int64)

    def _boards(self) -> Array:
        """Return the boards in a new array [N, *observation_shape]."""
        boards = np.zeros((self.lanes, *self.observation_shape), np.float32)
        boards[np.arange(self.lanes), self._row, self._columns] = 1.0
        return boards


def right_actions(config: DeepSea) -> NDArray[np.int64]:
    """Return, for each cell [depth, depth], the action that goes to the right.

    A mapping is the same in every lane and every lifetime: otherwise one observation would need
    opposite actions in two lanes.
    """
    shape = (config.depth, config.depth)
    if config.mapping is None:
        return np.ones(shape, np.int64)
    return seeds.stream(config.mapping, "env", "mapping").integers(2, size=shape)
