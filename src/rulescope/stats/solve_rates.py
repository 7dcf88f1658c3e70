"""Solve rates of DeepSea, with Wilson intervals and the rate of random play.

Flags are 1.0 (yes), 0.0 (no) or NaN (no data), so a missing run never counts as a failure and
``finite_mean(flags)`` is the share of runs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from rulescope.stats.array_checks import BoolArray, DataError, FloatArray, floats, require_positive
from rulescope.stats.intervals import Estimate

SOLVED_RETURN = 0.495
EPISODES = 12_000
Z_95 = 1.959964
_INTERACTIONS_PER_UPDATE = 58
_MIN_UPDATES = 50


def solved(tail_returns: ArrayLike, threshold: float = SOLVED_RETURN) -> FloatArray:
    """Return flags [...] of the runs whose mean tail return is at or above the threshold."""
    array = floats(tail_returns)
    return np.where(np.isfinite(array), array >= threshold, np.nan)[()]


def found_goal(running_returns: ArrayLike) -> FloatArray:
    """Return flags [...] of the runs with anything above zero among ``[..., rows]``.

    The rows are counts of goal events, or logged running returns (which may miss a goal between
    two rows).
    """
    array = floats(running_returns)
    finite = np.isfinite(array)
    return np.where(finite.any(axis=-1), (finite & (array > 0)).any(axis=-1), np.nan)[()]


def majority(flags: ArrayLike) -> BoolArray:
    """Return whether at least half of the runs ``[..., n]`` with data have their flag set."""
    array = floats(flags)
    finite = np.isfinite(array)
    count = finite.sum(axis=-1)
    yes = np.where(finite, array, 0.0).sum(axis=-1)
    result: BoolArray = (count > 0) & (2 * yes >= count)
    return result


def deepest_majority(depths: ArrayLike, flags: ArrayLike) -> FloatArray:
    """Return the largest of ``depths [D]`` with a majority among ``flags [..., D, n]``: [...].

    NaN where no depth has one. A gap below does not count against a depth.
    """
    grid, array = floats(depths), floats(flags)
    if array.ndim < 2 or array.shape[-2] != len(grid):
        raise DataError(f"flags of shape {array.shape} do not hold {len(grid)} depths [D, n]")
    deepest = np.max(np.where(majority(array), grid, -np.inf), axis=-1, initial=-np.inf)
    return np.where(np.isfinite(deepest), deepest, np.nan)[()]


def wilson(k: int, n: int, z: float = Z_95) -> Estimate:
    """Return the share ``k/n`` with its Wilson interval; without runs there is none.

    ``z`` is the normal quantile of its level, 95 % unless given.
    """
    if not 0 <= k <= n:
        raise DataError(f"{k} of {n} runs is not a share")
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, method="none")
    share, z2 = k / n, z * z
    shrink = 1 + z2 / n
    centre = (share + z2 / (2 * n)) / shrink
    half = z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / shrink
    # At 0 and n the bound is exactly 0 or 1; rounding must not move it beyond.
    low = 0.0 if k == 0 else centre - half
    high = 1.0 if k == n else centre + half
    return Estimate(share, low, high, n, method="wilson")


def random_discovery(depth: int, episodes: int = EPISODES) -> float:
    """Return the probability that uniformly random play reaches the goal at least once."""
    require_positive("depth", depth)
    if depth == 1:
        return 1.0 if episodes else 0.0
    # expm1 and log1p keep the digits that 1 - (1 - p)^episodes loses at great depth.
    return -math.expm1(episodes * math.log1p(-(2.0 ** -(depth - 1))))


def updates_for_depth(depth: int, episodes: int = EPISODES) -> int:
    """Return the learner updates that give a DeepSea of this depth so many episodes."""
    require_positive("depth", depth)
    return max(round(episodes * depth / _INTERACTIONS_PER_UPDATE), _MIN_UPDATES)
