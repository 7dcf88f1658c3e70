"""Geometry of terminal states: displacement between reward scales, radius, shares of variance.

States are ``[S, n, d]``: scales, seeds, coordinates. A state with a coordinate that is not finite
is missing. Each measure has a ``bootstrap_`` form that takes seed blocks ``[draws, n]``; because a
draw only changes how often each seed counts, draws are weights of the seeds, without copies.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from rulescope.stats.array_checks import (
    BoolArray,
    DataError,
    FloatArray,
    IntArray,
    floats,
    ratio,
    require_positive,
)
from rulescope.stats.resampling import check_blocks, draw_chunks

_ROUNDING = 1e-12
"""Distances below this share of the coordinates are rounding; the states are float32."""


def unit_radius(states: ArrayLike) -> float:
    """Return the mean distance of ``states [n, d]`` to their centroid; NaN without states."""
    x, present = _one_scale(states)
    return float(_radius(x, present, np.ones((1, len(x))))[0])


def displacement(states: ArrayLike, unit_index: int) -> FloatArray:
    """Return each scale's distance of centroids from the unit scale, in unit radii: [S].

    NaN where a scale has no state, or where the unit states coincide and have no radius.
    """
    x, present = _stack(states)
    ratios: FloatArray = _displacements(x, present, unit_index, np.ones((1, x.shape[1])))[0]
    return ratios


def bootstrap_displacement(states: ArrayLike, unit_index: int, blocks: IntArray) -> FloatArray:
    """Return :func:`displacement` in every draw, with its own shift and radius: [draws, S]."""
    x, present = _stack(states)
    counts = _seed_counts(blocks, x.shape[1])
    parts = draw_chunks(len(counts), x.shape[0] * x.shape[2])
    return np.concatenate([_displacements(x, present, unit_index, counts[part]) for part in parts])


def between_fraction(states: ArrayLike) -> float:
    """Return the share of the total variance that lies between scales; NaN if there is none."""
    x, present = _stack(states)
    return float(_between(x, present, np.ones((1, x.shape[1])))[0])


def bootstrap_between_fraction(states: ArrayLike, blocks: IntArray) -> FloatArray:
    """Return :func:`between_fraction` in every draw: [draws]."""
    x, present = _stack(states)
    return _between(x, present, _seed_counts(blocks, x.shape[1]))


def principal_fraction(states: ArrayLike, components: int = 2) -> float:
    """Return the share of the total variance along the first principal components.

    Of all states together, centred, not standardised; NaN if there is no variance.
    """
    require_positive("components", components)
    x, present = _stack(states)
    rows = x[present]
    if not len(rows):
        return float("nan")
    rows = rows - rows.mean(axis=0)
    # Squared singular values are the eigenvalues of either Gram matrix; take the smaller one.
    gram = rows @ rows.T if rows.shape[0] <= rows.shape[1] else rows.T @ rows
    total = float(np.trace(gram))
    if total == 0:
        return float("nan")
    top = np.linalg.eigvalsh(gram)[::-1][:components]
    return min(float(top.sum()) / total, 1.0)


def _stack(states: ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Return states [S, n, d] measured from one of them, zero where missing, and a mask [S, n].

    No measure depends on the origin. With one of the states as the origin, identical states are
    exactly zero, and so is their variance.
    """
    array = floats(states)
    if array.ndim != 3:
        raise DataError(f"states must be [scales, seeds, coordinates], not {array.shape}")
    present = np.asarray(np.isfinite(array).all(axis=-1))
    origin = array[present][:1]
    if not len(origin):
        return np.zeros(array.shape), present
    return np.where(present[..., np.newaxis], array - origin[0], 0.0), present


def _one_scale(states: ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Return :func:`_stack` of the states [n, d] of a single scale."""
    array = floats(states)
    if array.ndim != 2:
        raise DataError(f"states of one scale are [n, d], not {array.shape}")
    x, present = _stack(array[np.newaxis])
    return x[0], present[0]


def _seed_counts(blocks: IntArray, n: int) -> FloatArray:
    """Return how often each seed occurs in each draw: [draws, n]."""
    check_blocks(blocks, n)
    counts = np.zeros(blocks.shape)
    np.add.at(counts, (np.arange(len(blocks))[:, np.newaxis], blocks), 1.0)
    return counts


def _centroids(x: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted means [draws, d] of one scale's states [n, d]; NaN without weight."""
    centroids: FloatArray = ratio(weights, weights.sum(axis=1, keepdims=True)) @ x
    return centroids


def _radius(x: FloatArray, present: BoolArray, counts: FloatArray) -> FloatArray:
    """Return the mean distance [draws] of states [n, d] to the centroid of each draw.

    Zero where only rounding of the centroid remains: one state drawn n times has no radius, and a
    shift must not be measured in units of rounding errors.
    """
    weights = counts * present
    centroids = _centroids(x, weights)
    summed = np.zeros(len(weights))
    for state, weight in zip(x, weights.T, strict=True):
        summed += weight * np.linalg.norm(centroids - state, axis=1)
    radius = ratio(summed, weights.sum(axis=1))
    return np.where(radius <= _ROUNDING * np.abs(x).max(initial=0.0), 0.0, radius)


def _displacements(
    x: FloatArray, present: BoolArray, unit_index: int, counts: FloatArray
) -> FloatArray:
    """Return shift over radius [draws, S] for seed counts [draws, n]."""
    if not 0 <= unit_index < len(x):
        raise DataError(f"unit scale {unit_index} is not among {len(x)} scales")
    radius = _radius(x[unit_index], present[unit_index], counts)
    unit = _centroids(x[unit_index], counts * present[unit_index])
    shift = np.stack(
        [
            np.linalg.norm(_centroids(scale, counts * here) - unit, axis=1)
            for scale, here in zip(x, present, strict=True)
        ],
        axis=1,
    )
    return ratio(shift, radius[:, np.newaxis])


def _between(x: FloatArray, present: BoolArray, counts: FloatArray) -> FloatArray:
    """Return the between-scale fraction [draws] for seed counts [draws, n].

    The sum of squares about a centroid is the sum of squared distances over all pairs divided by
    twice the number of states. Pairs need computing once, and a draw is a quadratic form in its
    seed counts; nothing cancels, so identical states give exactly zero.
    """
    scales, seeds, _ = x.shape
    within = np.zeros(len(counts))
    for s in range(scales):
        pairs = _pair_distances(x[s], x[s], present[s], present[s])
        within += _sum_of_squares(counts, pairs, counts @ present[s])
    everything = np.zeros((seeds, seeds))
    for s in range(scales):
        for t in range(scales):
            everything += _pair_distances(x[s], x[t], present[s], present[t])
    total = _sum_of_squares(counts, everything, counts @ present.sum(axis=0))
    return (1.0 - ratio(within, total)).clip(0.0, 1.0)


def _pair_distances(a: FloatArray, b: FloatArray, has_a: BoolArray, has_b: BoolArray) -> FloatArray:
    """Return squared distances [n, n] of all pairs; zero for pairs with a missing state."""
    squared = np.square(a[:, np.newaxis] - b[np.newaxis]).sum(axis=-1)
    return np.where(has_a[:, np.newaxis] & has_b[np.newaxis], squared, 0.0)


def _sum_of_squares(counts: FloatArray, pairs: FloatArray, states: FloatArray) -> FloatArray:
    """Return the sum of squares about the centroid [draws] from pairwise distances [n, n]."""
    summed = np.einsum("ij,ij->i", counts @ pairs, counts)
    # A scale without states in this draw has no pairs either: its sum is zero whatever divides.
    squares: FloatArray = summed / (2 * np.maximum(states, 1))
    return squares


_LEAST = 1e-12


def effective_bins(logits: ArrayLike) -> float:
    """Return the exponential of the entropy of the mean distribution over ``logits [..., bins]``.

    All leading axes are rows. Probabilities are computed in float32, as the learner computes
    them, and averaged in float64. Logits that are not finite give NaN.
    """
    with np.errstate(over="ignore"):  # overflow of float32 gives NaN below
        rows = np.asarray(logits, dtype=np.float32)
    if rows.ndim == 0 or rows.size == 0:
        raise DataError(f"logits must be rows of bins, not an array of shape {rows.shape}")
    rows = rows.reshape(-1, rows.shape[-1])
    if not np.isfinite(rows).all():
        return math.nan
    weights = np.exp(rows - rows.max(axis=-1, keepdims=True))
    probabilities = weights / weights.sum(axis=-1, keepdims=True)
    mean = probabilities.mean(axis=0, dtype=np.float64)
    mean /= mean.sum()
    return float(np.exp(-np.sum(mean * np.log(np.maximum(mean, _LEAST)))))
