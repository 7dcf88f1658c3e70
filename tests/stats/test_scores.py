"""Normalised scores and the area after a switch."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rulescope.stats import DataError, normalised_score, post_switch_auc

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
    score = normalised_score(returns, scale, random, oracle)
    assert float(score) == pytest.approx(expected, abs=5e-11)


def test_scores_broadcast_and_missing_stays_missing() -> None:
    scores = normalised_score([[1.0, NAN], [10.0, 5.0]], [[1.0], [10.0]], 0.0, 2.0)
    np.testing.assert_array_equal(scores, [[0.5, NAN], [0.5, 0.25]])


def test_impossible_scores() -> None:
    with pytest.raises(DataError, match=r"scale must be positive, not 0\.0"):
        normalised_score(1.0, 0.0, 0.0, 1.0)
    with pytest.raises(DataError, match="references are equal"):
        normalised_score(1.0, 1.0, 0.5, 0.5)


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
