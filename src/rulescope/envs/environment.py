"""The environment contract: a vector of lanes stepped together, with immediate auto-reset.

The step that ends an episode returns the terminal reward, the flag, and the *first observation of
the next episode*. What the learner observes (``reward``, ``terminal``) is separate from the truth
(``payoff``, ``ended``), because the boundary itself is an object of study: wrappers change only
what the learner observes.

:class:`SeededWorld` is the base of the worlds of this package.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rulescope.core import seeds

Array = NDArray[np.float32]
Actions = NDArray[np.int64]
Flags = NDArray[np.bool_]
State = Mapping[str, NDArray[np.generic]]


class Step(NamedTuple):
    """One interaction of every lane; all arrays have leading axis N (lanes)."""

    observation: Array
    """[N, *observation_shape] float32: what the learner acts on next."""
    reward: Array
    """[N] float32: the reward that the learner observes."""
    terminal: Flags
    """[N] bool: the episode end that the learner observes."""
    payoff: NDArray[np.float64]
    """[N] float64: the reward of the world, before any wrapper."""
    ended: Flags
    """[N] bool: whether an episode ended here (and the world was reset)."""
    goal: Flags | None = None
    """[N] bool: whether the goal was reached here; None in a world that has no goal."""
    truncated: Flags | None = None
    """[N] bool: whether a limit of the world cut the episode off here, although it had not come to
    an end of its own: a part of ``ended``. None in a world that never cuts an episode off."""
    final: Array | None = None
    """[N, *observation_shape] float32: where ``truncated``, the observation from which the episode
    would have gone on; elsewhere equal to ``observation``. None if ``truncated`` is None."""


class References(NamedTuple):
    """Rewards of a random and an optimal policy, per episode and per interaction.

    ``*_return`` is NaN in a world without episodes; all are NaN where nothing is known
    (:data:`UNKNOWN`). A score is then NaN too.
    """

    random_return: float
    oracle_return: float
    random_rate: float
    oracle_rate: float

    def return_score(self, value: float) -> float:
        """Normalise an episode return: 0 is random, 1 is optimal; never clipped."""
        return (value - self.random_return) / (self.oracle_return - self.random_return)

    def rate_score(self, value: float) -> float:
        """Normalise a reward per interaction: 0 is random, 1 is optimal; never clipped."""
        return (value - self.random_rate) / (self.oracle_rate - self.random_rate)


UNKNOWN = References(math.nan, math.nan, math.nan, math.nan)
"""The references of a world whose random and optimal rewards are not known."""


class Environment(ABC):
    """``lanes`` copies of one world, each with its own random stream."""

    lanes: int
    actions: int
    observation_shape: tuple[int, ...]
    references: References
    goals: bool = False
    """Whether every step reports in ``goal`` which lanes reached the goal of the world."""

    @abstractmethod
    def reset(self, seed: int) -> Array:
        """Start every lane anew from ``seed`` and return the first observation [N, *shape]."""

    @abstractmethod
    def step(self, actions: Actions) -> Step:
        """Advance every lane by one action [N] of 0 .. ``actions`` - 1."""

    @abstractmethod
    def save(self) -> State:
        """Return everything that :meth:`load` needs to continue bit-identically."""

    @abstractmethod
    def load(self, state: State) -> None:
        """Restore a state that :meth:`save` returned."""

    def flipped(self) -> tuple[int, ...]:
        """Return, for each action, the one that replaces it under an action flip.

        By default the order of the actions is reversed, which exchanges left and right.
        """
        return tuple(reversed(range(self.actions)))


def checked_actions(actions: Actions, lanes: int, count: int) -> list[int]:
    """Return ``actions`` [N] as ints of 0 .. ``count`` - 1, or raise ``ValueError``."""
    if not isinstance(actions, np.ndarray) or actions.shape != (lanes,):
        raise ValueError(f"actions must be an array [{lanes}], got {actions!r}")
    if actions.dtype.kind not in "iu":
        raise ValueError(f"actions must be integers, got dtype {actions.dtype}")
    chosen: list[int] = actions.tolist()
    if min(chosen) < 0 or max(chosen) >= count:
        raise ValueError(f"actions must be 0 .. {count - 1}, got {chosen}")
    return chosen


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


def merge_final(observation: Array, before: Array | None, truncated: Flags) -> Array:
    """Return the ``final`` [N, *shape] of a step: ``before`` its resets where ``truncated`` [N].

    ``before`` may be None if no lane is truncated.
    """
    final = observation.copy()
    if before is not None:
        final[truncated] = before[truncated]
    return final


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
