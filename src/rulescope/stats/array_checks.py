"""Array types, conversions and shape checks that every estimator shares.

A missing value is NaN. Infinities count as missing too: a score that overflowed is not a
measurement. ``n`` is always the number of *finite* values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rulescope.core.errors import RulescopeError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class DataError(RulescopeError, ValueError):
    """Arrays do not match in shape, or a parameter is invalid."""


def floats(values: ArrayLike) -> FloatArray:
    """Return ``values`` as float64, without copying where it already is."""
    return np.asarray(values, dtype=np.float64)


def missing_as_nan(values: ArrayLike) -> FloatArray:
    """Return ``values`` as float64 with every non-finite entry NaN (a copy only where needed)."""
    array = floats(values)
    finite = np.isfinite(array)
    return array if finite.all() else np.where(finite, array, np.nan)


def ratio(numerator: ArrayLike, denominator: ArrayLike) -> FloatArray:
    """Return the quotient, broadcast; NaN, and no warning, where the denominator is zero."""
    above, below = floats(numerator), floats(denominator)
    out = np.full(np.broadcast_shapes(above.shape, below.shape), np.nan)
    np.divide(above, below, out=out, where=below != 0)
    return out[()]


def require_positive(name: str, value: int) -> None:
    """Raise unless the count ``value`` is at least one."""
    if value < 1:
        raise DataError(f"{name} must be at least 1, not {value}")


def require_same_shape(**arrays: FloatArray) -> None:
    """Raise unless all ``arrays`` have one shape; the message names each of them."""
    if len({array.shape for array in arrays.values()}) > 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise DataError(f"paired arrays must have one shape, not {shapes}")


def require_rows(iterations: FloatArray | IntArray, **columns: FloatArray) -> None:
    """Raise unless ``iterations`` is an increasing [rows] column and the others end in [rows]."""
    if iterations.ndim != 1:
        raise DataError(f"a grid of rows is one column, not an array of shape {iterations.shape}")
    if np.any(np.diff(iterations) <= 0):
        raise DataError("rows must be in increasing order of iterations or steps")
    for name, column in columns.items():
        if column.ndim == 0 or column.shape[-1] != len(iterations):
            raise DataError(f"{name} has shape {column.shape} for {len(iterations)} rows")
