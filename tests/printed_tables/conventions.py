"""What was published for the convention gaps, under the keys of our estimates."""

from __future__ import annotations

from collections.abc import Callable

from printed_tables.tables import tables, with_interval
from rulescope.assays.published import Published

_CELLS = {
    "A1 catchbig, disco-A2C": "catch-big",
    "A2 catch x 1e-3, disco-pinned@0": "catch-0.001",
    "A2 catch x 1, disco-pinned@0": "catch-1",
    "A2 catch x 1e3, disco-pinned@0": "catch-1000",
    "A3 masked, disco-A2C": "masked",
    "A4 action-flip 8x8, disco-A2C": "action-flip",
    "A5 DeepSea N=12, disco-A2C": "deep-sea-12",
    "A5 DeepSea N=14, disco-A2C": "deep-sea-14",
}


def _conventions() -> dict[str, Published]:
    """Gaps under both conventions, and their shifts; in reward units."""
    found: dict[str, Published] = {}
    for row in tables()["v5:tab:app-convention-gaps"]:
        name, n = _CELLS[row["Cell"]], row["n"]
        found[f"gap/{name}/legacy"] = with_interval(row["Legacy gap [95% CI]"], n)
        found[f"gap/{name}/reference"] = with_interval(row["Reference gap [95% CI]"], n)
        found[f"shift/{name}"] = with_interval(row["Shift [95% CI]"], n)
    return found


ESTIMATES: dict[str, Callable[[], dict[str, Published]]] = {"conventions": _conventions}
