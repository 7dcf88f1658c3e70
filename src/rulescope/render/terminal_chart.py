"""A learning curve in plain characters, for a terminal or a log file."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

_BLOCKS = " ▁▂▃▄▅▆▇█"


def curve(
    x: ArrayLike,
    y: ArrayLike,
    *,
    width: int = 60,
    height: int = 8,
    bounds: tuple[float, float] | None = None,
    label: str = "score",
) -> str:
    """Draw ``y`` over ``x`` as filled columns; each column is the mean of the points it covers.

    Columns without a finite value are left empty. ``bounds`` fixes the vertical axis.
    """
    steps, values = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if not np.isfinite(values).any():
        return f"{label}: no data yet"
    columns = _columns(values, width)
    finite = columns[np.isfinite(columns)]
    low, high = bounds or (float(finite.min()), float(finite.max()))
    low, high = min(low, float(finite.min())), max(high, float(finite.max()))
    span = (high - low) or 1.0
    eighths = np.nan_to_num((columns - low) / span * (height * 8 - 1) + 1, nan=0.0).astype(int)
    lines = [
        _margin(row, height, low, high) + _row(eighths, row) for row in range(height - 1, -1, -1)
    ]
    axis = " " * 7 + "└" + "─" * len(columns)
    ends = f"{steps[0]:g}", f"{steps[-1]:g}"
    scale = " " * 8 + ends[0] + ends[1].rjust(max(len(columns) - len(ends[0]), 1))
    return "\n".join([f"{label}", *lines, axis, scale])


def _columns(values: Array, width: int) -> Array:
    """Average ``values`` into ``width`` columns, ignoring NaN; few values become wide columns."""
    if len(values) < width:
        return np.repeat(values, width // len(values))
    return np.array(
        [
            piece[np.isfinite(piece)].mean() if np.isfinite(piece).any() else np.nan
            for piece in np.array_split(values, width)
        ]
    )


def _margin(row: int, height: int, low: float, high: float) -> str:
    labels = {height - 1: f"{high:6.2f}", 0: f"{low:6.2f}"}
    return labels.get(row, " " * 6) + " │"


def _row(eighths: NDArray[np.int64], row: int) -> str:
    return "".join(_BLOCKS[int(np.clip(level - row * 8, 0, 8))] for level in eighths)
