"""Times of first events in a run: attainment after a switch, thresholds, mastery.

A time of NaN means that the event *never happened*, not that the run is missing; remove missing
runs before taking means over all runs.
"""

from __future__ import annotations

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

WASHOUT = 102
"""Episodes after a switch until the 100-episode window has only new ones: each of two lanes may
have one episode in progress at the switch."""
MASTERY_ROWS = 5
MASTERY_SLACK = 0.1


def attainment(
    iterations: ArrayLike,
    scores: ArrayLike,
    episodes: ArrayLike,
    threshold: float,
    switch: int,
    episodes_at_switch: ArrayLike | None = None,
    washout: int = WASHOUT,
) -> FloatArray:
    """Return the iterations from the switch until each run attains ``threshold``; NaN for never.

    ``scores [..., rows]`` and running totals ``episodes [..., rows]`` give times ``[...]``. A row
    counts if it lies after the switch, at least ``washout`` episodes have been completed since,
    and its score is at or above the threshold. ``episodes_at_switch [...]`` is
    read from the row of the switch unless it is given.
    """
    grid, array, completed = floats(iterations), missing_as_nan(scores), floats(episodes)
    require_rows(grid, scores=array, episodes=completed)
    if episodes_at_switch is None:
        before = _at(grid, completed, switch)
    else:
        before = floats(episodes_at_switch)
    washed = completed - before[..., np.newaxis] >= washout
    return _first(grid, (grid > switch) & washed & (array >= threshold)) - switch


def attained(times: ArrayLike, horizon: float) -> BoolArray:
    """Return which ``times [...]`` fall at or before the horizon."""
    within: BoolArray = floats(times) <= horizon
    return within


def restricted_times(times: ArrayLike, horizon: float) -> FloatArray:
    """Return ``times [...]`` with those never attained, or too late, set to the horizon."""
    return np.fmin(floats(times), horizon)


def restricted_mean(times: ArrayLike, horizon: float) -> FloatArray:
    """Return the arithmetic mean of the restricted times of all runs: ``[..., n]`` -> ``[...]``.

    Not trimmed: trimming would drop exactly the runs that never attain.
    """
    return finite_mean(restricted_times(times, horizon))


def threshold_steps(steps: ArrayLike, scores: ArrayLike, threshold: float = 0.8) -> FloatArray:
    """Return the first logged step count with a score at or above ``threshold``; NaN for never.

    ``steps [rows]``, ``scores [..., rows]`` -> ``[...]``.
    """
    grid, array = floats(steps), missing_as_nan(scores)
    require_rows(grid, scores=array)
    return _first(grid, array >= threshold)


def mastery_target(scores: ArrayLike) -> FloatArray:
    """Return ``m - 0.1|m|`` for the mean m of each run's last five finite scores.

    ``[..., rows]`` -> ``[...]``; of fewer than five finite scores all are used.
    """
    array = floats(scores)
    finite = np.isfinite(array)
    from_end = np.cumsum(finite[..., ::-1], axis=-1)[..., ::-1]
    final = finite_mean(np.where(from_end <= MASTERY_ROWS, array, np.nan))
    return final - MASTERY_SLACK * np.abs(final)


def mastery(steps: ArrayLike, scores: ArrayLike) -> FloatArray:
    """Return the first logged step count at which each run is as good as at its end.

    ``steps [rows]``, ``scores [..., rows]`` -> ``[...]``: the first score at or above
    :func:`mastery_target`; NaN for a run without finite scores.
    """
    grid, array = floats(steps), missing_as_nan(scores)
    require_rows(grid, scores=array)
    return _first(grid, array >= mastery_target(array)[..., np.newaxis])


def _first(grid: FloatArray, happened: BoolArray) -> FloatArray:
    """Return the grid value [...] of the first row [..., rows] where it happened, else NaN."""
    if not len(grid):
        return np.full(happened.shape[:-1], np.nan)[()]
    return np.where(happened.any(axis=-1), grid[np.argmax(happened, axis=-1)], np.nan)[()]


def _at(grid: FloatArray, column: FloatArray, iteration: int) -> FloatArray:
    """Return the values [...] of ``column [..., rows]`` at one logged iteration."""
    rows = np.flatnonzero(grid == iteration)
    if not len(rows):
        raise DataError(f"the log has no row at the switch, iteration {iteration}")
    return column[..., rows[0]]
