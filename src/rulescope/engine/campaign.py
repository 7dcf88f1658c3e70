"""Where a set of runs stands: what the engine reports, and what others may read of it."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field

WINDOW_SECONDS = 30.0
"""Speed is measured over this much of the recent past: the first iterations are much faster."""


class Pace:
    """How fast something gets on, from the recent past."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, int]] = deque()

    def note(self, done: int) -> None:
        """Say that ``done`` of it is done by now."""
        now = time.monotonic()
        if self._recent and done < self._recent[-1][1]:
            self._recent.clear()  # it went back to a checkpoint
        self._recent.append((now, done))
        while now - self._recent[0][0] > WINDOW_SECONDS and len(self._recent) > 2:
            self._recent.popleft()

    @property
    def rate(self) -> float:
        """How much a second; 0 as long as nobody knows."""
        if len(self._recent) < 2:
            return 0.0
        (began, first), (now, last) = self._recent[0], self._recent[-1]
        return (last - first) / (now - began) if now > began else 0.0


@dataclass
class Running:
    """A run under way."""

    iterations: int
    iteration: int = 0
    rate: float = 0.0
    """Iterations a second of late; 0 as long as nobody knows."""
    attempt: int = 1
    worker: int | None = None
    """The process that lives it."""
    host: str = ""
    """The machine of that process, unless it is this one."""


@dataclass
class Campaign:
    """Where a set of runs stands."""

    total: int
    """Iterations of all runs together, those found in the store included."""
    done: int = 0
    """Iterations made or found."""
    runs: int = 0
    finished: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    """Run id to the cause, of runs that were given up."""
    given_up: int = 0
    """Iterations that failed runs, and those that needed them, will not make."""
    running: dict[str, Running] = field(default_factory=dict)
    causes: dict[str, list[str]] = field(default_factory=dict)
    """Run id to what went wrong at each attempt, of all runs that ever failed in this campaign."""
    workers: int = 0
    stopping: bool = False
    """Whether it was interrupted, and only finishes the iterations under way."""

    @property
    def rate(self) -> float:
        """Iterations a second of all workers together."""
        return sum(run.rate for run in self.running.values())

    @property
    def seconds_left(self) -> float | None:
        """How long it will take, if that can be told yet: all of it, and the longest run."""
        known = [run for run in self.running.values() if run.rate > 0.0]
        if not known:
            return None if self._left else 0.0
        alone = max((run.iterations - run.iteration) / run.rate for run in known)
        return max(alone, self._left / self.rate)

    @property
    def _left(self) -> int:
        return max(self.total - self.done - self.given_up, 0)
