"""Quarantine: damaged records and checkpoints are moved there with the reason, never deleted."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rulescope.core import disk
from rulescope.core.errors import RecordError
from rulescope.records.store_layout import read_optional

FOLDER = "quarantine"
REASON = "reason.txt"
_MAX_REASON = 10_000


class Quarantined(NamedTuple):
    """An entry in quarantine: the run, the reason, and the folder."""

    id: str
    reason: str
    path: Path


def entries(folder: Path) -> list[Quarantined]:
    """Return all entries, sorted by id."""
    return [
        Quarantined(path.name.partition("-")[0], _reason(path), path)
        for path in disk.listed(folder)
    ]


def move(
    path: Path, quarantine: Path, run: str, reason: str, is_intact: Callable[[Path], bool]
) -> str:
    """Move a damaged folder or file into ``quarantine``; return a message that says where to.

    Between the check that found the damage and the move, another process may have replaced the
    entry. ``is_intact`` is asked about what was moved, and an intact entry is moved back.
    """
    try:
        folder = _new_folder(quarantine, run)
        try:
            # A folder replaces the new, empty one; a file goes into it.
            path.rename(folder if path.is_dir() else folder / path.name)
        except OSError:
            folder.rmdir()
            raise
    except FileNotFoundError:
        return "another process has moved it already"
    except RecordError as fault:
        return f"it could not be moved into quarantine ({fault})"
    except OSError as fault:
        return f"it could not be moved into quarantine ({fault.strerror})"
    if is_intact(folder):
        with suppress(OSError):  # if there is another one again, this one is not needed
            folder.rename(path)
        return "another process has put an intact one in its place"
    with suppress(OSError):  # even on a full disk the message must say where it was moved to
        _write_reason(folder, reason)
    return f"moved to {folder}"


def _new_folder(quarantine: Path, run: str) -> Path:
    """Create and return the first free folder ``<run>-<n>``; mkdir is exclusive."""
    disk.make(quarantine)
    for n in itertools.count(1):
        folder = quarantine / f"{run}-{n}"
        with suppress(FileExistsError):
            folder.mkdir()
            break
    return folder


def _reason(folder: Path) -> str:
    content = read_optional(folder / REASON)
    return (
        "unknown" if content is None else content[:_MAX_REASON].decode("utf-8", "replace").strip()
    )


def _write_reason(folder: Path, text: str) -> None:
    path = folder / REASON
    path.unlink(missing_ok=True)  # the moved folder may contain one already, perhaps a link
    with path.open("xb") as file:
        file.write(f"{text}\n".encode("utf-8", "replace"))
