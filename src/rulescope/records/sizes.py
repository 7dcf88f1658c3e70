"""The disk use of a store, by part and by kind of record."""

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
    "checkpoints": "runs in progress",
    "quarantine": "what failed verification",
    "index": "derived from the records, safe to delete",
    "tmp": "writes in progress, or left by crashed processes",
    "campaigns": "status of running campaigns",
    "failures": "causes of failed runs",
    "plans": "assays and budgets of campaigns",
}
"""The folders of a store and their content."""


class Size(NamedTuple):
    """The number of entries (records, checkpoints, ...), and the bytes of all files in them."""

    entries: int
    bytes: int


class Sizes(NamedTuple):
    """The disk use of a store."""

    parts: dict[str, Size]
    groups: dict[tuple[str, str], Size]
    """Records by learner and environment."""
    problems: list[Problem]
    """Records that are in no group."""


def measure(store: Store, report: Report | None = None) -> Sizes:
    """Return the disk use of ``store``; links are counted, never followed."""
    with query.open_database(store, report) as database:
        result = database.query(
            "SELECT learner, environment, count(*), sum(bytes)::BIGINT FROM runs "
            "GROUP BY ALL ORDER BY 4 DESC, 1, 2"
        )
        groups = {(row[0], row[1]): Size(row[2], row[3]) for row in result.rows}
        problems = list(database.problems)
    parts = {name: _folder_size(store.root / name) for name in PARTS}
    parts["runs"] = parts["runs"]._replace(entries=sum(1 for _ in store.ids()))
    return Sizes(parts, groups, problems)


def _folder_size(folder: Path) -> Size:
    with disk.reading(folder):
        if folder.is_symlink():
            return Size(0, 0)
        return Size(len(disk.listed(folder)), total_bytes(folder))


def total_bytes(path: Path) -> int:
    """Return the bytes of a file or of all files below a folder; vanished files count as 0."""
    with disk.reading(path), suppress(FileNotFoundError):
        about = path.lstat()
        return _bytes_inside(path) if stat.S_ISDIR(about.st_mode) else about.st_size
    return 0


def _bytes_inside(folder: Path) -> int:
    total, pending = 0, [str(folder)]
    while pending:
        here = Path(pending.pop())
        with disk.reading(here), suppress(FileNotFoundError), os.scandir(here) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                    continue
                with suppress(FileNotFoundError):
                    total += entry.stat(follow_symlinks=False).st_size
    return total


def readable(size: float) -> str:
    """Return a number of bytes in readable units.

    >>> readable(999), readable(15_300_000)
    ('999 B', '15.3 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
