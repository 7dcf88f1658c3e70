"""What was published for F2, E-LR, E-POP and M1, under the keys of our estimates."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from printed_tables.tables import scalars, tables, with_interval
from rulescope.assays.published import Published
from rulescope.assays.results import scale_label

_COMPARATORS = {
    "Disco lr1e-2": "disco",
    "Disco lr3e-4": "disco-lr3e4",
    "A2C": "a2c",
    "PPO": "ppo",
    "DQN": "dqn",
    "Pinned 0": "disco-pin",
    "Frozen 400": "disco-freeze",
}
_DIFFERENCES = {"disco": "difference", "disco-lr3e4": "difference-lr3e4"}
_REFERENCE = re.compile(r"reference=(.+) \(endpoint ([0-9.]+), mastery ([0-9.]+)\)")
_GAMES = {"Breakout": "minatar-breakout", "Freeway": "minatar-freeway"}
_GROUP = re.compile(r"(Breakout|Freeway) / (.+); unit-scale rate .+")
_ALGORITHMS = {
    "A2C": "a2c",
    "Disco103": "disco",
    "Frozen EMA": "disco-hold",
    "Pinned 0": "disco-pin",
}
_SHORT = {
    "a2c": "a2c",
    "disco": "disco",
    "disco-noema": "disco-hold",
    "disco-zerornn": "disco-pin",
}
FINITE = {"minatar-freeway/disco-hold": 7}
"""Seeds of cells in which not all eight were finite."""
FLOOR_KEPT = 12
"""Lifetimes whose deviation stayed above its floor; in the text, which says all."""


def _horizon() -> dict[str, Published]:
    """F2: endpoint, mastery (printed in thousands of interactions), and differences of both."""
    found: dict[str, Published] = {}
    for row in tables()["v5:tab:app-f2-paired"]:
        group = _REFERENCE.fullmatch(row["group"])
        assert group is not None
        reference, arm = _COMPARATORS[group[1]], _COMPARATORS[row["Comparator"]]
        found[f"endpoint/{reference}"] = Published(float(group[2]))
        found[f"mastery/{reference}"] = Published(1000 * float(group[3]))
        found[f"endpoint/{arm}"] = Published(row["Endpoint"])
        found[f"mastery/{arm}"] = Published(1000 * row["Mastery"])
        kind = _DIFFERENCES[reference]
        found[f"{kind}/endpoint/{arm}"] = with_interval(row["Endpoint difference"])
        thousands = row["Mastery difference"]
        found[f"{kind}/mastery/{arm}"] = with_interval([1000 * value for value in thousands])
    return found


def _learning_rate() -> dict[str, Published]:
    """E-LR: the selected rates and their scores, without intervals."""
    found: dict[str, Published] = {}
    for arm, selected in scalars()["ELR_selected"].items():
        found[f"rate/{arm}"] = Published(selected["lr"])
        found[f"selected/{arm}"] = Published(selected["score"])
        found[f"score/{arm}/{scale_label(selected['lr'])}"] = Published(selected["score"])
    return found


def _popart() -> dict[str, Published]:
    """E-POP: scores, and the share of lifetimes above the floor."""
    found: dict[str, Published] = {"floor/a2c-popart/0.001": Published(FLOOR_KEPT / 12)}
    for row in tables()["v5:tab:app-popart"]:
        key = f"score/{row['Algorithm']}/{scale_label(row['Reward scale'])}"
        found[key] = with_interval(row["Score [95% CI]"], n=row["n"])
    return found


def _scale_minatar() -> dict[str, Published]:
    """M1: rates, retention where there was something to retain, and usable scales."""
    found: dict[str, Published] = {}
    for row in tables()["v5:tab:app-minatar-retention"]:
        group = _GROUP.fullmatch(row["group"])
        assert group is not None
        name = f"{_GAMES[group[1]]}/{_ALGORITHMS[group[2]]}/{scale_label(row['Scale'])}"
        found[f"rate/{name}"] = Published(row["Descaled rate"], n=row["n"])
        if _measured(row["Retention [95% CI]"]):
            found[f"retention/{name}"] = with_interval(row["Retention [95% CI]"], n=row["n"])
    for row in tables()["v5:tab:app-minatar-usable"]:
        name = f"{row['Environment'].replace('_', '-')}/{_SHORT[row['Algorithm']]}"
        keys = {"usable": "Usable scales", "usable-low": "Low scale", "usable-high": "High scale"}
        for key, column in keys.items():
            if _measured(row[column]):
                found[f"{key}/{name}"] = Published(row[column], n=FINITE.get(name, 8))
    return found


def _measured(cell: Any) -> bool:
    return bool(cell != "N/A")


ESTIMATES: dict[str, Callable[[], dict[str, Published]]] = {
    "F2": _horizon,
    "E-LR": _learning_rate,
    "E-POP": _popart,
    "M1": _scale_minatar,
}
