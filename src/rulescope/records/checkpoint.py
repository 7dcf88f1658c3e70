"""The checkpoint of a run in progress: named arrays and their checksum in one file."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rulescope.core import arrays
from rulescope.core.arrays import ArrayFileError, Arrays

_CHECKSUM = "checkpoint-sha256"
"""Name of the extra entry that holds the checksum of the others."""


def encode(run: str, state: Arrays) -> bytes:
    """Return the content of the checkpoint of ``run``; invalid arrays are an ArrayFileError."""
    if _CHECKSUM in state:
        raise ArrayFileError(f"the array name {_CHECKSUM!r} is reserved")
    # Not compressed: the file is replaced soon, and floats hardly shrink.
    return arrays.pack({**state, _CHECKSUM: np.array(_checksum(run, state))}, compress=False)


def read(run: str, path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays that :func:`encode` was given; a damaged file is an ArrayFileError."""
    if path.is_symlink():
        raise ArrayFileError("is a symbolic link")
    content = arrays.content(path)  # read once: another process may replace it at any moment
    state = arrays.unpack(content)
    checksum = state.pop(_CHECKSUM, None)
    if checksum is None or str(checksum) != _checksum(run, state):
        raise ArrayFileError("does not match its own sha256")
    # The checksum covers the arrays only; this comparison covers the rest of the file.
    if encode(run, state) != content:
        raise ArrayFileError("differs from what was written")
    return state


def _checksum(run: str, state: Arrays) -> str:
    """Return the sha256 of the arrays and of the run that they belong to."""
    return hashlib.sha256(f"{run}|{arrays.digest(state)}".encode()).hexdigest()
