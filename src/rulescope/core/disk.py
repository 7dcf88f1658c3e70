"""Files and folders: durable writes, writes in one step, and errors that name the path."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from rulescope.core.errors import PassingError, RecordError

T = TypeVar("T")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn failures to read into a :class:`PassingError` that names ``path``."""
    try:
        yield
    except OSError as fault:
        raise PassingError(f"{path}: cannot be read ({fault.strerror or fault})") from fault


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn failures to write into a :class:`PassingError` that names ``path``."""
    try:
        yield
    except OSError as fault:
        raise PassingError(f"{path}: cannot be written ({fault.strerror or fault})") from fault


def read_json(path: Path, kind: type[T], what: str) -> T:
    """Return the JSON at ``path`` as a ``kind``; ``what`` describes it in the error message."""
    with reading(path):
        content = path.read_bytes()
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.MsgspecError as fault:
        raise RecordError(f"{path}: not {what} ({fault})") from None


def as_json(data: msgspec.Struct | dict[str, Any]) -> bytes:
    """Return ``data`` as indented JSON; :func:`read_json` is the inverse."""
    return msgspec.json.format(msgspec.json.encode(data), indent=1) + b"\n"


def is_folder(path: Path) -> bool:
    """Return whether ``path`` is a folder; a lack of permission is an error."""
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
    """Write a new file and flush it to the disk."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def make(folder: Path) -> None:
    """Make ``folder`` and its parents, each flushed to the disk before the next."""
    if folder.is_dir():
        return
    make(folder.parent)
    with suppress(FileExistsError):  # another process may be doing the same
        folder.mkdir()
    sync(folder.parent)


def sync(folder: Path) -> None:
    """Flush the names in ``folder`` to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as fault:
        # Some network file systems cannot sync a folder and report that.
        if fault.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def require_possible(path: Path) -> None:
    """Raise the error that writing at or below ``path`` would raise, as far as it is foreseeable.

    Nothing is made or written. ``path`` may be a folder, or not exist yet.
    """
    place = path.absolute()
    while not os.path.lexists(place):
        place = place.parent
    with writing(path):
        if not place.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"{place} is not a folder")
        if os.statvfs(place).f_flag & os.ST_RDONLY:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        if not os.access(place, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, f"no permission to write in {place}")


def stem(label: str) -> str:
    """Return the file name of a label, without its ending: ``tab:e1-all`` is ``tab-e1-all``."""
    return "".join(mark if mark.isalnum() or mark in "-_." else "-" for mark in label)


def require_writable(folder: Path) -> None:
    """Make ``folder`` if it is missing; raise an error that names it if it cannot be written."""
    require_possible(folder)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass


def write_whole(path: Path, content: bytes) -> Path:
    """Write ``content`` to ``path`` in one step, so that no reader sees half of it."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            temporary.chmod(0o666 & ~_umask())  # mkstemp makes files for the owner alone
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    return path


def _umask() -> int:
    """Return the umask of this process (it can be read only by setting it)."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
