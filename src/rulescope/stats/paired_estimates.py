"""Estimates of paired differences between two arms, with intervals that are valid for few seeds.

With few seeds the percentile bootstrap is too narrow: without any true difference its 95 % interval
excludes zero in 25 % of samples of three seeds, in 13 % of four and in 10 % of five. Student's t
accounts for the number of seeds, so the wider of the two bounds is taken on each side.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from rulescope.stats.array_checks import floats, require_positive
from rulescope.stats.centre import trimmed_mean
from rulescope.stats.contrasts import paired_differences
from rulescope.stats.intervals import MIN_BOOTSTRAP, Estimate, enough_draws, tail
from rulescope.stats.resampling import Statistic, estimate, seed_blocks

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
