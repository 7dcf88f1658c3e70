"""What takes how much room in a store."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rulescope.core import disk
from rulescope.records import query
from rulescope.records.store import Problem, Report, Store

PARTS = {
    "runs": "records",
    "checkpoints": "lifetimes in progress",
    "quarantine": "what failed verification",
    "index": "made from the records, safe to delete",
    "tmp": "writes in progress, or rubbish of dead processes",
    "campaigns": "what running campaigns say of themselves",
    "failures": "why runs without a record failed",
    "plans": "assays and budgets of campaigns",
}
"""The folders of a store, and what is in them."""


class Room(NamedTuple):
    """Entries of a folder (records, checkpoints, ...), and the bytes of all files in them."""

    entries: int
    bytes: int


class Sizes(NamedTuple):
    """The room that each part of a store takes."""

    parts: dict[str, Room]
    groups: dict[tuple[str, str], Room]
    """Records by learner and environment."""
    problems: list[Problem]
    """Records that are in no group, and why."""


def measure(store: Store, report: Report | None = None) -> Sizes:
    """Return the room that everything in ``store`` takes; links are counted, never followed."""
    with query.asking(store, report) as questions:
        answer = questions.ask(
            "SELECT learner, environment, count(*), sum(bytes)::BIGINT FROM runs "
            "GROUP BY ALL ORDER BY 4 DESC, 1, 2"
        )
        groups = {(row[0], row[1]): Room(row[2], row[3]) for row in answer.rows}
        problems = list(questions.problems)
    parts = {name: _room(store.root / name) for name in PARTS}
    parts["runs"] = parts["runs"]._replace(entries=sum(1 for _ in store.ids()))
    return Sizes(parts, groups, problems)


def _room(folder: Path) -> Room:
    with disk.reading(folder):
        if folder.is_symlink():
            return Room(0, 0)
        return Room(len(disk.listed(folder)), room(folder))


def room(path: Path) -> int:
    """Return the bytes of a file, or of all below a folder; what vanishes meanwhile has none."""
    with disk.reading(path), suppress(FileNotFoundError):
        about = path.lstat()
        return _inside(path) if stat.S_ISDIR(about.st_mode) else about.st_size
    return 0


def _inside(folder: Path) -> int:
    total, waiting = 0, [str(folder)]
    while waiting:
        here = Path(waiting.pop())
        with disk.reading(here), suppress(FileNotFoundError), os.scandir(here) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                    continue
                with suppress(FileNotFoundError):
                    total += entry.stat(follow_symlinks=False).st_size
    return total


def readable(size: float) -> str:
    """Return a number of bytes for people.

    >>> readable(999), readable(15_300_000)
    ('999 B', '15.3 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
