"""What an analysis returns: estimates with their keys, tables of them, and arrays to draw."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rulescope.assays.estimates import Estimates, Row
from rulescope.core.errors import counted as counted
from rulescope.envs.world_references import WorldReferences
from rulescope.render.tables import Column as Column
from rulescope.render.tables import Table as Table
from rulescope.render.tables import Value as Value
from rulescope.render.tables import in_numbers as in_numbers
from rulescope.stats import Window, WindowKind


@dataclass(frozen=True)
class Results:
    """All that an assay has to say."""

    assay: str
    """Its id, such as ``E1``."""
    budget: str
    """In words, such as ``disco103, agent published, 4 seeds, 2,000 iterations ...``."""
    axes: Mapping[str, tuple[str | float, ...]]
    """The labels that were run, as in the frame."""
    seeds: int
    estimates: Estimates
    """Every estimate that was planned, as rows with labels."""
    tables: tuple[Table, ...]
    series: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Arrays to draw that are no single estimates, such as learning curves with their bands."""
    notes: tuple[str, ...] = ()
    """What a reader should know: missing lifetimes, thin tails."""
    iterations: int = 0
    """Length of a lifetime."""
    rule: str = "disco103"
    agent: str = "published"
    worlds: Mapping[str, WorldReferences] = field(default_factory=dict)
    """By name: the references of the worlds that the user named, by which scores are measured."""
    draws: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Bootstrap draws, if they were asked for: [draws] of each estimate by its name, the ``seeds``
    [n], and in ``blocks/DRAWS`` [DRAWS, n] the places of the seeds in each draw."""

    @property
    def windows(self) -> dict[str, Window]:
        """The class and the end points behind each estimate of a width, by its name."""
        return {row.name: row.window for row in self.estimates.rows if row.window is not None}

    @property
    def other_grid(self) -> frozenset[str]:
        """Names of estimates that rest on another set of cells than the published."""
        return frozenset(row.name for row in self.estimates.rows if row.other_grid)

    def by_seed(self, name: str) -> NDArray[np.float64] | None:
        """Return the values [seeds] behind the estimate called so, if the analysis keeps them."""
        return self.estimates.row(name).seeds if name in self.estimates else None


def span(windows: Mapping[str, Window], key: str) -> str | None:
    """Return class and ends of the window behind the width at ``key``; None if it is no width."""
    found = windows.get(key)
    return None if found is None else window_label(found.kind, found.low, found.high)


def window_label(kind: WindowKind, low: float, high: float) -> str:
    """Return the class of a window and its ends.

    >>> window_label("interval", 0.001, 1000.0), window_label("singleton", 1.0, 1.0)
    ('interval 0.001 to 1000', 'single 1')
    """
    if kind == "none":
        return "none"
    if kind == "singleton":
        return f"single {scale_label(low)}"
    return f"interval {scale_label(low)} to {scale_label(high)}"


def scale_label(scale: float) -> str:
    """Return a scale as it stands in keys: 0.001, 1, 1000."""
    return f"{scale:g}"


def as_data(results: Results) -> dict[str, Any]:
    """Return ``results`` as plain data for JSON; what is not a number is null."""
    return {
        "assay": results.assay,
        "budget": results.budget,
        "rule": results.rule,
        "agent": results.agent,
        "seeds": results.seeds,
        "iterations": results.iterations,
        "axes": {name: list(labels) for name, labels in results.axes.items()},
        "estimates": {row.name: _row_data(row) for row in results.estimates.rows},
        "windows": {
            key: {"kind": one.kind, "low": _finite(one.low), "high": _finite(one.high)}
            for key, one in results.windows.items()
        },
        "notes": list(results.notes),
        **({"worlds": msgspec.to_builtins(dict(results.worlds))} if results.worlds else {}),
    }


def _row_data(row: Row) -> dict[str, Any]:
    """Return the columns of a row, with the values of single lifetimes where they are known."""
    one = row.estimate
    return {
        "quantity": row.quantity,
        "labels": dict(row.labels),
        "value": _finite(one.value),
        "low": _finite(one.low),
        "high": _finite(one.high),
        "n": one.n,
        "draws": one.draws,
        "family": one.family,
        "method": one.method,
        "seeds": None if row.seeds is None else [_finite(value) for value in row.seeds],
        "other_grid": row.other_grid,
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
