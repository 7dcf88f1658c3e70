"""Files and folders that are known to be on the disk, and failures that name their path."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rulescope.errors import RecordError


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn failures to read into a :class:`RecordError` that names ``path``."""
    try:
        yield
    except OSError as fault:
        raise RecordError(f"{path}: cannot be read ({fault.strerror or fault})") from fault


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn failures to write into a :class:`RecordError` that names ``path``."""
    try:
        yield
    except OSError as fault:
        raise RecordError(f"{path}: cannot be written ({fault.strerror or fault})") from fault


def is_folder(path: Path) -> bool:
    """Tell whether ``path`` is a folder; not being allowed to know is an error."""
    with reading(path):
        return path.is_dir()


def listed(folder: Path) -> list[Path]:
    """Return the visible entries of ``folder``, sorted; none if it does not exist."""
    with reading(folder):
        try:
            return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
        except FileNotFoundError:
            return []


def write(path: Path, content: bytes) -> None:
    """Write a new file and wait until it is on the disk."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def make(folder: Path) -> None:
    """Make ``folder`` and its parents, each known to the disk before anything is put in it."""
    if folder.is_dir():
        return
    make(folder.parent)
    with suppress(FileExistsError):  # another process may be doing the same
        folder.mkdir()
    sync(folder.parent)


def sync(folder: Path) -> None:
    """Wait until the names in ``folder`` are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as fault:
        # Some network file systems cannot sync a folder, and say so.
        if fault.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)
