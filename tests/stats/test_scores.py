"""Normalised scores and the area after a switch."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rulescope.envs.environment import References
from rulescope.stats import (
    DataError,
    deep_sea_tail,
    endpoint,
    last_fraction,
    post_switch_auc,
    rows_between,
    tail_from,
    tail_mean,
    updates_for_depth,
)
from rulescope.stats.array_checks import IntArray

NAN = math.nan
GRID = np.arange(20, 3001, 20)


@pytest.mark.parametrize(
    ("returns", "scale", "random", "oracle", "expected"),
    [
        (0.5, 1, -0.75, 1, 0.7142857143),
        (500, 1000, -0.75, 1, 0.7142857143),
        (-0.002, 0.001, -3.04774, 0.75, 0.2758851317),
        (1.2, 1, -0.75, 1, 1.1142857143),
        (-0.75, 1, -0.75, 1, 0.0),
        (-1.0, 1, -0.75, 1, -0.1428571429),
    ],
)
def test_worked_scores(
    returns: float, scale: float, random: float, oracle: float, expected: float
) -> None:
    known = References(random, oracle, NAN, NAN)
    assert known.return_score(returns / scale) == pytest.approx(expected, abs=5e-11)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (np.full(150, 0.3), 0.3),
        (np.where(GRID <= 1500, 1.0, 0.5), 0.5033333333),
        (np.clip((GRID - 1500) / 750, 0, 1), 0.7499555556),
    ],
)
def test_worked_areas(scores: object, expected: float) -> None:
    area = post_switch_auc(GRID, np.asarray(scores), 1500, 3000)
    assert float(area) == pytest.approx(expected, abs=5e-11)


def test_area_on_an_uneven_grid() -> None:
    area = post_switch_auc([1500, 2000, 3000], [1, -0.2, 0.6], 1500, 3000)
    assert float(area) == pytest.approx(0.2666666667, abs=5e-11)


def test_rows_outside_the_window_do_not_count() -> None:
    stack = np.full((2, 3, 150), 0.25)
    stack[..., GRID < 1500] = NAN
    stack[..., GRID > 2000] = 99.0
    np.testing.assert_allclose(post_switch_auc(GRID, stack, 1500, 2000), np.full((2, 3), 0.25))


def test_breakout_window_is_divided_by_its_own_length() -> None:
    grid = np.arange(40, 8001, 40)
    assert float(post_switch_auc(grid, np.full(200, 0.3), 4000, 8000)) == pytest.approx(0.3)


def test_a_missing_row_leaves_no_area() -> None:
    scores = np.full((2, 150), 0.25)
    scores[1, 100] = NAN
    np.testing.assert_array_equal(post_switch_auc(GRID, scores, 1500, 3000), [0.25, NAN])


@pytest.mark.parametrize(("switch", "end"), [(1490, 3000), (1500, 2990), (1500, 3020)])
def test_both_ends_must_be_rows(switch: int, end: int) -> None:
    with pytest.raises(DataError, match=f"no row at iteration {switch} or at iteration {end}"):
        post_switch_auc(GRID, np.zeros(150), switch, end)


def test_bad_windows() -> None:
    with pytest.raises(DataError, match="after the switch at 1500, not at 1500"):
        post_switch_auc(GRID, np.zeros(150), 1500, 1500)
    with pytest.raises(DataError, match=r"scores has shape \(149,\) for 150 rows"):
        post_switch_auc(GRID, np.zeros(149), 1500, 3000)
    with pytest.raises(DataError, match="increasing order"):
        post_switch_auc(GRID[::-1], np.zeros(150), 1500, 3000)


def log(total: int, interval: int) -> IntArray:
    """Return the iterations of a log: every multiple of the interval, and no row 0."""
    return np.arange(interval, total + 1, interval)


def test_tail20_is_21_rows_from_1600_to_2000() -> None:
    rows = log(2000, 20)
    kept = rows[tail_from(rows, 0.8, 2000)]
    assert (len(kept), kept[0], kept[-1]) == (21, 1600, 2000)


def test_exposure_tail_is_23_rows_of_150() -> None:
    rows = log(6000, 40)
    mask = tail_from(rows, 0.85, 6000)
    assert len(rows) == 150
    assert mask.sum() == 23
    np.testing.assert_array_equal(rows[mask], rows[int(0.85 * 150) :])
    exact = np.arange(5098, 5103)
    np.testing.assert_array_equal(tail_from(exact, 0.85, 6000), [False, False, True, True, True])


@pytest.mark.parametrize(("depth", "rows"), [(8, 9), (10, 11), (12, 13), (14, 15), (16, 17)])
def test_deep_sea_tails(depth: int, rows: int) -> None:
    iterations = log(updates_for_depth(depth), 40)
    mask = deep_sea_tail(iterations)
    assert mask.sum() == rows
    np.testing.assert_array_equal(iterations[mask], iterations[int(0.8 * len(iterations)) :])


def test_deep_sea_tail_includes_the_row_at_exactly_four_fifths() -> None:
    assert deep_sea_tail([10, 20, 30, 40, 50]).tolist() == [False, False, False, True, True]
    assert deep_sea_tail([7]).tolist() == [True]
    assert deep_sea_tail([]).shape == (0,)


@pytest.mark.parametrize(
    ("rows", "fraction", "kept"),
    [
        (400, 0.15, 60),
        (100, 0.15, 15),
        (150, 0.15, 22),
        (200, 0.1, 20),
        (6, 0.15, 1),
        (1, 0.1, 1),
        (13, 0.15, 1),
        (14, 0.15, 2),
        (100, 0.29, 29),
        (50, 1.0, 50),
    ],
)
def test_last_rows(rows: int, fraction: float, kept: int) -> None:
    expected = [False] * (rows - kept) + [True] * kept
    assert last_fraction(rows, fraction).tolist() == expected


def test_no_rows_no_tail() -> None:
    assert last_fraction(0, 0.15).shape == (0,)
    with pytest.raises(DataError, match="-1 rows"):
        last_fraction(-1, 0.15)


@given(st.integers(1, 99), st.integers(1, 3000))
def test_fractions_are_exact_decimals(percent: int, total: int) -> None:
    """In binary 0.55 * 100 > 55 and 0.29 * 100 < 29; whole-number arithmetic has no such case."""
    fraction, iterations = percent / 100, np.arange(1, total + 1)
    assert (tail_from(iterations, fraction, total) == (100 * iterations >= percent * total)).all()
    assert last_fraction(total, fraction).sum() == max(percent * total // 100, 1)


def test_the_row_at_exactly_the_share_is_in() -> None:
    assert 0.55 * 100 > 55
    assert tail_from([54, 55, 56], 0.55, 100).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("total", "interval", "first", "last", "rows"),
    [(3000, 20, 1500, 3000, 76), (3000, 20, 2700, 3000, 16), (8000, 40, 4000, 8000, 101)],
)
def test_windows_after_a_switch(
    total: int, interval: int, first: int, last: int, rows: int
) -> None:
    iterations = log(total, interval)
    kept = iterations[rows_between(iterations, first, last)]
    assert (len(kept), kept[0], kept[-1]) == (rows, first, last)


def test_endpoint_is_the_last_row_at_or_before() -> None:
    assert endpoint([20, 40, 60], 40).tolist() == [False, True, False]
    assert endpoint([20, 40, 60], 59).tolist() == [False, True, False]
    assert endpoint([20, 40, 60], 900).tolist() == [False, False, True]
    assert endpoint([20, 40, 60], 19).tolist() == [False, False, False]


def test_tail_mean_is_over_finite_rows() -> None:
    scores = [[9.0, 1.0, NAN, 3.0], [9.0, NAN, NAN, NAN], [9.0, 1.0, 2.0, 6.0]]
    mask = np.array([False, True, True, True])
    np.testing.assert_array_equal(tail_mean(scores, mask), [2.0, NAN, 3.0])
    assert tail_mean(scores[0], mask) == 2.0
    assert math.isnan(tail_mean([1.0, 2.0], np.zeros(2, dtype=bool)))


def test_bad_rows() -> None:
    with pytest.raises(DataError, match=r"\(3,\) does not fit scores \(2, 4\)"):
        tail_mean(np.zeros((2, 4)), np.ones(3, dtype=bool))
    with pytest.raises(DataError, match="mask int64"):
        tail_mean(np.zeros(2), np.array([0, 1]))
    with pytest.raises(DataError, match=r"not 1\.5"):
        tail_from([1, 2], 1.5, 2)
    with pytest.raises(DataError, match="one increasing column"):
        rows_between([20, 20, 40], 0, 100)
