"""Age of replayed experience: expected from first in, first out, and measured by a ledger.

The age of an entry (a trajectory or a transition) is the number of iterations since it was stored:
0 for those of the current iteration. A replay is observed after an iteration.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rulescope.core import seeds
from rulescope.core.errors import RecordError
from rulescope.learners.disco.disco_learner import DiscoLearner
from rulescope.learners.dqn import DQNLearner
from rulescope.learners.learner import Learner
from rulescope.learners.replay import Sample, TrajectoryReplay, TransitionReplay, Transitions
from rulescope.stats import DataError
from rulescope.stats.array_checks import ratio

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Fifo:
    """Ages in a first-in-first-out replay, in closed form for any iterations [n]."""

    capacity: int
    """Entries."""
    each: int
    """Entries stored in an iteration."""
    cleared: int | None = None
    """Iteration after which the replay was cleared, if it was."""

    def __post_init__(self) -> None:
        """Refuse sizes below one."""
        if self.capacity < 1 or self.each < 1:
            raise DataError(
                f"a replay with capacity {self.capacity} that stores {self.each} entries an "
                "iteration is always empty"
            )

    @property
    def turnover(self) -> float:
        """Iterations after which every entry has been replaced."""
        return self.capacity / self.each

    def stored(self, iterations: Ints) -> Ints:
        """Return the number of entries after each of ``iterations`` [n]: [n]."""
        since = iterations
        if self.cleared is not None:
            since = np.where(iterations >= self.cleared, iterations - self.cleared, iterations)
        return np.minimum(since * self.each, self.capacity)

    def share_before(self, iterations: Ints, switch: int) -> Floats:
        """Return the share of entries stored up to iteration ``switch``: [n].

        NaN where the replay is empty.
        """
        held = self.stored(iterations)
        later = np.maximum(iterations - switch, 0) * self.each
        return ratio(np.maximum(held - later, 0), held)

    def mean_age(self, iterations: Ints) -> Floats:
        """Return the mean age after each of ``iterations``: [n]; NaN where the replay is empty."""
        held = self.stored(iterations)
        whole, rest = np.divmod(held, self.each)
        # Whole iterations of age 0, 1, ...; of the oldest only the rest remains.
        total = self.each * whole * (whole - 1) / 2 + rest * whole
        return ratio(total, held)

    def age_quantile(self, iterations: Ints, level: float) -> Floats:
        """Return the quantile at ``level`` of the ages: [n]; NaN where the replay is empty."""
        held = self.stored(iterations)
        rank = np.maximum(np.ceil(level * held).astype(np.int64), 1) - 1  # from the newest on
        return np.where(held > 0, (rank // self.each).astype(np.float64), np.nan)


class Ledger:
    """The iteration in which each entry of a replay was stored, and the ages of sampled entries.

    Entries leave from the old end, one by one or (when the replay is cleared) all at once.
    """

    def __init__(self, current_iteration: Callable[[], int]) -> None:
        self._current_iteration = current_iteration
        self._blocks: deque[tuple[int, int]] = deque()  # (iteration, entries stored in it)
        self._length = 0
        self._sampled: list[Ints] = []

    def record_append(self, before: int, count: int, after: int) -> None:
        """Record that ``count`` entries were added to ``before``, which left ``after``."""
        self._drop_oldest(before)
        now, already = self._current_iteration(), 0
        if self._blocks and self._blocks[-1][0] == now:
            already = self._blocks.pop()[1]
        self._blocks.append((now, already + count))
        self._length += count
        self._drop_oldest(after)

    def record_sample(self, places: Ints) -> None:
        """Record that the entries at ``places`` [n] (0 is the oldest) were sampled."""
        iterations, counts = self._columns()
        block = np.searchsorted(counts.cumsum(), places, side="right")
        self._sampled.append(self._current_iteration() - iterations[block])

    def stored_ages(self, length: int) -> Ints:
        """Return the ages of all entries, of which there are ``length``, oldest first: [length]."""
        self._drop_oldest(length)
        iterations, counts = self._columns()
        return np.repeat(self._current_iteration() - iterations, counts)

    def take_sampled_ages(self) -> Ints:
        """Return the ages [n] of all entries sampled since the last call, when they were."""
        sampled, self._sampled = self._sampled, []
        return np.concatenate([np.zeros(0, dtype=np.int64), *sampled])

    def _columns(self) -> tuple[Ints, Ints]:
        table = np.array(self._blocks, dtype=np.int64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def _drop_oldest(self, length: int) -> None:
        """Drop the oldest entries until ``length`` remain."""
        if length > self._length:
            raise RecordError("the replay holds entries that the ledger did not record")
        while self._length > length:
            iteration, count = self._blocks.popleft()
            left = max(count - (self._length - length), 0)
            self._length -= count - left
            if left:
                self._blocks.appendleft((iteration, left))


def next_sample(rng: Generator, stored: int, size: int) -> Ints:
    """Return the entries [size] that the next uniform sample will take; ``rng`` is unchanged."""
    return seeds.unpack(seeds.pack(rng)).integers(stored, size=size)


class LedgerTrajectoryReplay(TrajectoryReplay):
    """A replay of trajectories with a ledger."""

    ledger: Ledger

    def append(self, observations: NDArray[np.float32], **columns: Any) -> None:
        """Store one trajectory."""
        before = len(self)
        super().append(observations, **columns)
        self.ledger.record_append(before, 1, len(self))

    def sample(self, rng: Generator, size: int) -> Sample:
        """Sample ``size`` trajectories."""
        self.ledger.record_sample(next_sample(rng, len(self), size))
        return super().sample(rng, size)


class LedgerTransitionReplay(TransitionReplay):
    """A replay of transitions with a ledger."""

    ledger: Ledger

    def append(
        self,
        before: NDArray[np.float32],
        actions: NDArray[np.int64],
        rewards: NDArray[np.float32],
        terminals: NDArray[np.bool_],
        after: NDArray[np.float32],
    ) -> None:
        """Store some transitions."""
        length = len(self)
        super().append(before, actions, rewards, terminals, after)
        self.ledger.record_append(length, len(actions), len(self))

    def sample(self, rng: Generator, size: int) -> Transitions:
        """Sample ``size`` transitions."""
        self.ledger.record_sample(next_sample(rng, len(self), size))
        return super().sample(rng, size)


def attach_ledger(
    learner: Learner, current_iteration: Callable[[], int]
) -> tuple[Ledger, Callable[[], int]]:
    """Attach a ledger to the replay of ``learner``; return it, and a function for the length.

    The replay with the ledger shares the memory of the learner's own, so that its carrier and
    interventions on it keep acting on the same content.
    """
    replay: LedgerTrajectoryReplay | LedgerTransitionReplay
    if isinstance(learner, DiscoLearner):
        replay = LedgerTrajectoryReplay.__new__(LedgerTrajectoryReplay)
        replay.__dict__ = learner.replay.__dict__
        learner.replay = replay
    elif isinstance(learner, DQNLearner):
        replay = LedgerTransitionReplay.__new__(LedgerTransitionReplay)
        replay.__dict__ = learner.replay.__dict__
        learner.replay = replay
    else:
        raise RecordError(f"{type(learner).__name__} has no replay for a ledger")
    replay.ledger = Ledger(current_iteration)
    return replay.ledger, replay.__len__
