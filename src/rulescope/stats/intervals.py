"""Estimates, percentile intervals, and a recorder of the bootstrap draws behind them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rulescope.stats.array_checks import FloatArray, missing_as_nan, require_positive

LEVEL = 0.05
"""Two-sided error of one interval, divided evenly among the members of a family."""
MIN_TAIL_DRAWS = 20
"""With fewer draws beyond a bound, noise of a few extreme draws dominates it."""
MIN_BOOTSTRAP = 3
"""With fewer values a bootstrap interval would be too narrow."""

Method = Literal["bootstrap", "range", "wilson", "none"]


class TailWarning(UserWarning):
    """There are too few bootstrap draws for the requested tail."""


class Interval(NamedTuple):
    """Lower and upper bound: two numbers, or two arrays of one shape."""

    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval and sample size.

    ``n`` counts finite values, ``draws`` the bootstrap draws in which the statistic was defined,
    and ``family`` the members among which the error was divided. With ``method="range"`` the bounds
    are the smallest and largest value observed; with ``"none"`` they are NaN.
    """

    value: float
    low: float
    high: float
    n: int
    draws: int = 0
    family: int = 1
    method: Method = "bootstrap"

    @property
    def missing(self) -> bool:
        """Whether there is no value."""
        return math.isnan(self.value)


def tail(family: int = 1) -> float:
    """Return the error on each side of an interval of a family with that many members."""
    require_positive("family", family)
    return LEVEL / (2 * family)


def enough_draws(family: int = 1) -> int:
    """Return the draws that leave :data:`MIN_TAIL_DRAWS` beyond each bound of such an interval."""
    return math.ceil(MIN_TAIL_DRAWS / tail(family))


def percentile_interval(samples: ArrayLike, family: int = 1, axis: int = 0) -> Interval:
    """Return the percentile interval of bootstrap ``samples`` along ``axis``.

    ``samples [draws, ...]`` gives bounds ``[...]``: linearly interpolated quantiles at
    ``0.05/(2m)`` and ``1 - 0.05/(2m)`` for a family of m. Draws in which the statistic is
    undefined (NaN) are left out; where all are, so is the interval. Warns with
    :class:`TailWarning` where fewer than 20 draws lie beyond a bound.
    """
    below = tail(family)
    array = np.moveaxis(missing_as_nan(samples), axis, 0)
    require_positive("draws", len(array))
    finite = np.isfinite(array).sum(axis=0)
    _warn_of_thin_tails(int(np.min(finite[finite > 0], initial=len(array))), family)
    bounds = np.quantile(array, [below, 1.0 - below], axis=0)
    # Only the slices with undefined draws pay for the slow quantile that skips them.
    gaps = (finite > 0) & (finite < len(array))
    if gaps.any():
        bounds[:, gaps] = np.nanquantile(array[:, gaps], [below, 1.0 - below], axis=0)
    return Interval(bounds[0][()], bounds[1][()])


class RecordedDraws:
    """The draws behind estimates."""

    def __init__(self) -> None:
        # By identity: two equal estimates may have different draws. The estimate is stored as well,
        # so that its identity is not reused.
        self._draws: dict[int, tuple[Estimate, FloatArray]] = {}

    def record(self, found: Estimate, samples: FloatArray) -> None:
        """Store ``samples`` [draws] of ``found``."""
        self._draws[id(found)] = (found, samples)

    def of(self, found: Estimate) -> FloatArray | None:
        """Return the draws [draws] of ``found``; None if it has none."""
        recorded = self._draws.get(id(found))
        return None if recorded is None else recorded[1]


_RECORDER: ContextVar[RecordedDraws | None] = ContextVar("recorder", default=None)


@contextmanager
def recording_draws() -> Iterator[RecordedDraws]:
    """Record the draws of every bootstrap estimate that is made inside.

    Draws are large and seldom needed, so an estimate does not hold them itself.
    """
    recorder = RecordedDraws()
    token = _RECORDER.set(recorder)
    try:
        yield recorder
    finally:
        _RECORDER.reset(token)


def record_draws(found: Estimate, samples: FloatArray) -> Estimate:
    """Return ``found``, after recording its ``samples`` [draws] if a recorder is active."""
    recorder = _RECORDER.get()
    if recorder is not None and found.method == "bootstrap":
        recorder.record(found, samples)
    return found


def estimate_from(value: float, samples: ArrayLike, n: int, family: int = 1) -> Estimate:
    """Return the estimate of a statistic that the caller has bootstrapped: ``samples [draws]``.

    For widths, contrasts and geometry. Without a value, without a defined draw, or from fewer
    than three seeds there is no interval (the seeds' own range is not on the statistic's scale).
    """
    array = missing_as_nan(samples)
    draws = int(np.isfinite(array).sum())
    if n < MIN_BOOTSTRAP or draws == 0 or not math.isfinite(value):
        return Estimate(float(value), math.nan, math.nan, n, 0, family, "none")
    low, high = percentile_interval(array, family)
    return record_draws(Estimate(float(value), float(low), float(high), n, draws, family), array)


def _warn_of_thin_tails(draws: int, family: int) -> None:
    """Warn where ``draws`` leave fewer than :data:`MIN_TAIL_DRAWS` beyond each bound."""
    beyond = draws * LEVEL / (2 * family)
    if beyond < MIN_TAIL_DRAWS:
        warnings.warn(
            f"{draws} draws leave {beyond:.1f} beyond each bound of a family of {family}; "
            f"{enough_draws(family)} would leave {MIN_TAIL_DRAWS}",
            TailWarning,
            stacklevel=3,
        )
