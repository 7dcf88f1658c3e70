"""Agreement of two independent estimates: an interval of their difference, and tests of shares.

Overlap of two intervals is a weak test: intervals of equal width overlap until the difference is
significant at about 0.006 (Schenker and Gentleman 2001), and a wide one overlaps with everything.

A published cell is the summary of a cohort whose lifetimes were not released. The predictive checks
draw cohorts of its size from our lifetimes, summarise them in the same way, and rank the published
numbers among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import ArrayLike

from rulescope.stats.array_checks import DataError, FloatArray, IntArray, floats, require_positive
from rulescope.stats.centre import trimmed_mean
from rulescope.stats.intervals import LEVEL, Estimate, tail
from rulescope.stats.resampling import Statistic, seed_blocks
from rulescope.stats.solve_rates import wilson

TOP, BOTTOM = 1.05, -0.15
"""Bounds of the score of a lifetime: optimal and random play, with a margin for noise."""
SLACK = 0.01
"""Error of a published bound: rounding, and the noise of its bootstrap draws."""


def least_seeds(family: int = 1) -> int:
    """Return the least number of values for an interval of a family of this size.

    A percentile interval never leaves the range of its n values, and that range covers their
    median with a probability of at most ``1 - 2^(1-n)``.

    >>> [least_seeds(family) for family in (1, 11, 15, 30, 34)]
    [6, 9, 10, 11, 11]
    """
    require_positive("family", family)
    return 1 + math.ceil(math.log2(family / LEVEL))


def estimate_difference(ours: Estimate, theirs: Estimate) -> Estimate:
    """Return ``ours - theirs`` of independent samples, with an interval at the level of both.

    Each bound adds the squared distances between values and bounds in its direction: variances
    add up, and skewed intervals stay skewed (Zou and Donner 2008; of two Wilson intervals this is
    the interval of Newcombe 1998). NaN where either has no bounds.
    """
    value = ours.value - theirs.value
    below = math.hypot(ours.value - ours.low, theirs.high - theirs.value)
    above = math.hypot(ours.high - ours.value, theirs.value - theirs.low)
    n, family = min(ours.n, theirs.n), max(ours.family, theirs.family)
    return Estimate(value, value - below, value + above, n, 0, family, "none")


def fisher(k: int, n: int, other_k: int, other_n: int) -> float:
    """Return the two-sided p of Fisher's exact test that ``k/n`` and ``other_k/other_n`` differ.

    >>> round(fisher(3, 8, 11, 12), 4)
    0.0181
    """
    if not (0 <= k <= n and 0 <= other_k <= other_n):
        raise DataError(f"{k} of {n} and {other_k} of {other_n} are not shares")
    total = k + other_k
    ways = [
        math.comb(n, i) * math.comb(other_n, total - i)
        for i in range(max(0, total - other_n), min(n, total) + 1)
    ]
    observed = math.comb(n, k) * math.comb(other_n, other_k)
    return sum(way for way in ways if way <= observed) / sum(ways)


class Counts(NamedTuple):
    """Bounds of the number of lifetimes, of ``n``, that learned."""

    least: int
    most: int
    n: int

    def __str__(self) -> str:
        """Return a phrase: ``3 of 8``, ``11 to 12 of 12``."""
        span = f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"
        return f"{span} of {self.n}"


def learned_counts(printed: Estimate, threshold: float) -> Counts:
    """Return bounds of the lifetimes over ``threshold`` behind a ``printed`` trimmed mean.

    Scores lie between random and optimal play, so a mean and the bounds of its bootstrap interval
    exclude counts: 12 lifetimes of 0.995 [0.989, 0.997] had at most one failure. Where nothing is
    excluded (or everything, by a mean of another kind) any count is possible.
    """
    possible = [k for k in range(printed.n + 1) if _possible(printed, k, threshold)]
    if not possible:
        return Counts(0, printed.n, printed.n)
    return Counts(possible[0], possible[-1], printed.n)


def _possible(printed: Estimate, k: int, threshold: float) -> bool:
    """Return whether ``k`` of the lifetimes behind ``printed`` can be over ``threshold``."""
    n, side = printed.n, tail(printed.family)
    lower = ((printed.value, k), (printed.low, _quantile(n, k, side)))
    return all(
        math.isnan(value) or _within(value, n, count, threshold)
        for value, count in (*lower, (printed.high, _quantile(n, k, 1.0 - side)))
    )


def _within(value: float, n: int, k: int, threshold: float) -> bool:
    """Return whether n scores, k of them over ``threshold``, can have a Trim of ``value``."""
    dropped, last = n // 4, -(-3 * n // 4)  # as in stats.centre
    kept = last - dropped
    over = min(max(k - (n - last), 0), kept)
    least = (over * threshold + (kept - over) * BOTTOM) / kept
    most = (over * TOP + (kept - over) * threshold) / kept
    return least - SLACK <= value <= most + SLACK


def _quantile(n: int, k: int, share: float) -> int:
    """Return the ``share`` quantile of the number of those k among n resampled lifetimes."""
    total, p = 0.0, k / n
    for count in range(n + 1):
        total += math.comb(n, count) * p**count * (1 - p) ** (n - count)
        if total >= share:
            return count
    return n


def share_difference(ours: Counts, theirs: Counts) -> Estimate:
    """Return the difference of two shares, with the widest interval over the possible counts."""
    found = [
        estimate_difference(wilson(k, ours.n), wilson(other, theirs.n))
        for k in (ours.least, ours.most)
        for other in (theirs.least, theirs.most)
    ]
    value = (ours.least + ours.most) / (2 * ours.n) - (theirs.least + theirs.most) / (2 * theirs.n)
    low, high = min(one.low for one in found), max(one.high for one in found)
    return Estimate(value, low, high, min(ours.n, theirs.n), 0, 1, "none")


def shares_differ(ours: Counts, theirs: Counts, family: int = 1) -> bool:
    """Return whether the shares differ by Fisher's test for all of the possible counts."""
    return all(
        fisher(k, ours.n, other, theirs.n) <= LEVEL / family
        for k in range(ours.least, ours.most + 1)
        for other in range(theirs.least, theirs.most + 1)
    )


COHORTS = 2_000
"""Cohorts that are drawn; the smallest possible probability is 1 / 2,001."""
BOUND_DRAWS = 200
"""Bootstrap draws within a cohort, for the bounds of its interval."""
_SEED = 20261118
_CHUNK = 250
"""Cohorts whose bootstrap draws are held at once."""


def cohort_indices(n: int, size: int, cohorts: int = COHORTS, seed: int = _SEED) -> IntArray:
    """Return the indices of the lifetimes, of ``n``, in each cohort: ``[cohorts, size]``.

    Each cohort first draws the frequency of each lifetime (a Bayesian bootstrap: weights from a
    flat Dirichlet distribution), then its lifetimes by these weights. So few lifetimes give
    cohorts that differ widely, and exclude little.
    """
    require_positive("n", n)
    require_positive("size", size)
    rng = Generator(PCG64(seed))
    bounds = np.cumsum(rng.dirichlet(np.ones(n), size=cohorts), axis=-1)
    draws = rng.random((cohorts, size))
    found: IntArray = (draws[:, :, np.newaxis] > bounds[:, np.newaxis, :-1]).sum(axis=-1)
    return found


def outlier_probability(samples: ArrayLike, printed: ArrayLike, margin: float = 0.0) -> float:
    """Return the share of ``samples [k, m]`` at least as far out as ``printed [m]``.

    A row is as far out as its most extreme member, by the smaller share of samples on one side.
    The same is computed for every sample, so correlated members are not counted twice.
    Samples within ``margin`` of a printed member count for both of its sides.
    """
    array, place = floats(samples), floats(printed)
    array = array[np.isfinite(array).all(axis=-1)]
    above = (array >= place - margin).sum(axis=0)
    below = (array <= place + margin).sum(axis=0)
    extreme = int(np.minimum(above, below).min())
    order = np.sort(array, axis=0)
    columns = range(array.shape[1])
    up = [len(array) - np.searchsorted(order[:, j], array[:, j], side="left") for j in columns]
    down = [np.searchsorted(order[:, j], array[:, j], side="right") for j in columns]
    each = np.minimum(np.stack(up), np.stack(down)).min(axis=0)
    return (1 + int((each <= extreme).sum())) / (1 + len(array))


def printed_probability(
    values: ArrayLike,
    size: int,
    printed: tuple[float, float, float],
    span: tuple[float, float],
    *,
    margin: float = 0.0,
    statistic: Statistic = trimmed_mean,
) -> float:
    """Return the probability of numbers as far out as ``printed`` in a cohort like ours.

    ``values [n]`` are ours, ``size`` is the number of lifetimes of the printed cohort, ``printed``
    its value and the bounds of its 95 % percentile interval (NaN if it has none). NaN without
    values.

    Each cohort may also draw one unseen lifetime, uniform in ``span``, the range of possible
    values: our lifetimes, the more so if they are few, do not have every possible value.
    """
    array = floats(values)
    if array.ndim != 1:
        raise DataError(f"values of one cell are [n], not {array.shape}")
    array = array[np.isfinite(array)]
    if not len(array):
        return math.nan
    unseen = Generator(PCG64(_SEED + 1)).uniform(*span, size=(COHORTS, 1))
    known = np.concatenate([np.broadcast_to(array, (COHORTS, len(array))), unseen], axis=1)
    cohorts = np.take_along_axis(known, cohort_indices(len(array) + 1, size), axis=1)
    samples = statistic(cohorts)[:, np.newaxis]
    if any(math.isnan(bound) for bound in printed[1:]):
        return outlier_probability(samples, printed[:1], margin)
    return outlier_probability(
        np.concatenate([samples, _bounds(cohorts, statistic)], axis=1), printed, margin
    )


def _bounds(cohorts: FloatArray, statistic: Statistic) -> FloatArray:
    """Return the interval bounds [cohorts, 2] of each cohort in ``cohorts`` [cohorts, size]."""
    blocks = seed_blocks(cohorts.shape[-1], BOUND_DRAWS)
    parts = [
        np.quantile(statistic(part[:, blocks]), [LEVEL / 2, 1 - LEVEL / 2], axis=-1)
        for part in np.array_split(cohorts, max(len(cohorts) // _CHUNK, 1))
    ]
    return np.concatenate(parts, axis=-1).T


def statistic_probability(
    statistic: Callable[[IntArray], float], n: int, size: int, printed: float, margin: float = 0.0
) -> float:
    """Return the same for a ``statistic`` of cohorts, given as indices [size] of our lifetimes.

    For measures that are no mean over lifetimes, such as a distance between two sets of states.
    """
    samples = [[statistic(chosen)] for chosen in cohort_indices(n, size)]
    return outlier_probability(samples, [printed], margin)
