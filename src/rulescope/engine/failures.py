"""Causes of failed runs that have no record yet: ``failures/<id>.json`` of a store.

A file holds one entry per attempt, over all campaigns, and is removed when the run succeeds.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from rulescope.core import disk
from rulescope.records import Store
from rulescope.records.store_layout import ID, check_id, read_optional

KEPT = 20
"""The number of attempts kept per run: the last ones."""
FOLDER = "failures"


class Attempt(msgspec.Struct, frozen=True):
    """One failed attempt at a run."""

    when: str
    cause: str
    iteration: int = 0
    """The last completed iteration."""
    host: str = ""
    trace: str = ""
    """The traceback, if it was an unexpected error."""


class Failure(msgspec.Struct, frozen=True):
    """A failed run with all its attempts."""

    id: str
    attempts: tuple[Attempt, ...]

    @property
    def cause(self) -> str:
        """The cause of the last failed attempt."""
        return self.attempts[-1].cause if self.attempts else "unknown"


def add(
    store: Store, run: str, cause: str, iteration: int = 0, trace: str = "", host: str = ""
) -> None:
    """Add a failed attempt to the file of ``run``; ``host`` defaults to this machine."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    attempt = Attempt(now, cause, iteration, host or platform.node(), trace)
    before = _read(_path(store, run))
    attempts = (*(before.attempts if before else ()), attempt)[-KEPT:]
    store.replace_file(_path(store, run), msgspec.json.encode(Failure(run, attempts)))


def clear(store: Store, run: str) -> None:
    """Remove the failures of a run that has succeeded."""
    with disk.writing(_path(store, run)):
        _path(store, run).unlink(missing_ok=True)


def load(store: Store, runs: Iterable[str] | None = None) -> dict[str, Failure]:
    """Return the failed runs without a record by id: those of ``runs``, or all."""
    entries = disk.listed(store.inside(FOLDER))
    paths = {p.stem: p for p in entries if p.suffix == ".json" and ID.fullmatch(p.stem)}
    wanted = paths if runs is None else [run for run in runs if run in paths]
    read = {run: _read(paths[run]) for run in wanted}
    return {run: found for run, found in read.items() if found is not None and run not in store}


def _path(store: Store, run: str) -> Path:
    return store.inside(FOLDER) / f"{check_id(run)}.json"


def _read(path: Path) -> Failure | None:
    """Return the content of a file, or None if it is invalid."""
    try:
        found = msgspec.json.decode(read_optional(path) or b"", type=Failure)
    except (UnicodeDecodeError, msgspec.MsgspecError):
        return None
    return found if found.id == path.stem and found.attempts else None
