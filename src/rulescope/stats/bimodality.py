"""Cells whose lifetimes fall into two groups: some learned, the others did not.

The mean of such a cell is a score that no lifetime had, so a reader needs both counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rulescope.stats.array_checks import FloatArray, floats

MIN_GAP = 0.4
"""Score that must lie empty between the groups: two fifths of the range from random to optimal."""
MIN_GROUP = 2
"""Least number of lifetimes in a group: a single one is an outlier."""


def is_bimodal(values: ArrayLike) -> bool:
    """Return whether the finite ``values [n]`` of a cell, in units of score, form two groups.

    They do if, split at their widest gap, (1) each side has at least two values, (2) the gap is at
    least 0.4, and (3) the gap is wider than the spread (highest minus lowest) of either side.

    >>> is_bimodal([0, 0.02, 0.01, 0, 0.05, 0.98, 1, 0.97]), is_bimodal([0.2, 0.5, 0.6, 0.9])
    (True, False)
    """
    lower, upper = split_groups(values)
    if min(len(lower), len(upper)) < MIN_GROUP:
        return False
    gap = upper[0] - lower[-1]
    return bool(gap >= MIN_GAP and gap > max(np.ptp(lower), np.ptp(upper)))


def split_groups(values: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the finite ``values [n]``, sorted, below and above their widest gap.

    Of equally wide gaps the lowest is taken. Without a gap (fewer than two distinct values) all
    are below. Every cell with two distinct values has such a split; :func:`is_bimodal` returns
    whether it is meaningful.

    >>> [len(group) for group in split_groups([0, 0.02, 0.01, 0, 0.05, 0.98, 1, 0.97])]
    [5, 3]
    """
    ordered = np.sort(floats(values), axis=None)
    ordered = ordered[np.isfinite(ordered)]
    gaps = np.diff(ordered)
    if not gaps.any():
        return ordered, ordered[:0]
    at = int(gaps.argmax()) + 1
    return ordered[:at], ordered[at:]
