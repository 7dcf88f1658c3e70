"""The progress of a campaign: what the engine reports while it runs, and returns at the end."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field

WINDOW_SECONDS = 30.0
"""Rates are measured over the last seconds only: the first iterations are much faster."""


class RateMeter:
    """The rate of a counter over the last :data:`WINDOW_SECONDS`."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, int]] = deque()

    def update(self, done: int) -> None:
        """Add the present value of the counter."""
        now = time.monotonic()
        if self._recent and done < self._recent[-1][1]:
            self._recent.clear()  # the run was resumed from a checkpoint
        self._recent.append((now, done))
        while now - self._recent[0][0] > WINDOW_SECONDS and len(self._recent) > 2:
            self._recent.popleft()

    @property
    def rate(self) -> float:
        """Counts per second; 0 while unknown."""
        if len(self._recent) < 2:
            return 0.0
        (began, first), (now, last) = self._recent[0], self._recent[-1]
        return (last - first) / (now - began) if now > began else 0.0


@dataclass
class RunProgress:
    """A run in progress."""

    iterations: int
    iteration: int = 0
    rate: float = 0.0
    """Recent iterations per second; 0 while unknown."""
    attempt: int = 1
    worker: int | None = None
    """Process id of its worker."""
    host: str = ""
    """Machine of its worker; empty if it is this one."""


@dataclass
class Campaign:
    """The progress of a set of runs."""

    total: int
    """Iterations of all runs together, including runs found in the store."""
    done: int = 0
    """Iterations completed or found in the store."""
    runs: int = 0
    finished: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    """Run id to cause, of runs that are not retried any more."""
    given_up: int = 0
    """Iterations that failed runs, and the runs that depend on them, will not complete."""
    shared: int = 0
    """Iterations that runs not started yet have in common with others, and will not execute."""
    running: dict[str, RunProgress] = field(default_factory=dict)
    causes: dict[str, list[str]] = field(default_factory=dict)
    """Run id to the cause of each failed attempt, also of runs that succeeded later."""
    workers: int = 0
    stopping: bool = False
    """Whether it was interrupted and only waits for checkpoints."""

    @property
    def rate(self) -> float:
        """Iterations per second of all workers together."""
        return sum(run.rate for run in self.running.values())

    @property
    def seconds_left(self) -> float | None:
        """Estimated time left, or None while unknown: at least that of the longest run."""
        known = [run for run in self.running.values() if run.rate > 0.0]
        if not known:
            return None if self._remaining else 0.0
        longest = max((run.iterations - run.iteration) / run.rate for run in known)
        return max(longest, self._remaining / self.rate)

    @property
    def _remaining(self) -> int:
        """Iterations still to be completed."""
        return max(self.total - self.done - self.given_up - self.shared, 0)
