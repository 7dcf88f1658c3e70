"""The printed tables, and how each number in them is one of the rows of ``published.json``."""

from __future__ import annotations

import re
from collections.abc import Callable

from printed_tables import (
    baselines,
    change,
    conventions,
    exploration,
    learned_optimiser,
    state,
    streams,
)
from printed_tables.tables import PublishedTable, scalars, tables
from rulescope.assays.published import Published

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
    """Return what was printed for an assay (by id), by the names of our estimates.

    The printed tables call the rule under audit Disco.
    """
    found = _ESTIMATES[assay]() if assay in _ESTIMATES else {}
    return {
        re.sub(r"(^|/)disco(?=[-/]|$)", r"\1rule", name): value for name, value in found.items()
    }
