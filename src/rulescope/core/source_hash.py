"""The version of this package, hashes of source files, and which were edited since."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__version__ = "0.1.0"

SHOWS_ONLY = ("cli", "render", "report")
"""Folders of this package that only present results: they cannot change a record."""


class Version(NamedTuple):
    """One file as it was when it was hashed."""

    size: int
    modified: int
    """In nanoseconds."""
    checksum: int
    """Of the content: enough to distinguish an edit from a touch."""


class Snapshot(NamedTuple):
    """The files of one package at one moment."""

    sha256: str
    """Over all files, names included."""
    files: dict[str, Version]
    """By path."""

    def edited(self) -> set[str]:
        """Return the files whose content on the disk has changed since."""
        return {path for path, then in self.files.items() if not _same(path, then)}


def snapshot(home: Path, without: tuple[str, ...] = ()) -> Snapshot:
    """Hash the files of a package (or one module), without the folders ``without`` at its top.

    All files count, not only Python's: a rule may keep its weights beside its code. Caches, hidden
    files, backups of editors and the line ends of Python files do not.
    """
    total, versions = hashlib.sha256(), {}
    top = home.parent if home.is_file() else home
    files = [str(home)] if home.is_file() else sorted(find_files(home, without), key=as_posix)
    for path in files:
        content, version = read_file(path)
        name = as_posix(path[len(str(top)) + 1 :])
        total.update(f"{name}|{len(content)}|".encode())
        total.update(content)
        versions[path] = version
    return Snapshot(total.hexdigest(), versions)


def _program() -> Snapshot | None:
    """Return this package as it is on the disk now, or None where it is not a folder of files."""
    try:
        return snapshot(Path(__file__).resolve().parents[1], SHOWS_ONLY)
    except OSError:
        return None


def _same(path: str, then: Version) -> bool:
    """Return whether a file is unchanged; its content is read only if size or time changed."""
    try:
        about = os.stat(path)  # noqa: PTH116  # see read_file
        known = (about.st_size, about.st_mtime_ns) == (then.size, then.modified)
        return known or read_file(path)[1].checksum == then.checksum
    except OSError:
        return False


def read_file(path: str) -> tuple[bytes, Version]:
    """Return the content of a file, Python's with plain line ends, and its version."""
    # Every process does this a few hundred times at its start: pathlib takes twice as long.
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        about, content = os.fstat(file.fileno()), file.read()
    if path.endswith(".py"):
        content = content.replace(b"\r\n", b"\n")
    return content, Version(about.st_size, about.st_mtime_ns, zlib.crc32(content))


def find_files(home: Path, without: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the files of a package, without the folders ``without`` at its top."""
    for folder, below, names in os.walk(home):
        left_out = without if folder == str(home) else ()
        below[:] = [name for name in below if _counts(name) and name not in left_out]
        for name in names:
            if _counts(name) and not name.endswith((".pyc", ".pyo", "~")):
                yield os.path.join(folder, name)  # noqa: PTH118


def _counts(name: str) -> bool:
    return name != "__pycache__" and not name.startswith(".")


def as_posix(path: str) -> str:
    """Return ``path`` as it is written on every system."""
    return path.replace(os.sep, "/")


PROGRAM = _program()
"""This package as it was when the process imported it."""
