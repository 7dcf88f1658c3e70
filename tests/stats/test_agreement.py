"""Differences of independent estimates against worked numbers, scipy, and made-up lifetimes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats  # type: ignore[import-untyped]

from rulescope.stats import DataError, Estimate, estimate, seed_blocks, trimmed_mean, wilson
from rulescope.stats.agreement import (
    Counts,
    estimate_difference,
    fisher,
    learned_counts,
    least_seeds,
    share_difference,
    shares_differ,
)


def test_the_difference_of_two_shares_is_that_of_newcombe() -> None:
    """56 of 70 and 48 of 80: the worked example of Newcombe (1998), method 10."""
    found = estimate_difference(wilson(56, 70), wilson(48, 80))
    assert found.value == pytest.approx(0.2)
    assert (found.low, found.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_symmetric_intervals_add_their_variances() -> None:
    found = estimate_difference(Estimate(1.0, 0.7, 1.3, 12), Estimate(0.5, 0.1, 0.9, 18, family=1))
    assert (found.low, found.high) == pytest.approx((0.0, 1.0))
    assert found.n == 12


def test_a_skewed_interval_stays_skewed() -> None:
    found = estimate_difference(Estimate(0.9, 0.5, 1.0, 12), Estimate(0.0, 0.0, 0.0, 12))
    assert (found.low, found.high) == pytest.approx((0.5, 1.0))


def test_without_bounds_there_is_no_interval() -> None:
    found = estimate_difference(Estimate(0.9, 0.5, 1.0, 12), Estimate(0.5, math.nan, math.nan, 12))
    assert found.value == pytest.approx(0.4)
    assert math.isnan(found.low)


@pytest.mark.parametrize("family", [1, 2, 11, 15, 30, 34])
def test_fewer_seeds_cannot_have_an_interval_at_the_level_of_the_family(family: int) -> None:
    least = least_seeds(family)
    assert 2.0 ** (1 - least) <= 0.05 / family < 2.0 ** (2 - least)


def test_fishers_test_is_that_of_scipy() -> None:
    generator = np.random.default_rng(3)
    for _ in range(200):
        n, other_n = generator.integers(1, 20, size=2).tolist()
        k, other = int(generator.integers(0, n + 1)), int(generator.integers(0, other_n + 1))
        expected = scipy_stats.fisher_exact([[k, n - k], [other, other_n - other]]).pvalue
        assert fisher(k, n, other, other_n) == pytest.approx(expected)


def test_more_successes_than_lifetimes_are_refused() -> None:
    with pytest.raises(DataError, match="9 of 8"):
        fisher(9, 8, 1, 2)


def test_a_narrow_interval_near_one_leaves_room_for_one_failure_in_twelve() -> None:
    assert learned_counts(Estimate(0.995, 0.989, 0.997, 12), 0.5) == Counts(11, 12, 12)
    assert learned_counts(Estimate(0.004, -0.003, 0.009, 12), 0.5) == Counts(0, 1, 12)
    assert str(Counts(11, 12, 12)) == "11 to 12 of 12"


@pytest.mark.parametrize("n", [8, 12, 15, 18])
def test_the_true_count_is_never_excluded(n: int) -> None:
    generator = np.random.default_rng(n)
    for k in range(n + 1):
        scores = np.concatenate(
            [generator.uniform(0.8, 1.0, size=k), generator.uniform(-0.02, 0.1, size=n - k)]
        )
        found = learned_counts(estimate(scores, seed_blocks(n, 1000)), 0.5)
        assert found.least <= k <= found.most
        assert found.most - found.least < n


def test_a_mean_of_another_kind_excludes_nothing() -> None:
    assert learned_counts(Estimate(9.8, 9.1, 10.2, 12), 0.5) == Counts(0, 12, 12)


def test_shares_differ_only_if_they_do_for_every_count() -> None:
    assert shares_differ(Counts(3, 3, 8), Counts(11, 12, 12))
    assert not shares_differ(Counts(3, 3, 8), Counts(6, 12, 12))
    assert not shares_differ(Counts(3, 3, 8), Counts(11, 12, 12), family=11)


def test_the_interval_of_uncertain_counts_contains_that_of_each() -> None:
    found = share_difference(Counts(3, 3, 8), Counts(9, 12, 12))
    for k in range(9, 13):
        one = estimate_difference(wilson(3, 8), wilson(k, 12))
        assert found.low <= one.low
        assert one.high <= found.high


def test_counts_are_derived_from_the_same_trimmed_mean() -> None:
    """Three failures of twelve are cut off; with a fourth the mean drops by a sixth."""
    three, four = [0.0] * 3 + [1.0] * 9, [0.0] * 4 + [1.0] * 8
    assert float(trimmed_mean(three)) == 1.0
    assert float(trimmed_mean(four)) == pytest.approx(5 / 6)
    assert learned_counts(Estimate(1.0, math.nan, math.nan, 12), 0.5).least == 9
