"""Normalised scores of returns, and the area under scores after a switch."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rulescope.stats.array_checks import DataError, FloatArray, floats, missing_as_nan, require_rows
from rulescope.stats.log_rows import rows_between


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
