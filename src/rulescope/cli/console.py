"""The console that text and tables are printed to."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

if TYPE_CHECKING:
    from rulescope.engine.campaign import Campaign
    from rulescope.records.store import Report


WIDTH = 1000
"""Wider than anything printed: a terminal wraps long lines, but a truncated number is lost."""


def console(quiet: bool = False) -> Console:
    """Return a console on standard output that truncates neither text nor tables."""
    return Console(highlight=False, soft_wrap=True, width=WIDTH, quiet=quiet)


def printable(text: str) -> str:
    """Return ``text`` without control characters: a store may come from an untrusted source."""
    return "".join(mark if mark.isprintable() else "\ufffd" for mark in text)


def span(numbers: Iterable[int]) -> str:
    """Return the least and the greatest of ``numbers`` as text.

    >>> span([2000, 20000, 3000]), span([12, 12])
    ('2,000 to 20,000', '12')
    """
    values = sorted(numbers)
    least, greatest = values[0], values[-1]
    return f"{least:,}" if least == greatest else f"{least:,} to {greatest:,}"


def make_table(*headings: str, no_wrap: bool = False) -> Table:
    """Return an empty table; a heading that starts with ``>`` is that of a column of numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        justify: JustifyMethod = "right" if heading.startswith(">") else "left"
        table.add_column(heading.removeprefix(">"), justify=justify, no_wrap=no_wrap)
    return table


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
