"""Records on disk: committed whole or not at all, verified on reading, never overwritten.

    <root>/runs/<id[:2]>/<id>/    manifest.json, log.npz, state.npz
    <root>/checkpoints/<id>.npz   a lifetime in progress
    <root>/quarantine/<id>-<n>/   what failed verification, with reason.txt
    <root>/index/                 made from the records for queries; safe to delete
    <root>/tmp/                   writes in progress; anything else in here is rubbish
    <root>/plans/<sha256>.json    the assay and budget of a campaign
    <root>/campaigns/, failures/  what the engine says of campaigns that run and runs that failed

There are no locks. Everything is written under ``tmp``, flushed to the disk, and moved into place
by one rename, which either happens or does not; whoever loses a race finds the winner's record. A
process killed half-way leaves only rubbish in ``tmp``, under a name that nobody will use again.
The root may be a symbolic link; one below it is refused, so that nothing outside is ever touched.
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
from rulescope.records import checkpoint, quarantine, staging, store_layout
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
    encode,
)
from rulescope.records.store_layout import checked

_log = logging.getLogger(__name__)

T = TypeVar("T")
Report = Callable[[int, int], None]
"""Told how many records have been read, of how many."""
_ROUNDS = 8
"""How often a commit may find a damaged record in its place before it gives up."""


class ConflictError(RecordError):
    """Two results of one run; the one in the store stays."""


class CheckpointError(RecordError):
    """A checkpoint that is there, but cannot be gone on from."""


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
    """The records under one folder. The first write creates it; looking never does.

    A store that is opened ``read_only`` is not changed: damage is reported and left where it is,
    and whatever would write raises.
    """

    def __init__(self, root: Path, *, read_only: bool = False) -> None:
        self.root = Path(root)
        self.read_only = read_only

    def __contains__(self, run: str) -> bool:
        return disk.is_folder(self.folder(run))

    def folder(self, run: str) -> Path:
        """Return where the record of ``run`` is, or would be."""
        return self.inside("runs", checked(run)[:2], run)

    def require_writable(self) -> None:
        """Raise :class:`RecordError` now rather than after hours, if nothing can be written."""
        disk.require_possible(self.root)
        with disk.writing(self.root), self.staging("probe"):
            pass

    def ids(self) -> Iterator[str]:
        """Return the ids of all records, sorted."""
        return iter([path.name for path in self._entries() if store_layout.is_record(path)])

    def find(self, prefix: str) -> str:
        """Return the id of the one record whose id begins with ``prefix``."""
        self._require()
        if not store_layout.PREFIX.fullmatch(prefix):
            raise RecordError(f"{prefix!r} is not the beginning of a run id, such as 1cced3")
        shards = disk.listed(self.inside("runs"))
        near = [shard for shard in shards if shard.name.startswith(prefix[:2])]
        entries = (
            entry
            for shard in near
            if store_layout.is_real_folder(shard)
            for entry in disk.listed(shard)
        )
        found = [
            path.name
            for path in entries
            if path.name.startswith(prefix) and store_layout.is_record(path)
        ]
        if len(found) == 1:
            return found[0]
        if not found:
            raise RecordError(f"{self.root}: holds no record of run {prefix}")
        some = ", ".join(run[: len(prefix) + 6] for run in found[:5])
        raise RecordError(f"{prefix}: {len(found)} records begin so, such as {some}")

    def commit(self, record: Record) -> str:
        """Write ``record`` and return its id.

        A record is never overwritten: where one exists, an equal science hash keeps the old one
        and a different one raises :class:`RecordError`.
        """
        self._bring(record.manifest, encode(record))  # which proves that they can be read back
        return record.manifest.id

    def adopt(self, run: str, files: Mapping[str, bytes], max_bytes: int | None = None) -> bool:
        """Verify the files of a record made elsewhere and keep them to the bit, as ``commit`` does.

        Tell whether it is new here. What does not verify raises and leaves no trace.
        """
        only = {name: files[name] for name in FILES}
        return self._bring(decode(checked(run), only, max_bytes).manifest, only)

    def read(self, run: str) -> Record:
        """Return a verified record; a damaged one is put into quarantine and raises."""
        with self._aside(run):
            return self._understood(run, lambda: decode(run, self._contents(run, FILES)))

    def read_log(self, run: str, max_bytes: int | None = None) -> Logged:
        """Return a record without its state, neither read nor verified; else as :meth:`read`."""
        with self._aside(run):
            return self._understood(
                run, lambda: decode_log(run, self._contents(run, (MANIFEST, LOG)), max_bytes)
            )

    def manifest(self, run: str) -> Manifest:
        """Return a manifest, not looking at the arrays; else as :meth:`read`."""
        with self._aside(run):
            return self._understood(
                run, lambda: decode_manifest(run, self._contents(run, (MANIFEST,))[MANIFEST])
            )

    def files(self, run: str, max_bytes: int | None = None) -> dict[str, bytes]:
        """Return the files of a record as they are, verified, and leave even a damaged one alone.

        Damage raises :class:`RecordError`, like everything that is wrong with it, and like a file
        that unpacks to more than ``max_bytes``.
        """
        self._present(run)
        contents = self._contents(run, FILES)
        decode(run, contents, max_bytes)
        return contents

    def delete(self, run: str) -> None:
        """Remove the record of ``run``: gone in one step, then its files are given back."""
        self._present(run)
        place = self.folder(run)
        with disk.writing(place), self.staging(run) as staged:
            place.rename(staged / run)
            disk.sync(place.parent)

    def verify(self, report: Report | None = None) -> list[Problem]:
        """Read every record; return what is wrong, having put damaged ones into quarantine."""
        found, entries = [], self._entries()
        for done, path in enumerate(entries):
            if report is not None:
                report(done, len(entries))
            if not store_layout.is_record(path):
                what = (
                    "a symbolic link, which is not followed"
                    if path.is_symlink()
                    else "not a record"
                )
                found.append(Problem(str(path.relative_to(self.root)), what))
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
            Quarantined(path.name.partition("-")[0], store_layout.reason(path), path)
            for path in disk.listed(self.root / "quarantine")
        ]

    def save_checkpoint(self, run: str, state: Arrays) -> None:
        """Write (or replace) the checkpoint of ``run``: named arrays of any shapes."""
        path = self._checkpoint(run)
        try:
            content = checkpoint.encode(run, state)
        except ArrayFileError as fault:
            raise RecordError(f"{path}: not a valid checkpoint ({fault})") from None
        with disk.writing(path), self.staging(run) as staged:
            disk.write(staged / path.name, content)
            disk.make(path.parent)
            (staged / path.name).rename(path)
            disk.sync(path.parent)

    def read_checkpoint(self, run: str) -> dict[str, NDArray[Any]] | None:
        """Return the checkpoint of ``run``, or None if there is none.

        A damaged one is put into quarantine and raises :class:`CheckpointError`.
        """
        path = self._checkpoint(run)
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
        """Return the checkpoint of ``run``, or None if there is none that can be trusted.

        Else as :meth:`read_checkpoint`, but only with a logged warning: the lifetime starts again.
        """
        try:
            return self.read_checkpoint(run)
        except CheckpointError as fault:
            _log.warning("checkpoint ignored: %s", fault)
            return None

    def drop_checkpoint(self, run: str) -> None:
        """Remove the checkpoint of ``run``, if there is one."""
        path = self._checkpoint(run)
        self._require_open()
        with disk.writing(path):
            path.unlink(missing_ok=True)

    # Where things are

    def _checkpoint(self, run: str) -> Path:
        return self.inside("checkpoints") / f"{checked(run)}.npz"

    def inside(self, *parts: str) -> Path:
        """Return a path below the root, no folder of which may be a symbolic link."""
        path = self.root
        for part in parts:
            path = path / part
            with disk.reading(path):
                if path.is_symlink():
                    raise RecordError(f"{path}: a symbolic link, which a store does not follow")
        return path

    def _require_open(self) -> None:
        """Raise unless this store may be written to."""
        if self.read_only:
            raise RecordError(f"{self.root}: was opened to be read only, and is not written to")

    def _require(self) -> None:
        if not disk.is_folder(self.root):
            raise RecordError(f"{self.root}: no such store")

    def _entries(self) -> list[Path]:
        """Return what lies where records should be, sorted; see :func:`layout.is_record`."""
        self._require()
        return [
            entry
            for shard in disk.listed(self.inside("runs"))
            for entry in (disk.listed(shard) if store_layout.is_real_folder(shard) else [shard])
        ]

    def _present(self, run: str) -> None:
        self._require()
        if run not in self:
            raise RecordError(f"{self.root}: holds no record of run {run}")

    # How things are done

    def _contents(self, run: str, names: Iterable[str]) -> dict[str, bytes]:
        folder = self.folder(run)
        return {name: store_layout.content(folder / name) for name in names}

    def _understood(self, run: str, read: Callable[[], T]) -> T:
        """Return what ``read`` does; what it cannot understand, but is whole, names the place."""
        try:
            return read()
        except DamageError:
            raise
        except RecordError as fault:
            raise type(fault)(f"{self.folder(run)}: {fault}") from None

    @contextmanager
    def _aside(self, run: str) -> Iterator[None]:
        """Put the record of ``run`` into quarantine if it turns out to be damaged, and raise."""
        self._present(run)
        try:
            yield
        except DamageError as fault:
            moved = self._quarantine(self.folder(run), run, str(fault))
            # The run can be made anew now.
            raise PassingError(f"{self.folder(run)}: {fault}; {moved}") from None

    def _bring(self, manifest: Manifest, files: Mapping[str, bytes]) -> bool:
        """Write a record unless the same is there; tell whether it was written."""
        run = checked(manifest.id)
        with disk.writing(self.folder(run)):
            for _ in range(_ROUNDS):
                there = run in self and self._keeps(manifest, files)
                if there or self._settle(run, files):
                    disk.sync(self.folder(run).parent)
                    return not there
        raise RecordError(f"{self.folder(run)}: a damaged record is in the way and cannot be moved")

    def _keeps(self, new: Manifest, files: Mapping[str, bytes]) -> bool:
        """Tell whether the stored record of this run says the same; a damaged one does not."""
        run = new.id
        try:
            held = self._understood(run, lambda: decode(run, self._contents(run, FILES)))
        except DamageError as fault:
            moved = self._quarantine(self.folder(run), run, str(fault))
            _log.warning("%s: %s; %s", self.folder(run), fault, moved)
            return False
        old = held.manifest
        if old.science_hash == new.science_hash or agree(held, decode(run, files)):
            return True
        raise ConflictError(
            f"{self.folder(run)}: has science hash {old.science_hash}, but the new record of this "
            f"run has {new.science_hash}"
            + store_layout.difference(old.source | old.runtime, new.source | new.runtime)
        )

    def _settle(self, run: str, files: Mapping[str, bytes]) -> bool:
        """Write ``files`` and move them into place; False if somebody else was there first."""
        place = self.folder(run)
        with self.staging(run) as staged:
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
    def staging(self, run: str) -> Iterator[Path]:
        """Lend a fresh folder under ``tmp``, gone afterwards whatever happens."""
        self._require_open()
        # Not tempfile.mkdtemp: its folders are closed to the group that may share the store.
        folder = self.inside("tmp") / staging.name(run[:16])
        disk.make(folder.parent)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)  # a committed one has moved away

    def _quarantine(self, path: Path, run: str, reason: str) -> str:
        """Move a damaged folder or file aside; return what came of it, in words."""
        if self.read_only:
            return "left there; `rulescope verify` moves it into quarantine"
        try:
            place = self.inside("quarantine")
        except RecordError as fault:
            return f"it could not be moved into quarantine ({fault})"
        return quarantine.aside(path, place, run, reason, lambda moved: _is_sound(run, moved))


def _is_sound(run: str, folder: Path) -> bool:
    """Tell whether ``folder`` holds the whole record of ``run``."""
    try:
        decode(run, {name: store_layout.content(folder / name) for name in FILES})
    except RecordError:
        return False
    return True
