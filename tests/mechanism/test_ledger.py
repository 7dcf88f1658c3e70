"""A watched replay: the ages that are written down are those of what was stored and drawn."""

from __future__ import annotations

import numpy as np
import pytest

from learners.small import small_spec
from rulescope.core import seeds
from rulescope.core.errors import RecordError
from rulescope.learners.trajectory_replay import TrajectoryReplay
from rulescope.learners.transition_replay import TransitionReplay
from rulescope.lifetime import Lifetime
from rulescope.mechanism.replay_ledger import (
    Ledger,
    WatchedTrajectories,
    WatchedTransitions,
    watched,
    which,
)
from rulescope.spec.baseline_config import A2C, DQN, NetworkSizes


class Clock:
    now = 0

    def __call__(self) -> int:
        return self.now


def test_ages_of_trajectories_are_those_of_what_was_drawn() -> None:
    """Each trajectory carries the iteration in which it was stored: drawn ones tell their age."""
    clock, rng = Clock(), np.random.default_rng(0)
    replay = WatchedTrajectories(5, 2, (1,), {"stamp": ((), np.int64)})
    replay.ledger = Ledger(clock)
    for clock.now in range(1, 12):
        for _ in range(2):
            replay.append(rng.random((2, 1), dtype=np.float32), stamp=clock.now)
        sample = replay.sample(rng, 7)
        assert replay.ledger.take().tolist() == (clock.now - sample.columns["stamp"]).tolist()
        held = replay.ledger.held(len(replay))
        assert held.tolist() == (clock.now - replay.get()["stamp"]).tolist()


def test_ages_of_transitions_are_those_of_what_was_drawn() -> None:
    clock, rng = Clock(), np.random.default_rng(0)
    replay = WatchedTransitions(7, (1,))
    replay.ledger = Ledger(clock)
    seen = rng.random((3, 1), dtype=np.float32)
    for clock.now in range(1, 9):
        stamps = np.full(3, clock.now)
        nothing, ends = np.zeros(3, dtype=np.float32), np.zeros(3, dtype=np.bool_)
        replay.append(seen, stamps, nothing, ends, seen)
        drawn = [replay.sample(rng, 4) for _ in range(2)]
        expected = clock.now - np.concatenate([batch.actions for batch in drawn])
        assert replay.ledger.take().tolist() == expected.tolist()
        held = replay.ledger.held(len(replay))
        assert held.tolist() == (clock.now - replay.get()["actions"]).tolist()
    assert replay.ledger.take().tolist() == []


def test_looking_ahead_leaves_the_generator_alone() -> None:
    rng = seeds.stream(3, "replay")
    ahead = which(rng, 100, 8)
    assert ahead.tolist() == rng.integers(100, size=8).tolist()


def test_a_replay_that_is_emptied_by_others_starts_anew() -> None:
    """The carrier of a learner knows nothing of the ledger, yet both see the same content."""
    life = Lifetime(small_spec())
    ledger, length = watched(life.learner, lambda: life.iteration)
    empty = life.learner.carriers["replay"].get()
    life.run(5)
    assert ledger.held(length()).tolist() == [4, 4, 3, 3, 2, 2, 1, 1, 0, 0]
    life.learner.carriers["replay"].set(empty)
    assert ledger.held(length()).tolist() == []
    life.run(7)
    assert ledger.held(length()).tolist() == [1, 1, 0, 0]
    assert len(life.learner.carriers["replay"].get()["index"]) == 4


def test_what_came_in_unseen_is_an_error() -> None:
    life = Lifetime(small_spec())
    life.run(3)
    ledger, length = watched(life.learner, lambda: life.iteration)
    with pytest.raises(RecordError, match="nobody saw"):
        ledger.held(length())


def test_a_learner_without_replay_is_refused() -> None:
    sizes = NetworkSizes(hidden=(8, 8))
    with pytest.raises(RecordError, match="A2CLearner has no replay"):
        watched(Lifetime(small_spec(learner=A2C(agent=sizes))).learner, lambda: 0)
    learner = Lifetime(small_spec(learner=DQN(agent=sizes))).learner
    ledger, length = watched(learner, lambda: 0)
    assert length() == 0
    assert isinstance(ledger, Ledger)


def test_watched_replays_are_replays() -> None:
    assert issubclass(WatchedTrajectories, TrajectoryReplay)
    assert issubclass(WatchedTransitions, TransitionReplay)
