"""Parts that the figures of mechanism views share."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from rulescope.assays.results import Results

Floats = NDArray[np.float64]


def full_caption(found: Results | None, caption: str) -> str:
    """Return the text below a figure: ``caption`` and the lifetimes shown; empty without any."""
    return "" if found is None else f"{caption} {found.budget}."


def set_update_axis(axes: Axes, updates: Floats) -> None:
    """Make the horizontal axis logarithmic in the number of ``updates`` [moments]."""
    axes.set_xscale("log")
    axes.set_xlim(float(updates[0]), float(updates[-1]))
    ticks = [tick for tick in (1, 10, 100, 1000, 10_000) if tick <= updates[-1]]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set_xlabel("updates")
