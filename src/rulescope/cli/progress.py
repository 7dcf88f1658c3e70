"""Progress of long computations: a bar in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

if TYPE_CHECKING:
    from rulescope.engine.campaign import Campaign
    from rulescope.records.store import Report

PLAIN_SECONDS = 15.0
"""Time between two lines if standard error is not a terminal."""
WINDOW_SECONDS = 30.0
"""Speed is measured over this much of the past."""


class Meter:
    """A progress bar on standard error with speed and remaining time."""

    def __init__(self, label: str, total: int, unit: str = "it") -> None:
        self._console = Console(stderr=True)
        self._label, self._total, self._unit = label, total, unit
        self._recent: deque[tuple[float, int]] = deque()
        self._printed = -math.inf
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=10),
            TextColumn("{task.completed:.0f}/{task.total:.0f} {task.fields[note]}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task(label, total=total, note="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def update(self, done: int, note: str = "") -> None:
        """Show that ``done`` of the total is done; ``note`` is printed before the speed."""
        self._show(done, note, self._pace(done))

    def follow(self, campaign: Campaign, note: str = "") -> None:
        """Show the state of a campaign at the speed that the campaign measures.

        (From ``done`` alone, a run that resumes from its checkpoint looks like a very fast one.)
        """
        left = campaign.seconds_left
        known = campaign.rate and left is not None
        pace = f"{campaign.rate:.1f} {self._unit}/s, {duration(left or 0.0)} left" if known else ""
        self._show(campaign.done, note, pace)

    def _show(self, done: int, *notes: str) -> None:
        text = ", ".join(part for part in notes if part)
        if self._console.is_terminal:
            self._bar.update(self._task, completed=done, note=text)
        elif time.monotonic() - self._printed >= PLAIN_SECONDS or done == self._total:
            self._printed = time.monotonic()
            print(
                f"{self._label}: {done}/{self._total} {text}", file=self._console.file, flush=True
            )

    def _pace(self, done: int) -> str:
        """Return speed and remaining time; the first iterations, being faster, are forgotten."""
        now = time.monotonic()
        self._recent.append((now, done))
        while now - self._recent[0][0] > WINDOW_SECONDS:
            self._recent.popleft()
        elapsed, made = now - self._recent[0][0], done - self._recent[0][1]
        if made <= 0 or elapsed < 1.0:
            return ""
        rate = made / elapsed
        return f"{rate:.1f} {self._unit}/s, {duration((self._total - done) / rate)} left"


def duration(seconds: float) -> str:
    """Return a time span as text.

    >>> duration(42), duration(200), duration(9000)
    ('42 s', '3 min 20 s', '2 h 30 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@contextmanager
def index_progress() -> Iterator[Report | None]:
    """Yield a callback that prints how many records are indexed, or None if not on a terminal."""
    if not sys.stderr.isatty():
        yield None
        return

    def report(done: int, total: int) -> None:
        if total > 100 and (done % 100 == 0 or done == total):
            end = "\n" if done == total else "\r"
            print(f"indexing: {done:,} of {total:,} records", end=end, file=sys.stderr)

    yield report
