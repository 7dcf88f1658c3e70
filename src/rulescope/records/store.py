"""A store: records on disk, committed whole or not at all, verified on reading, never overwritten.

    <root>/runs/<id[:2]>/<id>/    manifest.json, log.npz, state.npz
    <root>/checkpoints/<id>.npz   runs in progress (and states that they share: <key>-<n>.npz)
    <root>/quarantine/<id>-<n>/   what failed verification, with reason.txt
    <root>/index/                 derived from the records for queries; safe to delete
    <root>/tmp/                   writes in progress, and those of crashed processes
    <root>/plans/<sha256>.json    assay and budget of a campaign
    <root>/campaigns/, failures/  status of running campaigns, and causes of failed runs

There are no locks. Everything is written under ``tmp``, flushed to the disk, and moved into place
by one rename, which is atomic; the loser of a race finds the winner's record. A process killed
half-way leaves only a folder in ``tmp``, whose name is never used again. The root may be a symbolic
link; links below it are refused, so that nothing outside is ever changed.
"""

from __future__ import annotations

import errno
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from numpy.typing import NDArray

from rulescope.core import disk
from rulescope.core.arrays import ArrayFileError, Arrays
from rulescope.core.errors import PassingError, RecordError
from rulescope.records import checkpoint, quarantine, store_layout
from rulescope.records.quarantine import Quarantined
from rulescope.records.record import (
    FILES,
    LOG,
    MANIFEST,
    DamageError,
    Logged,
    Manifest,
    Record,
    agree,
    decode,
    decode_log,
    decode_manifest,
    differing_facts,
    encode,
)
from rulescope.records.store_layout import check_id

_log = logging.getLogger(__name__)

T = TypeVar("T")
Report = Callable[[int, int], None]
"""Called with the number of records read, and the total."""
_ROUNDS = 8
"""How often a commit may find a damaged record in its place before it fails."""


class ConflictError(RecordError):
    """Two different results of one run; the one in the store stays."""


class CheckpointError(RecordError):
    """A checkpoint that exists but cannot be resumed from."""


class Problem(NamedTuple):
    """One finding of :meth:`Store.verify`; ``id`` is a run id, or the path of a foreign entry."""

    id: str
    problem: str


class Store:
    """The records under one folder, which the first write creates.

    A store opened ``read_only`` is not changed: damage is reported and left where it is, and
    writing raises :class:`RecordError`.
    """

    def __init__(self, root: Path, *, read_only: bool = False) -> None:
        self.root = Path(root)
        self.read_only = read_only

    def __contains__(self, run: str) -> bool:
        return disk.is_folder(self.folder(run))

    def folder(self, run: str) -> Path:
        """Return the folder of the record of ``run``, which need not exist."""
        return self.inside("runs", check_id(run)[:2], run)

    def require_writable(self) -> None:
        """Raise :class:`RecordError` if nothing can be written, before hours of work."""
        disk.require_possible(self.root)
        with disk.writing(self.root), self.temporary_folder("probe"):
            pass

    def ids(self) -> Iterator[str]:
        """Return the ids of all records, sorted."""
        return iter([path.name for path in self._entries() if store_layout.is_record(path)])

    def find(self, prefix: str) -> str:
        """Return the id of the one record whose id begins with ``prefix``."""
        self._require_exists()
        if not store_layout.PREFIX.fullmatch(prefix):
            raise RecordError(f"{prefix!r} is not the beginning of a run id, such as 1cced3")
        shards = disk.listed(self.inside("runs"))
        found = [
            entry.name
            for shard in shards
            if shard.name.startswith(prefix[:2]) and store_layout.is_real_folder(shard)
            for entry in disk.listed(shard)
            if entry.name.startswith(prefix) and store_layout.is_record(entry)
        ]
        if len(found) == 1:
            return found[0]
        if not found:
            raise RecordError(f"{self.root}: holds no record of run {prefix}")
        some = ", ".join(run[: len(prefix) + 6] for run in found[:5])
        raise RecordError(f"{prefix}: {len(found)} records begin with this, such as {some}")

    # Records

    def commit(self, record: Record) -> str:
        """Write ``record`` and return its id.

        A record is never overwritten: if there is one with an equal science hash, it stays; one
        with a different science hash raises :class:`ConflictError`.
        """
        self._commit(record.manifest, encode(record))
        return record.manifest.id

    def commit_files(
        self, run: str, files: Mapping[str, bytes], max_bytes: int | None = None
    ) -> bool:
        """Verify the files of a record made elsewhere and commit them unchanged.

        Return whether the record is new here. Invalid files raise :class:`RecordError` and leave
        nothing behind.
        """
        only = {name: files[name] for name in FILES}
        return self._commit(decode(check_id(run), only, max_bytes).manifest, only)

    def read(self, run: str) -> Record:
        """Return a verified record; a damaged one is moved into quarantine and raises."""
        return self._read(run, FILES, lambda files: decode(run, files))

    def read_log(self, run: str, max_bytes: int | None = None) -> Logged:
        """Return a record without its state, which is not verified; else as :meth:`read`."""
        return self._read(run, (MANIFEST, LOG), lambda files: decode_log(run, files, max_bytes))

    def manifest(self, run: str) -> Manifest:
        """Return a manifest without reading the arrays; else as :meth:`read`."""
        return self._read(run, (MANIFEST,), lambda files: decode_manifest(run, files[MANIFEST]))

    def files(self, run: str, max_bytes: int | None = None) -> dict[str, bytes]:
        """Return the verified files of a record by name; a damaged record is not moved.

        Damage raises :class:`RecordError`, as does a file that unpacks to more than ``max_bytes``.
        """
        self._require_record(run)
        files = self._read_files(run, FILES)
        decode(run, files, max_bytes)
        return files

    def delete(self, run: str) -> None:
        """Remove the record of ``run``: first the whole record by one rename, then its files."""
        self._require_record(run)
        folder = self.folder(run)
        with disk.writing(folder), self.temporary_folder(run) as temporary:
            folder.rename(temporary / run)
            disk.sync(folder.parent)

    def verify(self, report: Report | None = None) -> list[Problem]:
        """Read every record; return all problems; damaged records are moved into quarantine."""
        found, entries = [], self._entries()
        for done, path in enumerate(entries):
            if report is not None:
                report(done, len(entries))
            if not store_layout.is_record(path):
                link = path.is_symlink()
                problem = "a symbolic link, which is not followed" if link else "not a record"
                found.append(Problem(str(path.relative_to(self.root)), problem))
                continue
            try:
                self.read(path.name)
            except RecordError as fault:
                found.append(Problem(path.name, str(fault)))
        return found

    def quarantined(self) -> list[Quarantined]:
        """Return all entries in quarantine, sorted by id."""
        self._require_exists()
        return quarantine.entries(self.root / quarantine.FOLDER)

    # Checkpoints

    def save_checkpoint(self, run: str, state: Arrays) -> None:
        """Write (or replace) the checkpoint of ``run``: named arrays of any shapes."""
        path = self._checkpoint_path(run)
        try:
            content = checkpoint.encode(run, state)
        except ArrayFileError as fault:
            raise RecordError(f"{path}: not a valid checkpoint ({fault})") from None
        self.replace_file(path, content)

    def read_checkpoint(self, run: str) -> dict[str, NDArray[Any]] | None:
        """Return the checkpoint of ``run``, or None if there is none.

        A damaged one is moved into quarantine and raises :class:`CheckpointError`.
        """
        path = self._checkpoint_path(run)
        try:
            return checkpoint.read(run, path)
        except FileNotFoundError:
            return None
        except OSError as fault:
            raise CheckpointError(f"{path}: cannot be read ({fault.strerror})") from None
        except ArrayFileError as fault:
            moved = self._quarantine(path, run, str(fault))
            raise CheckpointError(f"{path}: damaged ({fault}); {moved}") from None

    def load_checkpoint(self, run: str) -> dict[str, NDArray[Any]] | None:
        """Return the checkpoint of ``run``, or None if there is none or it is damaged.

        As :meth:`read_checkpoint`, but with a logged warning instead of an error: the run starts
        again.
        """
        try:
            return self.read_checkpoint(run)
        except CheckpointError as fault:
            _log.warning("checkpoint ignored: %s", fault)
            return None

    def drop_checkpoint(self, run: str) -> None:
        """Remove the checkpoint of ``run``, if there is one."""
        path = self._checkpoint_path(run)
        self._require_not_read_only()
        with disk.writing(path):
            path.unlink(missing_ok=True)

    def _checkpoint_path(self, run: str) -> Path:
        return self.inside("checkpoints") / f"{check_id(run)}.npz"

    # Paths and files

    def inside(self, *parts: str) -> Path:
        """Return a path below the root, after checking that no folder of it is a symbolic link."""
        path = self.root
        for part in parts:
            path = path / part
            with disk.reading(path):
                if path.is_symlink():
                    raise RecordError(f"{path}: a symbolic link, which a store does not follow")
        return path

    def replace_file(self, path: Path, content: bytes) -> None:
        """Write a file of the store anew, whole or not at all."""
        with disk.writing(path), self.temporary_folder(path.stem) as temporary:
            disk.write(temporary / path.name, content)
            disk.make(path.parent)
            (temporary / path.name).rename(path)
            disk.sync(path.parent)

    @contextmanager
    def temporary_folder(self, purpose: str) -> Iterator[Path]:
        """Create a folder under ``tmp`` and remove it at the end."""
        self._require_not_read_only()
        # Not tempfile.mkdtemp: its folders are closed to a group that shares the store.
        folder = self.inside("tmp") / store_layout.temporary_name(purpose[:16])
        disk.make(folder.parent)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)  # a committed one has been moved

    def _entries(self) -> list[Path]:
        """Return all entries at the places of records, sorted; not all need be records."""
        self._require_exists()
        return [
            entry
            for shard in disk.listed(self.inside("runs"))
            for entry in (disk.listed(shard) if store_layout.is_real_folder(shard) else [shard])
        ]

    def _require_not_read_only(self) -> None:
        if self.read_only:
            raise RecordError(f"{self.root}: was opened read only and cannot be written")

    def _require_exists(self) -> None:
        if not disk.is_folder(self.root):
            raise RecordError(f"{self.root}: no such store")

    def _require_record(self, run: str) -> None:
        self._require_exists()
        if run not in self:
            raise RecordError(f"{self.root}: holds no record of run {run}")

    # Reading and committing

    def _read_files(self, run: str, names: Iterable[str]) -> dict[str, bytes]:
        folder = self.folder(run)
        return {name: store_layout.read_file(folder / name) for name in names}

    def _decode(
        self, run: str, names: Iterable[str], decoder: Callable[[dict[str, bytes]], T]
    ) -> T:
        """Return what ``decoder`` makes of some files; errors other than damage name the folder."""
        try:
            return decoder(self._read_files(run, names))
        except DamageError:
            raise
        except RecordError as fault:
            raise type(fault)(f"{self.folder(run)}: {fault}") from None

    def _read(self, run: str, names: Iterable[str], decoder: Callable[[dict[str, bytes]], T]) -> T:
        """Return what ``decoder`` makes of some files; move a damaged record into quarantine."""
        self._require_record(run)
        try:
            return self._decode(run, names, decoder)
        except DamageError as fault:
            moved = self._quarantine(self.folder(run), run, str(fault))
            # Passing, since the run can be repeated now.
            raise PassingError(f"{self.folder(run)}: {fault}; {moved}") from None

    def _commit(self, manifest: Manifest, files: Mapping[str, bytes]) -> bool:
        """Write a record unless an equal one is there; return whether it was written."""
        run = check_id(manifest.id)
        with disk.writing(self.folder(run)):
            for _ in range(_ROUNDS):
                present = run in self and self._holds_equal(manifest, files)
                if present or self._write_record(run, files):
                    disk.sync(self.folder(run).parent)
                    return not present
        raise RecordError(f"{self.folder(run)}: a damaged record is in the way and cannot be moved")

    def _holds_equal(self, new: Manifest, files: Mapping[str, bytes]) -> bool:
        """Return whether the stored record of this run agrees; False if it is damaged."""
        run = new.id
        try:
            stored = self._decode(run, FILES, lambda files: decode(run, files))
        except DamageError as fault:
            moved = self._quarantine(self.folder(run), run, str(fault))
            _log.warning("%s: %s; %s", self.folder(run), fault, moved)
            return False
        old = stored.manifest
        if old.science_hash == new.science_hash or agree(stored, decode(run, files)):
            return True
        facts = differing_facts(old.source | old.runtime, new.source | new.runtime)
        likely = f"; they were made with different {', '.join(facts)}" if facts else ""
        raise ConflictError(
            f"{self.folder(run)}: has science hash {old.science_hash}, but the new record of this "
            f"run has {new.science_hash}{likely}"
        )

    def _write_record(self, run: str, files: Mapping[str, bytes]) -> bool:
        """Write ``files`` and move them into place; return False if a record is there already."""
        folder = self.folder(run)
        with self.temporary_folder(run) as temporary:
            for name, content in files.items():
                disk.write(temporary / name, content)
            disk.sync(temporary)
            disk.make(folder.parent)
            try:
                temporary.rename(folder)
            except OSError as fault:
                if fault.errno in (errno.EEXIST, errno.ENOTEMPTY):
                    return False
                raise
        return True

    def _quarantine(self, path: Path, run: str, reason: str) -> str:
        """Move a damaged folder or file into quarantine; return a message that says where to."""
        if self.read_only:
            return "left there; `rulescope verify` moves it into quarantine"
        try:
            folder = self.inside(quarantine.FOLDER)
        except RecordError as fault:
            return f"it could not be moved into quarantine ({fault})"
        return quarantine.move(path, folder, run, reason, lambda moved: _is_intact(run, moved))


def _is_intact(run: str, folder: Path) -> bool:
    """Return whether ``folder`` holds the whole record of ``run``."""
    try:
        decode(run, {name: store_layout.read_file(folder / name) for name in FILES})
    except RecordError:
        return False
    return True


def read_each(
    runs: Iterable[str], read: Callable[[str], T], problems: list[Problem]
) -> Iterator[tuple[str, T]]:
    """Yield every run with what ``read`` returns; runs that raise are added to ``problems``."""
    for run in runs:
        try:
            found = read(run)
        except RecordError as fault:
            problems.append(Problem(run, str(fault)))
        else:
            yield run, found
