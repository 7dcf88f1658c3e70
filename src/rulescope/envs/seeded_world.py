"""Base of the worlds of this package: a random stream per lane, checked actions, named state."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rulescope.core import seeds
from rulescope.envs.environment import Actions, Environment, State, checked_actions


class SeededWorld(Environment):
    """An environment with one random stream for each lane."""

    def __init__(self, lanes: int) -> None:
        if lanes < 1:
            raise ValueError(f"lanes must be at least 1, not {lanes}")
        self.lanes = lanes
        self._streams: list[Generator] = []

    def _seed(self, seed: int) -> None:
        """Restart the streams of all lanes; a lane's stream does not depend on the others."""
        self._streams = [seeds.stream(seed, "env", lane) for lane in range(self.lanes)]

    def _packed(self) -> NDArray[np.uint64]:
        """Return the streams as words [N, 6]."""
        self._require_start()
        return np.stack([seeds.pack(stream) for stream in self._streams])

    def _draws(self) -> NDArray[np.float64]:
        """Return one number in [0, 1) for each lane [N], from its own stream."""
        return np.array([stream.random() for stream in self._streams])

    def _checked(self, actions: Actions) -> list[int]:
        """Return the actions as ints, or raise ``ValueError`` before anything has moved."""
        self._require_start()
        return checked_actions(actions, self.lanes, self.actions)

    @property
    def _started(self) -> bool:
        return bool(self._streams)

    def _require_start(self) -> None:
        if not self._started:
            raise RuntimeError("the environment has not started: call reset or load first")

    def _verified(self, state: State, shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
        """Return ``state`` if its arrays have the names and ``shapes`` of this world's states."""
        found = {name: array.shape for name, array in state.items()}
        if found != shapes:
            name = type(self).__name__.removesuffix("Env")
            raise ValueError(f"not a state of this {name}: expected arrays {shapes}, got {found}")
        return dict(state)


class ColumnWorld(SeededWorld):
    """A world whose reward depends on the column of a player and that of a ball or target."""

    rewarded: list[int]
    """[columns]: the column that pays for each column of the ball; a reward move changes it."""

    def __init__(self, lanes: int, columns: int) -> None:
        super().__init__(lanes)
        self.columns = columns
        self.rewarded = list(range(columns))


def drift_columns(
    columns: NDArray[np.int64], draws: NDArray[np.float64], drift: float, wall: int
) -> NDArray[np.int64]:
    """Return ``columns`` [N], each moved to one side or the other with probability ``drift``.

    One of the ``draws`` [N] decides whether and in which direction; moves are clipped to 0 ..
    ``wall``.
    """
    left, right = draws < drift / 2, (draws >= drift / 2) & (draws < drift)
    return clip_columns(columns - left + right, wall)


def clip_columns(columns: NDArray[np.int64], wall: int) -> NDArray[np.int64]:
    """Return ``columns`` [N] clipped to 0 .. ``wall`` (``numpy.clip`` takes twice as long)."""
    inside: NDArray[np.int64] = np.minimum(np.maximum(columns, 0), wall)
    return inside
