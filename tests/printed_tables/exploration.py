"""What was published for the DeepSea assays (E-A5, F1, discovery) and for directions."""

from __future__ import annotations

from collections.abc import Callable

from printed_tables.tables import bounds, tables, with_interval
from rulescope.assays.published import Published

_CONVENTIONS = {"legacy": "disco-legacy", "reference": "disco"}


def _exploration() -> dict[str, Published]:
    """E-A5: shares that solved or have a goal in the log, tail returns, deepest majorities."""
    found: dict[str, Published] = {}
    for row in tables()["v5:tab:app-exploration-reference"]:
        arm, n = row["Algorithm"], row["n"]
        name = f"{arm}/{row['Depth']}"
        found[f"solved/{name}"] = Published(row["Solved fraction"], n=n)
        found[f"goal-in-log/{name}"] = Published(row["Ever found"], n=n)
        found[f"return/{name}"] = with_interval(row["Tail return [95% CI]"], n=n)
        found[f"deepest/{arm}"] = Published(row["Deepest majority solved"], n=n)
    return found


def _conventions() -> dict[str, Published]:
    """F1: solved counts, as shares, and paired differences of returns."""
    found: dict[str, Published] = {}
    for row in tables()["v5:tab:app-exploration-f1"]:
        convention, depth, n = row["Convention"], row["Depth"], row["n"]
        arm = _CONVENTIONS[convention]
        found[f"solved/{arm}/{depth}"] = Published(row["Disco solved"] / n, n=n)
        found[f"solved/a2c/{depth}"] = Published(row["A2C solved"] / n, n=n)
        key = f"difference/{convention}/{depth}"
        found[key] = with_interval(row["Disco minus A2C [95% CI]"], n=n)
    return found


def _discovery() -> dict[str, Published]:
    """Discovery: shares found with their Wilson intervals, and tail success."""
    found: dict[str, Published] = {}
    for row in tables()["tab:deepsea"]:
        name = f"{row['Learner']}/{row['Depth']}"
        count, n = (int(part) for part in row["Found"].split("/"))
        found[f"found/{name}"] = Published(count / n, *bounds(row["Wilson CI"]), n=n)
        found[f"success/{name}"] = Published(row["Tail success"], *bounds(row["95% CI"]), n=n)
    return found


def _directions() -> dict[str, Published]:
    """Directions: all that the text says is how many of eight intervals have zero in them."""
    return {"spanning": Published(8)}


ESTIMATES: dict[str, Callable[[], dict[str, Published]]] = {
    "E-A5": _exploration,
    "F1": _conventions,
    "discovery": _discovery,
    "directions": _directions,
}
