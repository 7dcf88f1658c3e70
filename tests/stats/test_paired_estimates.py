"""Paired differences: Student's quantiles against SciPy's, the wider interval, its error rate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from rulescope.stats import (
    DataError,
    estimate,
    paired_estimate,
    seed_blocks,
    student_quantile,
    trimmed_mean,
)


@pytest.mark.parametrize("degrees", [*range(1, 20), 50, 199])
@pytest.mark.parametrize("probability", [0.6, 0.9, 0.975, 0.9982, 0.99995])
def test_quantiles_are_those_of_scipy(probability: float, degrees: int) -> None:
    expected = float(stats.t.ppf(probability, degrees))
    assert student_quantile(probability, degrees) == pytest.approx(expected, rel=1e-9)


def test_a_quantile_needs_a_degree_of_freedom() -> None:
    with pytest.raises(DataError, match="degrees"):
        student_quantile(0.975, 0)


def test_the_interval_covers_both_of_its_parts() -> None:
    first, second = np.array([0.9, 0.95, 1.0, 0.7, 0.85]), np.array([0.2, 0.1, 0.4, 0.3, 0.1])
    each = first - second
    ours = paired_estimate(first, second, family=3)
    plain = estimate(each, seed_blocks(5), trimmed_mean, 3)
    half = stats.t.ppf(1 - 0.025 / 3, 4) * stats.sem(each)
    assert ours.value == plain.value == trimmed_mean(each)
    assert ours.low == pytest.approx(min(plain.low, each.mean() - half))
    assert ours.high == pytest.approx(max(plain.high, each.mean() + half))
    assert (ours.n, ours.family, ours.method) == (5, 3, "bootstrap")


def test_seeds_that_one_arm_lacks_are_left_out() -> None:
    ours = paired_estimate([1.0, 0.8, math.nan, 0.9, 0.7], [0.5, 0.5, 0.5, 0.5, math.nan])
    assert ours.n == 3
    assert ours.value == pytest.approx(0.4)
    two = paired_estimate([1.0, 0.8], [0.5, 0.5])
    assert two.method == "range"
    assert (two.low, two.high) == pytest.approx((0.3, 0.5))


@pytest.mark.parametrize("n", [3, 4, 5, 8])
def test_equal_arms_rarely_differ_significantly(n: int) -> None:
    """The bootstrap alone leaves out zero in 25 % (n=3), 13 % (4), 10 % (5) and 5 % (8)."""
    draws = np.random.default_rng(n)
    wrong = 0
    for first, second in draws.normal(0.8, 0.1, (400, 2, n)):
        found = paired_estimate(first, second, draws=800)
        wrong += found.low > 0 or found.high < 0
    assert wrong / 400 < 0.075
