"""What was published for OPEN and the comparison in MinAtar, under the keys of our estimates."""

from __future__ import annotations

from collections.abc import Callable

from printed_tables.tables import bounds, tables, with_interval
from rulescope.assays.comparison_families import MINATAR_CONTEXT, OPEN_CARRY
from rulescope.assays.open import open_gate
from rulescope.assays.published import Published
from rulescope.assays.results import scale_label

SEEDS = 8
_CONTRASTS = {
    "Live -zero": "live-minus-zero",
    "Scale interaction": "interaction",
    "Reset -live (final)": "reset-minus-live",
    "Live -initial": "live-minus-initial",
    "Live -random": "live-minus-random",
}
_PAIRS = {
    "OPEN - Adam": "open-minus-open-adam",
    "Disco - OPEN": "disco-minus-open",
    "Disco - Adam": "disco-minus-open-adam",
}


def _scale(cell: float | str) -> str:
    """Return the scale of a row; that of an interaction is printed with the one it is against."""
    return cell.removesuffix("-1") if isinstance(cell, str) else scale_label(cell)


def _carry() -> dict[str, Published]:
    """OPEN: the capability gate of each cell, and the 28 contrasts that could be estimated."""
    found = {
        f"gate/gymnax-{row['Game']}/{_scale(row['Scale'])}": Published(open_gate.PUBLISHED, n=SEEDS)
        for row in tables()["tab:open-1"]
    }
    for label in ("tab:open-0", "tab:open-1"):
        for row in tables()[label]:
            key = f"{_CONTRASTS[row['Contrast']]}/gymnax-{row['Game']}/{_scale(row['Scale'])}"
            low, high = bounds(row["Adjusted CI"])
            found[key] = Published(row["Estimate"], low, high, SEEDS, OPEN_CARRY.size)
    return found


def _context() -> dict[str, Published]:
    """The thirty differences of the equal-budget comparison."""
    found: dict[str, Published] = {}
    for row in tables()["tab:minatar-context"]:
        place = f"gymnax-{row['group'].lower()}/{scale_label(row['Scale'])}"
        for column, pair in _PAIRS.items():
            found[f"{pair}/{place}"] = with_interval(row[column], SEEDS, MINATAR_CONTEXT.size)
    return found


ESTIMATES: dict[str, Callable[[], dict[str, Published]]] = {
    "OPEN": _carry,
    "minatar-context": _context,
}
