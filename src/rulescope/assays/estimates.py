"""Estimates as rows with labelled columns: what an analysis returns and everything else reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope.core.errors import RulescopeError, nearest
from rulescope.stats import Estimate, Window

Floats = NDArray[np.float64]
Label = str | float


@dataclass(frozen=True, eq=False)
class Row:
    """One estimate and the labels of the cell, or of the cells, that it is about."""

    quantity: str
    """What is estimated, such as ``score``, ``width`` or ``contrast``."""
    labels: Mapping[str, Label]
    """A label for each column, such as ``{"task": "catch", "arm": "live", "scale": 0.001}``."""
    estimate: Estimate
    """NaN for its value if it was planned but could not be made."""
    seeds: Floats | None = None
    """[seeds]: the values of the single lifetimes, NaN where one is missing; None if unknown."""
    window: Window | None = None
    """Class and end points of the window whose width this is."""
    other_grid: bool = False
    """Whether the estimate depends on the set of cells, and rests on another than the published."""

    @property
    def name(self) -> str:
        """The row in one word, as tables and notes print it: ``score/catch/live/0.001``."""
        return join_labels(self.quantity, *self.labels.values())

    @property
    def known(self) -> bool:
        """Whether the estimate could be made."""
        return not self.estimate.missing

    @property
    def finite_seeds(self) -> tuple[float, ...]:
        """The values of the lifetimes that there are; empty if unknown."""
        return () if self.seeds is None else tuple(self.seeds[np.isfinite(self.seeds)].tolist())

    def matches(self, labels: Mapping[str, Label]) -> bool:
        """Return whether the row has all of ``labels``."""
        return all(name in self.labels and self.labels[name] == labels[name] for name in labels)


class Place(NamedTuple):
    """Where an estimate stands: its quantity and its labels."""

    quantity: str
    labels: Mapping[str, Label]

    def replaced(self, **labels: Label) -> Place:
        """Return the place with other or more labels."""
        return Place(self.quantity, {**self.labels, **labels})

    def row(self, estimates: Estimates) -> Row | None:
        """Return the row at this place, or None if it was not planned."""
        return estimates.find(self.quantity, **self.labels)

    def seeds(self, estimates: Estimates) -> Floats | None:
        """Return the values of single lifetimes [seeds] at this place, if they are known."""
        row = self.row(estimates)
        return None if row is None else row.seeds


def place(quantity: str, **labels: Label) -> Place:
    """Return the place of an estimate."""
    return Place(quantity, labels)


@dataclass(eq=False)
class Estimates(Mapping[str, Estimate]):
    """The rows of an analysis in the order in which they were added.

    Code looks rows up by quantity and labels. As a mapping it goes from the printed name of each
    row to its estimate.
    """

    _rows: dict[str, Row] = field(default_factory=dict)

    def add(
        self,
        quantity: str,
        estimate: Estimate,
        labels: Mapping[str, Label],
        *,
        seeds: Floats | None = None,
        window: Window | None = None,
        other_grid: bool = False,
    ) -> None:
        """Add a row; the order of ``labels`` is that in its printed name."""
        row = Row(quantity, dict(labels), estimate, seeds, window, other_grid)
        self._rows[row.name] = row

    def update(self, others: Estimates) -> None:
        """Add the rows of ``others``."""
        self._rows |= others._rows

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows."""
        return tuple(self._rows.values())

    @property
    def quantities(self) -> tuple[str, ...]:
        """What was estimated, each once."""
        return tuple(dict.fromkeys(row.quantity for row in self.rows))

    def where(self, quantity: str, **labels: Label) -> list[Row]:
        """Return the rows of ``quantity`` that have all of ``labels``."""
        return [row for row in self.rows if row.quantity == quantity and row.matches(labels)]

    def find(self, quantity: str, **labels: Label) -> Row | None:
        """Return the row with exactly ``labels``, or None if it was not planned."""
        found = [row for row in self.where(quantity, **labels) if len(row.labels) == len(labels)]
        return found[0] if found else None

    def at(self, quantity: str, **labels: Label) -> Estimate:
        """Return the estimate with exactly ``labels``, which must be there."""
        row = self.find(quantity, **labels)
        if row is None:
            shown = ", ".join(f"{name} {label_text(value)}" for name, value in labels.items())
            raise RulescopeError(f"no estimate of {quantity!r} at {shown}")
        return row.estimate

    def lookup(self, quantity: str, **labels: Label) -> Estimate | None:
        """Return the estimate with exactly ``labels``, or None if it was not planned."""
        row = self.find(quantity, **labels)
        return None if row is None else row.estimate

    def labels(
        self, quantity: str, column: str, *, planned: bool = False, **labels: Label
    ) -> list[Label]:
        """Return the labels in ``column`` of the matching rows that have an estimate, each once.

        With ``planned``, also of rows whose estimate could not be made.
        """
        rows = [row for row in self.where(quantity, **labels) if planned or row.known]
        return list(dict.fromkeys(row.labels[column] for row in rows if column in row.labels))

    def row(self, name: str) -> Row:
        """Return the row whose printed name is ``name``."""
        if name not in self._rows:
            raise RulescopeError(f"no estimate {name!r}{nearest(name, self._rows)}")
        return self._rows[name]

    def __getitem__(self, name: str) -> Estimate:
        return self._rows[name].estimate

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def label_text(label: Label) -> str:
    """Return a label as it is printed.

    >>> label_text(0.001), label_text(1000.0), label_text("live")
    ('0.001', '1000', 'live')
    """
    return label if isinstance(label, str) else f"{label:g}"


def join_labels(*labels: Label) -> str:
    """Return labels in one word, as they are printed.

    >>> join_labels("score", "catch", "live", 0.001)
    'score/catch/live/0.001'
    """
    return "/".join(map(label_text, labels))


def count_text(share: Estimate) -> str | None:
    """Return a share of lifetimes as a count, such as ``11/15``; None without lifetimes."""
    return None if share.missing else f"{round(share.value * share.n)}/{share.n}"
