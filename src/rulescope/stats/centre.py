"""Centres of a sample: integer-trimmed mean, exact interquartile mean, mean of finite values.

The first two are weighted means of the sorted values with whole numbers as weights, so fractions
such as 1/18 are not rounded, and the result stays in the range of the averaged values.
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
