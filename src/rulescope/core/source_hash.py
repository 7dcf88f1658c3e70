"""The version of this package, hashes of source files, and which were edited since."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import zlib
from collections.abc import Iterator
from functools import cache
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
    files = [str(home)] if home.is_file() else sorted(_files(home, without), key=_as_posix)
    for path in files:
        content, version = _read(path)
        name = _as_posix(path[len(str(top)) + 1 :])
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


def home_of(module: str) -> Path:
    """Return the folder of the top-level package of ``module``, or the file of a single module.

    Nothing is imported except namespace packages. (A namespace package, which several
    distributions may share, has no code of its own: the first package below it with code counts.)
    Raises ``ImportError`` with the reason.
    """
    loaded = getattr(sys.modules.get(module), "__file__", None)
    if module == "__main__" and loaded is not None:
        return Path(loaded).resolve()
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        name = ".".join(parts[:depth])
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError) as fault:
            raise ImportError(f"the module {name!r} cannot be found: {fault}") from None
        if spec is None:
            raise ImportError(f"there is no module {name!r}")
        if spec.origin is not None:
            path = Path(spec.origin)
            if not path.is_file():
                raise ImportError(f"{path} is not a file, so its source cannot be pinned")
            return path.parent if spec.submodule_search_locations else path
    raise ImportError(f"{module!r} is a namespace without code")


@cache
def digest(home: Path) -> str:
    """Return one sha256 over the files of another package, or over one module.

    Computed once per process, because the code is imported once too: after an edit, this process
    still runs the code that was hashed.
    """
    return snapshot(home).sha256


def _same(path: str, then: Version) -> bool:
    """Return whether a file is unchanged; its content is read only if size or time changed."""
    try:
        about = os.stat(path)  # noqa: PTH116  # see _read
        known = (about.st_size, about.st_mtime_ns) == (then.size, then.modified)
        return known or _read(path)[1].checksum == then.checksum
    except OSError:
        return False


def _read(path: str) -> tuple[bytes, Version]:
    # Every process does this a few hundred times at its start: pathlib takes twice as long.
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        about, content = os.fstat(file.fileno()), file.read()
    if path.endswith(".py"):
        content = content.replace(b"\r\n", b"\n")
    return content, Version(about.st_size, about.st_mtime_ns, zlib.crc32(content))


def _files(home: Path, without: tuple[str, ...]) -> Iterator[str]:
    for folder, below, names in os.walk(home):
        left_out = without if folder == str(home) else ()
        below[:] = [name for name in below if _counts(name) and name not in left_out]
        for name in names:
            if _counts(name) and not name.endswith((".pyc", ".pyo", "~")):
                yield os.path.join(folder, name)  # noqa: PTH118


def _counts(name: str) -> bool:
    return name != "__pycache__" and not name.startswith(".")


def _as_posix(path: str) -> str:
    return path.replace(os.sep, "/")


PROGRAM = _program()
"""This package as it was when the process imported it."""
