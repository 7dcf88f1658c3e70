from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rulescope.learners.transition_replay import TransitionReplay

SHAPE = (2, 2)


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
