"""Bimodal cells: worked examples, counterexamples, and the rate of false positives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import ArrayLike

from rulescope.stats import is_bimodal, split_groups

NAN = math.nan


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
