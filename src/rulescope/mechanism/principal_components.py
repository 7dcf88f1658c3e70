"""Where states go: principal coordinates, shared directions, and the way from a donor to live.

Pure functions of arrays. A state is one vector [d]; ``states`` of lifetimes have the shape [scales,
seeds, moments, d] and are measured from the newborn's state, which is zero. A state that is still
zero has no direction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope.stats import DataError, between_fraction
from rulescope.stats.array_checks import ratio

Floats = NDArray[np.float64]


class Principal(NamedTuple):
    """Directions along which states vary, the widest first, and where they are on average."""

    mean: Floats
    """[d]"""
    axes: Floats
    """[k, d]: orthonormal; the largest component of each is positive."""
    explained: Floats
    """[k]: share of the total variation along each."""

    def coordinates(self, states: Floats) -> Floats:
        """Return where ``states`` [..., d] are along the axes: [..., k]."""
        return (states - self.mean) @ self.axes.T


def principal(states: Floats, components: int) -> Principal:
    """Return the principal directions of ``states`` [n, d]: centred, not standardised."""
    if states.ndim != 2 or not 1 <= components <= min(states.shape):
        raise DataError(f"states {states.shape} have no {components} principal directions")
    mean = states.mean(axis=0)
    # The smaller of the two Gram matrices: a lifetime has far more moments than units.
    spread, axes = np.linalg.eigh((states - mean).T @ (states - mean))
    spread, axes = spread[::-1].clip(0.0), axes.T[::-1]
    largest = np.abs(axes).argmax(axis=1)
    axes = axes * np.sign(axes[np.arange(len(axes)), largest])[:, np.newaxis]
    total = float(spread.sum())
    share = spread / total if total > 0 else np.full_like(spread, np.nan)
    return Principal(mean, axes[:components], share[:components])


class Alignment(NamedTuple):
    """Mean cosines between the directions of two lifetimes, each [moments]."""

    same: Floats
    """Of one scale and two seeds."""
    other: Floats
    """Of two scales, whatever the seeds."""


def alignment(states: Floats) -> Alignment:
    """Tell whether lifetimes share the direction in which their state has gone from birth.

    NaN where there are no such pairs, or where a state has not moved yet.
    """
    scales, seeds, moments, width = states.shape
    flat = states.reshape(scales * seeds, moments, width)
    sizes = np.linalg.norm(flat, axis=-1, keepdims=True)
    directions = ratio(flat, sizes)
    cosines = np.einsum("amd,bmd->abm", directions, directions)
    scale = np.repeat(np.arange(scales), seeds)
    first, second = np.triu_indices(scales * seeds, k=1)
    alike = scale[first] == scale[second]
    return Alignment(
        _mean(cosines[first[alike], second[alike]]), _mean(cosines[first[~alike], second[~alike]])
    )


def between_scales(states: Floats) -> Floats:
    """Return the share of the variation that lies between scales, at each moment: [moments].

    NaN where states do not vary, and everywhere with a single scale or seed: there is nothing to
    compare.
    """
    scales, seeds, moments, _ = states.shape
    if scales < 2 or seeds < 2:
        return np.full(moments, np.nan)
    return np.array([between_fraction(states[:, :, moment]) for moment in range(moments)])


class Place(NamedTuple):
    """Where states are with respect to the line from ``live`` to ``donor``, each [...].

    In lengths of that line; NaN where it has none.
    """

    along: Floats
    """0 beside ``live``, 1 beside ``donor``; less than one half is nearer to ``live``."""
    off: Floats
    """Distance from the line; with it, a state is at neither end, whatever ``along`` says."""


def between(states: Floats, live: Floats, donor: Floats) -> Place:
    """Return where ``states`` [..., d] are between what they would be otherwise and a donor's.

    ``live`` [..., d] is the state without the transplant, ``donor`` [d] the one transplanted.
    """
    line, gone = donor - live, states - live
    along = ratio((gone * line).sum(axis=-1), np.square(line).sum(axis=-1))
    aside = np.linalg.norm(gone - along[..., np.newaxis] * line, axis=-1)
    return Place(along, ratio(aside, np.linalg.norm(line, axis=-1)))


def nearer_to_live(moments: NDArray[np.int64], along: Floats) -> float:
    """Return the first of ``moments`` [m] from which on ``along`` [m] stays below one half.

    NaN if it ends at one half or above.
    """
    far = np.flatnonzero(~(along < 0.5))
    first = int(far[-1]) + 1 if len(far) else 0
    return float(moments[first]) if first < len(moments) else float("nan")


def _mean(pairs: Floats) -> Floats:
    """Return the mean over pairs [p, moments]; NaN where there is none."""
    if not len(pairs):
        return np.full(pairs.shape[1], np.nan)
    return np.asarray(pairs.mean(axis=0), dtype=np.float64)
