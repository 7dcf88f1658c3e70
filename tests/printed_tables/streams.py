"""What was published for streams and boundaries, under the keys of our estimates."""

from __future__ import annotations

from collections.abc import Callable

from printed_tables.tables import tables, with_interval
from rulescope.assays.published import Published


def _exposures(label: str) -> dict[str, Published]:
    """Scores, fractions, and the time to the threshold where any lifetime reached it."""
    found: dict[str, Published] = {}
    for row in tables()[label]:
        name, n = f"{row['Exposure']}/{row['Algorithm']}", row["n"]
        found[f"score/{name}"] = with_interval(row["Reward-rate score [95% CI]"], n=n)
        steps = row["Threshold steps [95% CI]"]
        if steps is not None:
            found[f"steps/{name}"] = with_interval(steps, n=n)
        found[f"fraction/{name}"] = Published(row["Fraction reaching threshold"], n=n)
    return found


def _exposure() -> dict[str, Published]:
    return _exposures("v5:tab:app-streams-exposures")


def _synthetic() -> dict[str, Published]:
    return _exposures("v5:tab:app-streams-synthetic")


def _stream() -> dict[str, Published]:
    """E-A3c: scores, and which share ever reached the threshold."""
    found: dict[str, Published] = {}
    for row in tables()["v5:tab:app-resetfree"]:
        arm, n = row["Algorithm"], row["n"]
        found[f"score/{arm}"] = with_interval(row["Reward-rate score [95% CI]"], n=n)
        found[f"ever/{arm}"] = Published(row["Ever reaches 0.8"], n=n)
    return found


def _masking() -> dict[str, Published]:
    """Rates without an interval, effects, and contrasts of effects."""
    found: dict[str, Published] = {}
    for row in tables()["v5:tab:app-minatar-masking"]:
        arm, n = row["Algorithm"], row["n"]
        found[f"rate/episodic/{arm}"] = Published(row["Episodic IQM"], n=n)
        found[f"rate/masked/{arm}"] = Published(row["Masked IQM"], n=n)
        found[f"effect/{arm}"] = with_interval(row["Masked minus episodic [95% CI]"], n=n)
    for row in tables()["v5:tab:app-minatar-masking-paired"]:
        arm = row["Contrast"].rpartition("-")[2].strip()
        found[f"contrast/{arm}"] = with_interval(row["Paired difference [95% CI]"], n=row["n"])
    return found


ESTIMATES: dict[str, Callable[[], dict[str, Published]]] = {
    "exposure": _exposure,
    "synthetic": _synthetic,
    "E-A3c": _stream,
    "masking": _masking,
}
