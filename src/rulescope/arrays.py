"""Named arrays on disk: the one place where npz files are read, written and digested."""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]

MAX_BYTES = 2 << 30
"""No file of ours unpacks to more than this; larger ones are refused before they are read."""


class ArrayFileError(ValueError):
    """A file that is not a plain npz of numeric arrays; the message says why, without the path."""


def pack(arrays: Arrays) -> bytes:
    """Return ``arrays`` as a compressed npz; equal arrays give equal bytes."""
    buffer = io.BytesIO()
    ordered: dict[str, Any] = {name: arrays[name] for name in sorted(arrays)}
    np.savez_compressed(buffer, **ordered)
    return buffer.getvalue()


def unpack(content: bytes, max_bytes: int = MAX_BYTES) -> dict[str, NDArray[Any]]:
    """Read a npz without unpickling; anything but plain arrays is an :class:`ArrayFileError`."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            total = sum(entry.file_size for entry in archive.infolist())
        if total > max_bytes:
            raise ArrayFileError(f"unpacks to {total:,} bytes, more than {max_bytes:,}")
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except ArrayFileError:
        raise
    except zipfile.BadZipFile:
        raise ArrayFileError("not an npz archive, or truncated") from None
    except (ValueError, OSError, EOFError, KeyError, zlib.error, NotImplementedError) as fault:
        reason = "holds pickled objects" if "allow_pickle" in str(fault) else str(fault)
        raise ArrayFileError(reason) from None
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufU":
            raise ArrayFileError(f"entry {name!r} is not a numeric array")
    return arrays


def read(path: Path, max_bytes: int = MAX_BYTES) -> dict[str, NDArray[Any]]:
    """Read the npz file at ``path`` (see :func:`unpack`)."""
    return unpack(path.read_bytes(), max_bytes)


def digest(arrays: Arrays) -> str:
    """Return one sha256 over names, types, shapes and values, whatever the order of ``arrays``."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        total.update(array.tobytes())
    return total.hexdigest()
