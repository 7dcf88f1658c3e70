"""Percentile intervals: quantile convention, families, thin tails, undefined draws."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rulescope.core.errors import RulescopeError
from rulescope.stats import (
    DataError,
    Estimate,
    TailWarning,
    estimate_from,
    percentile_interval,
    tail,
)

NAN = math.nan


@pytest.mark.parametrize(
    ("family", "expected"),
    [(1, 0.025), (11, 0.0022727273), (15, 0.0016666667), (30, 0.0008333333), (34, 0.0007352941)],
)
def test_tails_of_families(family: int, expected: float) -> None:
    assert tail(family) == pytest.approx(expected, abs=5e-11)


def test_a_thousand_draws_interpolate_at_24_975_and_974_025() -> None:
    low, high = percentile_interval(np.arange(1000.0))
    assert float(low) == pytest.approx(24.975)
    assert float(high) == pytest.approx(974.025)


@pytest.mark.parametrize("family", [11, 15, 30, 34])
def test_families_take_both_tails(family: int) -> None:
    draws = np.arange(100_001.0)
    low, high = percentile_interval(draws, family)
    assert float(low) == pytest.approx(100_000 * 0.05 / (2 * family))
    assert float(high) == pytest.approx(100_000 * (1 - 0.05 / (2 * family)))


@given(st.integers(0, 1000), st.integers(1, 12), st.integers(1, 12))
def test_intervals_of_larger_families_contain_those_of_smaller(seed: int, a: int, b: int) -> None:
    samples = np.random.default_rng(seed).standard_normal((10_000, 2)) ** 3
    small, large = percentile_interval(samples, min(a, b)), percentile_interval(samples, max(a, b))
    assert (large.low <= small.low).all()
    assert (small.low <= small.high).all()
    assert (small.high <= large.high).all()


@pytest.mark.parametrize(
    ("draws", "family", "warns"),
    [
        (1000, 1, False),
        (800, 1, False),
        (799, 1, True),
        (10_000, 12, False),
        (10_000, 13, True),
        (10_000, 15, True),
        (12_000, 15, False),
    ],
)
def test_thin_tails_warn(draws: int, family: int, warns: bool) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        percentile_interval(np.arange(float(draws)), family)
    assert [issubclass(w.category, TailWarning) for w in caught] == [True] * warns


def test_the_warning_names_a_sufficient_number_of_draws() -> None:
    with pytest.warns(TailWarning, match=r"16\.7 beyond .* family of 15; 12000 would leave 20"):
        percentile_interval(np.arange(10_000.0), 15)


def test_undefined_draws_thin_the_tails() -> None:
    samples = np.arange(1000.0)
    samples[:300] = NAN
    with pytest.warns(TailWarning, match="700 draws leave 17.5"):
        percentile_interval(samples)


def test_undefined_draws_are_left_out() -> None:
    rng = np.random.default_rng(0)
    samples = rng.standard_normal((2000, 3, 2))
    whole = percentile_interval(samples)
    samples[::7, 1, 0] = NAN
    samples[::7, 2, 1] = math.inf
    samples[:, 0, 1] = NAN
    low, high = percentile_interval(samples)
    kept = samples[np.isfinite(samples[:, 1, 0]), 1, 0]
    assert low[1, 0] == np.quantile(kept, 0.025)
    assert high[1, 0] == np.quantile(kept, 0.975)
    assert np.isfinite([low[2, 1], high[2, 1]]).all()
    assert np.isnan([low[0, 1], high[0, 1]]).all()
    np.testing.assert_array_equal([low[0, 0], high[1, 1]], [whole.low[0, 0], whole.high[1, 1]])


def test_undefined_draws_of_one_cell() -> None:
    samples = np.concatenate([np.arange(1000.0), [NAN] * 5])
    assert percentile_interval(samples) == percentile_interval(np.arange(1000.0))
    assert np.isnan(percentile_interval(np.full(1000, NAN))).all()


def test_axis_of_draws() -> None:
    samples = np.random.default_rng(1).standard_normal((2, 1000, 3))
    low, high = percentile_interval(samples, axis=1)
    assert low.shape == high.shape == (2, 3)
    np.testing.assert_array_equal(low, percentile_interval(np.moveaxis(samples, 1, 0)).low)


@pytest.mark.parametrize("family", [0, -3])
def test_a_family_has_members(family: int) -> None:
    with pytest.raises(DataError, match=f"family must be at least 1, not {family}"):
        percentile_interval(np.arange(1000.0), family)


def test_no_draws_is_an_error_that_the_command_line_understands() -> None:
    with pytest.raises(RulescopeError, match="draws must be at least 1, not 0"):
        percentile_interval([])


def test_estimate_from_draws() -> None:
    samples = np.arange(10_000.0)
    found = estimate_from(7.0, samples, 12, family=11)
    low, high = percentile_interval(samples, 11)
    assert found == Estimate(7.0, float(low), float(high), 12, 10_000, 11, "bootstrap")
    samples[:100] = NAN
    assert estimate_from(7.0, samples, 12).draws == 9900


@pytest.mark.parametrize(
    ("value", "samples", "n"),
    [(NAN, np.arange(1000.0), 12), (1.0, np.full(1000, NAN), 12), (1.0, np.arange(1000.0), 2)],
)
def test_estimate_without_interval(value: float, samples: object, n: int) -> None:
    found = estimate_from(value, np.asarray(samples), n)
    assert found.method == "none"
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.n == n
    assert found.draws == 0
    assert found.missing == math.isnan(value)


def test_three_seeds_are_enough_for_an_interval() -> None:
    assert estimate_from(1.0, np.arange(1000.0), 3).method == "bootstrap"
