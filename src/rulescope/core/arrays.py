"""Named arrays: comparison, prefixes of names, digests, and npz files.

A file may come from an untrusted source. Nothing in it is ever executed, and the memory that it
needs is known before any of it is unpacked.
"""

from __future__ import annotations

import hashlib
import io
import math
import stat
import struct
import zipfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
"""Arrays by name."""

MAX_BYTES = 2 << 30
"""Largest unpacked size of a file; larger ones are refused before they are read."""
MAX_ENTRIES = 1 << 16
"""Largest number of arrays in a file: a table of contents costs memory too."""

_KINDS = "biufU"
"""Booleans, integers, floats and text: types that can be read back without running code."""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Other compression methods may allocate gigabytes before the first byte is read."""
_ENTRY = b"PK\x01\x02"
"""First bytes of every entry in a zip file's table of contents."""
_CHUNK = 1 << 20


class ArrayFileError(ValueError):
    """A file that is not a plain npz of numeric arrays; the message says why, without the path."""


class TooLargeError(ArrayFileError):
    """A file that may be intact, but exceeds the limit on its size."""


def pack(arrays: Arrays, *, compress: bool = True) -> bytes:
    """Return ``arrays`` as an npz; equal arrays give equal bytes, whatever their memory layout.

    Arrays that :func:`unpack` refuses are refused here too, so every written file can be read.
    """
    buffer = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    # Not numpy.savez: it pickles objects silently and cannot hold an array named "file".
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name in sorted(arrays):
            array = np.asarray(arrays[name], order="C")
            _check_name(name)
            _check_type(name, array.dtype)
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
            _check_size(archive, MAX_BYTES)
    return buffer.getvalue()


def unpack(content: bytes, max_bytes: int | None = None) -> dict[str, NDArray[Any]]:
    """Read a npz without unpickling; anything but plain arrays is an :class:`ArrayFileError`.

    Never takes more memory than ``max_bytes`` (default: ``MAX_BYTES``), whatever the file claims.
    """
    if content.count(_ENTRY) > MAX_ENTRIES:
        raise TooLargeError(f"holds more than {MAX_ENTRIES:,} entries")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_size(archive, MAX_BYTES if max_bytes is None else max_bytes)
            return _entries(archive)
    except ArrayFileError:
        raise
    except zipfile.BadZipFile:
        raise ArrayFileError("not an npz archive, or truncated") from None
    except Exception as fault:
        # One flipped bit can make zipfile and numpy raise nearly anything: an unknown method, a
        # missing password, a header that is not Python. All are the same fault to the caller.
        raise ArrayFileError(str(fault) or type(fault).__name__) from None


def read(path: Path, max_bytes: int | None = None) -> dict[str, NDArray[Any]]:
    """Read the npz file at ``path`` (see :func:`unpack`)."""
    return unpack(content(path, max_bytes), max_bytes)


def content(path: Path, max_bytes: int | None = None) -> bytes:
    """Return the bytes of a regular file of at most ``max_bytes``."""
    limit = MAX_BYTES if max_bytes is None else max_bytes
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise ArrayFileError("not a regular file")
    if about.st_size > limit:
        raise TooLargeError(f"has {about.st_size:,} bytes, more than {limit:,}")
    return path.read_bytes()


def digest(arrays: Arrays) -> str:
    """Return one sha256 over names, types, shapes and values, whatever the order of ``arrays``."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])  # not ascontiguousarray: it makes a scalar a vector
        total.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def bit_equal(one: Arrays, other: Arrays) -> bool:
    """Return whether two sets of arrays have the same names, shapes and bits."""
    return set(one) == set(other) and all(
        array.shape == other[name].shape and array.tobytes() == other[name].tobytes()
        for name, array in one.items()
    )


def prefix_names(parts: Mapping[str, Arrays]) -> dict[str, NDArray[Any]]:
    """Return the arrays of all ``parts``, named ``part/name``; :func:`unprefix` is the inverse."""
    return {f"{part}/{name}": a for part, arrays in parts.items() for name, a in arrays.items()}


def unprefix(prefix: str, arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Return the arrays named ``prefix/...``, without the prefix."""
    start = f"{prefix}/"
    return {
        key.removeprefix(start): value for key, value in arrays.items() if key.startswith(start)
    }


def _entries(archive: zipfile.ZipFile) -> dict[str, NDArray[Any]]:
    found: dict[str, NDArray[Any]] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        _check_name(name)
        if name == info.filename:
            raise ArrayFileError(f"entry {name!r} is not a numeric array")
        if name in found:
            raise ArrayFileError(f"entry {name!r} occurs twice")
        if info.compress_type not in _METHODS:
            raise ArrayFileError(f"entry {name!r} has an unsupported compression method")
        with archive.open(info) as entry:
            found[name] = _array(name, entry, info.file_size)
    return found


def _array(name: str, entry: IO[bytes], size: int) -> NDArray[Any]:
    """Read one array from an entry that claims to unpack to ``size`` bytes."""
    # Not numpy.load: it allocates the shape in the header before it has read the data.
    start = entry.read(8)
    width = {1: "<H", 2: "<I"}.get(start[6] if len(start) == 8 else 0)
    if width is None or not start.startswith(b"\x93NUMPY"):
        raise ArrayFileError(f"entry {name!r} is not a numeric array (no magic)")
    field = entry.read(struct.calcsize(width))
    [length] = struct.unpack(width, field)
    header = entry.read(min(length, size))
    shape, fortran, dtype = _header(start[6], field + header)
    _check_type(name, dtype)
    bytes_ = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or len(start + field + header) + bytes_ != size:
        raise ArrayFileError(f"entry {name!r} does not have the size that its shape {shape} needs")
    memory = bytearray(bytes_)
    view, filled = memoryview(memory), 0
    while piece := entry.read(_CHUNK):  # the last, empty one is where zipfile checks the CRC
        view[filled : filled + len(piece)] = piece
        filled += len(piece)
    return np.ndarray(shape, dtype, memory, order="F" if fortran else "C")


@lru_cache(maxsize=256)
def _header(version: int, content: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Parse the header of an array, cached: most headers of a record are equal; parsing is slow."""
    parse = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
    return parse[version](io.BytesIO(content))  # numpy refuses headers that are too long


def _check_size(archive: zipfile.ZipFile, max_bytes: int) -> None:
    """Raise if the entries of ``archive`` would unpack to more than ``max_bytes``."""
    total = sum(entry.file_size for entry in archive.infolist())
    if total > max_bytes:
        raise TooLargeError(f"unpacks to {total:,} bytes, more than {max_bytes:,}")


def _check_name(name: str) -> None:
    if not name or not name.isprintable():
        raise ArrayFileError(f"{name!r} is not a name for an array")


def _check_type(name: str, dtype: np.dtype[Any]) -> None:
    """Raise unless arrays of ``dtype`` are of numbers or text."""
    if dtype.hasobject:
        raise ArrayFileError(f"entry {name!r} holds pickled objects: not a numeric array")
    if dtype.kind not in _KINDS or dtype.itemsize == 0:
        raise ArrayFileError(f"entry {name!r} is not a numeric array")
