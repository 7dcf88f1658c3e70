"""Records on disk: committed whole or not at all, verified on reading, never overwritten.

    <root>/runs/<id[:2]>/<id>/    manifest.json, log.npz, state.npz
    <root>/checkpoints/<id>.npz   a lifetime in progress
    <root>/quarantine/<id>-<n>/   what failed verification, with reason.txt
    <root>/tmp/                   writes in progress; anything else in here is rubbish

There are no locks. Everything is written under ``tmp``, flushed to the disk, and moved into place
by one rename, which either happens or does not; whoever loses a race finds the winner's record. A
process killed half-way leaves only rubbish in ``tmp``, under a name that nobody will use again.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import logging
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope import arrays
from rulescope.arrays import ArrayFileError, Arrays
from rulescope.errors import RecordError
from rulescope.records import disk
from rulescope.records.record import FILES, DamageError, Record, decode, encode

_log = logging.getLogger(__name__)

_ID = re.compile(r"[0-9a-f]{64}")
_SEAL = "checkpoint-sha256"
"""Name of the extra entry by which a checkpoint vouches for itself."""
_ROUNDS = 8
"""How often a commit may find a damaged record in its place before it gives up."""


class Problem(NamedTuple):
    """One finding of :meth:`Store.verify`; ``id`` is a run id, or the path of a stray entry."""

    id: str
    problem: str


class Quarantined(NamedTuple):
    """What was put aside: of which run, why, and where it is now."""

    id: str
    reason: str
    path: Path


class Store:
    """The records under one folder. The first write creates it; looking never does."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)

    def __contains__(self, run: str) -> bool:
        return disk.is_folder(self._folder(run))

    def require_writable(self) -> None:
        """Raise :class:`RecordError` now rather than after hours, if nothing can be written."""
        with disk.writing(self.root), self._staged("probe"):
            pass

    def ids(self) -> Iterator[str]:
        """Return the ids of all records, sorted."""
        return iter([path.name for path in self._entries() if _is_record(path)])

    def commit(self, record: Record) -> str:
        """Write ``record`` and return its id.

        A record is never overwritten: where one exists, an equal science hash keeps the old one
        and a different one raises :class:`RecordError`.
        """
        files = encode(record)  # which proves that they can be read back
        run = _checked(record.manifest.id)
        with disk.writing(self._folder(run)):
            for _ in range(_ROUNDS):
                if (run in self and self._keeps(record)) or self._settle(run, files):
                    disk.sync(self._folder(run).parent)
                    return run
        raise RecordError(
            f"{self._folder(run)}: a damaged record is in the way and cannot be moved"
        )

    def read(self, run: str) -> Record:
        """Return a verified record; a damaged one is put into quarantine and raises."""
        self._require()
        if run not in self:
            raise RecordError(f"{self.root}: holds no record of run {run}")
        try:
            return self._load(run)
        except DamageError as fault:
            moved = self._quarantine(self._folder(run), run, str(fault))
            raise RecordError(f"{self._folder(run)}: {fault}; {moved}") from None

    def verify(self) -> list[Problem]:
        """Read every record; return what is wrong, having put damaged ones into quarantine."""
        found = []
        for path in self._entries():
            if not _is_record(path):
                found.append(Problem(str(path.relative_to(self.root)), "not a record"))
                continue
            try:
                self.read(path.name)
            except RecordError as fault:
                found.append(Problem(path.name, str(fault)))
        return found

    def quarantined(self) -> list[Quarantined]:
        """Return all that was put aside, sorted by id."""
        self._require()
        return [
            Quarantined(path.name.partition("-")[0], _reason(path), path)
            for path in disk.listed(self.root / "quarantine")
        ]

    def save_checkpoint(self, run: str, state: Arrays) -> None:
        """Write (or replace) the checkpoint of ``run``: named arrays of any shapes."""
        path = self._checkpoint(run)
        if _SEAL in state:
            raise RecordError(f"{path}: the array name {_SEAL!r} is reserved")
        sealed = {**state, _SEAL: np.array(_seal(run, state))}
        try:
            # Not compressed: it is short-lived, and floats hardly shrink for the time it takes.
            content = arrays.pack(sealed, compress=False)
        except ArrayFileError as fault:
            raise RecordError(f"{path}: not a valid checkpoint ({fault})") from None
        with disk.writing(path), self._staged(run) as staged:
            disk.write(staged / path.name, content)
            disk.make(path.parent)
            (staged / path.name).rename(path)
            disk.sync(path.parent)

    def load_checkpoint(self, run: str) -> dict[str, NDArray[Any]] | None:
        """Return the checkpoint of ``run``, or None if there is none that can be trusted.

        A damaged one is put into quarantine with a logged warning: the lifetime starts again.
        """
        path = self._checkpoint(run)
        try:
            state = arrays.read(path)
            seal = state.pop(_SEAL, None)
            if seal is None or str(seal) != _seal(run, state):
                raise ArrayFileError("does not match its own sha256")
        except FileNotFoundError:
            return None
        except OSError as fault:
            _log.warning("%s: checkpoint ignored (%s)", path, fault.strerror)
            return None
        except ArrayFileError as fault:
            moved = self._quarantine(path, run, str(fault))
            _log.warning("%s: checkpoint ignored (%s); %s", path, fault, moved)
            return None
        return state

    def drop_checkpoint(self, run: str) -> None:
        """Remove the checkpoint of ``run``, if there is one."""
        path = self._checkpoint(run)
        with disk.writing(path):
            path.unlink(missing_ok=True)

    # Where things are

    def _folder(self, run: str) -> Path:
        return self.root / "runs" / _checked(run)[:2] / run

    def _checkpoint(self, run: str) -> Path:
        return self.root / "checkpoints" / f"{_checked(run)}.npz"

    def _require(self) -> None:
        if not disk.is_folder(self.root):
            raise RecordError(f"{self.root}: no such store")

    def _entries(self) -> list[Path]:
        """Return what lies where records should be, sorted; see :func:`_is_record`."""
        self._require()
        shards = disk.listed(self.root / "runs")
        return [
            entry
            for shard in shards
            for entry in (disk.listed(shard) if shard.is_dir() else [shard])
        ]

    # How things are done

    def _load(self, run: str) -> Record:
        """Read and check one record, changing nothing."""
        folder = self._folder(run)
        try:
            return decode(run, {name: _content(folder / name) for name in FILES})
        except DamageError:
            raise
        except RecordError as fault:
            raise RecordError(f"{folder}: {fault}") from None

    def _keeps(self, record: Record) -> bool:
        """Tell whether the stored record of this run says the same; a damaged one does not."""
        new, run = record.manifest, record.manifest.id
        try:
            old = self._load(run).manifest
        except DamageError as fault:
            moved = self._quarantine(self._folder(run), run, str(fault))
            _log.warning("%s: %s; %s", self._folder(run), fault, moved)
            return False
        if old.science_hash == new.science_hash:
            return True
        raise RecordError(
            f"{self._folder(run)}: has science hash {old.science_hash}, but the new record of this "
            f"run has {new.science_hash}"
            + _difference(old.source | old.runtime, new.source | new.runtime)
        )

    def _settle(self, run: str, files: Mapping[str, bytes]) -> bool:
        """Write ``files`` and move them into place; False if somebody else was there first."""
        place = self._folder(run)
        with self._staged(run) as staged:
            for name, content in files.items():
                disk.write(staged / name, content)
            disk.sync(staged)
            disk.make(place.parent)
            try:
                staged.rename(place)
            except OSError as fault:
                if fault.errno in (errno.EEXIST, errno.ENOTEMPTY):
                    return False
                raise
        return True

    @contextmanager
    def _staged(self, run: str) -> Iterator[Path]:
        """Lend a fresh folder under ``tmp``, gone afterwards whatever happens."""
        # Not tempfile.mkdtemp: its folders are closed to the group that may share the store.
        folder = self.root / "tmp" / f"{run[:16]}-{uuid.uuid4().hex}"
        disk.make(folder.parent)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)  # a committed one has moved away

    def _quarantine(self, path: Path, run: str, reason: str) -> str:
        """Move a damaged folder or file aside; return what came of it, in words."""
        try:
            folder = self._claim(run)
            try:
                # A folder takes the place of the empty one that was claimed; a file goes into it.
                path.rename(folder if path.is_dir() else folder / path.name)
            except OSError:
                folder.rmdir()
                raise
        except FileNotFoundError:
            return "another process has moved it already"
        except OSError as fault:
            return f"it could not be moved into quarantine ({fault.strerror})"
        with suppress(OSError):  # a full disk must not hide where it went
            (folder / "reason.txt").write_text(f"{reason}\n", encoding="utf-8")
        return f"moved to {folder}"

    def _claim(self, run: str) -> Path:
        """Make and return the first free folder ``quarantine/<run>-<n>``; mkdir is exclusive."""
        disk.make(self.root / "quarantine")
        for n in itertools.count(1):
            folder = self.root / "quarantine" / f"{run}-{n}"
            with suppress(FileExistsError):
                folder.mkdir()
                break
        return folder


def _checked(run: str) -> str:
    """Return ``run`` if it is a run id: nothing else may become part of a path."""
    if not _ID.fullmatch(run):
        raise RecordError(f"{run!r} is not a run id (64 lowercase hexadecimal digits)")
    return run


def _is_record(path: Path) -> bool:
    """Tell whether a path below ``runs`` is where a record of that name belongs."""
    named = _ID.fullmatch(path.name) and path.parent.name == path.name[:2]
    return bool(named) and path.is_dir()


def _reason(folder: Path) -> str:
    try:
        return (folder / "reason.txt").read_text(encoding="utf-8").strip()
    except OSError:
        return "unknown"


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Say in which facts two identities differ: the likely cause of different results."""
    keys = [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
    return f"; they were made with different {', '.join(keys)}" if keys else ""


def _seal(run: str, state: Arrays) -> str:
    """Return the sha256 of a checkpoint's content and of the run that it belongs to."""
    return hashlib.sha256(f"{run}|{arrays.digest(state)}".encode()).hexdigest()


def _content(path: Path) -> bytes:
    """Read a file of a record. One that is gone is damage; a disk that fails may recover."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise DamageError(f"{path.name} is missing") from None
    except OSError as fault:
        raise RecordError(f"{path.name} cannot be read ({fault.strerror})") from None
