"""First-in-first-out replay, of trajectories (Disco) or of single transitions (DQN).

Every distinct observation is stored once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rulescope.core.arrays import Arrays

Ids = NDArray[np.int64]


class ObservationTable:
    """Reference-counted table of distinct observations; equal ones share a number."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.rows = np.zeros((64, *shape), dtype=np.float32)
        self._uses = np.zeros(64, dtype=np.int64)
        self._number: dict[bytes, int] = {}
        self._free = list(range(63, -1, -1))

    def intern(self, observations: NDArray[np.float32]) -> Ids:
        """Return the numbers [K] of ``observations`` [K, *shape] and add one reference to each."""
        numbers = np.empty(len(observations), dtype=np.int64)
        for k, observation in enumerate(observations):
            key = observation.tobytes()
            number = self._number.get(key)
            if number is None:
                number = self._number[key] = self._allocate()
                self.rows[number] = observation
            numbers[k] = number
        np.add.at(self._uses, numbers, 1)
        return numbers

    def release(self, numbers: Ids) -> None:
        """Remove one reference to each of ``numbers``; rows without references are freed."""
        np.subtract.at(self._uses, numbers, 1)
        for number in np.unique(numbers[self._uses[numbers] == 0]).tolist():
            del self._number[self.rows[number].tobytes()]
            self._free.append(number)

    def _allocate(self) -> int:
        if not self._free:
            size = len(self.rows)
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
            self._uses = np.concatenate([self._uses, np.zeros_like(self._uses)])
            self._free = list(range(2 * size - 1, size - 1, -1))
        return self._free.pop()


@dataclass(frozen=True, slots=True)
class Sample:
    """B stored trajectories, trajectory first; ``rows[index]`` are their observations."""

    rows: NDArray[np.float32]
    """[R, *shape] distinct observations, in order of first appearance."""
    index: Ids
    """[B, T + 1]"""
    columns: dict[str, NDArray[Any]]
    """The other columns of each trajectory, [B, ...]."""


class TrajectoryReplay:
    """A ring buffer of ``capacity`` trajectories: ``length`` observations and other columns."""

    def __init__(
        self,
        capacity: int,
        length: int,
        shape: tuple[int, ...],
        columns: dict[str, tuple[tuple[int, ...], type[np.generic]]],
    ) -> None:
        """``columns`` are the shapes and types of the columns beside the observations."""
        self.capacity = capacity
        self._shape = shape
        self._table = ObservationTable(shape)
        self._ids = np.zeros((capacity, length), dtype=np.int64)
        self._columns = {
            name: np.zeros((capacity, *size), dtype=kind) for name, (size, kind) in columns.items()
        }
        self._oldest = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, observations: NDArray[np.float32], **columns: Any) -> None:
        """Store one trajectory: ``observations`` [length, *shape] and an entry of every column."""
        slot = (self._oldest + self._count) % self.capacity
        if self._count == self.capacity:
            self._table.release(self._ids[slot])
            self._oldest = (self._oldest + 1) % self.capacity
        else:
            self._count += 1
        self._ids[slot] = self._table.intern(observations)
        for name, values in self._columns.items():
            values[slot] = columns[name]

    def sample(self, rng: Generator, size: int) -> Sample:
        """Draw ``size`` trajectories uniformly with replacement (0 is the oldest stored)."""
        return self._select(rng.integers(self._count, size=size))

    def _select(self, ages: Ids) -> Sample:
        slots = (self._oldest + ages) % self.capacity
        numbers, index = order_by_first_appearance(self._ids[slots])
        return Sample(
            rows=self._table.rows[numbers],
            index=index,
            columns={name: values[slots] for name, values in self._columns.items()},
        )

    def get(self) -> dict[str, NDArray[Any]]:
        """Return the content, oldest trajectory first, independent of internal numbers."""
        content = self._select(np.arange(self._count))
        return {"rows": content.rows, "index": content.index, **content.columns}

    def set(self, content: Arrays) -> None:
        """Replace the content by what :meth:`get` returned."""
        self._table = ObservationTable(self._shape)
        self._oldest = self._count = 0
        for k, index in enumerate(content["index"]):
            entry = {name: content[name][k] for name in self._columns}
            self.append(content["rows"][index], **entry)


def order_by_first_appearance(numbers: Ids) -> tuple[Ids, Ids]:
    """Return the distinct ``numbers`` in order of first appearance, and the place of each.

    This order depends on the stored content alone, not on the internal numbers of a table, so a
    resumed lifetime sums floats in the same order.
    """
    distinct, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return distinct[order], place[inverse].reshape(numbers.shape)


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
