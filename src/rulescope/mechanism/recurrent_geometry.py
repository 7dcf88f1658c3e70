"""Geometry of recurrent states: principal components, shared directions, transplanted states.

Pure functions of arrays. A state is one vector [d]; ``states`` of lifetimes are [scales, seeds,
moments, d]. The initial state is zero, so a state that has not moved has no direction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope.stats import DataError, between_fraction
from rulescope.stats.array_checks import ratio

Floats = NDArray[np.float64]


class Components(NamedTuple):
    """Principal components of states, the largest variance first."""

    mean: Floats
    """[d]"""
    axes: Floats
    """[k, d]: orthonormal; the largest entry of each is positive."""
    explained: Floats
    """[k]: share of the total variance along each axis."""

    def project(self, states: Floats) -> Floats:
        """Return the coordinates [..., k] of ``states`` [..., d]."""
        return (states - self.mean) @ self.axes.T


def fit_components(states: Floats, components: int) -> Components:
    """Return the principal components of ``states`` [n, d]: centred, not standardised."""
    if states.ndim != 2 or not 1 <= components <= min(states.shape):
        raise DataError(f"states {states.shape} have no {components} principal components")
    mean = states.mean(axis=0)
    # The smaller of the two Gram matrices: a lifetime has far more moments than units.
    spread, axes = np.linalg.eigh((states - mean).T @ (states - mean))
    spread, axes = spread[::-1].clip(0.0), axes.T[::-1]
    largest = np.abs(axes).argmax(axis=1)
    axes = axes * np.sign(axes[np.arange(len(axes)), largest])[:, np.newaxis]
    total = float(spread.sum())
    share = spread / total if total > 0 else np.full_like(spread, np.nan)
    return Components(mean, axes[:components], share[:components])


class MeanCosines(NamedTuple):
    """Mean cosines between the directions of two lifetimes from the initial state, each [moments].

    NaN where there are no such pairs, or where a state has not moved yet.
    """

    same: Floats
    """Pairs of one scale and two seeds."""
    other: Floats
    """Pairs of two scales and any seeds."""


def mean_cosines(states: Floats) -> MeanCosines:
    """Return how well the directions of ``states`` [scales, seeds, moments, d] agree."""
    scales, seeds, moments, width = states.shape
    flat = states.reshape(scales * seeds, moments, width)
    directions = ratio(flat, np.linalg.norm(flat, axis=-1, keepdims=True))
    cosines = np.einsum("amd,bmd->abm", directions, directions)
    scale = np.repeat(np.arange(scales), seeds)
    first, second = np.triu_indices(scales * seeds, k=1)
    same = scale[first] == scale[second]
    return MeanCosines(
        _mean_over_pairs(cosines[first[same], second[same]]),
        _mean_over_pairs(cosines[first[~same], second[~same]]),
    )


def _mean_over_pairs(pairs: Floats) -> Floats:
    """Return the mean of ``pairs`` [p, moments] over the first axis; NaN if p is 0."""
    if not len(pairs):
        return np.full(pairs.shape[1], np.nan)
    return np.asarray(pairs.mean(axis=0), dtype=np.float64)


def between_scale_share(states: Floats) -> Floats:
    """Return the share of the variance that lies between scales, at each moment: [moments].

    NaN where states do not vary, and everywhere with a single scale or seed.
    """
    scales, seeds, moments, _ = states.shape
    if scales < 2 or seeds < 2:
        return np.full(moments, np.nan)
    return np.array([between_fraction(states[:, :, moment]) for moment in range(moments)])


class LinePosition(NamedTuple):
    """Position of states relative to the line from ``live`` to ``donor``, each [...].

    In lengths of that line; NaN where its length is zero.
    """

    along: Floats
    """Projection onto the line: 0 at ``live``, 1 at ``donor``; below one half is nearer to live."""
    off: Floats
    """Distance from the line; if it is large the state is near neither end."""


def position_on_line(states: Floats, live: Floats, donor: Floats) -> LinePosition:
    """Return where transplanted ``states`` [..., d] are between live and donor.

    ``live`` [..., d] is the state without the transplant, ``donor`` [d] the transplanted one.
    """
    line, offset = donor - live, states - live
    along = ratio((offset * line).sum(axis=-1), np.square(line).sum(axis=-1))
    distance = np.linalg.norm(offset - along[..., np.newaxis] * line, axis=-1)
    return LinePosition(along, ratio(distance, np.linalg.norm(line, axis=-1)))


def settling_moment(moments: NDArray[np.int64], along: Floats) -> float:
    """Return the first of ``moments`` [m] from which on ``along`` [m] stays below one half.

    NaN if it ends at one half or above.
    """
    far = np.flatnonzero(~(along < 0.5))
    first = int(far[-1]) + 1 if len(far) else 0
    return float(moments[first]) if first < len(moments) else float("nan")
