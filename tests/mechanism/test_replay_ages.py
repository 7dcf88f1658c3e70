"""Expected ages against a simulated queue, and ledger ages against stamped entries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from learners.small import small_spec
from rulescope.core import seeds
from rulescope.core.errors import RecordError
from rulescope.learners.baseline_config import A2C, DQN, NetworkSizes
from rulescope.learners.replay import TrajectoryReplay, TransitionReplay
from rulescope.lifetime import Lifetime
from rulescope.mechanism.replay_ages import (
    Fifo,
    Ledger,
    LedgerTrajectoryReplay,
    LedgerTransitionReplay,
    attach_ledger,
    next_sample,
)
from rulescope.stats import DataError

LEVELS = (0.05, 0.5, 0.95)


class Clock:
    now = 0

    def __call__(self) -> int:
        return self.now


def test_sampled_trajectories_have_the_recorded_ages() -> None:
    """Each trajectory carries the iteration in which it was stored."""
    clock, rng = Clock(), np.random.default_rng(0)
    replay = LedgerTrajectoryReplay(5, 2, (1,), {"stamp": ((), np.int64)})
    replay.ledger = Ledger(clock)
    for clock.now in range(1, 12):
        for _ in range(2):
            replay.append(rng.random((2, 1), dtype=np.float32), stamp=clock.now)
        sample = replay.sample(rng, 7)
        assert (
            replay.ledger.take_sampled_ages().tolist()
            == (clock.now - sample.columns["stamp"]).tolist()
        )
        ages = replay.ledger.stored_ages(len(replay))
        assert ages.tolist() == (clock.now - replay.get()["stamp"]).tolist()


def test_sampled_transitions_have_the_recorded_ages() -> None:
    clock, rng = Clock(), np.random.default_rng(0)
    replay = LedgerTransitionReplay(7, (1,))
    replay.ledger = Ledger(clock)
    observation = rng.random((3, 1), dtype=np.float32)
    for clock.now in range(1, 9):
        stamps = np.full(3, clock.now)
        nothing, ends = np.zeros(3, dtype=np.float32), np.zeros(3, dtype=np.bool_)
        replay.append(observation, stamps, nothing, ends, observation)
        drawn = [replay.sample(rng, 4) for _ in range(2)]
        expected = clock.now - np.concatenate([batch.actions for batch in drawn])
        assert replay.ledger.take_sampled_ages().tolist() == expected.tolist()
        ages = replay.ledger.stored_ages(len(replay))
        assert ages.tolist() == (clock.now - replay.get()["actions"]).tolist()
    assert replay.ledger.take_sampled_ages().tolist() == []


def test_predicting_the_next_sample_leaves_the_generator_unchanged() -> None:
    rng = seeds.stream(3, "replay")
    ahead = next_sample(rng, 100, 8)
    assert ahead.tolist() == rng.integers(100, size=8).tolist()


def test_a_replay_that_its_carrier_empties_starts_anew() -> None:
    """The carrier has no reference to the ledger, yet both have the same content."""
    lifetime = Lifetime(small_spec())
    ledger, length = attach_ledger(lifetime.learner, lambda: lifetime.iteration)
    empty = lifetime.learner.carriers["replay"].get()
    lifetime.run(5)
    assert ledger.stored_ages(length()).tolist() == [4, 4, 3, 3, 2, 2, 1, 1, 0, 0]
    lifetime.learner.carriers["replay"].set(empty)
    assert ledger.stored_ages(length()).tolist() == []
    lifetime.run(7)
    assert ledger.stored_ages(length()).tolist() == [1, 1, 0, 0]
    assert len(lifetime.learner.carriers["replay"].get()["index"]) == 4


def test_entries_from_before_the_ledger_are_an_error() -> None:
    lifetime = Lifetime(small_spec())
    lifetime.run(3)
    ledger, length = attach_ledger(lifetime.learner, lambda: lifetime.iteration)
    with pytest.raises(RecordError, match="did not record"):
        ledger.stored_ages(length())


def test_a_learner_without_replay_is_refused() -> None:
    sizes = NetworkSizes(hidden=(8, 8))
    with pytest.raises(RecordError, match="A2CLearner has no replay"):
        attach_ledger(Lifetime(small_spec(learner=A2C(agent=sizes))).learner, lambda: 0)
    learner = Lifetime(small_spec(learner=DQN(agent=sizes))).learner
    ledger, length = attach_ledger(learner, lambda: 0)
    assert length() == 0
    assert isinstance(ledger, Ledger)


def test_replays_with_a_ledger_are_replays() -> None:
    assert issubclass(LedgerTrajectoryReplay, TrajectoryReplay)
    assert issubclass(LedgerTransitionReplay, TransitionReplay)


def simulated(fifo: Fifo, iterations: int) -> list[NDArray[np.int64]]:
    """Return the ages after every iteration, from a list that is appended to and cut."""
    stamps: list[int] = []
    found = []
    for now in range(1, iterations + 1):
        stamps = (stamps + [now] * fifo.each)[-fifo.capacity :]
        if now == fifo.cleared:
            stamps = []
        found.append(now - np.array(stamps, dtype=np.int64))
    return found


@given(
    capacity=st.integers(1, 40),
    each=st.integers(1, 7),
    cleared=st.none() | st.integers(1, 30),
    switch=st.integers(1, 30),
)
def test_closed_forms_agree_with_a_simulated_queue(
    capacity: int, each: int, cleared: int | None, switch: int
) -> None:
    fifo = Fifo(capacity, each, cleared)
    when = np.arange(1, 31)
    ages = simulated(fifo, 30)
    assert fifo.stored(when).tolist() == [len(a) for a in ages]
    with np.errstate(invalid="ignore"):
        shares = [(a >= k - switch).mean() if len(a) else np.nan for k, a in enumerate(ages, 1)]
    assert fifo.share_before(when, switch) == pytest.approx(shares, nan_ok=True)
    means = [a.mean() if len(a) else np.nan for a in ages]
    assert fifo.mean_age(when) == pytest.approx(means, nan_ok=True)
    for level in LEVELS:
        exact = [
            float(np.quantile(a, level, method="inverted_cdf")) if len(a) else np.nan for a in ages
        ]
        assert fifo.age_quantile(when, level) == pytest.approx(exact, nan_ok=True)


def test_the_published_replays_have_the_expected_shares() -> None:
    disco, small, large = Fifo(1024, 2), Fifo(28_672, 58), Fifo(100_000, 58)
    assert disco.turnover == 512.0
    assert small.turnover == pytest.approx(494.3, abs=0.1)
    when = np.array([1500, 1750, 2012, 2400])
    assert disco.share_before(when, 1500) == pytest.approx([1.0, 262 / 512, 0.0, 0.0])
    assert large.share_before(when, 1500)[-1] == pytest.approx(1.0 - 900 * 58 / 100_000)
    assert Fifo(100_000, 58, cleared=1500).share_before(when, 1500)[1:] == pytest.approx([0, 0, 0])


def test_a_replay_without_room_is_refused() -> None:
    with pytest.raises(DataError, match="always empty"):
        Fifo(0, 2)
