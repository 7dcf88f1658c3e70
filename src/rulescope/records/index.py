"""An index of a store: its records as a few Parquet files, so that a query need not open each.

    <root>/index/<version>/<sha256>/    runs.parquet, logs.parquet: some records, whole

The index is derived and never believed over the records. A shard is named by the hash of its
content, and lists for every record the state of the files that it was made from; what does not
match is made again, without a word. Deleting the folder costs time and nothing else. Shards are
never changed, only replaced, so any number of processes may use and renew them at once; what has
been replaced stays for a while, for those who are still reading it.
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
"""Raised by every change of what shards hold or how their columns are made."""
MAX_LOG = 256 << 20
"""Bytes to which the log of one record may unpack to be indexed."""

_SMALL = 16
"""How many shards may be less than full before they are joined."""
_WORN, _GRACE = "worn", 3600.0
"""The mark of a shard that has been replaced, and how many seconds after it the shard may go."""
_GLOB = re.compile(r"[*?\[]")
"""In a path, DuckDB would take these for a pattern."""

Live = Mapping[str, str | None]
"""The signature of every record that there is."""


class Index:
    """The index of one store, brought up to date by :meth:`refresh`."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.problems: list[Problem] = []
        """Records that are not in the index, and why."""
        self._where: Path | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()

    @property
    def home(self) -> Path:
        """Where the shards of a store are that can be written."""
        return self.store.root.resolve() / "index" / str(VERSION)

    def refresh(self, report: Report | None = None) -> list[Path]:
        """Return the folders of shards that together hold every sound record exactly once."""
        self.problems = []
        live = {run: signature(self.store, run) for run in self.store.ids()}
        most = len(live) if self.store.read_only else _SMALL  # what is joined could not be kept
        kept, worn = _sorted_out(self._shards(), live, most)
        covered = {run for shard in kept for run in shard.records}
        kept += self._joined(worn, live, covered)
        covered |= {run for shard in kept for run in shard.records}
        folders = [shard.folder for shard in kept]
        folders += self._made([run for run in live if run not in covered], report)
        for shard in worn:  # only now, when something else holds what they held
            if shard.folder not in folders and not self.store.read_only:
                with suppress(OSError):
                    (shard.folder / _WORN).touch()
        return folders

    def _shards(self) -> Iterator[Shard]:
        """Yield the shards that are what they were when they were written; remove the others."""
        home = self.home
        if home.is_symlink() or home.parent.is_symlink():
            raise RecordError(f"{home}: a symbolic link, which a store does not follow")
        if _GLOB.search(str(home)):
            return
        folders = disk.listed(home)
        if not folders:
            return
        with index_shards.workshop() as connection:
            for folder in folders:
                marked = _age(folder / _WORN)
                shard = index_shards.opened(connection, folder) if marked is None else None
                if shard is not None:
                    yield shard
                elif marked is None or marked > _GRACE:
                    self._remove(folder)

    def _remove(self, folder: Path) -> None:
        """Take a folder away in one step, if that is possible; what stays does no harm."""
        if self.store.read_only:
            return
        with suppress(OSError, RecordError), self.store.staging("index") as staged:
            folder.rename(staged / "gone")

    def _joined(self, worn: Iterable[Shard], live: Live, covered: set[str]) -> list[Shard]:
        """Return a shard of all that is good in ``worn`` and not ``covered``, if anything is."""
        seen, parts = set(covered), {}
        for shard in worn:
            good = [run for run, seal in shard.records.items() if live.get(run) == seal]
            parts[shard.folder] = [run for run in good if run not in seen]
            seen.update(good)
        records = {run: live[run] or "" for good in parts.values() for run in good}
        if not records:
            return []
        try:
            with self._staged() as staged:
                index_shards.join(parts, staged)
                return [Shard(self._settled(staged), records)]
        except RecordError:  # such as a shard that another process has replaced: read them again
            return []

    def _made(self, missing: list[str], report: Report | None) -> Iterator[Path]:
        """Yield the folders of shards made from the records of ``missing``."""
        batch = Batch()
        for done, run in enumerate(missing, start=1):
            try:
                self._add(batch, run)
            except RecordError as fault:
                self.problems.append(Problem(run, str(fault)))
            if batch.full or (done == len(missing) and batch.rows):
                with self._staged() as staged:
                    batch.write(staged)
                    folder = self._settled(staged)
                batch = Batch()
                yield folder
            if report is not None:
                report(done, len(missing))

    def _add(self, batch: Batch, run: str) -> None:
        # Looked up before the files are read: if they change in between, the next look at them
        # finds a difference and reads them again.
        seal = signature(self.store, run)
        if seal is None:
            self.store.read(run)  # which knows what to do with what is not whole
        logged = self.store.read_log(run, MAX_LOG)
        try:
            batch.add(columns.run_row(logged, size(self.store, run)), logged.log, seal or "")
        except RecordError as fault:
            raise RecordError(f"{self.store.folder(run)}: {fault}") from None

    # Where new shards go

    @contextmanager
    def _staged(self) -> Iterator[Path]:
        place = self._place()
        with disk.writing(place):
            if self._temporary is None:
                with self.store.staging("index") as folder:
                    yield folder
            else:
                yield Path(tempfile.mkdtemp(dir=place))

    def _settled(self, staged: Path) -> Path:
        """Move a finished shard to its place; another process may have put the same there."""
        target = self._place() / index_shards.seal(staged)
        try:
            staged.rename(target)
        except OSError as fault:
            if fault.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            (target / _WORN).unlink(missing_ok=True)
        return target

    def _place(self) -> Path:
        """Return the home of the index or, if it cannot be there, a folder that will be gone."""
        if self._where is None:
            try:
                if _GLOB.search(str(self.home)):
                    raise RecordError("DuckDB would take this path for a pattern")
                self.store.require_writable()
                with disk.writing(self.home):
                    disk.make(self.home)
                    with suppress(FileExistsError):  # derived, so it belongs into no repository
                        disk.write(self.home.parent / ".gitignore", b"*\n")
                self._where = self.home
            except RecordError:
                self._temporary = tempfile.TemporaryDirectory(prefix="rulescope-index-")
                self._where = Path(self._temporary.name).resolve()
        return self._where


def _age(path: Path) -> float | None:
    """Return how many seconds ago a file was made; None if there is none."""
    try:
        return time.time() - path.lstat().st_mtime
    except OSError:
        return None


def signature(store: Store, run: str) -> str | None:
    """Return the state of a record's files: while it is the same, so are they; None if any lacks.

    The time of the last change of an inode is kept by the system and cannot be set back.
    """
    folder = os.path.join(store.root, "runs", run[:2], run)  # noqa: PTH118 (ten times faster)
    try:
        found = [os.lstat(os.path.join(folder, name)) for name in FILES]  # noqa: PTH118
    except OSError:
        return None
    return "/".join(f"{file.st_size}.{file.st_ctime_ns}.{file.st_ino}" for file in found)


def size(store: Store, run: str) -> int:
    """Return how many bytes the files of a record have."""
    folder = store.folder(run)
    with disk.reading(folder):
        return sum((folder / name).lstat().st_size for name in FILES)


def _sorted_out(found: Iterable[Shard], live: Live, most: int) -> tuple[list[Shard], list[Shard]]:
    """Return the shards that can stay, and those to be replaced by what is good in them.

    No more than ``most`` of those that stay are small.
    """
    kept: list[Shard] = []
    worn: list[Shard] = []
    covered: set[str] = set()
    for shard in sorted(found, key=lambda shard: -len(shard.records)):
        current = all(live.get(run) == seal for run, seal in shard.records.items())
        if current and covered.isdisjoint(shard.records):
            kept.append(shard)
            covered |= shard.records.keys()
        else:
            worn.append(shard)
    small = [shard for shard in kept if index_shards.is_small(shard)]
    if len(small) > most:
        kept = [shard for shard in kept if shard not in small]
        worn += small
    return kept, worn
