"""Rows of estimates from the names that are printed of them, which are short to write in tests."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rulescope.assays.estimates import Estimates, Floats, Label
from rulescope.stats import Estimate, Window

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
        "replacement": "condition task arm readout",
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
    "normalised-inheritance": {
        "score": "scale condition arm",
        "effect": "scale learner inherited readout condition",
        "interaction": "scale learner inherited readout condition",
    },
    "horizon-factorial": {"score": "task discount scale arm", "effect": "effect arm"},
    "OPEN": {"rate": "task arm scale", "": "task scale"},
    "agent-identity": {
        "displacement": "vector arm",
        "gap": "scale arm",
        "probability": "readout cell arm",
        "": "cell arm",
    },
}
"""The label columns of each quantity of an assay, in the order of its printed name."""
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


def rows(
    assay: str,
    found: Mapping[str, Estimate],
    series: Mapping[str, Floats] | None = None,
    windows: Mapping[str, Window] | None = None,
) -> Estimates:
    """Return the rows of an assay's estimates by name, such as ``score/catch/live/0.001``.

    ``series`` may hold the values of lifetimes, under ``seeds/<name>``.
    """
    seeds = {
        key.removeprefix("seeds/"): values
        for key, values in (series or {}).items()
        if key.startswith("seeds/")
    }
    unknown = Estimate(math.nan, math.nan, math.nan, n=0, method="none")
    known = COLUMNS[assay]
    alone = [name for name in seeds if name not in found and name.partition("/")[0] in known]
    made = Estimates()
    for name, estimate in {**found, **dict.fromkeys(alone, unknown)}.items():
        quantity, labels = labels_of(assay, name)
        window = (windows or {}).get(name)
        made.add(quantity, estimate, labels, seeds=seeds.get(name), window=window)
    return made
