"""Assertions that the conformance tests of worlds, learners and interventions share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def require(condition: bool, clause: str, problem: str) -> None:
    """Raise ``AssertionError`` that starts with the clause unless ``condition`` holds.

    (``assert`` is not used, so the tests also work under ``python -O``.)
    """
    if not condition:
        raise AssertionError(f"[{clause}] {problem}")


def describe(value: object) -> str:
    """Return shape and type of an array, or the type of anything else."""
    if isinstance(value, np.ndarray):
        return f"an array {list(value.shape)} of {value.dtype}"
    return repr(type(value))


def overwrite(array: NDArray[Any]) -> None:
    """Overwrite an array, if it is writeable."""
    if array.flags.writeable:
        array[...] = 77


def bits_equal(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Return whether two arrays have the same shape, type and bits."""
    alike = one.shape == other.shape and one.dtype == other.dtype
    return alike and one.tobytes() == other.tobytes()
