"""The published values, under the same keys as our estimates."""

from __future__ import annotations

from collections.abc import Callable

from rulescope.assays.published import (
    baselines,
    change,
    conventions,
    exploration,
    learned_optimiser,
    state,
    streams,
)
from rulescope.assays.published.tables import Published, PublishedTable, scalars, tables

__all__ = ["Published", "PublishedTable", "estimates", "scalars", "tables"]

_ESTIMATES: dict[str, Callable[[], dict[str, Published]]] = {
    **state.ESTIMATES,
    **baselines.ESTIMATES,
    **change.ESTIMATES,
    **conventions.ESTIMATES,
    **streams.ESTIMATES,
    **exploration.ESTIMATES,
    **learned_optimiser.ESTIMATES,
}


def estimates(assay: str) -> dict[str, Published]:
    """Return what was published for an assay (by id), by the keys of its results."""
    return _ESTIMATES[assay]() if assay in _ESTIMATES else {}
