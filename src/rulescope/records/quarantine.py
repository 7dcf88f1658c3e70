"""Where damaged things go: moved aside with the reason, never deleted."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rulescope.core import disk
from rulescope.core.errors import RecordError
from rulescope.records import store_layout


def nothing_is_sound(_: Path) -> bool:
    """Say of whatever was moved aside that it belongs there."""
    return False


def aside(
    path: Path,
    place: Path,
    run: str,
    reason: str,
    sound: Callable[[Path], bool] = nothing_is_sound,
) -> str:
    """Move a damaged folder or file to ``place``; return what came of it, in words.

    Between the look that found the damage and the move, another process may have put a sound one
    there. ``sound`` tells so of what was moved, and it is put back.
    """
    try:
        folder = _claim(place, run)
        try:
            # A folder takes the place of the empty one that was claimed; a file goes into it.
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
    if sound(folder):
        with suppress(OSError):  # if there is yet another one by now, this one is spare
            folder.rename(path)
        return "another process has put a sound one in its place"
    with suppress(OSError):  # a full disk must not hide where it went
        store_layout.give_reason(folder, reason)
    return f"moved to {folder}"


def _claim(place: Path, run: str) -> Path:
    """Make and return the first free folder ``<run>-<n>`` in ``place``; mkdir is exclusive."""
    disk.make(place)
    for n in itertools.count(1):
        folder = place / f"{run}-{n}"
        with suppress(FileExistsError):
            folder.mkdir()
            break
    return folder
