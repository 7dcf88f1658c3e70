"""First times: attainment after a switch, thresholds, mastery."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rulescope.stats import (
    DataError,
    attained,
    attainment,
    finite_mean,
    mastery,
    mastery_target,
    restricted_times,
    threshold_steps,
    trimmed_mean,
)
from rulescope.stats.array_checks import FloatArray

NAN = math.nan
GRID = np.arange(20, 3001, 20)
AT_SWITCH = 1500 // 20 - 1  # row of iteration 1500


def episodes(length: int) -> FloatArray:
    """Return the completed episodes at every row when all last ``length`` steps."""
    return (2.0 * (29 * GRID // length)).astype(np.float64)


def attain(scores: object, completed: object, threshold: float = 0.8) -> float:
    return float(attainment(GRID, np.asarray(scores), np.asarray(completed), threshold, 1500))


@pytest.mark.parametrize(("length", "first"), [(7, 20), (15, 40)])
def test_first_possible_row(length: int, first: int) -> None:
    """8x8 Catch can attain at the first row after the switch, 16x16 only at the second."""
    assert attain(np.ones(150), episodes(length)) == first


def test_a_row_counts_from_the_hundred_and_second_episode() -> None:
    completed = np.zeros(150)
    completed[AT_SWITCH:] = 40
    completed[AT_SWITCH + 3 :] = 40 + 101
    completed[AT_SWITCH + 5 :] = 40 + 102
    assert attain(np.ones(150), completed) == 5 * 20
    completed[AT_SWITCH + 2 :] = 40 + 102
    assert attain(np.ones(150), completed) == 2 * 20


def test_washout_can_be_set_and_the_count_at_the_switch_given() -> None:
    completed = np.arange(150.0)
    times = attainment(GRID, np.ones(150), completed, 0.8, 1500, washout=7)
    assert times == 7 * 20
    times = attainment(
        GRID, np.ones((2, 150)), completed, 0.8, 1500, [AT_SWITCH - 3.0, 0.0], washout=7
    )
    np.testing.assert_array_equal(times, [4 * 20, 20])


def test_the_row_of_the_switch_itself_does_not_count() -> None:
    scores = np.zeros(150)
    scores[: AT_SWITCH + 1] = 1.0
    assert math.isnan(
        attainment(GRID, scores, np.zeros(150), 0.8, 1500, episodes_at_switch=0, washout=0)
    )


def test_at_the_threshold_attains() -> None:
    scores = np.zeros(150)
    scores[-2] = np.nextafter(0.8, 0)
    assert math.isnan(attain(scores, episodes(7)))
    scores[-1] = 0.8
    assert attain(scores, episodes(7)) == 1500
    assert math.isnan(attain(scores, episodes(7), 0.9))


def test_missing_scores_do_not_attain() -> None:
    scores = np.full(150, NAN)
    scores[AT_SWITCH + 1] = math.inf
    assert math.isnan(attain(scores, episodes(7)))
    scores[AT_SWITCH + 9] = 0.95
    assert attain(scores, episodes(7)) == 180


def test_a_stack_is_its_runs() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random((3, 4, 150))
    counts = np.cumsum(rng.integers(0, 12, scores.shape), axis=-1)
    times = attainment(GRID, scores, counts, 0.97, 1500)
    assert times.shape == (3, 4)
    for cell in np.ndindex(3, 4):
        expected = NAN
        for row in range(AT_SWITCH + 1, 150):
            enough = counts[cell][row] - counts[cell][AT_SWITCH] >= 102
            if enough and scores[cell][row] >= 0.97:
                expected = GRID[row] - 1500.0
                break
        np.testing.assert_array_equal(times[cell], expected)


def test_attainment_needs_the_row_of_the_switch() -> None:
    with pytest.raises(DataError, match="no row at the switch, iteration 1510"):
        attainment(GRID, np.ones(150), np.ones(150), 0.8, 1510)
    with pytest.raises(DataError, match=r"episodes has shape \(3,\) for 150 rows"):
        attainment(GRID, np.ones(150), np.ones(3), 0.8, 1500)


@pytest.mark.parametrize(
    ("times", "mean", "count"),
    [
        ([20] * 15 + [40] * 3, 23.3333333333, 18),
        ([20, 60, NAN, 1500], 770.0, 3),
        ([1500] + [NAN] * 17, 1500.0, 1),
        ([NAN] * 18, 1500.0, 0),
        ([780] * 17 + [1120], 798.8888888889, 18),
        ([100, 1520], 800.0, 1),
    ],
)
def test_worked_restricted_means(times: list[float], mean: float, count: int) -> None:
    assert float(finite_mean(restricted_times(times, 1500))) == pytest.approx(mean, abs=5e-11)
    assert attained(times, 1500).sum() == count


def test_restricted_mean_in_interactions() -> None:
    assert float(
        finite_mean(restricted_times([20, 60, NAN, 1500], 1500))
    ) * 58 / 1000 == pytest.approx(44.66)
    assert pytest.approx(46.336, abs=5e-4) == 14380 / 18 * 58 / 1000


@given(st.lists(st.one_of(st.just(NAN), st.floats(0, 3000)), min_size=1), st.floats(1, 2000))
def test_restricted_means_lie_within_the_horizon(times: list[float], horizon: float) -> None:
    mean = finite_mean(restricted_times(times, horizon))
    assert 0 <= mean <= horizon * (1 + 1e-12)
    restricted = restricted_times(times, horizon)
    assert restricted.shape == (len(times),)
    assert np.all(restricted[np.isnan(times)] == horizon)


def test_restricted_means_of_cells() -> None:
    means = finite_mean(restricted_times([[20.0, NAN], [40.0, 60.0]], 100))
    np.testing.assert_array_equal(means, [60.0, 50.0])


def test_threshold_steps_are_the_first_logged_count() -> None:
    steps = 58 * np.arange(40, 241, 40)
    scores = [
        [NAN, 0.1, 0.8, 0.2, 0.9, 1.0],
        [0.79999, 0.1, 0.1, 0.2, 0.3, 0.8],
        [0.1] * 6,
        [NAN] * 6,
        [math.inf] + [0.0] * 5,
    ]
    expected = [3 * 2320, 6 * 2320, NAN, NAN, NAN]
    np.testing.assert_array_equal(threshold_steps(steps, scores), expected)
    assert threshold_steps(steps, scores[0], 0.9) == 5 * 2320


@pytest.mark.parametrize(
    ("reached", "kept", "units", "value"),
    [(18, 10, 96, 22272), (11, 7, 679, 225040), (9, 5, 614, 284896)],
)
def test_worked_threshold_steps(reached: int, kept: int, units: int, value: float) -> None:
    """Kept ranks that add up to the printed number of 2,320-step rows; the trimmed ones do not."""
    trimmed = reached - kept
    middle = [units // kept] * (kept - 1)
    middle.append(units - sum(middle))
    rows = [1] * (trimmed // 2) + middle + [10_000] * (trimmed - trimmed // 2)
    cell = [2320.0 * row for row in rows] + [NAN] * (18 - reached)
    assert float(trimmed_mean(cell[::-1])) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(
    ("scores", "target", "steps"),
    [
        ([NAN, 0.1, 0.5, 0.8, 0.85, 0.9, 0.92, 0.94, 0.96, 0.98], 0.846, 14_500),
        ([-0.5, -0.3, -0.12, -0.1, -0.1, -0.1, -0.1], -0.1144, 11_600),
        ([0.0, 1.0, 1.0, 1.0, 1.0, 1.0, NAN, NAN], 0.9, 5_800),
        ([1.0, 3.0], 1.8, 5_800),
        ([0.0, 0.0, 0.0], 0.0, 2_900),
    ],
)
def test_worked_masteries(scores: list[float], target: float, steps: float) -> None:
    grid = 2900 * np.arange(1, len(scores) + 1)
    assert float(mastery_target(scores)) == pytest.approx(target)
    assert mastery(grid, scores) == steps


def test_mastery_of_runs() -> None:
    grid = [10, 20, 30, 40, 50, 60]
    scores = [[9.0, 1, 1, 1, 1, 1], [NAN] * 6, [0, 0, 0, 0, 0, 5.0], [NAN, NAN, 2, NAN, 2, 2]]
    np.testing.assert_array_equal(mastery(grid, scores), [10, NAN, 60, 30])
    assert math.isnan(mastery([], []))
    with pytest.raises(DataError, match="for 6 rows"):
        mastery(grid, [1.0, 2.0])
