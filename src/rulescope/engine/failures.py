"""What went wrong with runs that have no record yet: ``failures/<id>.json`` of a store.

A file has one entry an attempt, over all campaigns, and goes when the run succeeds.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from rulescope.core import disk
from rulescope.records import Store
from rulescope.records.store_layout import ID, checked, note

KEPT = 20
"""The most attempts that are kept of a run, the last ones."""
FOLDER = "failures"


class Attempt(msgspec.Struct, frozen=True):
    """One time that a run failed."""

    when: str
    cause: str
    iteration: int = 0
    """The last one that was finished."""
    host: str = ""
    trace: str = ""
    """Where in the program, if it was an error of the program."""


class Failure(msgspec.Struct, frozen=True):
    """A run that failed, and every time that it did."""

    id: str
    attempts: tuple[Attempt, ...]

    @property
    def cause(self) -> str:
        """What went wrong the last time."""
        return self.attempts[-1].cause if self.attempts else "unknown"


def add(
    store: Store, run: str, cause: str, iteration: int = 0, trace: str = "", host: str = ""
) -> None:
    """Keep the cause of a failed attempt, on this machine unless another ``host`` is named."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    attempt = Attempt(now, cause, iteration, host or platform.node(), trace)
    before = _read(_path(store, run))
    attempts = (*(before.attempts if before else ()), attempt)[-KEPT:]
    replace(store, _path(store, run), msgspec.json.encode(Failure(run, attempts)))


def clear(store: Store, run: str) -> None:
    """Forget the failures of a run: it has succeeded."""
    with disk.writing(_path(store, run)):
        _path(store, run).unlink(missing_ok=True)


def known(store: Store, runs: Iterable[str] | None = None) -> dict[str, Failure]:
    """Return the failed runs, of ``runs`` or of all, that have no record; by id."""
    listed = disk.listed(store.inside(FOLDER))
    names = {p.stem: p for p in listed if p.suffix == ".json" and ID.fullmatch(p.stem)}
    wanted = names if runs is None else [run for run in runs if run in names]
    read = {run: _read(names[run]) for run in wanted}
    return {run: found for run, found in read.items() if found is not None and run not in store}


def replace(store: Store, path: Path, content: bytes) -> None:
    """Write a file of a store anew, whole or not at all."""
    with disk.writing(path), store.staging(path.stem) as staged:
        disk.write(staged / path.name, content)
        disk.make(path.parent)
        (staged / path.name).replace(path)


def _path(store: Store, run: str) -> Path:
    return store.inside(FOLDER) / f"{checked(run)}.json"


def _read(path: Path) -> Failure | None:
    """Return what a file says; one that cannot be understood says nothing."""
    try:
        found = msgspec.json.decode(note(path) or b"", type=Failure)
    except (UnicodeDecodeError, msgspec.MsgspecError):
        return None
    return found if found.id == path.stem and found.attempts else None
