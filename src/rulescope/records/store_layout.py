"""Names and files in a store that may come from anybody: what counts as a record, and what not."""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rulescope.core import arrays
from rulescope.core.errors import PassingError, RecordError
from rulescope.records.record import MANIFEST, MAX_MANIFEST, DamageError

ID = re.compile(r"[0-9a-f]{64}")
PREFIX = re.compile(r"[0-9a-f]{1,64}")
REASON = "reason.txt"
_REASONABLE = 10_000
_NOTE = 16 << 20


def checked(run: str) -> str:
    """Return ``run`` if it is a run id: nothing else may become part of a path."""
    if not ID.fullmatch(run):
        raise RecordError(f"{run!r} is not a run id (64 lowercase hexadecimal digits)")
    return run


def is_real_folder(path: Path) -> bool:
    """Tell whether ``path`` is a folder itself, and not a way to one elsewhere."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def is_record(path: Path) -> bool:
    """Tell whether a path below ``runs`` is where a record of that name belongs."""
    named = ID.fullmatch(path.name) and path.parent.name == path.name[:2]
    return bool(named) and is_real_folder(path)


def size_limit(name: str) -> int:
    """Return how many bytes the file ``name`` of a record may have."""
    return MAX_MANIFEST if name == MANIFEST else arrays.MAX_BYTES


def content(path: Path) -> bytes:
    """Read a file of a record. One that is gone is damage; a disk that fails may recover.

    Only a regular file of its own and of a possible size is read: a symbolic link may lead
    anywhere, and a pipe would never end.
    """
    try:
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode):
            kind = "a symbolic link" if stat.S_ISLNK(about.st_mode) else "no regular file"
            raise RecordError(f"{path.name} is {kind}, and is not read")
        if about.st_size > size_limit(path.name):
            raise RecordError(f"{path.name} is too large ({about.st_size:,} bytes)")
        return path.read_bytes()
    except FileNotFoundError:
        raise DamageError(f"{path.name} is missing") from None
    except OSError as fault:
        raise PassingError(f"{path.name} cannot be read ({fault.strerror})") from None


def note(path: Path) -> bytes | None:
    """Return what a file for people says, which no result depends on; None if nothing sensible."""
    try:
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode) or about.st_size > _NOTE:
            return None
        return path.read_bytes()
    except OSError:
        return None


def reason(folder: Path) -> str:
    """Return why something was put into quarantine."""
    said = note(folder / REASON)
    return "unknown" if said is None else said[:_REASONABLE].decode("utf-8", "replace").strip()


def give_reason(folder: Path, text: str) -> None:
    """Write down why something was put into quarantine."""
    path = folder / REASON
    path.unlink(missing_ok=True)  # what was put aside may have brought one, which may be a link
    with path.open("xb") as file:
        file.write(f"{text}\n".encode("utf-8", "replace"))


def different(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the facts in which two identities differ, sorted.

    What only one of them knows is no difference: older versions recorded less. The same source by
    its sha256 is the same program, whatever its commit is called. How many threads other packages
    started differs between a command and a worker of one machine, and excuses nothing.
    """
    shared = (old.keys() & new.keys()) - {"native_threads"}
    keys = [key for key in sorted(shared) if old[key] != new[key]]
    sha256 = old.get("sha256")
    if sha256 is not None and sha256 == new.get("sha256"):
        keys = [key for key in keys if key not in ("commit", "dirty")]
    return ["source" if key == "sha256" else key for key in keys]


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Say in which facts two identities differ: the likely cause of different results."""
    keys = different(old, new)
    return f"; they were made with different {', '.join(keys)}" if keys else ""
