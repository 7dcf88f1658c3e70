"""Names and files of a store: run ids, record folders, temporary folders, and safe reading.

A store may contain foreign files, so a name must match exactly and only regular files are
read: a symbolic link may lead anywhere, and reading a pipe would never end.
"""

from __future__ import annotations

import os
import platform
import re
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rulescope.core import arrays, disk
from rulescope.core.errors import PassingError, RecordError
from rulescope.records.record import MANIFEST, MAX_MANIFEST, DamageError

ID = re.compile(r"[0-9a-f]{64}")
PREFIX = re.compile(r"[0-9a-f]{1,64}")
QUIET_SECONDS = 60.0
"""Age at which a temporary folder of a crashed process of this machine is abandoned."""
ABANDONED_SECONDS = 24 * 3600.0
"""Age without a change at which any temporary folder is abandoned."""

_MAX_OPTIONAL = 16 << 20
_TEMPORARY = re.compile(r".*-(?P<host>[0-9a-z]+)-(?P<pid>\d+)-[0-9a-f]{32}")


def check_id(run: str) -> str:
    """Return ``run`` if it is a run id: nothing else may become part of a path."""
    if not ID.fullmatch(run):
        raise RecordError(f"{run!r} is not a run id (64 lowercase hexadecimal digits)")
    return run


def is_real_folder(path: Path) -> bool:
    """Return whether ``path`` is a folder itself, not a link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def is_record(path: Path) -> bool:
    """Return whether ``path`` is a folder ``<id[:2]>/<id>``."""
    named = ID.fullmatch(path.name) and path.parent.name == path.name[:2]
    return bool(named) and is_real_folder(path)


def read_file(path: Path) -> bytes:
    """Return the content of a file of a record.

    A missing file is a :class:`DamageError`; a file that cannot be read is a
    :class:`PassingError`, since a disk may recover.
    """
    try:
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode):
            kind = "a symbolic link" if stat.S_ISLNK(about.st_mode) else "not a regular file"
            raise RecordError(f"{path.name} is {kind}, and is not read")
        if about.st_size > (MAX_MANIFEST if path.name == MANIFEST else arrays.MAX_BYTES):
            raise RecordError(f"{path.name} is too large ({about.st_size:,} bytes)")
        return path.read_bytes()
    except FileNotFoundError:
        raise DamageError(f"{path.name} is missing") from None
    except OSError as fault:
        raise PassingError(f"{path.name} cannot be read ({fault.strerror})") from None


def read_optional(path: Path) -> bytes | None:
    """Return the content of a file that no result depends on; None if it cannot be read."""
    try:
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode) or about.st_size > _MAX_OPTIONAL:
            return None
        return path.read_bytes()
    except OSError:
        return None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``, which replaces ``path`` unless an error is raised."""
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    with disk.writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield partial
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


# Temporary folders: their names show which process writes, and so which ones are abandoned.


def temporary_name(purpose: str) -> str:
    """Return a unique name ``<purpose>-<host>-<pid>-<random>``."""
    return f"{purpose}-{_host()}-{os.getpid()}-{uuid.uuid4().hex}"


def is_abandoned(path: Path) -> bool:
    """Return whether no process writes to the temporary folder ``path`` any more."""
    try:
        age = time.time() - _last_change(path)
    except OSError:
        return False  # removed meanwhile, or not readable for us
    name = _TEMPORARY.fullmatch(path.name)
    if name and name["host"] == _host() and not process_exists(int(name["pid"])):
        return age >= QUIET_SECONDS
    return age >= ABANDONED_SECONDS


def _last_change(path: Path) -> float:
    """Return when ``path``, or any entry directly in it, was last changed."""
    inside = path.iterdir() if path.is_dir() and not path.is_symlink() else ()
    return max(float(each.lstat().st_mtime) for each in (path, *inside))


def _host() -> str:
    """Return the name of this machine in letters and digits."""
    return re.sub("[^0-9a-z]", "", platform.node().lower())[:32] or "host"


def process_exists(pid: int) -> bool:
    """Return whether a process with this id runs on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass  # it exists, but belongs to another user
    return True
