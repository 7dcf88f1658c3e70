"""Contrasts between arms: centres of differences within seeds, and differences of centres.

The two are different numbers. Where arms share their seeds, the difference is taken within each
seed first and centred after (*paired*); *marginal* forms centre each arm first.

With few seeds the percentile bootstrap is too narrow: without any true difference its 95 % interval
excludes zero in 25 % of samples of three seeds, in 13 % of four and in 10 % of five. Student's t
accounts for the number of seeds, so a paired estimate takes the wider bound on each side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from rulescope.stats.array_checks import (
    DataError,
    FloatArray,
    floats,
    ratio,
    require_positive,
    require_same_shape,
)
from rulescope.stats.centre import exact_iqm, trimmed_mean
from rulescope.stats.intervals import MIN_BOOTSTRAP, Estimate, enough_draws, tail
from rulescope.stats.resampling import Statistic, estimate, seed_blocks

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


PAIRED_DRAWS = 10_000


def paired_estimate(
    first: ArrayLike,
    second: ArrayLike,
    *,
    family: int = 1,
    draws: int = PAIRED_DRAWS,
    statistic: Statistic = trimmed_mean,
) -> Estimate:
    """Return the centre of ``first - second`` over seeds ``[n]``, paired by seed.

    From three seeds on there is an interval: that of the seed-block bootstrap, widened to Student's
    t interval of the same differences where that reaches further. Fewer seeds have their range.
    A large ``family`` gets as many draws as its tails need.
    """
    each = paired_differences(first, second)
    blocks = seed_blocks(len(each), max(draws, enough_draws(family)))
    found = estimate(each, blocks, statistic, family)
    return widen_to_student(found, each)


def widen_to_student(found: Estimate, differences: ArrayLike) -> Estimate:
    """Return ``found`` with an interval that covers Student's t interval of ``differences [n]``.

    ``found`` estimates the centre of those differences. Without an interval it is returned as is.
    """
    each = floats(differences)
    known = each[np.isfinite(each)]
    if found.method != "bootstrap" or len(known) < MIN_BOOTSTRAP:
        return found
    centre, half = float(known.mean()), student_half_width(known, found.family)
    return replace(found, low=min(found.low, centre - half), high=max(found.high, centre + half))


def student_half_width(values: ArrayLike, family: int = 1) -> float:
    """Return the half-width of Student's t interval of the mean of ``values [n]``."""
    array = np.asarray(values, dtype=np.float64)
    spread = float(array.std(ddof=1)) / math.sqrt(len(array))
    return student_quantile(1 - tail(family), len(array) - 1) * spread


@lru_cache(maxsize=256)
def student_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t with a whole number of degrees of freedom.

    >>> round(student_quantile(0.975, 4), 4)
    2.7764
    """
    require_positive("degrees", degrees)
    low, high = 0.0, math.pi / 2
    for _ in range(100):  # t = sqrt(degrees) * tan(angle), so the search has two ends
        middle = (low + high) / 2
        if _within(middle, degrees) < 2 * probability - 1:
            low = middle
        else:
            high = middle
    return math.sqrt(degrees) * math.tan((low + high) / 2)


def _within(angle: float, degrees: int) -> float:
    """Return P(abs(T) < sqrt(degrees) tan(angle)), a finite sum (Abramowitz & Stegun 26.7.3-4)."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    total, term = 0.0, cosine if odd else 1.0
    for power in range(1 if odd else 0, degrees - 1, 2):
        total += term
        term *= cosine**2 * (power + 1) / (power + 2)
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


@dataclass(frozen=True, slots=True)
class Family:
    """The planned members of a family of comparisons that share one error rate; immutable.

    A member that could not be estimated stays in the plan: removing it would narrow the other
    intervals after the data were seen.
    """

    name: str
    members: Sequence[str]

    def __post_init__(self) -> None:
        # A copy, so that later changes of the argument do not change the plan.
        object.__setattr__(self, "members", tuple(self.members))
        if not self.members:
            raise DataError(f"family {self.name!r} has no members")
        twice = sorted({member for member in self.members if self.members.count(member) > 1})
        if twice:
            raise DataError(f"family {self.name!r} names {', '.join(twice)} more than once")

    @property
    def size(self) -> int:
        """The number of planned members, by which the error is divided."""
        return len(self.members)
