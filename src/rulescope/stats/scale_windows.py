"""Scale windows: the decades of reward scale over which a learner keeps its score."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rulescope.stats.array_checks import (
    BoolArray,
    DataError,
    FloatArray,
    IntArray,
    floats,
    missing_as_nan,
)

WindowKind = Literal["none", "singleton", "interval"]

COMPETENT = 0.8
"""Score from which an arm counts as competent. Random play has 0 and the optimum 1."""
_TIE = 1e-9
"""Decades: runs whose widths differ by less are equally wide, despite rounded logarithms."""


class Window(NamedTuple):
    """The widest run of passing scales; its width is in decades, its ends are grid points."""

    width: float
    low: float
    high: float
    kind: WindowKind


def scale_window(scales: ArrayLike, curve: ArrayLike, threshold: float) -> Window:
    """Return the widest run of consecutive ``scales [S]`` where ``curve [S] >= threshold``.

    Nothing is interpolated. Of equally wide runs the one with the lowest lower end is taken; NaN
    scores do not pass. Without a passing scale the ends are NaN and the width is 0.
    """
    grid, scores = _grid(scales), floats(curve)
    if scores.shape != grid.shape:
        raise DataError(f"curve has shape {scores.shape} for {len(grid)} scales")
    first, last, width = _widest_runs(grid, _passing(scores, floats(threshold)))
    if first < 0:
        return Window(0.0, math.nan, math.nan, "none")
    kind: WindowKind = "singleton" if first == last else "interval"
    return Window(float(width), float(grid[first]), float(grid[last]), kind)


def window_widths(scales: ArrayLike, curves: ArrayLike, thresholds: ArrayLike) -> FloatArray:
    """Return the width of :func:`scale_window` for every curve at once.

    ``curves [..., S]`` and ``thresholds [...]`` broadcast over the leading axes, so bootstrap
    draws, arms and several criteria go through together.
    """
    grid, scores = _grid(scales), floats(curves)
    if scores.ndim == 0 or scores.shape[-1] != len(grid):
        raise DataError(f"curves have shape {scores.shape} for {len(grid)} scales")
    return _widest_runs(grid, _passing(scores, floats(thresholds)))[2]


def criterion_widths(scales: ArrayLike, curves: ArrayLike, threshold: float | None) -> FloatArray:
    """Return the window width of every curve ``[..., S]`` under one criterion: ``[...]``.

    The criterion is a score, or (None) half of the curve's best. A curve with a scale at which
    nothing is known has no width (NaN): that scale might have passed.
    """
    scores = floats(curves)
    thresholds = half_best(scores) if threshold is None else floats(threshold)
    unknown = np.isnan(scores).any(axis=-1)
    return np.where(unknown, np.nan, window_widths(scales, scores, thresholds))


def half_best(curves: ArrayLike, floor: float = COMPETENT) -> FloatArray:
    """Return half the best score of each curve ``[..., S]`` as its threshold ``[...]``.

    A curve whose best score is below ``floor``, or not above zero, gets +inf, which no score
    passes: half of the noise of an arm that did not learn is not a criterion. Without any score
    the threshold is NaN.
    """
    best = np.fmax.reduce(missing_as_nan(curves), axis=-1)
    return np.where((best <= 0) | (best < floor), np.inf, 0.5 * best)[()]


def _grid(scales: ArrayLike) -> FloatArray:
    """Return the scales as an array, or raise where their logarithms would not increase."""
    grid = floats(scales)
    if grid.ndim != 1 or len(grid) == 0:
        raise DataError(f"scales must be a list of numbers, not an array of shape {grid.shape}")
    if not (np.isfinite(grid).all() and np.all(grid > 0) and np.all(np.diff(grid) > 0)):
        raise DataError(f"scales must be positive and increasing, not {grid.tolist()}")
    return grid


def _passing(scores: FloatArray, thresholds: FloatArray) -> BoolArray:
    """Return where finite scores [..., S] reach the thresholds [...]."""
    passing: BoolArray = np.isfinite(scores) & (scores >= thresholds[..., np.newaxis])
    return passing


def _widest_runs(grid: FloatArray, passing: BoolArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return first index, last index (-1: nothing passes) and width of the widest runs [...]."""
    decades = np.log10(grid)
    shape = passing.shape[:-1]
    start = np.full(shape, -1)  # of the run that the current scale belongs to, -1 outside runs
    first, last, width = np.full(shape, -1), np.full(shape, -1), np.full(shape, -1.0)
    for scale, decade in enumerate(decades.tolist()):
        start = np.where(passing[..., scale], np.where(start < 0, scale, start), -1)
        run = np.where(start < 0, -1.0, decade - decades[start])
        wider = run > width + _TIE
        first = np.where(wider, start, first)
        last = np.where(wider, scale, last)
        width = np.where(wider, run, width)
    return first, last, np.maximum(width, 0.0)[()]
