"""When each entry of a replay was stored, and which ones were drawn: watched, not assumed.

A watched replay *is* the learner's own: it shares its memory, so that whatever else holds on to the
learner's replay (its carrier, an intervention that empties it) keeps seeing the same content. It
only writes down, beside, what is stored and drawn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rulescope.core import seeds
from rulescope.core.errors import RecordError
from rulescope.learners.disco.disco_learner import DiscoLearner
from rulescope.learners.dqn import DQNLearner
from rulescope.learners.learner import Learner
from rulescope.learners.trajectory_replay import Sample, TrajectoryReplay
from rulescope.learners.transition_replay import TransitionReplay, Transitions

Ints = NDArray[np.int64]


class Ledger:
    """The iteration in which each entry of a replay was stored, oldest first, and what was drawn.

    Entries leave from the old end, one by one or (when the replay is emptied) all at once.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        """``now`` tells the current iteration."""
        self._now = now
        self._runs: deque[tuple[int, int]] = deque()  # (iteration, entries stored in it)
        self._length = 0
        self._drawn: list[Ints] = []

    def stored(self, before: int, count: int, after: int) -> None:
        """Note that ``count`` entries came to the ``before`` that were there, leaving ``after``."""
        self._shorten(before)
        now, already = self._now(), 0
        if self._runs and self._runs[-1][0] == now:
            already = self._runs.pop()[1]
        self._runs.append((now, already + count))
        self._length += count
        self._shorten(after)

    def drawn(self, places: Ints) -> None:
        """Note that the entries at ``places`` (0 is the oldest) were drawn."""
        stamps, counts = self._columns()
        run = np.searchsorted(counts.cumsum(), places, side="right")
        self._drawn.append(self._now() - stamps[run])

    def held(self, length: int) -> Ints:
        """Return the ages in iterations of all entries, oldest first; there are ``length``."""
        self._shorten(length)
        stamps, counts = self._columns()
        return np.repeat(self._now() - stamps, counts)

    def take(self) -> Ints:
        """Return the ages of all that was drawn since the last time, when it was drawn."""
        drawn, self._drawn = self._drawn, []
        return np.concatenate([np.zeros(0, dtype=np.int64), *drawn])

    def _columns(self) -> tuple[Ints, Ints]:
        table = np.array(self._runs, dtype=np.int64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def _shorten(self, length: int) -> None:
        """Let the oldest entries go until there are ``length``."""
        if length > self._length:
            raise RecordError("the replay holds entries that nobody saw it store")
        while self._length > length:
            stamp, count = self._runs.popleft()
            left = max(count - (self._length - length), 0)
            self._length -= count - left
            if left:
                self._runs.appendleft((stamp, left))


def which(rng: Generator, stored: int, size: int) -> Ints:
    """Return the entries that a uniform draw by ``rng`` will take, leaving ``rng`` as it is."""
    return seeds.unpack(seeds.pack(rng)).integers(stored, size=size)


class WatchedTrajectories(TrajectoryReplay):
    """A replay of trajectories with a ledger."""

    ledger: Ledger

    def append(self, observations: NDArray[np.float32], **columns: Any) -> None:
        """Store one trajectory."""
        before = len(self)
        super().append(observations, **columns)
        self.ledger.stored(before, 1, len(self))

    def sample(self, rng: Generator, size: int) -> Sample:
        """Draw ``size`` trajectories."""
        self.ledger.drawn(which(rng, len(self), size))
        return super().sample(rng, size)


class WatchedTransitions(TransitionReplay):
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
        self.ledger.stored(length, len(actions), len(self))

    def sample(self, rng: Generator, size: int) -> Transitions:
        """Draw ``size`` transitions."""
        self.ledger.drawn(which(rng, len(self), size))
        return super().sample(rng, size)


def watched(learner: Learner, now: Callable[[], int]) -> tuple[Ledger, Callable[[], int]]:
    """Put a ledger beside the replay of ``learner``; return it, and how to ask for the length."""
    replay: WatchedTrajectories | WatchedTransitions
    if isinstance(learner, DiscoLearner):
        replay = WatchedTrajectories.__new__(WatchedTrajectories)
        replay.__dict__ = learner.replay.__dict__
        learner.replay = replay
    elif isinstance(learner, DQNLearner):
        replay = WatchedTransitions.__new__(WatchedTransitions)
        replay.__dict__ = learner.replay.__dict__
        learner.replay = replay
    else:
        raise RecordError(f"{type(learner).__name__} has no replay to be watched")
    replay.ledger = Ledger(now)
    return replay.ledger, replay.__len__
