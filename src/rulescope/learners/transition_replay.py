"""First-in-first-out replay of single transitions, with every distinct observation stored once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rulescope.core.arrays import Arrays
from rulescope.learners.trajectory_replay import Ids, ObservationTable, order_by_first_appearance

_CHUNK = 1024
"""Transitions restored at a time, to limit the memory of expanded observations."""


class Transitions(NamedTuple):
    """B transitions. After a terminal, ``after`` is the first observation of another episode."""

    before: Ids
    """[B] number of the observation, see :meth:`TransitionReplay.rows`"""
    actions: NDArray[np.int64]
    """[B]"""
    rewards: NDArray[np.float32]
    """[B]"""
    terminals: NDArray[np.bool_]
    """[B]"""
    after: Ids
    """[B] number of the next observation"""


class TransitionReplay:
    """A ring buffer of ``capacity`` transitions."""

    def __init__(self, capacity: int, shape: tuple[int, ...]) -> None:
        self.capacity = capacity
        self._shape = shape
        self._table = ObservationTable(shape)
        self._ids = np.zeros((capacity, 2), dtype=np.int64)
        self._actions = np.zeros(capacity, dtype=np.int64)
        self._rewards = np.zeros(capacity, dtype=np.float32)
        self._terminals = np.zeros(capacity, dtype=np.bool_)
        self._replaced: list[Ids] = []
        self._oldest = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(
        self,
        before: NDArray[np.float32],
        actions: NDArray[np.int64],
        rewards: NDArray[np.float32],
        terminals: NDArray[np.bool_],
        after: NDArray[np.float32],
    ) -> None:
        """Store K transitions in order, replacing the oldest. Observations are [K, *shape]."""
        size = len(actions)
        if size > self.capacity:
            raise ValueError(f"{size} transitions do not fit into a replay of {self.capacity}")
        slots = (self._oldest + self._count + np.arange(size)) % self.capacity
        replaced = max(self._count + size - self.capacity, 0)
        if replaced:
            self._replaced.append(self._ids[slots[size - replaced :]].reshape(-1))
        self._oldest = (self._oldest + replaced) % self.capacity
        self._count += size - replaced
        self._ids[slots, 0] = self._table.intern(before)
        self._ids[slots, 1] = self._table.intern(after)
        self._actions[slots] = actions
        self._rewards[slots] = rewards
        self._terminals[slots] = terminals

    def sample(self, rng: Generator, size: int) -> Transitions:
        """Draw ``size`` transitions uniformly with replacement (0 is the oldest stored)."""
        slots = (self._oldest + rng.integers(self._count, size=size)) % self.capacity
        return self._at(slots)

    def rows(self, numbers: Ids) -> NDArray[np.float32]:
        """Return the observations [B, *shape] with these ``numbers`` [B].

        A number is valid until :meth:`settle`, even if its transition has been replaced.
        """
        return self._table.rows[numbers]

    def settle(self) -> None:
        """Free the observations of transitions that have been replaced."""
        if self._replaced:
            self._table.release(np.concatenate(self._replaced))
            self._replaced = []

    def _at(self, slots: Ids) -> Transitions:
        return Transitions(
            before=self._ids[slots, 0],
            actions=self._actions[slots],
            rewards=self._rewards[slots],
            terminals=self._terminals[slots],
            after=self._ids[slots, 1],
        )

    def get(self) -> dict[str, NDArray[Any]]:
        """Return the content, oldest first, independent of internal numbers.

        ``rows`` [R, *shape] are the distinct observations, ``index`` [K, 2] the rows of each
        transition's first and next observation.
        """
        held = self._at((self._oldest + np.arange(self._count)) % self.capacity)
        numbers, index = order_by_first_appearance(np.stack([held.before, held.after], axis=1))
        return {
            "rows": self.rows(numbers),
            "index": index,
            "actions": held.actions,
            "rewards": held.rewards,
            "terminals": held.terminals,
        }

    def set(self, content: Arrays) -> None:
        """Replace the content by what :meth:`get` returned."""
        self._table = ObservationTable(self._shape)
        self._replaced = []
        self._oldest = self._count = 0
        rows, index = content["rows"], content["index"]
        size = min(_CHUNK, self.capacity)
        for start in range(0, len(index), size):
            part = slice(start, start + size)
            self.append(
                rows[index[part, 0]],
                content["actions"][part],
                content["rewards"][part],
                content["terminals"][part],
                rows[index[part, 1]],
            )
            self.settle()
