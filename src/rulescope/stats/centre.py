"""Centres of a sample: integer-trimmed mean, exact interquartile mean, mean of finite values.

The first two are weighted means of the sorted values with whole numbers as weights, so fractions
such as 1/18 are not rounded, and the result stays in the range of the averaged values.

Where the lifetimes of a cell fall into two groups (some learned, the others did not), its mean is a
score that no lifetime had: :func:`is_bimodal` finds such cells.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from rulescope.stats.array_checks import FloatArray, IntArray, floats, missing_as_nan, ratio


def trimmed_mean(values: ArrayLike, axis: int = -1) -> FloatArray:
    """Return the integer-trimmed mean ("Trim") of the finite values along ``axis``.

    Ranks ``floor(n/4)+1 .. ceil(3n/4)`` are kept (with fewer than four values that is all of
    them). ``values [..., n]`` gives ``[...]``; a slice without finite values gives NaN.

    >>> float(trimmed_mean([10, 0, 4, 2, 100]))
    5.333333333333333
    """
    return _rank_weighted_mean(values, axis, _trim_weights)


def exact_iqm(values: ArrayLike, axis: int = -1) -> FloatArray:
    """Return the mean of exactly the middle half of the finite values along ``axis``.

    A value at a quartile counts with the fraction of it that lies inside.
    ``values [..., n]`` gives ``[...]``; a slice without finite values gives NaN.

    >>> float(exact_iqm([0, 2, 4, 10, 100]))
    5.2
    """
    return _rank_weighted_mean(values, axis, _interquartile_weights)


def finite_mean(values: ArrayLike, axis: int = -1) -> FloatArray:
    """Return the arithmetic mean of the finite values along ``axis``; NaN where there are none."""
    array = floats(values)
    finite = np.isfinite(array)
    total = np.where(finite, array, 0.0).sum(axis=axis)
    mean = ratio(total, finite.sum(axis=axis))
    # Rounding must not move a mean outside its own values: a threshold may be exactly there.
    low = np.where(finite, array, np.inf).min(axis=axis, initial=np.inf)
    high = np.where(finite, array, -np.inf).max(axis=axis, initial=-np.inf)
    inside: FloatArray = np.minimum(np.maximum(mean, low), high)
    return np.where(np.isnan(mean), np.nan, inside)[()]


def finite_count(values: ArrayLike, axis: int = -1) -> IntArray:
    """Return the number of finite values along ``axis``."""
    count: IntArray = np.isfinite(floats(values)).sum(axis=axis, dtype=np.int64)
    return count


def _trim_weights(n: int) -> IntArray:
    """Return weight 1 for kept ranks, 0 for trimmed ones: [n]."""
    weights = np.zeros(n, dtype=np.int64)
    weights[n // 4 : -(-3 * n // 4)] = 1
    return weights


def _interquartile_weights(n: int) -> IntArray:
    """Return 4n times the share of each rank that lies between the quartiles: [n]."""
    rank = np.arange(1, n + 1)
    between = np.minimum(4 * rank, 3 * n) - np.maximum(4 * (rank - 1), n)
    return between.clip(min=0)


def _rank_weighted_mean(
    values: ArrayLike, axis: int, weights_of: Callable[[int], IntArray]
) -> FloatArray:
    """Return ``sum_j w_j x(j) / sum_j w_j`` along ``axis``, each slice with its own finite n."""
    ordered = np.sort(np.moveaxis(missing_as_nan(values), axis, -1), axis=-1)  # NaN goes last
    n = ordered.shape[-1]
    present = ordered == ordered
    if present.all():
        return _mean_of_ranks(ordered, weights_of(n))
    counts = present.sum(axis=-1)
    result = np.full(counts.shape, np.nan)
    for count in np.unique(counts[counts > 0]).tolist():
        same = counts == count
        result[same] = _mean_of_ranks(ordered[same][:, :count], weights_of(count))
    return result[()]


def _mean_of_ranks(ordered: FloatArray, weights: IntArray) -> FloatArray:
    """Return the weighted mean of sorted, complete values ``[..., n]``: [...]."""
    if not weights.any():
        return np.full(ordered.shape[:-1], np.nan)[()]
    kept = np.flatnonzero(weights)
    total = np.zeros(ordered.shape[:-1])
    # Rank by rank: the order of summation, hence every bit, is the same for any stack of slices.
    for rank in kept.tolist():
        total += weights[rank] * ordered[..., rank]
    mean = total / weights.sum()
    # As in finite_mean: rounding must not move a mean outside its own values.
    inside: FloatArray = np.clip(mean, ordered[..., kept[0]], ordered[..., kept[-1]])
    return inside


MIN_GAP = 0.4
"""Score that must lie empty between the groups: two fifths of the range from random to optimal."""
MIN_GROUP = 2
"""Least number of lifetimes in a group: a single one is an outlier."""


def is_bimodal(values: ArrayLike) -> bool:
    """Return whether the finite ``values [n]`` of a cell, in units of score, form two groups.

    They do if, split at their widest gap, (1) each side has at least two values, (2) the gap is at
    least 0.4, and (3) the gap is wider than the spread (highest minus lowest) of either side.

    >>> is_bimodal([0, 0.02, 0.01, 0, 0.05, 0.98, 1, 0.97]), is_bimodal([0.2, 0.5, 0.6, 0.9])
    (True, False)
    """
    lower, upper = split_groups(values)
    if min(len(lower), len(upper)) < MIN_GROUP:
        return False
    gap = upper[0] - lower[-1]
    return bool(gap >= MIN_GAP and gap > max(np.ptp(lower), np.ptp(upper)))


def split_groups(values: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the finite ``values [n]``, sorted, below and above their widest gap.

    Of equally wide gaps the lowest is taken. Without a gap (fewer than two distinct values) all
    are below. Every cell with two distinct values has such a split; :func:`is_bimodal` returns
    whether it is meaningful.

    >>> [len(group) for group in split_groups([0, 0.02, 0.01, 0, 0.05, 0.98, 1, 0.97])]
    [5, 3]
    """
    ordered = np.sort(floats(values), axis=None)
    ordered = ordered[np.isfinite(ordered)]
    gaps = np.diff(ordered)
    if not gaps.any():
        return ordered, ordered[:0]
    at = int(gaps.argmax()) + 1
    return ordered[:at], ordered[at:]
