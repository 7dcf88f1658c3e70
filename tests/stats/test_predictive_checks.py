"""Printed numbers, placed among those that cohorts like ours would print."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rulescope.stats import (
    outlier_probability,
    printed_probability,
    statistic_probability,
    trimmed_mean,
)
from rulescope.stats.predictive_checks import cohort_indices
from rulescope.stats.resampling import bootstrap, seed_blocks

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
