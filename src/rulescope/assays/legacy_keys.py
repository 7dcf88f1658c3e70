"""Columns of estimates that assays still name by strings; shrinks as assays return rows."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rulescope.assays.estimates import Estimates, Label
from rulescope.stats import Estimate, Window

Floats = NDArray[np.float64]
_LEVELS = {name: "condition arm" for name in ("pre", "trough", "auc", "endpoint")}
_STAIRS = {
    "solved": "arm depth",
    "goal-in-log": "arm depth",
    "return": "arm depth",
    "deepest": "arm",
}
_EXPOSED = {"score": "condition arm", "steps": "condition arm", "fraction": "condition arm"}
COLUMNS: dict[str, dict[str, str]] = {
    "E1": {
        "score": "task arm scale",
        "width": "task arm criterion",
        "best": "task arm",
        "threshold": "task arm",
        "contrast": "task criterion",
        "displacement": "task arm scale vector",
        "between": "task arm vector",
        "principal": "task arm vector",
        "radius": "task arm vector",
    },
    "E2": {"score": "scale arm", "interaction": "scale", "interaction-iqm": "scale"},
    "E3": {
        "pre": "condition task arm",
        "auc": "condition task arm",
        "final": "condition task arm",
        "attained": "condition task arm threshold",
        "rmd": "condition task arm threshold",
        "time": "condition task arm threshold",
        "contrast": "condition replay",
        "contrast-iqm": "condition replay",
        "no-aux": "condition task readout",
        "cleared": "condition task arm part",
    },
    "F2": {
        "endpoint": "arm",
        "mastery": "arm",
        "difference": "readout arm",
        "difference-lr3e4": "readout arm",
    },
    "E-LR": {
        "score": "arm rate",
        "horizon": "arm",
        "difference": "arm rate",
        "rate": "arm",
        "selected": "arm",
    },
    "E-IF": {"score": "arm scale", "bins": "arm scale", "difference": "arm scale"},
    "E-POP": {"score": "arm scale", "floor": "arm scale"},
    "E-A4x": _LEVELS,
    "E-A4m": _LEVELS,
    "E-A3c": {"score": "arm", "ever": "arm"},
    "E-A5": _STAIRS,
    "ladder": _STAIRS,
    "exposure": _EXPOSED,
    "synthetic": _EXPOSED,
    "masking": {"rate": "condition arm", "effect": "arm", "contrast": "arm"},
    "M1": {
        "rate": "task arm scale",
        "retention": "task arm scale",
        "usable": "task arm",
        "usable-low": "task arm",
        "usable-high": "task arm",
    },
    "minatar-context": {"rate": "task arm scale", "": "task scale"},
    "P1": {"score": "arm scale", "effect": "arm scale level", "interaction": "arm scale level"},
    "conventions": {"gap": "comparison convention", "shift": "comparison"},
    "F1": {"solved": "arm depth", "return": "arm depth", "difference": "convention depth"},
    "discovery": {
        "found": "arm depth",
        "success": "arm depth",
        "first": "arm depth clock",
        "chance": "depth",
        "chance-first": "depth",
    },
    "directions": {"score": "scale arm", "contrast": "scale contrast", "spanning": ""},
    "OPEN": {"rate": "task arm scale", "": "task scale"},
    "agent-identity": {
        "displacement": "vector arm",
        "gap": "scale arm",
        "probability": "readout cell arm",
        "": "cell arm",
    },
}
NUMBERS = ("scale", "depth", "threshold", "rate")
"""Columns whose labels are numbers."""


def labels_of(assay: str, name: str) -> tuple[str, dict[str, Label]]:
    """Return the quantity and the labels in the printed name of a row."""
    quantity, *parts = name.split("/")
    known = COLUMNS[assay]
    columns = known.get(quantity, known.get("", "")).split()
    if len(parts) > len(columns):
        raise ValueError(f"{assay}: {name!r} has more labels than {columns}")
    return quantity, {
        column: float(part) if column in NUMBERS else part
        for column, part in zip(columns, parts, strict=False)
    }


def as_rows(
    assay: str,
    found: Mapping[str, Estimate],
    series: Mapping[str, Floats],
    windows: Mapping[str, Window],
    other_grid: frozenset[str],
) -> Estimates:
    """Return estimates with names as rows with labels."""
    rows = Estimates()
    alone = [key.removeprefix("seeds/") for key in series if key.startswith("seeds/")]
    unknown = Estimate(math.nan, math.nan, math.nan, n=0, method="none")
    for name, estimate in {**found, **{n: unknown for n in alone if n not in found}}.items():
        if name not in found and name.partition("/")[0] not in COLUMNS[assay]:
            continue
        quantity, labels = labels_of(assay, name)
        rows.add(
            quantity,
            estimate,
            labels,
            seeds=series.get(f"seeds/{name}"),
            window=windows.get(name),
            other_grid=name in other_grid,
        )
    return rows
