"""A table as data: headings, rows of values and estimates, and the note below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

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
    """Below the table: whose lifetimes, their length, estimator, kind of interval."""
    tells_n: bool = True
    """Whether n is told below the table, rather than in a column of its own."""

    @property
    def n(self) -> tuple[int, int] | None:
        """The fewest and the most lifetimes behind an estimate, if that is told below the table."""
        cells = [cell for row in self.rows for cell in row if isinstance(cell, Estimate)]
        found = [cell.n for cell in cells if not cell.missing]
        return (min(found), max(found)) if found and self.tells_n else None


def in_numbers(fewest: int, most: int) -> str:
    """Return a number of seeds as a phrase.

    >>> in_numbers(1, 1), in_numbers(4, 12)
    ('1 seed', '4 to 12 seeds')
    """
    span = str(most) if fewest == most else f"{fewest} to {most}"
    return f"{span} seed{'s' if most != 1 else ''}"
