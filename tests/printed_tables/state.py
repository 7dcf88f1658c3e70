"""What was published for E1, E2, E-IF and P1, under the keys of our estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from printed_tables.tables import bounds, scalars, tables, with_interval
from rulescope.assays.comparison_families import INTERFACE_STATE, PRIMARY
from rulescope.assays.published import Published
from rulescope.assays.results import scale_label

_TASKS = {"Catch": "catch", "CatchDense": "catch-dense", "CatchLong": "catch-long"}
_STATES = {"Live": "live", "Pin 0": "pin", "EMA held": "hold", "Both": "both"}
_CONDITIONS = {
    "Live": "live",
    "Own freeze at 400": "freeze",
    "Matched / init": "match-natural",
    "Cross / init": "cross-natural",
    "Random / init": "random-natural",
    "Matched / clamp": "match-clamp",
    "Cross / clamp": "cross-clamp",
    "Random / clamp": "random-clamp",
}
_CONTRASTS = {
    "Delta_{Default}": "effect/default",
    "Delta_{S30}": "effect/support30",
    "Delta_{Linear}": "effect/linear",
    "Delta_{S30}-Delta_{Default}": "interaction/support30",
    "Delta_{Linear}-Delta_{Default}": "interaction/linear",
}


def _scale() -> dict[str, Published]:
    """E1: scores, widths, thresholds, contrasts and geometry."""
    found: dict[str, Published] = {}
    for task, key in _TASKS.items():
        for row in tables()[f"tab:unified-scores-{task.lower()}"]:
            for state, arm in _STATES.items():
                found[f"score/{key}/{arm}/{scale_label(row['Scale'])}"] = with_interval(row[state])
    for row in tables()["v5:tab:app-scale-widths"]:
        for criterion in ("0.7", "0.8", "0.9"):
            found[f"width/{_arm(row)}/{criterion}"] = with_interval(row[f"Score >={criterion}"])
    for row in tables()["tab:unified-scale-relative"]:
        found[f"width/{_arm(row)}/half-best"] = with_interval(row["Width [95% interval]"])
        found[f"threshold/{_arm(row)}"] = Published(row["Point threshold"])
    for row in tables()["tab:e1-all"]:
        criterion = "half-best" if row["Criterion"] == "Half-best" else "0.8"
        found[f"contrast/{_TASKS[row['Task']]}/{criterion}"] = Published(
            row["Delta W"], *bounds(row["Adjusted CI"]), family=PRIMARY.size
        )
    return found | _geometry()


def _geometry() -> dict[str, Published]:
    found: dict[str, Published] = {}
    for row in tables()["v5:tab:app-scale-state"]:
        for vector in "hc":
            key = f"displacement/{_arm(row)}/{scale_label(row['Scale'])}/{vector}"
            found[key] = with_interval(row[f"{vector}: shift / radius"])
    for row in tables()["tab:unified-scale-geometry"]:
        name = f"{_arm(row)}/{row['Vector']}"
        found[f"between/{name}"] = with_interval(row["Between-scale fraction [95% interval]"])
        found[f"principal/{name}"] = Published(row["PC1+2 fraction"])
        found[f"radius/{name}"] = Published(row["Unit radius"])
    return found


def _arm(row: Mapping[str, Any]) -> str:
    return f"{_TASKS[row['Environment']]}/{_STATES[row['State']]}"


def _inheritance() -> dict[str, Published]:
    """E2: scores (from the table with more digits) and interactions."""
    found: dict[str, Published] = {}
    for row in tables()["v5:tab:app-transplant"]:
        key = f"score/{scale_label(row['Recipient scale'])}/{_CONDITIONS[row['Condition']]}"
        found[key] = with_interval(row["Tail score [95% interval]"], n=row["n"])
    for scale, name in (("0.001", "1e-3"), ("1000", "1e3")):
        printed = scalars()[f"E2_interaction_{name}"]
        found[f"interaction/{scale}"] = with_interval(printed, family=PRIMARY.size)
    return found


def _interface() -> dict[str, Published]:
    """E-IF: scores, effective bins, and differences without an interval."""
    found: dict[str, Published] = {}
    for row in tables()["v5:tab:app-interface"]:
        name, n = row["Interface"], row["n"]
        found[f"score/{name}"] = with_interval(row["Score [95% CI]"], n=n)
        found[f"bins/{name}"] = with_interval(row["Effective bins [95% CI]"], n=n)
        found[f"difference/{name}"] = Published(row["Score difference"], n=n)
    return found


def _interface_state() -> dict[str, Published]:
    """P1: effects and interactions, pointwise and within the family."""
    found: dict[str, Published] = {}
    for row in tables()["tab:p1-complete"]:
        key = f"{_CONTRASTS[row['Contrast']]}/{scale_label(row['Scale'])}"
        found[key] = Published(row["Estimate"], *bounds(row["Pointwise 95%"]))
        found[f"{key}/family"] = Published(
            row["Estimate"], *bounds(row["Family-15 interval"]), family=INTERFACE_STATE.size
        )
    return found


ESTIMATES: dict[str, Callable[[], dict[str, Published]]] = {
    "E1": _scale,
    "E2": _inheritance,
    "E-IF": _interface,
    "P1": _interface_state,
}
