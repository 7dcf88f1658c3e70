"""Paired and marginal contrasts, which are different numbers, and retention."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from rulescope.stats import (
    DataError,
    Family,
    UsableScales,
    bootstrap,
    estimate,
    exact_iqm,
    interaction,
    interaction_differences,
    marginal_difference,
    paired_differences,
    paired_estimate,
    resample,
    retention,
    retention_ratios,
    seed_blocks,
    student_quantile,
    tail,
    trimmed_mean,
    usable_scales,
)

NAN = math.nan
MATCH_CLAMP = [0.95, 0.9, 0.98, 0.7, 0.93, 0.99]
CROSS_CLAMP = [0.02, 0.05, 0, 0.3, 0.01, 0.1]
MATCH_NATURAL = [0.9, 0.95, 0.97, 0.5, 0.88, 0.99]
CROSS_NATURAL = [0.5, 0.9, 0.2, 0.4, 0.6, 0.95]
UNIT = [0.08, 0.09, 0.1, 0.085, 0.095, 0.088, 0.092, 0.07]
SCALED = [0.08, 0.081, 0.11, 0.0425, 0.095, 0.0968, 0.046, 0.07]


def test_worked_interaction() -> None:
    arms = (MATCH_CLAMP, CROSS_CLAMP, MATCH_NATURAL, CROSS_NATURAL)
    d = interaction_differences(*arms)
    np.testing.assert_allclose(d, [0.53, 0.80, 0.21, 0.30, 0.64, 0.85], atol=1e-12)
    assert float(interaction(*arms)) == pytest.approx(0.5675, abs=1e-12)
    mc, cc, mn, cn = (trimmed_mean(arm) for arm in arms)
    assert float((mc - cc) - (mn - cn)) == pytest.approx(0.57, abs=1e-12)


def test_interaction_of_equal_arms_and_of_one_seed() -> None:
    assert interaction(UNIT, UNIT, UNIT, UNIT) == 0
    assert float(interaction([0.9], [0.1], [0.9], [0.5])) == pytest.approx(0.4)


def test_interaction_of_stacks_and_statistics() -> None:
    rng = np.random.default_rng(0)
    mc, cc, mn, cn = rng.standard_normal((4, 2, 3, 7))
    cc[0, 1, 4] = NAN
    stack = interaction(mc, cc, mn, cn)
    assert stack.shape == (2, 3)
    for cell in np.ndindex(2, 3):
        assert stack[cell] == interaction(mc[cell], cc[cell], mn[cell], cn[cell])
    shorter = trimmed_mean(np.delete(interaction_differences(mc, cc, mn, cn)[0, 1], 4))
    assert stack[0, 1] == pytest.approx(float(shorter))
    d = interaction_differences(mc, cc, mn, cn)
    np.testing.assert_array_equal(interaction(mc, cc, mn, cn, exact_iqm), exact_iqm(d))


def test_bootstrap_of_differences_is_difference_of_resampled_arms() -> None:
    arms = np.random.default_rng(1).standard_normal((4, 12))
    blocks = seed_blocks(12, 200)
    drawn = np.moveaxis(resample(arms, blocks), 1, 0)
    np.testing.assert_allclose(
        bootstrap(interaction_differences(*arms), blocks), interaction(*drawn), atol=1e-12
    )


def test_pairs_must_match() -> None:
    with pytest.raises(DataError, match=r"first \(6,\), second \(5,\)"):
        interaction(MATCH_CLAMP, CROSS_CLAMP[:5], MATCH_NATURAL, CROSS_NATURAL)
    with pytest.raises(DataError, match=r"first \(2, 3\), second \(3,\)"):
        paired_differences(np.zeros((2, 3)), np.zeros(3))


def test_masking_effects_are_paired() -> None:
    """Per-seed effects, then Trim; the contrast of two effects is again taken by seed."""
    masked, episodic = [0.0, 0.0, 0.0, 1, 1, 1, 1, 1], [0.0, 0.0, 1, 1, 1, 1, 1, 1]
    assert trimmed_mean(paired_differences(masked, episodic)) == 0.0
    assert marginal_difference(masked, episodic, trimmed_mean) == -0.25
    rng = np.random.default_rng(2)
    live_effect, zero_effect = rng.standard_normal((2, 18))
    contrast = trimmed_mean(paired_differences(live_effect, zero_effect))
    assert contrast == trimmed_mean(live_effect - zero_effect)
    assert contrast != marginal_difference(live_effect, zero_effect, trimmed_mean)


def test_worked_marginal_differences() -> None:
    live, zero = np.arange(1, 9) / 100, np.arange(8) / 100
    assert float(exact_iqm(live)) == pytest.approx(0.045)
    assert float(marginal_difference(live, zero)) == pytest.approx(0.01)
    live, zero = np.array([0, 0, 0, 1, 1, 1, 1, 1]), np.array([0, 0, 1, 1, 1, 1, 1, 1])
    assert marginal_difference(live, zero) == -0.25
    assert trimmed_mean(live - zero) == 0


def test_marginal_difference_is_of_exact_iqms_by_default() -> None:
    a, b = np.arange(1, 19) ** 2, np.zeros(18)
    assert float(marginal_difference(a, b)) == pytest.approx(97.1666666667)
    assert float(marginal_difference(a, b, trimmed_mean)) == pytest.approx(98.5)
    assert marginal_difference(a, [1.0, 3.0]) == pytest.approx(95.1666666667)


def test_scale_interaction_is_at_the_scale_minus_at_one() -> None:
    """Constant arms with the printed Breakout effects."""
    live, zero, live_1, zero_1 = (np.full(8, x) for x in (0.001087, 0.0, 0.002232, 0.0))
    at_scale, at_one = (
        marginal_difference(one, other, trimmed_mean)
        for one, other in ((live, zero), (live_1, zero_1))
    )
    assert float(at_scale - at_one) == pytest.approx(-0.001145, abs=1e-12)


def test_worked_retention() -> None:
    ratios = retention_ratios(UNIT, SCALED)
    np.testing.assert_allclose(ratios, [1, 0.9, 1.1, 0.5, 1, 1.1, 0.5, 1], atol=1e-12)
    assert float(retention(UNIT, SCALED)) == pytest.approx(0.975, abs=1e-12)
    of_trims = trimmed_mean(SCALED) / trimmed_mean(UNIT)
    assert float(of_trims) == pytest.approx(0.9183098592, abs=5e-11)
    np.testing.assert_array_equal(retention_ratios(UNIT, UNIT), np.ones(8))
    assert retention(UNIT, UNIT) == 1.0


def test_without_learning_there_is_no_retention() -> None:
    low = np.full(8, 1.063e-4)
    assert math.isnan(retention(low, low))
    assert retention(np.full(8, 1e-3), np.full(8, 1e-3)) == 1.0
    assert math.isnan(retention(np.full(8, np.nextafter(1e-3, 0)), np.ones(8)))
    stack = retention(np.stack([low, UNIT]), np.stack([low, SCALED]))
    np.testing.assert_allclose(stack, [NAN, 0.975])


def test_a_seed_without_unit_rate_has_no_ratio() -> None:
    ratios = retention_ratios([0.0, 0.0, 0.1, NAN], [0.0, 0.1, 0.05, 0.1])
    np.testing.assert_array_equal(ratios, [NAN, NAN, 0.5, NAN])
    assert retention([0.0, 0.1, 0.1, 0.1], [5.0, 0.1, 0.1, 0.1]) == 1.0
    with pytest.raises(DataError, match=r"unit \(2,\), scaled \(3,\)"):
        retention([1.0, 2.0], [1.0, 2.0, 3.0])


def test_usable_scales_need_not_be_neighbours() -> None:
    scales = [1e-3, 1e-2, 1e-1, 1.0, 1e1]
    found = usable_scales(scales, [0.1, 0.8, NAN, 1.0, np.nextafter(0.8, 0)])
    assert found == UsableScales(2, 1e-2, 1.0, 4)
    assert usable_scales(scales, [0.9, 0.1, 0.1, 1.0, 0.9]) == UsableScales(3, 1e-3, 1e1, 5)


def test_no_usable_scale_is_not_the_same_as_no_measurement() -> None:
    none, unknown = usable_scales([1, 10], [0.1, 0.2]), usable_scales([1, 10], [NAN, NAN])
    assert (none.count, none.measured) == (0, 2)
    assert (unknown.count, unknown.measured) == (0, 0)
    assert np.isnan([none.low, none.high, unknown.low, unknown.high]).all()
    with pytest.raises(DataError, match=r"\(3,\) do not fit \(2,\)"):
        usable_scales([1, 10], [1.0, 1.0, 1.0])


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


def plan() -> Family:
    return Family("widths", ["catch", "catch-big", "tracking"])


def test_size_is_that_of_the_plan() -> None:
    family = plan()
    assert family.members == ("catch", "catch-big", "tracking")
    assert family.size == 3
    assert tail(family.size) == 0.05 / 6


def test_a_family_is_immutable() -> None:
    names = ["a", "b"]
    family = Family("f", names)
    names.append("c")
    assert family.size == 2
    with pytest.raises(AttributeError):
        family.name = "g"  # type: ignore[misc]
    assert family == Family("f", ["a", "b"])


def test_bad_plans() -> None:
    with pytest.raises(DataError, match="'f' has no members"):
        Family("f", [])
    with pytest.raises(DataError, match="names a more than once"):
        Family("f", ["a", "b", "a"])
