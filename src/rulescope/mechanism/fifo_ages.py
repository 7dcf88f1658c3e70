"""How old what a first-in-first-out replay holds is: in closed form, for any iteration.

A learner stores ``each`` entries an iteration (trajectories or transitions) and keeps the newest
``capacity``. The age of an entry is the number of iterations since it was stored: 0 for those of
the current one. The replay is looked at after an iteration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rulescope.stats import DataError
from rulescope.stats.array_checks import ratio

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Fifo:
    """A replay that forgets the oldest first."""

    capacity: int
    """Entries."""
    each: int
    """Entries stored in an iteration."""
    cleared: int | None = None
    """After which iteration it was emptied, if it was."""

    def __post_init__(self) -> None:
        """Refuse what would hold nothing."""
        if self.capacity < 1 or self.each < 1:
            raise DataError(f"a replay of {self.capacity}, {self.each} an iteration, holds nothing")

    @property
    def turnover(self) -> float:
        """Iterations after which nothing is left of what was there."""
        return self.capacity / self.each

    def stored(self, iterations: Ints) -> Ints:
        """Return how many entries there are after each of ``iterations`` [n]."""
        since = iterations
        if self.cleared is not None:
            since = np.where(iterations >= self.cleared, iterations - self.cleared, iterations)
        return np.minimum(since * self.each, self.capacity)

    def share_before(self, iterations: Ints, switch: int) -> Floats:
        """Return the share of entries stored up to iteration ``switch``, after each of [n].

        NaN where the replay is empty.
        """
        held = self.stored(iterations)
        later = np.maximum(iterations - switch, 0) * self.each
        old = np.maximum(held - later, 0)
        return ratio(old, held)

    def mean_age(self, iterations: Ints) -> Floats:
        """Return the mean age after each of ``iterations`` [n]; NaN where there is nothing."""
        held = self.stored(iterations)
        whole, rest = np.divmod(held, self.each)
        # Whole iterations of age 0, 1, ...; of the oldest only the rest is still there.
        total = self.each * whole * (whole - 1) / 2 + rest * whole
        return ratio(total, held)

    def age_quantile(self, iterations: Ints, part: float) -> Floats:
        """Return the age that a ``part`` of the entries do not exceed, after each of [n]."""
        held = self.stored(iterations)
        rank = np.maximum(np.ceil(part * held).astype(np.int64), 1) - 1  # from the newest on
        return np.where(held > 0, (rank // self.each).astype(np.float64), np.nan)
