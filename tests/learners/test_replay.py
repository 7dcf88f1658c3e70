"""The replays against the plainest models of them: bounded lists."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from numpy.typing import NDArray

from rulescope.learners.replay import ObservationTable, Sample, TrajectoryReplay, TransitionReplay

CAPACITY, LENGTH, SHAPE = 5, 3, (2, 2)
COLUMNS: dict[str, tuple[tuple[int, ...], type[np.generic]]] = {
    "tag": ((), np.int64),
    "rewards": ((LENGTH - 1,), np.float32),
}


class Trajectory(NamedTuple):
    observations: NDArray[np.float32]
    tag: int
    rewards: NDArray[np.float32]


def observation(number: int) -> NDArray[np.float32]:
    """Return one of the distinct observations of a small world."""
    return np.arange(4, dtype=np.float32).reshape(SHAPE) + 10.0 * np.float32(number)


def trajectory(numbers: list[int], tag: int) -> Trajectory:
    rewards = np.array([tag, -tag], dtype=np.float32)
    return Trajectory(np.stack([observation(number) for number in numbers]), tag, rewards)


def new_replay(capacity: int = CAPACITY) -> TrajectoryReplay:
    return TrajectoryReplay(capacity, LENGTH, SHAPE, COLUMNS)


def store(replay: TrajectoryReplay, one: Trajectory) -> None:
    replay.append(one.observations, tag=one.tag, rewards=one.rewards)


def distinct_of(trajectories: list[Trajectory]) -> list[bytes]:
    """Return the distinct observations in order of first appearance."""
    every = [each.tobytes() for one in trajectories for each in one.observations]
    return list(dict.fromkeys(every))


def assert_holds(found: Sample, expected: list[Trajectory]) -> None:
    """Require that a sample consists of these trajectories, distinct rows in order."""
    assert found.columns["tag"].tolist() == [one.tag for one in expected]
    for k, one in enumerate(expected):
        assert found.rows[found.index[k]].tobytes() == one.observations.tobytes()
        assert found.columns["rewards"][k].tobytes() == one.rewards.tobytes()
    assert [row.tobytes() for row in found.rows] == distinct_of(expected)


def content(replay: TrajectoryReplay) -> Sample:
    arrays = replay.get()
    columns = {name: arrays[name] for name in COLUMNS}
    return Sample(arrays["rows"], arrays["index"], columns)


class ReplayMachine(RuleBasedStateMachine):
    """Any sequence of appends, samples and round trips, beside a bounded list."""

    def __init__(self) -> None:
        super().__init__()
        self.replay = new_replay()
        self.model: deque[Trajectory] = deque(maxlen=CAPACITY)
        self.appended = 0

    @rule(numbers=st.lists(st.integers(0, 8), min_size=LENGTH, max_size=LENGTH))
    def append(self, numbers: list[int]) -> None:
        self.appended += 1
        one = trajectory(numbers, self.appended)
        store(self.replay, one)
        self.model.append(one)

    @rule(seed=st.integers(0, 100), size=st.integers(1, 7))
    def sample(self, seed: int, size: int) -> None:
        if self.model:
            found = self.replay.sample(np.random.default_rng(seed), size)
            ages = np.random.default_rng(seed).integers(len(self.model), size=size)
            assert_holds(found, [self.model[age] for age in ages])

    @rule(seed=st.integers(0, 100))
    def move_into_another_replay(self, seed: int) -> None:
        saved = self.replay.get()
        fresh = new_replay()
        fresh.set(saved)
        if self.model:
            one, two = (
                replay.sample(np.random.default_rng(seed), 6) for replay in (self.replay, fresh)
            )
            assert one.rows.tobytes() == two.rows.tobytes()
            assert one.index.tobytes() == two.index.tobytes()
        self.replay = fresh

    @rule()
    def set_what_was_got(self) -> None:
        self.replay.set(self.replay.get())

    @invariant()
    def holds_the_most_recent_in_order(self) -> None:
        assert len(self.replay) == len(self.model)
        assert_holds(content(self.replay), list(self.model))

    @invariant()
    def keeps_no_more_rows_than_are_in_use(self) -> None:
        table = self.replay._table
        assert len(table._number) == len(distinct_of(list(self.model)))
        assert int(table._uses.sum()) == len(self.model) * LENGTH
        assert len(table._free) + len(table._number) == len(table.rows)


ReplayMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestReplay = ReplayMachine.TestCase


def filled(count: int, capacity: int = CAPACITY) -> TrajectoryReplay:
    replay = new_replay(capacity)
    for tag in range(count):
        store(replay, trajectory([tag % 7, tag % 3, tag % 5], tag))
    return replay


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, 13])
def test_first_in_first_out(count: int) -> None:
    replay = filled(count)
    tags = list(range(count))[-CAPACITY:]
    assert len(replay) == len(tags)
    assert replay.get()["tag"].tolist() == tags


def test_sampling_is_uniform_with_replacement() -> None:
    tags = filled(9).sample(np.random.default_rng(0), 5000).columns["tag"]
    seen, counts = np.unique(tags, return_counts=True)
    assert seen.tolist() == [4, 5, 6, 7, 8]
    assert counts.min() > 900
    assert counts.max() < 1100


def test_sampling_asks_the_stream_for_one_draw_of_ages() -> None:
    """The stream moves as far as one call of ``integers``, so runs stay comparable."""
    rng, twin = np.random.default_rng(3), np.random.default_rng(3)
    filled(3).sample(rng, 4)
    twin.integers(3, size=4)
    assert rng.bit_generator.state == twin.bit_generator.state


def test_an_empty_replay_makes_the_round_trip() -> None:
    replay = filled(3)
    replay.set(filled(0).get())
    assert len(replay) == 0
    store(replay, trajectory([1, 2, 1], 9))
    assert_holds(content(replay), [trajectory([1, 2, 1], 9)])


def test_what_get_returns_is_a_copy() -> None:
    replay = filled(3)
    taken = replay.get()
    before = {name: array.copy() for name, array in taken.items()}
    for array in taken.values():
        array[...] = 77
    assert all((before[name] == array).all() for name, array in replay.get().items())


def test_many_distinct_observations_make_the_table_grow_and_not_leak() -> None:
    replay = new_replay(capacity=40)
    for tag in range(400):
        store(replay, trajectory([3 * tag, 3 * tag + 1, 3 * tag + 2], tag))
        assert len(replay._table._number) == 3 * len(replay)
    assert len(replay._table.rows) == 128
    assert replay.get()["tag"].tolist() == list(range(360, 400))


def test_table_shares_equal_rows_and_frees_numbers() -> None:
    table = ObservationTable((1,))
    a, b = np.array([[1.0]], np.float32), np.array([[2.0]], np.float32)
    first = table.intern(np.concatenate([a, b, a]))
    assert first[0] == first[2] != first[1]
    table.release(first[:1])
    assert table.intern(a)[0] == first[0]
    table.release(np.array([first[0], first[0]]))
    assert len(table._number) == 1
    assert table.intern(np.array([[3.0]], np.float32))[0] == first[0]


def test_zeros_of_either_sign_are_different_observations() -> None:
    """Rows are distinguished by their bits: observations are stored unchanged."""
    replay = TrajectoryReplay(2, 2, (1,), {})
    replay.append(np.array([[0.0], [-0.0]], np.float32))
    rows = replay.get()["rows"]
    assert len(rows) == 2
    assert np.signbit(rows[:, 0]).tolist() == [False, True]


def board(number: int) -> NDArray[np.float32]:
    """Distinct observations for distinct numbers below 5; then they repeat."""
    return np.full(SHAPE, number % 5, np.float32)


def stored(total: int, capacity: int, each: int = 2) -> TransitionReplay:
    """Transition k leads from board k to board k + 1, pays k and ends an episode if k % 3 is 0."""
    replay = TransitionReplay(capacity, SHAPE)
    for start in range(0, total, each):
        numbers = np.arange(start, start + each)
        replay.append(
            np.stack([board(k) for k in numbers.tolist()]),
            numbers,
            numbers.astype(np.float32),
            numbers % 3 == 0,
            np.stack([board(k + 1) for k in numbers.tolist()]),
        )
        replay.settle()
    return replay


def check(content: dict[str, NDArray[Any]], numbers: list[int]) -> None:
    assert content["actions"].tolist() == numbers
    assert content["rewards"].tolist() == numbers
    assert content["terminals"].tolist() == [k % 3 == 0 for k in numbers]
    rows, index = content["rows"], content["index"]
    assert index.shape == (len(numbers), 2)
    for k, (before, after) in zip(numbers, index, strict=True):
        np.testing.assert_array_equal(rows[before], board(k))
        np.testing.assert_array_equal(rows[after], board(k + 1))


@pytest.mark.parametrize("each", [1, 2, 4])
def test_the_oldest_make_room(each: int) -> None:
    check(stored(4, 8, each).get(), [0, 1, 2, 3])
    check(stored(20, 7, each).get(), list(range(13, 20)))


def test_distinct_observations_are_kept_once() -> None:
    content = stored(100, 60).get()
    assert content["rows"].shape == (5, *SHAPE)
    assert content["index"][0].tolist() == [0, 1]


def test_content_is_restored_and_continues_equally() -> None:
    one = stored(20, 7)
    other = TransitionReplay(7, SHAPE)
    other.set(one.get())
    for replay in (one, other):
        pay = np.ones(1, np.float32)
        replay.append(board(3)[None], np.array([1]), pay, np.array([True]), board(4)[None])
        replay.settle()
    draws = [replay.sample(np.random.default_rng(0), 50) for replay in (one, other)]
    for name in ("actions", "rewards", "terminals"):
        np.testing.assert_array_equal(getattr(draws[0], name), getattr(draws[1], name))
    np.testing.assert_array_equal(one.rows(draws[0].after), other.rows(draws[1].after))


def test_draws_are_uniform_over_what_is_stored() -> None:
    draw = stored(20, 7).sample(np.random.default_rng(0), 7000)
    numbers, counts = np.unique(draw.actions, return_counts=True)
    assert numbers.tolist() == list(range(13, 20))
    assert abs(counts - 1000).max() < 130


def test_what_was_drawn_can_be_read_until_the_replay_settles() -> None:
    replay = TransitionReplay(2, SHAPE)
    rest = (np.ones(2, np.int64), np.ones(2, np.float32), np.zeros(2, np.bool_))
    replay.append(np.stack([board(0), board(1)]), *rest, np.stack([board(2)] * 2))
    draw = replay.sample(np.random.default_rng(0), 4)
    before = replay.rows(draw.before)
    replay.append(np.stack([board(3)] * 2), *rest, np.stack([board(4)] * 2))
    np.testing.assert_array_equal(replay.rows(draw.before), before)
    replay.settle()
    assert replay.get()["rows"].shape == (2, *SHAPE)


def test_more_than_fits_is_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        stored(4, 2, each=4)


def test_an_empty_replay_clears() -> None:
    replay = stored(20, 7)
    replay.set(TransitionReplay(7, SHAPE).get())
    assert len(replay) == 0
    check(replay.get(), [])
