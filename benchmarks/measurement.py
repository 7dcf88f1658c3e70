"""The amount of measurement, and its summary as medians with quartiles.

The speed of a machine changes in phases (other tenants, clock rates) that last longer than an
iteration. So everything is measured in *rounds*, in which all sides take turns. A ratio is computed
within each round, and the median over rounds is reported with its quartiles.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

SCALING = {"batch": (16, 32, 64, 128), "grid": (8, 16, 24), "actions": (3, 6, 12)}
"""Settings that vary one at a time around the standard lifetime."""
STANDARD = {"batch": 64, "grid": 8, "actions": 3}

Progress = Callable[[str], None]
"""Called after every measurement with its name, :attr:`Plan.total` times."""


class Plan(msgspec.Struct, frozen=True):
    """The amount of measurement."""

    rounds: int = 40
    """Of the main comparison; the one in the large world has half as many."""
    iterations: int = 4
    """Our iterations in each round."""
    warm_up: int = 10
    """Updates of each side before the first round."""
    peer: bool = True
    scaling_rounds: int = 4
    """0: no scaling table."""
    memory_iterations: int = 60

    @property
    def large_rounds(self) -> int:
        """Rounds of the comparison in the large world."""
        return -(-self.rounds // 2)

    @property
    def total(self) -> int:
        """The number of calls of :data:`Progress`."""
        return self.rounds + self.large_rounds + len(scaling_settings()) * self.scaling_rounds + 1


QUICK = Plan(rounds=5, iterations=2, warm_up=3, scaling_rounds=1, memory_iterations=36)


class Spread(msgspec.Struct, frozen=True):
    """A median and the quartiles around it."""

    median: float
    q1: float
    q3: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the median and quartiles of ``values``, of which there is at least one."""
        q1, median, q3 = np.percentile(values, [25, 50, 75]).tolist()
        return cls(median, q1, q3)


def scaling_settings() -> list[dict[str, int]]:
    """Return the settings of the scaling table, the standard one first and only once."""
    others = [STANDARD | {name: value} for name, values in SCALING.items() for value in values]
    return [STANDARD, *(setting for setting in others if setting != STANDARD)]


def load_average() -> float | None:
    """Return the load average of the last minute; None where the system has none."""
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return None
