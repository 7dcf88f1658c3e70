"""What an analysis returns: estimates with their keys, tables of them, and arrays to draw."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope.assays.estimates import Estimates
from rulescope.core.wording import counted as counted
from rulescope.stats import Estimate, Window, WindowKind

Value = str | int | float | Estimate | None
"""What may stand in a table; None is a dash: there is nothing to report."""


class Column(NamedTuple):
    """A heading, and how the numbers below it are printed."""

    heading: str
    digits: int = 3
    """Decimals of floats and estimates."""
    interval: bool = True
    """Whether estimates are printed with their interval."""


@dataclass(frozen=True)
class Table:
    """A published table, with our numbers in it."""

    label: str
    """As in the published text, such as ``tab:e1-all``."""
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    note: str
    """Below the table: whose lifetimes, their length, estimator, kind of interval."""
    tells_n: bool = True
    """Whether n is told below the table, rather than in a column of its own."""

    @property
    def n(self) -> tuple[int, int] | None:
        """The fewest and the most lifetimes behind an estimate, if that is told below the table."""
        cells = [cell for row in self.rows for cell in row if isinstance(cell, Estimate)]
        found = [cell.n for cell in cells if not cell.missing]
        return (min(found), max(found)) if found and self.tells_n else None


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


def in_numbers(fewest: int, most: int) -> str:
    """Return a number of seeds as a phrase.

    >>> in_numbers(1, 1), in_numbers(4, 12)
    ('1 seed', '4 to 12 seeds')
    """
    span = str(most) if fewest == most else f"{fewest} to {most}"
    return f"{span} seed{'s' if most != 1 else ''}"


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
        "estimates": {
            key: {
                "value": _finite(one.value),
                "low": _finite(one.low),
                "high": _finite(one.high),
                "n": one.n,
                "draws": one.draws,
                "family": one.family,
                "method": one.method,
            }
            for key, one in results.estimates.items()
        },
        "windows": {
            key: {"kind": one.kind, "low": _finite(one.low), "high": _finite(one.high)}
            for key, one in results.windows.items()
        },
        "notes": list(results.notes),
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
