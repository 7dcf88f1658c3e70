"""Differences of independent estimates against worked numbers, scipy, and made-up lifetimes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats  # type: ignore[import-untyped]

from rulescope.stats import (
    DataError,
    Estimate,
    estimate,
    outlier_probability,
    printed_probability,
    seed_blocks,
    statistic_probability,
    trimmed_mean,
    wilson,
)
from rulescope.stats.agreement import (
    Counts,
    cohort_indices,
    estimate_difference,
    fisher,
    learned_counts,
    least_seeds,
    share_difference,
    shares_differ,
)
from rulescope.stats.resampling import bootstrap


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


SCORES = (0.0, 1.0)


def printed_by(values: np.ndarray) -> tuple[float, float, float]:
    """Return the value and interval that a cohort prints, by the bootstrap of one cell."""
    draws = bootstrap(values, seed_blocks(len(values), 1000))
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(trimmed_mean(values)), float(low), float(high)


def test_a_cell_in_which_half_the_lifetimes_fail_excludes_one_in_which_none_does() -> None:
    ours = [0.01, 1.0, 0.02, -0.01, 0.99, 1.0, 0.99, 0.0] * 2
    published = (0.995, 0.989, 0.997)
    assert printed_probability(ours, 12, published, SCORES, margin=0.02) < 0.05
    _, low, high = printed_by(np.array(ours))  # overlap of intervals would have been agreement
    assert low <= published[2]
    assert high >= published[1]


def test_the_same_numbers_are_probable_under_lifetimes_like_them() -> None:
    ours = [0.99, 1.0, 0.98, 1.0, 0.995, 0.99]
    assert printed_probability(ours, 12, (0.995, 0.989, 0.997), SCORES, margin=0.02) > 0.5


@pytest.mark.parametrize("n", [1, 2, 3])
def test_up_to_three_lifetimes_do_not_exclude_a_wide_published_interval(n: int) -> None:
    ours = [0.98, 0.99, 0.97][:n]
    assert printed_probability(ours, 12, (0.5, 0.2, 0.8), SCORES) > 0.05


def test_candidates_of_the_true_kind_are_rarely_excluded() -> None:
    """The error is at most its level: bimodal lifetimes, cohorts of 12, candidates of 6."""
    rng = np.random.default_rng(5)
    excluded = 0
    for _ in range(100):
        theirs, ours = (np.where(rng.random(k) < 0.6, 0.97, 0.02) for k in (12, 6))
        excluded += printed_probability(ours, 12, printed_by(theirs), SCORES) < 0.05
    assert excluded <= 5


def test_candidates_of_another_kind_are_excluded_when_there_are_enough_lifetimes() -> None:
    rng = np.random.default_rng(6)
    excluded = 0
    for _ in range(20):
        theirs, ours = rng.normal(0.97, 0.02, 12), np.where(rng.random(12) < 0.4, 0.97, 0.02)
        excluded += printed_probability(ours, 12, printed_by(theirs), SCORES) < 0.05
    assert excluded >= 12


def test_the_outlier_probability_is_a_plain_count() -> None:
    samples = np.arange(1.0, 100.0)[:, np.newaxis]
    as_far = sum(each >= 98.0 or each <= 2.0 for each in samples[:, 0])
    assert outlier_probability(samples, [98.0]) == pytest.approx((1 + as_far) / 100)
    assert outlier_probability(samples, [50.0]) == 1.0
    assert outlier_probability(samples, [104.0], margin=5.0) == outlier_probability(samples, [99.0])


def test_correlated_members_are_not_counted_twice() -> None:
    one = np.random.default_rng(0).normal(size=(1000, 1))
    assert outlier_probability(np.repeat(one, 3, axis=1), [2.0] * 3) == outlier_probability(
        one, [2.0]
    )
    apart = np.random.default_rng(1).normal(size=(1000, 3))
    assert outlier_probability(apart, [2.0, 0.0, 0.0]) > 2 * outlier_probability(one, [2.0])


def test_cohorts_are_drawn_from_all_lifetimes_and_always_the_same() -> None:
    drawn = cohort_indices(5, 12, 500)
    assert drawn.shape == (500, 12)
    assert set(np.unique(drawn)) == set(range(5))
    share = np.bincount(drawn.ravel(), minlength=5) / drawn.size
    assert share == pytest.approx([0.2] * 5, abs=0.05)
    assert (drawn == cohort_indices(5, 12, 500)).all()


def test_without_values_there_is_no_probability() -> None:
    assert math.isnan(printed_probability([math.nan], 12, (0.5, 0.4, 0.6), SCORES))


def test_a_printed_value_without_an_interval_is_ranked_alone() -> None:
    ours = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    alone = printed_probability(ours, 18, (3.5, math.nan, math.nan), (0.0, 7.0))
    assert alone > 0.5
    far = printed_probability(ours * 3, 18, (40.0, math.nan, math.nan), (0.0, 7.0))
    assert far < 0.01


def test_any_statistic_of_a_cohort_can_be_ranked() -> None:
    values = np.linspace(0.0, 1.0, 9)
    found = statistic_probability(lambda chosen: float(values[chosen].mean()), 9, 12, 0.5)
    assert found > 0.5
    assert statistic_probability(lambda chosen: float(values[chosen].max()), 9, 12, 2.0) < 0.01
