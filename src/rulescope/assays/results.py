"""What an analysis returns: estimates with their keys, tables of them, and arrays to draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope.stats import Estimate

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
    """Below the table: n, budget, estimator, kind of interval."""


@dataclass(frozen=True)
class Results:
    """All that an assay has to say."""

    assay: str
    """Its id, such as ``E1``."""
    budget: str
    """In words, such as ``4 seeds, 2,000 iterations (116,000 interactions) a lifetime``."""
    axes: Mapping[str, tuple[str | float, ...]]
    """The labels that were run, as in the frame."""
    seeds: int
    estimates: Mapping[str, Estimate]
    """By key, such as ``score/catch/live/0.001``; a key is the same as that of its published value.
    An estimate that was planned but could not be made has NaN for its value."""
    tables: tuple[Table, ...]
    series: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Arrays to draw that are no single estimates, such as learning curves with their bands."""
    notes: tuple[str, ...] = ()
    """What a reader should know: missing lifetimes, thin tails."""
    iterations: int = 0
    """Length of a lifetime."""


def scale_label(scale: float) -> str:
    """Return a scale as it stands in keys: 0.001, 1, 1000."""
    return f"{scale:g}"
