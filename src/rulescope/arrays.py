"""Named arrays on disk: the one place where npz files are read, written and digested."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]

MAX_BYTES = 2 << 30
"""No file of ours unpacks to more than this; larger ones are refused before they are read."""

_KINDS = "biufU"
"""Booleans, integers, floats and text: what can be read back without running any code."""


class ArrayFileError(ValueError):
    """A file that is not a plain npz of numeric arrays; the message says why, without the path."""


def pack(arrays: Arrays, *, compress: bool = True) -> bytes:
    """Return ``arrays`` as an npz; equal arrays give equal bytes, whatever their memory layout.

    What :func:`unpack` would refuse is refused here too, so nothing unreadable is ever written.
    """
    buffer = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    # Not numpy.savez: it pickles objects without a word and cannot hold an array named "file".
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name in sorted(arrays):
            if not name or not name.isprintable():
                raise ArrayFileError(f"{name!r} is not a name for an array")
            array = _plain(name, np.asarray(arrays[name], order="C"))
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
            _check_size(archive, MAX_BYTES)
    return buffer.getvalue()


def unpack(content: bytes, max_bytes: int = MAX_BYTES) -> dict[str, NDArray[Any]]:
    """Read a npz without unpickling; anything but plain arrays is an :class:`ArrayFileError`."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_size(archive, max_bytes)
        with np.load(io.BytesIO(content), allow_pickle=False) as entries:
            return {name: _plain(name, entries[name]) for name in entries.files}
    except ArrayFileError:
        raise
    except zipfile.BadZipFile:
        raise ArrayFileError("not an npz archive, or truncated") from None
    except Exception as fault:
        # One flipped bit can make zipfile and numpy raise nearly anything: an unknown method, a
        # missing password, a header that asks for a petabyte. To the caller it is all one thing.
        reason = "holds pickled objects" if "allow_pickle" in str(fault) else str(fault)
        raise ArrayFileError(reason or type(fault).__name__) from None


def read(path: Path, max_bytes: int = MAX_BYTES) -> dict[str, NDArray[Any]]:
    """Read the npz file at ``path`` (see :func:`unpack`)."""
    return unpack(path.read_bytes(), max_bytes)


def digest(arrays: Arrays) -> str:
    """Return one sha256 over names, types, shapes and values, whatever the order of ``arrays``."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])  # not ascontiguousarray: it makes a scalar a vector
        total.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def _check_size(archive: zipfile.ZipFile, max_bytes: int) -> None:
    """Raise if the entries of ``archive`` would unpack to more than ``max_bytes``."""
    total = sum(entry.file_size for entry in archive.infolist())
    if total > max_bytes:
        raise ArrayFileError(f"unpacks to {total:,} bytes, more than {max_bytes:,}")


def _plain(name: str, array: Any) -> NDArray[Any]:
    """Return ``array`` if it is one of numbers or text, else raise (a foreign entry is bytes)."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in _KINDS:
        raise ArrayFileError(f"entry {name!r} is not a numeric array")
    return array
