"""Predictive checks: the probability of published numbers, given our lifetimes.

A published cell is the summary of a cohort whose lifetimes were not released. Cohorts of its size
are drawn from our lifetimes and summarised in the same way; the published numbers are ranked among
them. Overlap of intervals is no substitute: if half of our lifetimes fail, our interval overlaps
with nearly everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import ArrayLike

from rulescope.stats.array_checks import DataError, FloatArray, IntArray, floats, require_positive
from rulescope.stats.centre import trimmed_mean
from rulescope.stats.intervals import LEVEL
from rulescope.stats.resampling import Statistic, seed_blocks

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
