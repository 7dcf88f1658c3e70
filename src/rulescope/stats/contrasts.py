"""Contrasts between arms: centres of differences within seeds, and differences of centres.

The two are different numbers. Where arms share their seeds, the difference is taken within each
seed first and centred after (*paired*); *marginal* forms centre each arm first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rulescope.stats.array_checks import DataError, FloatArray, floats, ratio, require_same_shape
from rulescope.stats.centre import exact_iqm, trimmed_mean
from rulescope.stats.resampling import Statistic

MIN_UNIT_RATE = 1e-3
USABLE_RETENTION = 0.8


@dataclass(frozen=True, slots=True)
class UsableScales:
    """How many scales pass, the extreme ones among them, and how many could be measured.

    With ``measured == 0`` the question has no answer, which is not the same as a count of 0.
    """

    count: int
    low: float
    high: float
    measured: int


def paired_differences(first: ArrayLike, second: ArrayLike) -> FloatArray:
    """Return ``first - second`` seed by seed, ``[..., n]``; missing where either is."""
    a, b = floats(first), floats(second)
    require_same_shape(first=a, second=b)
    return a - b


def paired_contrast(
    first: ArrayLike, second: ArrayLike, statistic: Statistic = trimmed_mean
) -> FloatArray:
    """Return the centre ``[...]`` of the per-seed differences of two arms ``[..., n]``."""
    return statistic(paired_differences(first, second))


def interaction_differences(
    match_clamp: ArrayLike,
    cross_clamp: ArrayLike,
    match_natural: ArrayLike,
    cross_natural: ArrayLike,
) -> FloatArray:
    """Return ``(match_clamp - cross_clamp) - (match_natural - cross_natural)`` by seed [..., n]."""
    return paired_differences(
        paired_differences(match_clamp, cross_clamp),
        paired_differences(match_natural, cross_natural),
    )


def interaction(
    match_clamp: ArrayLike,
    cross_clamp: ArrayLike,
    match_natural: ArrayLike,
    cross_natural: ArrayLike,
    statistic: Statistic = trimmed_mean,
) -> FloatArray:
    """Return the inheritance interaction ``[...]`` of four arms ``[..., n]``, paired by seed.

    The effect of the donor's task when the transplanted state is clamped, minus its effect when the
    state evolves. The same form serves (live - zero) in one interface against another.
    """
    return statistic(
        interaction_differences(match_clamp, cross_clamp, match_natural, cross_natural)
    )


def marginal_difference(
    first: ArrayLike, second: ArrayLike, statistic: Statistic = exact_iqm
) -> FloatArray:
    """Return ``statistic(first) - statistic(second)``: ``[..., n]``, ``[..., m]`` -> ``[...]``."""
    return statistic(floats(first)) - statistic(floats(second))


def marginal_interaction(
    live_scaled: ArrayLike,
    zero_scaled: ArrayLike,
    live_unit: ArrayLike,
    zero_unit: ArrayLike,
    statistic: Statistic = trimmed_mean,
) -> FloatArray:
    """Return (live - zero) at a scale minus (live - zero) at scale 1, all in marginal form."""
    scaled = marginal_difference(live_scaled, zero_scaled, statistic)
    return scaled - marginal_difference(live_unit, zero_unit, statistic)


def retention_ratios(unit: ArrayLike, scaled: ArrayLike) -> FloatArray:
    """Return each seed's rate at a scale over its own rate at scale 1, ``[..., n]``.

    A seed that earned nothing at scale 1 has no ratio (NaN).
    """
    base, rate = floats(unit), floats(scaled)
    require_same_shape(unit=base, scaled=rate)
    return ratio(rate, base)


def retention(unit: ArrayLike, scaled: ArrayLike, min_rate: float = MIN_UNIT_RATE) -> FloatArray:
    """Return the Trim ``[...]`` of the per-seed retention ratios of ``[..., n]`` rates.

    NaN where the Trim of the unit-scale rates is below ``min_rate``: without learning
    there is nothing to retain.
    """
    ratios = trimmed_mean(retention_ratios(unit, scaled))
    return np.where(trimmed_mean(unit) >= min_rate, ratios, np.nan)[()]


def usable_scales(
    scales: ArrayLike, retentions: ArrayLike, threshold: float = USABLE_RETENTION
) -> UsableScales:
    """Return how many of ``scales [S]`` retain at least ``threshold``, and the extreme ones.

    Unlike a scale window the passing scales need not be neighbours.
    """
    grid, kept = floats(scales), floats(retentions)
    if grid.ndim != 1 or kept.shape != grid.shape:
        raise DataError(f"retentions of shape {kept.shape} do not fit {grid.shape} scales")
    passing = grid[np.isfinite(kept) & (kept >= threshold)]
    low, high = (passing.min(), passing.max()) if len(passing) else (np.nan, np.nan)
    return UsableScales(len(passing), float(low), float(high), int(np.isfinite(kept).sum()))
