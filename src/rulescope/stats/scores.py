"""Normalised scores, and their means over rows of a log that its ``iteration`` column selects.

Fractions such as 0.85 are taken as exact decimal numbers: in binary ``0.15 * 100`` or
``0.8 * 2000`` may select one row too many or too few.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from rulescope.stats.array_checks import (
    BoolArray,
    DataError,
    FloatArray,
    floats,
    missing_as_nan,
    require_rows,
)
from rulescope.stats.centre import finite_mean


def normalised_score(
    returns: ArrayLike, scale: ArrayLike, random: ArrayLike, oracle: ArrayLike
) -> FloatArray:
    """Return ``(returns/scale - random) / (oracle - random)``; all arguments broadcast.

    The reward multiplier is removed once, and scores above 1 or below 0 are not clipped.
    """
    factor, low, high = floats(scale), floats(random), floats(oracle)
    if not np.all(factor > 0):
        raise DataError(f"reward scale must be positive, not {factor}")
    if np.any(low == high):
        raise DataError(f"random and oracle references are equal ({low}): no score exists")
    return ((floats(returns) / factor - low) / (high - low))[()]


def tail_from(iterations: ArrayLike, fraction: float, total: int) -> BoolArray:
    """Return the rows [rows] from iteration ``fraction * total`` on, inclusive.

    The tails of E1, E2 and P1 (0.8) and of the exposure matrix (0.85).
    """
    column = _column(iterations)
    mask: BoolArray = column >= math.ceil(_exact(fraction) * total)
    return mask


def last_fraction(rows: int, fraction: float) -> BoolArray:
    """Return the last ``floor(fraction * rows)`` of ``rows`` rows, but at least one: [rows]."""
    if rows < 0:
        raise DataError(f"there cannot be {rows} rows")
    kept = max(math.floor(_exact(fraction) * rows), 1)
    return np.arange(rows) >= rows - kept


def rows_between(iterations: ArrayLike, first: int, last: int) -> BoolArray:
    """Return the rows [rows] of iterations ``first`` to ``last``, both included."""
    column = _column(iterations)
    mask: BoolArray = (column >= first) & (column <= last)
    return mask


def deep_sea_tail(iterations: ArrayLike) -> BoolArray:
    """Return the rows [rows] from 0.8 of the last *logged* iteration on.

    DeepSea lifetimes seldom end on a log row, so their planned length is no row of the log.
    """
    column = _column(iterations)
    return tail_from(column, 0.8, int(column[-1])) if len(column) else np.zeros(0, dtype=np.bool_)


def endpoint(iterations: ArrayLike, at: int) -> BoolArray:
    """Return the one row [rows] that is the last at or before iteration ``at`` (if any)."""
    column = _column(iterations)
    mask = np.zeros(len(column), dtype=np.bool_)
    before = np.flatnonzero(column <= at)
    mask[before[-1:]] = True
    return mask


def tail_mean(scores: ArrayLike, mask: ArrayLike) -> FloatArray:
    """Return the mean of the finite ``scores [..., rows]`` in the masked rows: [...].

    NaN where none is finite.
    """
    array, rows = floats(scores), np.asarray(mask)
    if array.ndim == 0 or rows.shape != array.shape[-1:] or rows.dtype != np.bool_:
        raise DataError(f"a mask {rows.dtype} {rows.shape} does not fit scores {array.shape}")
    return finite_mean(array[..., rows])


def _exact(fraction: float) -> Fraction:
    """Return ``fraction`` as the exact decimal number that it prints as."""
    if not 0 <= fraction <= 1:
        raise DataError(f"a fraction of the rows must lie in 0..1, not {fraction}")
    return Fraction(str(fraction))


def _column(iterations: ArrayLike) -> FloatArray:
    """Return the iteration column, which must be increasing."""
    column = floats(iterations)
    if column.ndim != 1 or np.any(np.diff(column) <= 0):
        raise DataError("iterations must be one increasing column")
    return column


def post_switch_auc(iterations: ArrayLike, scores: ArrayLike, switch: int, end: int) -> FloatArray:
    """Return the mean height of ``scores [..., rows]`` from ``switch`` to ``end``: [...].

    The trapezoid over the rows of the window, both ends included, divided by its length. The log
    must have a row at both ends; a run with a missing row in the window has no area (NaN).
    """
    grid, array = floats(iterations), missing_as_nan(scores)
    require_rows(grid, scores=array)
    if end <= switch:
        raise DataError(f"the window must end after the switch at {switch}, not at {end}")
    inside = rows_between(grid, switch, end)
    if not inside.any() or grid[inside][0] != switch or grid[inside][-1] != end:
        raise DataError(f"the log has no row at iteration {switch} or at iteration {end}")
    area = np.trapezoid(array[..., inside], grid[inside], axis=-1)
    return (floats(area) / (end - switch))[()]
