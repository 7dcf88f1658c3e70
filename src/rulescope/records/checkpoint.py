"""A lifetime in progress as the content of a file, which vouches for itself."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rulescope.core import arrays
from rulescope.core.arrays import ArrayFileError, Arrays

_SEAL = "checkpoint-sha256"
"""Name of the extra entry that holds the checksum of the others."""


def encode(run: str, state: Arrays) -> bytes:
    """Return the content of the file of ``run``; what cannot be kept is an ArrayFileError."""
    if _SEAL in state:
        raise ArrayFileError(f"the array name {_SEAL!r} is reserved")
    # Not compressed: it is short-lived, and floats hardly shrink for the time it takes.
    return arrays.pack({**state, _SEAL: np.array(_seal(run, state))}, compress=False)


def read(run: str, path: Path) -> dict[str, NDArray[Any]]:
    """Return what :func:`encode` was given for ``run``; anything else is an ArrayFileError."""
    if path.is_symlink():
        raise ArrayFileError("is a symbolic link")
    content = arrays.content(path)  # once: a process that still writes may replace it any moment
    state = arrays.unpack(content)
    seal = state.pop(_SEAL, None)
    if seal is None or str(seal) != _seal(run, state):
        raise ArrayFileError("does not match its own sha256")
    # The seal is of the arrays. That the rest of the file is as it was tells that the disk is, too.
    if encode(run, state) != content:
        raise ArrayFileError("is not as it was written")
    return state


def _seal(run: str, state: Arrays) -> str:
    """Return the sha256 of a checkpoint's content and of the run that it belongs to."""
    return hashlib.sha256(f"{run}|{arrays.digest(state)}".encode()).hexdigest()
