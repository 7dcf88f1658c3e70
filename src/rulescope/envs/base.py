"""The environment contract: a vector of lanes stepped together, with immediate auto-reset.

The step that ends an episode returns the terminal reward, the flag, and the *first observation of
the next episode*. What the learner is told (``reward``, ``terminal``) is kept apart from what
happened (``payoff``, ``ended``), because the boundary itself is an object of study: wrappers change
what is told, never what happened.
"""

from __future__ import annotations

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
    """[N] float32: the reward the learner is told."""
    terminal: Flags
    """[N] bool: the episode end the learner is told."""
    payoff: NDArray[np.float64]
    """[N] float64: the reward that the world gave, before any wrapper."""
    ended: Flags
    """[N] bool: whether an episode really ended here (and the world was reset)."""


class References(NamedTuple):
    """What a random and an optimal policy earn, per episode and per interaction.

    ``*_return`` is NaN in a world that never ends an episode.
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


class Environment(ABC):
    """``lanes`` copies of one world, each with its own random stream."""

    lanes: int
    actions: int
    observation_shape: tuple[int, ...]
    references: References

    @abstractmethod
    def reset(self, seed: int) -> Array:
        """Start every lane anew from ``seed`` and return the first observation [N, *shape]."""

    @abstractmethod
    def step(self, actions: Actions) -> Step:
        """Advance every lane by one action [N] of 0 .. ``actions`` - 1."""

    @abstractmethod
    def save(self) -> State:
        """Return everything a later :meth:`load` needs to continue to the bit."""

    @abstractmethod
    def load(self, state: State) -> None:
        """Continue from a state that :meth:`save` returned."""
