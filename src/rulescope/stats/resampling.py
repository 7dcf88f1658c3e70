"""The seed-block bootstrap: one draw of seeds is applied to every cell of an assay at once.

Arms, scales and donors of one seed share their random streams, so resampling whole seeds keeps
every within-seed difference; resampling cells one by one would lose the pairing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import ArrayLike

from rulescope.stats.array_checks import DataError, FloatArray, IntArray, floats, require_positive
from rulescope.stats.centre import finite_count, trimmed_mean
from rulescope.stats.intervals import (
    MIN_BOOTSTRAP,
    Estimate,
    Method,
    percentile_interval,
    record_draws,
)

DRAWS = 10_000
BLOCK_SEED = 20260920
_CHUNK = 1 << 17
"""Resampled values held at once: a megabyte fits the cache, which makes it fast."""

Statistic = Callable[[FloatArray], FloatArray]
"""Reduces the last axis, dropping NaN: ``[..., n] -> [...]``."""


@lru_cache(maxsize=8)
def seed_blocks(n: int, draws: int = DRAWS, seed: int = BLOCK_SEED) -> IntArray:
    """Return the seed indices of every draw, ``[draws, n]``; always the same for the same call.

    The array is shared between callers and therefore read-only.
    """
    require_positive("n", n)
    require_positive("draws", draws)
    blocks = Generator(PCG64(seed)).integers(0, n, size=(draws, n))
    blocks.flags.writeable = False
    return blocks


def resample(values: ArrayLike, blocks: IntArray) -> FloatArray:
    """Apply every block to all cells at once: ``[..., n]``, ``[draws, n]`` -> ``[draws, ..., n]``.

    This holds all draws in memory; :func:`bootstrap` does not.
    """
    array = _cells(values, blocks)
    return np.moveaxis(np.take(array, blocks, axis=-1), -2, 0)


def bootstrap(
    values: ArrayLike, blocks: IntArray, statistic: Statistic = trimmed_mean
) -> FloatArray:
    """Return ``statistic`` of every cell in every draw: ``[..., n]`` -> ``[draws, ...]``."""
    array = _cells(values, blocks)
    samples = np.empty((len(blocks), *array.shape[:-1]))
    for part in draw_chunks(len(blocks), array.size):
        samples[part] = statistic(resample(array, blocks[part]))
    return samples


@dataclass(frozen=True, slots=True)
class EstimateArray:
    """A stack of estimates over cells ``[...]``, with the draws behind them.

    ``samples [draws, ...]`` is kept because derived statistics (widths, contrasts of cells) must
    be computed draw by draw from the same resampled seeds.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray
    n: IntArray
    samples: FloatArray
    family: int

    def __getitem__(self, index: int | tuple[int, ...]) -> Estimate:
        """Return the estimate of one cell."""
        n = int(self.n[index])
        samples = np.moveaxis(self.samples, 0, -1)[index]
        draws = int(finite_count(samples))
        method: Method = "bootstrap" if n >= MIN_BOOTSTRAP else "range" if n else "none"
        found = Estimate(
            value=float(self.value[index]),
            low=float(self.low[index]),
            high=float(self.high[index]),
            n=n,
            draws=draws if method == "bootstrap" else 0,
            family=self.family,
            method=method,
        )
        return record_draws(found, samples)


def estimates(
    values: ArrayLike,
    blocks: IntArray,
    statistic: Statistic = trimmed_mean,
    family: int = 1,
) -> EstimateArray:
    """Estimate every cell of ``values [..., n]`` from one common resampling of the seeds.

    A cell with fewer than three finite values gets their observed range instead of an interval.
    """
    array = floats(values)
    samples = bootstrap(array, blocks, statistic)
    n = np.asarray(finite_count(array))
    low, high = _observed_range(array)
    enough = n >= MIN_BOOTSTRAP
    if enough.any():
        low[enough], high[enough] = percentile_interval(samples[:, enough], family)
    return EstimateArray(np.asarray(statistic(array)), low, high, n, samples, family)


def estimate(
    values: ArrayLike,
    blocks: IntArray,
    statistic: Statistic = trimmed_mean,
    family: int = 1,
) -> Estimate:
    """Estimate ``statistic`` of one cell, ``values [n]`` (see :func:`estimates` for stacks)."""
    array = floats(values)
    if array.ndim != 1:
        raise DataError(f"estimate takes one cell [n], not {array.shape}; use estimates for stacks")
    return estimates(array, blocks, statistic, family)[()]


def draw_chunks(draws: int, values_per_draw: int) -> Iterator[slice]:
    """Yield slices of the draws whose resampled values fit the cache."""
    size = max(_CHUNK // max(values_per_draw, 1), 1)
    for start in range(0, draws, size):
        yield slice(start, start + size)


def _observed_range(array: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest finite value of each cell; NaN where there is none."""
    finite = np.isfinite(array)
    low = np.min(np.where(finite, array, np.inf), axis=-1)
    high = np.max(np.where(finite, array, -np.inf), axis=-1)
    some = finite.any(axis=-1)
    return np.asarray(np.where(some, low, np.nan)), np.asarray(np.where(some, high, np.nan))


def check_blocks(blocks: IntArray, n: int) -> None:
    """Raise unless ``blocks`` is ``[draws, n]`` and draws from exactly ``n`` seeds."""
    if blocks.ndim != 2 or blocks.shape[1] != n:
        raise DataError(f"blocks of shape {blocks.shape} do not draw from n={n} seeds")
    if blocks.size and not 0 <= blocks.min() <= blocks.max() < n:
        raise DataError(f"blocks have indices outside 0..{n - 1}")


def _cells(values: ArrayLike, blocks: IntArray) -> FloatArray:
    """Return ``values`` as an array whose last axis is the seeds that ``blocks`` draws from."""
    array = floats(values)
    if array.ndim == 0:
        raise DataError("values must end in an axis of seeds, not be a single number")
    check_blocks(blocks, array.shape[-1])
    return array
