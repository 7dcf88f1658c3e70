"""Robust centres: worked vectors, SciPy as an oracle, and the properties a centre must have."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from scipy import stats as scipy_stats  # type: ignore[import-untyped]

from rulescope.stats import (
    exact_iqm,
    finite_count,
    finite_mean,
    is_bimodal,
    split_groups,
    trimmed_mean,
)
from rulescope.stats.array_checks import FloatArray

Centre = Callable[..., FloatArray]

NAN = math.nan
CENTRES: list[Centre] = [trimmed_mean, exact_iqm]
SQUARES_18 = np.arange(1, 19) ** 2
SQUARES_15 = np.arange(15) ** 2
POWERS_7 = 2 ** np.arange(7)
SCORES_12 = [0, 0.1, 0.2, 0.9, 0.95, 0.97, 0.98, 0.985, 0.99, 0.995, 1, 1]

numbers = st.floats(-1e6, 1e6, allow_subnormal=False)
samples = st.lists(numbers, min_size=1, max_size=25)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 6], 3.0),
        ([10, 0, 4, 2, 100], 16 / 3),
        (POWERS_7, 12.4),
        (SQUARES_18, 98.5),
        (SQUARES_15, 55.6666666667),
        (SCORES_12, 0.9625),
    ],
)
def test_worked_trimmed_means(values: list[float], expected: float) -> None:
    assert float(trimmed_mean(values)) == pytest.approx(expected, abs=5e-11)


@pytest.mark.parametrize(
    ("n", "first", "last"),
    [
        (1, 1, 1),
        (2, 1, 2),
        (3, 1, 3),
        (4, 2, 3),
        (5, 2, 4),
        (7, 2, 6),
        (8, 3, 6),
        (9, 3, 7),
        (11, 3, 9),
        (12, 4, 9),
        (15, 4, 12),
        (18, 5, 14),
    ],
)
def test_trimmed_ranks(n: int, first: int, last: int) -> None:
    """Moving one value by one, far from its neighbours, moves the mean only if its rank is kept."""
    ranks = np.arange(1, n + 1) * 1000.0
    moved = np.array([trimmed_mean(ranks + np.eye(n)[k]) - trimmed_mean(ranks) for k in range(n)])
    kept = last - first + 1
    expected = [1 / kept if first <= rank <= last else 0 for rank in range(1, n + 1)]
    np.testing.assert_allclose(moved, expected, atol=1e-9)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 2, 4, 10, 100], 5.2),
        (SQUARES_18, 97.1666666667),
        (POWERS_7, 10.4285714286),
        (np.arange(1, 13), 6.5),
        (SQUARES_15, 53.8),
        ([3.0], 3.0),
        ([1.0, 3.0], 2.0),
    ],
)
def test_worked_exact_iqms(values: list[float], expected: float) -> None:
    assert float(exact_iqm(values)) == pytest.approx(expected, abs=5e-11)


def test_exact_iqm_weights_of_eighteen() -> None:
    ranks = np.arange(1, 19) * 1000.0
    moved = np.array([exact_iqm(ranks + np.eye(18)[k]) - exact_iqm(ranks) for k in range(18)])
    expected = np.array([0] * 4 + [1] + [2] * 8 + [1] + [0] * 4) / 18
    np.testing.assert_allclose(moved, expected, atol=1e-9)


@given(st.lists(numbers, min_size=4, max_size=24).filter(lambda values: len(values) % 4 == 0))
def test_trimmed_mean_is_scipys_where_a_quarter_is_a_whole_number(values: list[float]) -> None:
    expected = scipy_stats.trim_mean(values, 0.25)
    assert float(trimmed_mean(values)) == pytest.approx(expected, rel=1e-9, abs=1e-6)
    assert float(exact_iqm(values)) == pytest.approx(expected, rel=1e-9, abs=1e-6)


@given(samples)
def test_exact_iqm_is_scipys_trim_of_every_value_taken_four_times(values: list[float]) -> None:
    """Four copies make a quarter of the sample a whole number of values, for every n."""
    expected = scipy_stats.trim_mean(np.repeat(values, 4), 0.25)
    assert float(exact_iqm(values)) == pytest.approx(expected, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("centre", CENTRES)
@given(values=samples, random=st.randoms(use_true_random=False))
def test_order_does_not_matter(centre: Centre, values: list[float], random: Random) -> None:
    shuffled = values.copy()
    random.shuffle(shuffled)
    assert centre(shuffled) == centre(values)


@pytest.mark.parametrize("centre", CENTRES)
@given(values=samples, shift=numbers, factor=st.floats(0.001, 1000))
def test_equivariance(centre: Centre, values: list[float], shift: float, factor: float) -> None:
    x = np.array(values)
    size = factor * np.abs(x).max() + abs(shift) + 1e-300
    assert abs(centre(factor * x + shift) - (factor * centre(x) + shift)) <= 1e-13 * size
    assert centre(-x) == pytest.approx(-centre(x), rel=1e-12, abs=1e-12 * size)


@pytest.mark.parametrize("centre", CENTRES)
@given(values=samples)
def test_never_outside_the_values(centre: Centre, values: list[float]) -> None:
    assert min(values) <= centre(values) <= max(values)


@pytest.mark.parametrize("centre", CENTRES)
@pytest.mark.parametrize("n", range(1, 20))
def test_the_centre_of_equal_values_is_that_value_to_the_bit(centre: Centre, n: int) -> None:
    assert centre([0.1] * n) == 0.1
    assert centre([0.7] * n) == 0.7


@pytest.mark.parametrize("centre", [*CENTRES, finite_mean])
@given(values=samples, gaps=st.lists(st.integers(0, 25), max_size=8))
def test_missing_values_have_no_effect(
    centre: Centre, values: list[float], gaps: list[int]
) -> None:
    with_gaps = list(values)
    for k, gap in enumerate(gaps):
        with_gaps.insert(min(gap, len(with_gaps)), [NAN, math.inf, -math.inf][k % 3])
    assert centre(with_gaps) == pytest.approx(float(centre(values)), rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("centre", CENTRES)
def test_every_slice_has_its_own_count(centre: Centre) -> None:
    rng = np.random.default_rng(3)
    stack = rng.standard_normal((3, 4, 9))
    stack[rng.random(stack.shape) < 0.4] = NAN
    stack[1, 2] = NAN
    stack[0, 0] = np.arange(9)
    expected = np.array([[centre(cell[np.isfinite(cell)]) for cell in row] for row in stack])
    np.testing.assert_array_equal(centre(stack), expected)
    np.testing.assert_array_equal(centre(np.moveaxis(stack, -1, 1), axis=1), expected)
    assert math.isnan(expected[1, 2])


@pytest.mark.parametrize("centre", [*CENTRES, finite_mean])
def test_no_finite_value_gives_nan(centre: Centre) -> None:
    assert math.isnan(centre([]))
    assert math.isnan(centre([NAN, NAN]))
    assert centre(np.zeros((0, 5))).shape == (0,)
    assert np.isnan(centre(np.zeros((2, 0)))).all()


def test_input_is_not_changed() -> None:
    values = np.array([3.0, NAN, 1.0, 2.0])
    before = values.copy()
    for centre in CENTRES:
        centre(values)
    np.testing.assert_array_equal(values, before)


def test_finite_mean_and_count() -> None:
    values = [[1.0, NAN, 3.0], [NAN, math.inf, NAN]]
    np.testing.assert_array_equal(finite_count(values), [2, 0])
    np.testing.assert_array_equal(finite_mean(values), [2.0, NAN])
    np.testing.assert_array_equal(finite_mean(values, axis=0), [1.0, NAN, 3.0])


@pytest.mark.parametrize("value", [0.7, 0.9, 0.1, -0.3])
@pytest.mark.parametrize("rows", [3, 15, 21, 76])
def test_a_mean_of_equal_values_is_that_value(value: float, rows: int) -> None:
    assert finite_mean(np.full((2, rows), value)).tolist() == [value, value]
    assert trimmed_mean(np.full(rows, value)) == value


def sizes(values: ArrayLike) -> tuple[int, int]:
    lower, upper = split_groups(values)
    return len(lower), len(upper)


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        ([0, 0, 0, 0, 0, 1, 1, 1], (5, 3)),
        ([0.98, 0.03, 1.0, -0.02], (2, 2)),
        ([0.1, 0.0, 0.55, 0.6, NAN, math.inf], (2, 2)),
        ([0.0, 0.3, 0.75, 1.0, 1.0], (2, 3)),
    ],
)
def test_two_groups_of_lifetimes_are_bimodal(values: list[float], counts: tuple[int, int]) -> None:
    assert is_bimodal(values)
    assert sizes(values) == counts


@pytest.mark.parametrize(
    "values",
    [
        [],
        [NAN, NAN],
        [0.0, 1.0],
        [0.0, 0.0, 1.0],  # one lifetime is an outlier
        [0.0] * 7 + [1.0],
        [0.5] * 8,
        [0.99, 0.991, 0.999, 1.0],  # a gap that is wide for these values, but not as a score
        [0.0, 0.0, 0.39, 0.39],
        [0.0, 0.25, 0.3, 0.72, 0.9, 1.2],  # spread out: no wider between than within
    ],
)
def test_one_group_an_outlier_or_a_spread_are_not_bimodal(values: list[float]) -> None:
    assert not is_bimodal(values)


def test_groups_are_sorted_and_split_at_the_widest_gap() -> None:
    lower, upper = split_groups([1.0, 0.1, NAN, 0.9, 0.0])
    np.testing.assert_array_equal(lower, [0.0, 0.1])
    np.testing.assert_array_equal(upper, [0.9, 1.0])
    assert sizes([0.3, 0.3]) == (2, 0)
    assert sizes([]) == (0, 0)


@pytest.mark.parametrize("n", [4, 8, 12, 18])
def test_scores_of_one_group_rarely_look_like_two(n: int) -> None:
    draws = np.random.default_rng(n)
    normal = draws.normal(0.5, 0.15, (1000, n))
    assert np.mean([is_bimodal(each) for each in normal]) < 0.01
    flat = draws.uniform(0, 1, (1000, n))
    assert np.mean([is_bimodal(each) for each in flat]) < 0.15


@pytest.mark.parametrize("n", [8, 12, 18])
def test_two_clear_groups_are_always_found(n: int) -> None:
    draws = np.random.default_rng(n)
    for _ in range(500):
        learned = draws.random(n) < 0.5
        values = np.where(learned, 0.95, 0.03) + draws.normal(0, 0.03, n)
        both = 2 <= learned.sum() <= n - 2
        assert is_bimodal(values) == both
        if both:
            assert sizes(values) == (n - learned.sum(), learned.sum())
