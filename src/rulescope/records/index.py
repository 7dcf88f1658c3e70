"""The index of a store: its records as a few Parquet files, so that queries need not open each.

    <root>/index/<version>/<sha256>/    runs.parquet, logs.parquet of some records

The index is derived from the records, which take precedence. A shard is named by the hash of its
content and lists the signature of the files of every record in it; shards that do not match are
rebuilt silently. Deleting the folder costs only time. Shards are never changed, only replaced, so
any number of processes may use and update the index at once; a replaced shard stays for a while,
for processes that still read it.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from rulescope.core import disk
from rulescope.core.errors import RecordError
from rulescope.records import columns, index_shards
from rulescope.records.index_shards import Batch, Shard
from rulescope.records.record import FILES
from rulescope.records.store import Problem, Report, Store

VERSION = 1
"""Incremented by every change of the content or the columns of shards."""
MAX_LOG = 256 << 20
"""The largest log of one record, in bytes after unpacking, that is indexed."""

_MAX_SMALL = 16
"""Small shards that are allowed before they are merged."""
_REPLACED, _GRACE = "worn", 3600.0
"""The file that marks a replaced shard, and the seconds until the shard is removed."""
_GLOB = re.compile(r"[*?\[]")
"""Characters that make a path a pattern for DuckDB."""

Signatures = Mapping[str, str | None]
"""Run id to the signature of every present record (see :func:`signature`)."""


class Index:
    """The index of one store, brought up to date by :meth:`refresh`."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.problems: list[Problem] = []
        """Records that could not be indexed."""
        self._target: Path | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()

    @property
    def folder(self) -> Path:
        """The folder of the shards in the store."""
        return self.store.root.resolve() / "index" / str(VERSION)

    def refresh(self, report: Report | None = None) -> list[Path]:
        """Return the folders of shards that together hold every intact record exactly once."""
        self.problems = []
        present = {run: signature(self.store, run) for run in self.store.ids()}
        # In a read-only store a merged shard could not be kept.
        max_small = len(present) if self.store.read_only else _MAX_SMALL
        kept, replaced = _classify(self._shards(), present, max_small)
        covered = {run for shard in kept for run in shard.records}
        kept += self._merge(replaced, present, covered)
        covered |= {run for shard in kept for run in shard.records}
        folders = [shard.folder for shard in kept]
        folders += self._build([run for run in present if run not in covered], report)
        for shard in replaced:  # only now, when another shard has their records
            if shard.folder not in folders and not self.store.read_only:
                with suppress(OSError):
                    (shard.folder / _REPLACED).touch()
        return folders

    def _shards(self) -> Iterator[Shard]:
        """Yield the intact shards; remove damaged ones, and replaced ones after a while."""
        index = self.folder
        if index.is_symlink() or index.parent.is_symlink():
            raise RecordError(f"{index}: a symbolic link, which a store does not follow")
        if _GLOB.search(str(index)):
            return
        folders = disk.listed(index)
        if not folders:
            return
        with index_shards.shard_connection() as connection:
            for folder in folders:
                age = _age(folder / _REPLACED)
                shard = index_shards.open_shard(connection, folder) if age is None else None
                if shard is not None:
                    yield shard
                elif age is None or age > _GRACE:
                    self._remove(folder)

    def _remove(self, folder: Path) -> None:
        """Remove a folder by one rename; errors are ignored, since a stale shard is harmless."""
        if self.store.read_only:
            return
        with suppress(OSError, RecordError), self.store.temporary_folder("index") as temporary:
            folder.rename(temporary / "gone")

    def _merge(
        self, replaced: Iterable[Shard], present: Signatures, covered: set[str]
    ) -> list[Shard]:
        """Return a shard of the valid records of ``replaced`` that are not ``covered``, if any."""
        seen, parts = set(covered), {}
        for shard in replaced:
            valid = [run for run, signed in shard.records.items() if present.get(run) == signed]
            parts[shard.folder] = [run for run in valid if run not in seen]
            seen.update(valid)
        records = {run: present[run] or "" for valid in parts.values() for run in valid}
        if not records:
            return []
        try:
            with self._new_shard() as temporary:
                index_shards.merge_shards(parts, temporary)
                return [Shard(self._move_into_place(temporary), records)]
        except RecordError:  # e.g. another process has removed a shard: index the records again
            return []

    def _build(self, missing: list[str], report: Report | None) -> Iterator[Path]:
        """Yield the folders of new shards of the records of ``missing``."""
        batch = Batch()
        for done, run in enumerate(missing, start=1):
            try:
                self._add(batch, run)
            except RecordError as fault:
                self.problems.append(Problem(run, str(fault)))
            if batch.full or (done == len(missing) and batch.rows):
                with self._new_shard() as temporary:
                    batch.write(temporary)
                    folder = self._move_into_place(temporary)
                batch = Batch()
                yield folder
            if report is not None:
                report(done, len(missing))

    def _add(self, batch: Batch, run: str) -> None:
        # The signature is taken before the files are read: if they change in between, the next
        # refresh finds another signature and reads them again.
        signed = signature(self.store, run)
        if signed is None:
            self.store.read(run)  # which moves an incomplete record into quarantine, and raises
        logged = self.store.read_log(run, MAX_LOG)
        try:
            batch.add(
                columns.run_row(logged, record_bytes(self.store, run)), logged.log, signed or ""
            )
        except RecordError as fault:
            raise RecordError(f"{self.store.folder(run)}: {fault}") from None

    @contextmanager
    def _new_shard(self) -> Iterator[Path]:
        """Create a temporary folder for a new shard."""
        target = self._writable_folder()
        with disk.writing(target):
            if self._temporary is None:
                with self.store.temporary_folder("index") as folder:
                    yield folder
            else:
                yield Path(tempfile.mkdtemp(dir=target))

    def _move_into_place(self, temporary: Path) -> Path:
        """Move a finished shard to its folder, where another process may have put an equal one."""
        target = self._writable_folder() / index_shards.content_hash(temporary)
        try:
            temporary.rename(target)
        except OSError as fault:
            if fault.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            (target / _REPLACED).unlink(missing_ok=True)
        return target

    def _writable_folder(self) -> Path:
        """Return the folder of the index or, if it cannot be written, a temporary one."""
        if self._target is None:
            try:
                if _GLOB.search(str(self.folder)):
                    raise RecordError("this path is a pattern for DuckDB")
                self.store.require_writable()
                with disk.writing(self.folder):
                    disk.make(self.folder)
                    with suppress(FileExistsError):  # derived data: not for version control
                        disk.write(self.folder.parent / ".gitignore", b"*\n")
                self._target = self.folder
            except RecordError:
                self._temporary = tempfile.TemporaryDirectory(prefix="rulescope-index-")
                self._target = Path(self._temporary.name).resolve()
        return self._target


def _age(path: Path) -> float | None:
    """Return the seconds since a file was changed; None if there is no such file."""
    try:
        return time.time() - path.lstat().st_mtime
    except OSError:
        return None


def signature(store: Store, run: str) -> str | None:
    """Return sizes, change times and inodes of a record's files; None if a file is missing.

    While the signature is equal, so are the files: the change time of an inode cannot be set.
    """
    folder = os.path.join(store.root, "runs", run[:2], run)  # noqa: PTH118 (ten times faster)
    try:
        found = [os.lstat(os.path.join(folder, name)) for name in FILES]  # noqa: PTH118
    except OSError:
        return None
    return "/".join(f"{file.st_size}.{file.st_ctime_ns}.{file.st_ino}" for file in found)


def record_bytes(store: Store, run: str) -> int:
    """Return the bytes of all files of a record."""
    folder = store.folder(run)
    with disk.reading(folder):
        return sum((folder / name).lstat().st_size for name in FILES)


def _classify(
    found: Iterable[Shard], present: Signatures, max_small: int
) -> tuple[list[Shard], list[Shard]]:
    """Return the shards to keep, and those to be replaced by a merged shard.

    At most ``max_small`` of the shards to keep are small.
    """
    kept: list[Shard] = []
    replaced: list[Shard] = []
    covered: set[str] = set()
    for shard in sorted(found, key=lambda shard: -len(shard.records)):
        current = all(present.get(run) == signed for run, signed in shard.records.items())
        if current and covered.isdisjoint(shard.records):
            kept.append(shard)
            covered |= shard.records.keys()
        else:
            replaced.append(shard)
    small = [shard for shard in kept if index_shards.is_small(shard)]
    if len(small) > max_small:
        kept = [shard for shard in kept if shard not in small]
        replaced += small
    return kept, replaced
