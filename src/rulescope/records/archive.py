"""Archives: records in one zip, tar or tar.gz file, to be copied between stores.

    runs/<id[:2]>/<id>/manifest.json, log.npz, state.npz    for each record
    contents.json                                           the ids of all records; always last

Archives are untrusted. No member is ever unpacked to a path that the archive names:
members are read into memory, one record at a time, and must have exactly the names above. The
names, types and sizes of all members are checked before the first record is read.
"""

from __future__ import annotations

import gzip
import io
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import msgspec

from rulescope.core.errors import RecordError
from rulescope.records.record import FILES, MANIFEST, MAX_MANIFEST
from rulescope.records.store import Problem, Store, read_each
from rulescope.records.store_layout import replacing

CONTENTS = "contents.json"
ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz")
FORMAT = 1

_MEMBER = re.compile(r"runs/([0-9a-f]{2})/(\1[0-9a-f]{62})/(manifest\.json|log\.npz|state\.npz)")
_CHUNK = 1 << 20
"""Bytes read at once."""
_TAIL = (1 << 16) + 22 + 20 + 56
"""The largest distance of the record that locates the member list from the end of a zip file."""
_ENTRY = 200
"""An upper bound of the bytes that a member takes in that list."""
_READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Limits(NamedTuple):
    """Limits of an archive; anything larger is refused before it is read."""

    records: int = 1_000_000
    file: int = 256 << 20
    """Bytes of one array file, compressed as in a store."""
    unpacked: int = 512 << 20
    """Bytes of one array file after unpacking."""
    total: int = 1 << 40
    """Bytes of all files together."""
    ratio: int = 100
    """The largest compression ratio of an archive, whose array files are compressed already."""


LIMITS = Limits()


class Member(NamedTuple):
    """One file in an archive."""

    name: str
    size: int
    read: Callable[[], bytes]


def is_archive(path: Path) -> bool:
    """Return whether a file of this name is an archive."""
    return path.name.lower().endswith(ENDINGS)


def write(store: Store, runs: Iterable[str], path: Path) -> tuple[int, list[Problem]]:
    """Write an archive of ``runs``, whole or not at all; return the number of records in it.

    Every record is verified; the problems of those left out are returned too. Equal records give
    equal files.
    """
    if not is_archive(path):
        raise RecordError(f"{path}: the name must end in {', '.join(ENDINGS)}")
    done: list[str] = []
    problems: list[Problem] = []
    with replacing(path) as partial, _writer(partial, path.name.lower()) as add:
        for run, files in read_each(runs, store.files, problems):
            for name in FILES:
                add(f"runs/{run[:2]}/{run}/{name}", files[name])
            done.append(run)
        add(CONTENTS, msgspec.json.encode({"format": FORMAT, "records": done}))
    return len(done), problems


def read(path: Path, limits: Limits = LIMITS) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield the id and the files of every record in an archive, not verified yet.

    A damaged or foreign archive is refused before the first record.
    """
    with _naming(path), _opened(path, limits) as members:
        _check_members(members, limits)
    with _opened(path, limits) as members:
        files: dict[str, bytes] = {}
        while True:
            with _naming(path):
                member = next(members, None)
                if member is None or member.name == CONTENTS:
                    return
                run, name = _parse_name(member)
                files[name] = member.read()
            if len(files) == len(FILES):
                yield run, files  # outside _naming: errors of the caller are not the archive's
                files = {}


def _check_members(members: Iterator[Member], limits: Limits) -> None:
    """Raise unless the members are a complete archive of records."""
    seen: dict[str, int] = {}  # run id to the number of its files so far
    total, last, listed = 0, "", None
    for member in members:
        if listed is not None:
            raise RecordError(f"{member.name!r} comes after {CONTENTS}")
        if member.name == CONTENTS:
            _check_size(member, 100 * limits.records)
            listed = _parse_contents(member.read())
            continue
        run, name = _parse_name(member)
        # The files of a record are adjacent and ordered, so that one record is held at a time.
        if FILES.index(name) != seen.get(run, 0) or (run in seen and run != last):
            raise RecordError(f"{member.name!r} occurs twice, or out of order")
        _check_size(member, MAX_MANIFEST if name == MANIFEST else limits.file)
        seen[run], last = seen.get(run, 0) + 1, run
        total += member.size
        if total > limits.total or len(seen) > limits.records:
            raise RecordError(f"holds more than {limits.records:,} records, or is too large")
    if listed is None or sorted(listed) != sorted(seen) or set(seen.values()) - {len(FILES)}:
        raise RecordError("is not whole: its members differ from its list of records")


def _parse_name(member: Member) -> tuple[str, str]:
    """Return the run and the file of a member."""
    found = _MEMBER.fullmatch(member.name)
    if found is None:
        raise RecordError(f"{member.name[:200]!r} has no place in an archive of records")
    return found[2], found[3]


def _check_size(member: Member, limit: int) -> None:
    if not 0 <= member.size <= limit:
        raise RecordError(f"{member.name!r} has {member.size:,} bytes, more than {limit:,}")


class _Contents(msgspec.Struct):
    format: int
    records: list[str]


def _parse_contents(content: bytes) -> list[str]:
    try:
        contents = msgspec.json.decode(content, type=_Contents)
    except (msgspec.MsgspecError, ValueError, RecursionError) as fault:
        raise RecordError(f"{CONTENTS}: {fault}") from None
    if contents.format != FORMAT:
        raise RecordError(f"archive format {contents.format}; this version reads {FORMAT}")
    return contents.records


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn every error of reading an archive into a :class:`RecordError` that names it."""
    try:
        yield
    except RecordError as fault:
        raise RecordError(f"{path}: refused: {fault}") from None
    except OSError as fault:
        if fault.errno is not None:
            raise RecordError(f"{path}: cannot be read ({fault.strerror})") from None
        raise RecordError(f"{path}: damaged ({fault})") from None
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError) as fault:
        raise RecordError(f"{path}: damaged ({fault})") from None
    except (ValueError, OverflowError, RuntimeError, NotImplementedError) as fault:
        # A flipped bit can make these libraries raise nearly anything.
        raise RecordError(f"{path}: damaged ({fault})") from None


# The two formats


@contextmanager
def _opened(path: Path, limits: Limits) -> Iterator[Iterator[Member]]:
    """Open an archive of either format; yield its members."""
    name = path.name.lower()
    if not is_archive(path):
        raise RecordError(f"not a store, and the name does not end in {', '.join(ENDINGS)}")
    with path.open("rb") as file:
        if name.endswith(".zip"):
            yield _zip_members(file, limits)
        else:
            stream = file if name.endswith(".tar") else gzip.GzipFile(fileobj=file)
            yield _tar_members(_Forward(stream, file, limits))


def _zip_members(file: IO[bytes], limits: Limits) -> Iterator[Member]:
    _check_entries(file, 3 * limits.records + 1)
    with zipfile.ZipFile(file) as archive:
        packed = sum(info.compress_size for info in archive.infolist())
        if packed > file.seek(0, io.SEEK_END):
            raise RecordError("its members overlap")
        for info in archive.infolist():
            mode = info.external_attr >> 16
            if info.filename != info.orig_filename or (mode and stat.S_IFMT(mode) not in _FILE):
                raise RecordError(f"{info.orig_filename!r} is not a plain file")
            if info.compress_type not in _READABLE or info.flag_bits & 1:
                raise RecordError(f"{info.filename!r} is encrypted, or of an unknown compression")
            if info.file_size > max(_CHUNK, limits.ratio * info.compress_size):
                raise RecordError(f"{info.filename!r} would grow more than {limits.ratio} times")
            yield Member(info.filename, info.file_size, lambda info=info: archive.read(info))  # type: ignore[misc]


_FILE = (0, stat.S_IFREG)


def _check_entries(file: IO[bytes], limit: int) -> None:
    """Raise if the list of a zip file's members is too long to be read into memory."""
    end = file.seek(0, io.SEEK_END)
    file.seek(max(0, end - _TAIL))
    tail = file.read()
    place = tail.rfind(b"PK\5\6")
    claimed = int.from_bytes(tail[place + 12 : place + 16], "little") if place >= 0 else 0
    large = place - 20 - 56  # the same record of a zip64 file, if it is one
    if large >= 0 and tail[large : large + 4] == b"PK\6\6":
        claimed = max(claimed % 0xFFFFFFFF, int.from_bytes(tail[large + 40 : large + 48], "little"))
    if min(claimed, end) > _ENTRY * limit:
        raise RecordError(f"holds more than {limit:,} members")


class _Forward:
    """A stream that only moves forward, in small steps, and within the limits.

    This makes tarfile safe: it trusts the sizes in headers, reads that much at once, and would
    loop for ever if one of them were negative.
    """

    def __init__(self, stream: Any, packed: IO[bytes], limits: Limits) -> None:
        self._stream, self._packed, self._limits = stream, packed, limits
        self._furthest = 0

    def tell(self) -> int:
        return int(self._stream.tell())

    def read(self, size: int) -> bytes:
        if not 0 <= size <= _CHUNK:
            raise RecordError(f"a header claims {size:,} bytes")
        content: bytes = self._stream.read(size)
        self._check(self.tell())
        return content

    def seek(self, place: int) -> None:
        # tarfile goes one byte back to check that the file is long enough.
        if place < self._furthest - 1:
            raise RecordError("a header leads backwards")
        while self.tell() < place and self.read(min(_CHUNK, place - self.tell())):
            pass
        if self.tell() != place:
            self._stream.seek(place)

    def _check(self, place: int) -> None:
        self._furthest = max(self._furthest, place)
        allowed = self._limits.ratio * self._packed.tell() + _CHUNK
        if place > min(allowed, self._limits.total):
            raise RecordError(f"would grow more than {self._limits.ratio} times, or is too large")


def _tar_members(stream: _Forward) -> Iterator[Member]:
    with tarfile.open(fileobj=stream, mode="r:") as archive:  # type: ignore[call-overload]
        while (member := archive.next()) is not None:
            archive.members.clear()  # tarfile would keep them all
            if not member.isreg() or member.issparse():
                raise RecordError(f"{member.name!r} is not a plain file")
            yield Member(member.name, member.size, lambda: _tar_content(archive, member))


def _tar_content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None  # since it is a plain file
    content = bytearray()
    while chunk := file.read(_CHUNK):
        content += chunk
    return bytes(content)


class _Add(Protocol):
    def __call__(self, name: str, content: bytes) -> None: ...


@contextmanager
def _writer(path: Path, name: str) -> Iterator[_Add]:
    """Create an archive in the format of ``name``; yield a function that adds a member."""
    if name.endswith(".zip"):
        with zipfile.ZipFile(path, "x") as archive:

            def add_zip(name: str, content: bytes) -> None:
                info = zipfile.ZipInfo(name)  # with the fixed date 1980-01-01
                info.external_attr = (stat.S_IFREG | 0o644) << 16
                packed = zipfile.ZIP_STORED if name.endswith(".npz") else zipfile.ZIP_DEFLATED
                archive.writestr(info, content, packed)

            yield add_zip
        return
    with path.open("xb") as raw:
        packer = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if name.endswith("gz") else raw
        with (
            packer as file,
            tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as tar,
        ):

            def add_tar(name: str, content: bytes) -> None:
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))

            yield add_tar
