"""Records in one file, to be carried from store to store: a zip, tar or tar.gz.

    runs/<id[:2]>/<id>/manifest.json, log.npz, state.npz    for each record
    contents.json                                           the ids of all of them; always last

An archive may come from anybody. Nothing is ever unpacked to a path that it names: members are
read into memory, one record at a time, and must have exactly the names above. All of them are
looked at (names, kinds, sizes) before the first record is let in.
"""

from __future__ import annotations

import gzip
import io
import re
import stat
import tarfile
import uuid
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import msgspec

from rulescope.core import disk
from rulescope.core.errors import RecordError
from rulescope.records.record import FILES, MANIFEST, MAX_MANIFEST
from rulescope.records.store import Problem, Store

CONTENTS = "contents.json"
ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz")
FORMAT = 1

_MEMBER = re.compile(r"runs/([0-9a-f]{2})/(\1[0-9a-f]{62})/(manifest\.json|log\.npz|state\.npz)")
_PIECE = 1 << 20
_TAIL = (1 << 16) + 22 + 20 + 56
"""How far from the end of a zip file that can be which tells where the list of its members is."""
_LISTED = 200
"""Bytes that a member of ours takes in that list, and some to spare."""
_READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Limits(NamedTuple):
    """What an archive may ask for; more is refused before it is read."""

    records: int = 1_000_000
    file: int = 256 << 20
    """Bytes of one file of arrays, as it is in a store."""
    unpacked: int = 512 << 20
    """Bytes to which one file of arrays may unpack."""
    total: int = 1 << 40
    """Bytes of all files together."""
    ratio: int = 100
    """By how much an archive may be smaller than its files, which are compressed already."""


LIMITS = Limits()


class Member(NamedTuple):
    """One file in an archive."""

    name: str
    size: int
    read: Callable[[], bytes]


def is_archive(path: Path) -> bool:
    """Tell whether a file of this name is an archive."""
    return path.name.lower().endswith(ENDINGS)


def write(store: Store, runs: Iterable[str], path: Path) -> tuple[int, list[Problem]]:
    """Write an archive of ``runs``, whole or not at all; return how many it has.

    Every record is verified; what is wrong with those left out is returned too. Equal records
    make equal files.
    """
    if not is_archive(path):
        raise RecordError(f"{path}: the name must end in {', '.join(ENDINGS)}")
    done, problems = [], []
    half = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    with disk.writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with _writer(half, path.name.lower()) as add:
                for run in runs:
                    try:
                        files = store.files(run)
                    except RecordError as fault:
                        problems.append(Problem(run, str(fault)))
                        continue
                    for name in FILES:
                        add(f"runs/{run[:2]}/{run}/{name}", files[name])
                    done.append(run)
                add(CONTENTS, msgspec.json.encode({"format": FORMAT, "records": done}))
            half.replace(path)
        finally:
            half.unlink(missing_ok=True)
    return len(done), problems


def read(path: Path, limits: Limits = LIMITS) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield the files of every record in an archive, none of them verified yet.

    An archive that is damaged, or not one of ours, is refused before the first of them.
    """
    with _explained(path), _opened(path, limits) as members:
        _survey(members, limits)
    # What yields must not stand inside _explained: errors of whoever asks are not the archive's.
    yield from _Records(path, limits)


class _Records:
    """The records of an archive that has been surveyed, one by one."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self._path, self._limits = path, limits

    def __iter__(self) -> Iterator[tuple[str, dict[str, bytes]]]:
        with _opened(self._path, self._limits) as members:
            files: dict[str, bytes] = {}
            while True:
                with _explained(self._path):
                    member = next(members, None)
                    if member is None or member.name == CONTENTS:
                        return
                    _, run, name = _parts(member)
                    files[name] = member.read()
                if len(files) == len(FILES):
                    yield run, files
                    files = {}


def _survey(members: Iterator[Member], limits: Limits) -> None:
    """Look at every member, and raise unless it is a whole archive of ours."""
    seen: dict[str, int] = {}
    total, last, listed = 0, "", None
    for member in members:
        if listed is not None:
            raise RecordError(f"{member.name!r} comes after {CONTENTS}")
        if member.name == CONTENTS:
            _check_size(member, 100 * limits.records)
            listed = _contents(member.read())
            continue
        _, run, name = _parts(member)
        # The files of a record stand together, in one order: nothing need be held for later.
        if FILES.index(name) != seen.get(run, 0) or (run in seen and run != last):
            raise RecordError(f"{member.name!r} is there twice, or out of order")
        _check_size(member, MAX_MANIFEST if name == MANIFEST else limits.file)
        seen[run], last = seen.get(run, 0) + 1, run
        total += member.size
        if total > limits.total or len(seen) > limits.records:
            raise RecordError(f"holds more than {limits.records:,} records, or is too large")
    if listed is None or sorted(listed) != sorted(seen) or set(seen.values()) - {len(FILES)}:
        raise RecordError("is not whole: what it holds is not what it lists")


def _parts(member: Member) -> tuple[str, str, str]:
    found = _MEMBER.fullmatch(member.name)
    if found is None:
        raise RecordError(f"{member.name[:200]!r} has no place in an archive of records")
    return found[1], found[2], found[3]


def _check_size(member: Member, limit: int) -> None:
    if not 0 <= member.size <= limit:
        raise RecordError(f"{member.name!r} has {member.size:,} bytes, more than {limit:,}")


class _Contents(msgspec.Struct):
    format: int
    records: list[str]


def _contents(content: bytes) -> list[str]:
    try:
        said = msgspec.json.decode(content, type=_Contents)
    except (msgspec.MsgspecError, ValueError, RecursionError) as fault:
        raise RecordError(f"{CONTENTS}: {fault}") from None
    if said.format != FORMAT:
        raise RecordError(f"archive format {said.format}; this version reads {FORMAT}")
    return said.records


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn all that can go wrong with an archive into an error that names it."""
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
        # As with npz files: a flipped bit can make these libraries raise nearly anything.
        raise RecordError(f"{path}: damaged ({fault})") from None


# The two kinds of archive


@contextmanager
def _opened(path: Path, limits: Limits) -> Iterator[Iterator[Member]]:
    """Lend the members of an archive, of either kind."""
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
                raise RecordError(f"{info.filename!r} is compressed or locked in a foreign way")
            if info.file_size > max(_PIECE, limits.ratio * info.compress_size):
                raise RecordError(f"{info.filename!r} would grow more than {limits.ratio} times")
            yield Member(info.filename, info.file_size, lambda info=info: archive.read(info))  # type: ignore[misc]


_FILE = (0, stat.S_IFREG)


def _check_entries(file: IO[bytes], limit: int) -> None:
    """Raise if the list of a zip file's members is so long that it would take up the memory."""
    end = file.seek(0, io.SEEK_END)
    file.seek(max(0, end - _TAIL))
    tail = file.read()
    place = tail.rfind(b"PK\5\6")
    claimed = int.from_bytes(tail[place + 12 : place + 16], "little") if place >= 0 else 0
    large = place - 20 - 56  # where the same is said of large files, if it is
    if large >= 0 and tail[large : large + 4] == b"PK\6\6":
        claimed = max(claimed % 0xFFFFFFFF, int.from_bytes(tail[large + 40 : large + 48], "little"))
    if min(claimed, end) > _LISTED * limit:
        raise RecordError(f"holds more than {limit:,} members")


class _Forward:
    """A stream that only goes forward, in small steps, and not further than it may.

    That is what makes tarfile safe: it believes the sizes that headers claim, reads as much at
    once, and would go back and forth for ever if one of them were negative.
    """

    def __init__(self, stream: Any, packed: IO[bytes], limits: Limits) -> None:
        self._stream, self._packed, self._limits = stream, packed, limits
        self._furthest = 0

    def tell(self) -> int:
        return int(self._stream.tell())

    def read(self, size: int) -> bytes:
        if not 0 <= size <= _PIECE:
            raise RecordError(f"a header claims {size:,} bytes")
        content: bytes = self._stream.read(size)
        self._check(self.tell())
        return content

    def seek(self, place: int) -> None:
        # One step back, to prove that there is something to come, is tarfile's habit.
        if place < self._furthest - 1:
            raise RecordError("a header leads backwards")
        while self.tell() < place and self.read(min(_PIECE, place - self.tell())):
            pass
        if self.tell() != place:
            self._stream.seek(place)

    def _check(self, place: int) -> None:
        self._furthest = max(self._furthest, place)
        allowed = self._limits.ratio * self._packed.tell() + _PIECE
        if place > min(allowed, self._limits.total):
            raise RecordError(f"would grow more than {self._limits.ratio} times, or is too large")


def _tar_members(stream: _Forward) -> Iterator[Member]:
    with tarfile.open(fileobj=stream, mode="r:") as archive:  # type: ignore[call-overload]
        while (member := archive.next()) is not None:
            archive.members.clear()  # it would remember them all
            if not member.isreg() or member.issparse():
                raise RecordError(f"{member.name!r} is not a plain file")
            yield Member(member.name, member.size, lambda: _tar_content(archive, member))


def _tar_content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None  # as it is a plain file
    content = bytearray()
    while piece := file.read(_PIECE):
        content += piece
    return bytes(content)


class _Add(Protocol):
    def __call__(self, name: str, content: bytes) -> None: ...


@contextmanager
def _writer(path: Path, name: str) -> Iterator[_Add]:
    """Lend a function that adds a member to a new archive; ``name`` decides about its kind."""
    if name.endswith(".zip"):
        with zipfile.ZipFile(path, "x") as archive:

            def add_zip(name: str, content: bytes) -> None:
                info = zipfile.ZipInfo(name)  # of 1980, like all of them
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
