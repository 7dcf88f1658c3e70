"""The environment contract: a vector of lanes stepped together, with immediate auto-reset.

The step that ends an episode returns the terminal reward, the flag, and the *first observation of
the next episode*. What the learner observes (``reward``, ``terminal``) is separate from the truth
(``payoff``, ``ended``), because the boundary itself is an object of study: wrappers change only
what the learner observes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
