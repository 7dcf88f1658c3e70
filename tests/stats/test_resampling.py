"""The seed-block bootstrap against worked vectors, brute force and SciPy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import PCG64, Generator
from scipy import stats as scipy_stats  # type: ignore[import-untyped]

from rulescope.stats import (
    DataError,
    Estimate,
    Statistic,
    bootstrap,
    estimate,
    estimates,
    exact_iqm,
    finite_mean,
    percentile_interval,
    resample,
    seed_blocks,
    trimmed_mean,
)
from rulescope.stats.array_checks import IntArray
from rulescope.stats.resampling import draw_chunks

NAN = math.nan
SCORES_12 = [0, 0.1, 0.2, 0.9, 0.95, 0.97, 0.98, 0.985, 0.99, 0.995, 1, 1]


def test_first_blocks() -> None:
    twelve, eighteen = seed_blocks(12), seed_blocks(18)
    assert twelve.shape == (10_000, 12)
    assert twelve.dtype == np.int64
    assert twelve[0].tolist() == [6, 0, 11, 1, 9, 5, 11, 4, 2, 11, 10, 9]
    assert twelve[1].tolist() == [3, 7, 4, 2, 4, 10, 8, 5, 9, 3, 5, 2]
    first = [9, 0, 17, 1, 14, 8, 17, 6, 3, 16, 16, 14, 5, 10, 6, 4, 7, 15]
    assert eighteen[0].tolist() == first


def test_blocks_are_those_of_a_fresh_generator_and_cannot_be_changed() -> None:
    blocks = seed_blocks(5, 30, 7)
    np.testing.assert_array_equal(blocks, Generator(PCG64(7)).integers(0, 5, size=(30, 5)))
    with pytest.raises(ValueError, match="read-only"):
        blocks[0, 0] = 1


@pytest.mark.parametrize(
    ("values", "family", "value", "low", "high"),
    [
        (SCORES_12, 1, 0.9625, 0.545, 0.99),
        (SCORES_12, 11, 0.9625, 0.3133333333, 0.995),
        (np.arange(18) / 17, 1, 0.5, 0.3117647059, 0.6825),
        (np.arange(18) / 17, 11, 0.5, 0.2470588235, 0.7588235294),
    ],
)
def test_worked_intervals(
    values: list[float], family: int, value: float, low: float, high: float
) -> None:
    n = len(values)
    found = estimate(values, seed_blocks(n), family=family)
    assert found.value == pytest.approx(value, abs=5e-11)
    assert found.low == pytest.approx(low, abs=5e-11)
    assert found.high == pytest.approx(high, abs=5e-11)
    assert (found.n, found.draws, found.family, found.method) == (n, 10_000, family, "bootstrap")


def test_one_block_is_applied_to_all_cells() -> None:
    values = np.random.default_rng(0).standard_normal((2, 3, 5))
    blocks = seed_blocks(5, 40)
    drawn = resample(values, blocks)
    assert drawn.shape == (40, 2, 3, 5)
    for draw in range(40):
        np.testing.assert_array_equal(drawn[draw], values[..., blocks[draw]])


@pytest.mark.parametrize("statistic", [trimmed_mean, exact_iqm, finite_mean])
def test_samples_by_brute_force(statistic: Statistic) -> None:
    """More values than one chunk holds, so the pieces must meet without a seam."""
    values = np.random.default_rng(1).standard_normal((30, 7, 12))
    values[3, 2, :7] = NAN
    blocks = seed_blocks(12, 131)
    samples = bootstrap(values, blocks, statistic)
    assert samples.shape == (131, 30, 7)
    assert len(list(draw_chunks(131, values.size))) > 1
    for draw in (0, 51, 52, 53, 130):
        expected = statistic(values[..., blocks[draw]])
        np.testing.assert_allclose(samples[draw], expected, rtol=1e-12, atol=1e-15)
    expected = statistic(resample(values, blocks))
    np.testing.assert_allclose(samples, expected, rtol=1e-12, atol=1e-15)


def test_chunks_cover_every_draw_once() -> None:
    for draws, size in ((1, 1), (1000, 1 << 20), (1000, 1008), (5, 0)):
        covered = np.concatenate([np.arange(draws)[part] for part in draw_chunks(draws, size)])
        np.testing.assert_array_equal(covered, np.arange(draws))


def test_scipy_draws_the_same_percentile_interval() -> None:
    """SciPy draws its indices from the same calls, so even single draws must agree."""
    values = np.random.default_rng(2).gamma(0.5, size=12)
    theirs = scipy_stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=10_000,
        method="percentile",
        confidence_level=0.95,
        rng=Generator(PCG64(20260920)),
    )
    samples = bootstrap(values, seed_blocks(12), finite_mean)
    np.testing.assert_allclose(samples, theirs.bootstrap_distribution, rtol=1e-12)
    found = estimate(values, seed_blocks(12), finite_mean)
    assert found.low == pytest.approx(theirs.confidence_interval.low)
    assert found.high == pytest.approx(theirs.confidence_interval.high)


def test_interval_width_is_that_of_theory() -> None:
    values = np.random.default_rng(3).standard_normal(400)
    found = estimate(values, seed_blocks(400, 2000), finite_mean)
    half = 1.96 * values.std() / 20
    assert found.low == pytest.approx(found.value - half, abs=0.1 * half)
    assert found.high == pytest.approx(found.value + half, abs=0.1 * half)


def test_a_stack_is_its_cells() -> None:
    values = np.random.default_rng(4).standard_normal((2, 3, 12))
    values[0, 1, 4:] = NAN  # four left
    values[1, 0, 3:] = NAN  # three left
    values[1, 1, 2:] = NAN  # two left
    values[1, 2] = NAN
    values[0, 2, 1:] = NAN  # one left
    blocks = seed_blocks(12)
    stack = estimates(values, blocks)
    assert stack.samples.shape == (10_000, 2, 3)
    np.testing.assert_array_equal(stack.n, [[12, 4, 1], [3, 2, 0]])
    for cell in [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2)]:
        assert stack[cell] == estimate(values[cell], blocks)
        assert stack[cell].value == float(trimmed_mean(values[cell]))
    assert [stack[0, k].method for k in range(3)] == ["bootstrap", "bootstrap", "range"]
    assert [stack[1, k].method for k in range(3)] == ["bootstrap", "range", "none"]
    samples = trimmed_mean(resample(values[1, 0], blocks))
    assert stack[1, 0].draws == np.isfinite(samples).sum() < 10_000
    low, high = percentile_interval(samples)
    assert (stack[1, 0].low, stack[1, 0].high) == (float(low), float(high))


def test_three_values_are_bootstrapped() -> None:
    """Of the Trim of three values the interval is their range; of other statistics it is not."""
    found = estimate([1.0, 2.0, 6.0], seed_blocks(3), lambda values: -trimmed_mean(values))
    assert (found.low, found.high, found.method) == (-6.0, -1.0, "bootstrap")


def test_two_values_have_a_range_and_zero_have_none() -> None:
    blocks = seed_blocks(4, 1000)
    assert estimate([NAN, 5.0, NAN, 1.0], blocks) == Estimate(3.0, 1.0, 5.0, 2, 0, 1, "range")
    assert estimate([2.0, math.inf, NAN, NAN], blocks) == Estimate(2.0, 2.0, 2.0, 1, 0, 1, "range")
    nothing = estimate([NAN] * 4, blocks, family=3)
    assert np.isnan([nothing.value, nothing.low, nothing.high]).all()
    assert (nothing.n, nothing.draws, nothing.family, nothing.method) == (0, 0, 3, "none")


def test_a_list_of_cells_and_the_family() -> None:
    values = np.random.default_rng(5).standard_normal((3, 12))
    narrow, wide = estimates(values, seed_blocks(12)), estimates(values, seed_blocks(12), family=11)
    assert (wide.low < narrow.low).all()
    assert (wide.high > narrow.high).all()
    assert wide[2].family == 11
    assert wide[2] == estimate(values[2], seed_blocks(12), family=11)


def test_contrast_of_samples_keeps_the_pairing() -> None:
    """Arms that differ by a constant within every seed differ by it in every draw."""
    arm = np.random.default_rng(6).standard_normal(12)
    samples = bootstrap(np.stack([arm, arm + 0.25]), seed_blocks(12))
    np.testing.assert_allclose(samples[:, 1] - samples[:, 0], 0.25)


@pytest.mark.parametrize("function", [resample, bootstrap, estimates])
@pytest.mark.parametrize(
    ("shape", "blocks", "message"),
    [
        ((3, 4), np.zeros((10, 5), np.int64), r"\(10, 5\) do not draw from n=4"),
        ((4,), np.zeros(4, np.int64), r"\(4,\) do not draw from n=4"),
        ((4,), np.full((10, 4), 4), "outside 0..3"),
        ((4,), np.full((10, 4), -1), "outside 0..3"),
        ((), np.zeros((10, 1), np.int64), "single number"),
    ],
)
def test_blocks_must_fit(
    function: Callable[..., object], shape: tuple[int, ...], blocks: IntArray, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        function(np.zeros(shape), blocks)


def test_estimate_takes_one_cell() -> None:
    with pytest.raises(DataError, match=r"\(2, 4\); use estimates"):
        estimate(np.zeros((2, 4)), seed_blocks(4, 1000))


@pytest.mark.parametrize(("n", "draws"), [(0, 10), (3, 0)])
def test_blocks_need_seeds_and_draws(n: int, draws: int) -> None:
    with pytest.raises(DataError, match="must be at least 1, not 0"):
        seed_blocks(n, draws)
