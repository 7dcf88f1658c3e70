"""Tables made from rows of estimates: a line for each combination of labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from rulescope.assays.estimates import Estimates, Label, Row, label_text
from rulescope.assays.results import Column, Table, Value, window_label


class Index(NamedTuple):
    """A column of labels at the left of a table."""

    heading: str
    label: str
    """The label column of the rows, such as ``task``."""
    names: Mapping[Label, str]
    """The labels in the order of the table, as they are printed."""


def estimate_of(row: Row) -> Value:
    """Return the estimate of a row."""
    return row.estimate


def count_of(row: Row) -> Value:
    """Return the number of lifetimes behind a row."""
    return row.estimate.n


def window_of(row: Row) -> Value:
    """Return class and ends of the window behind a row; None if it is no width."""
    found = row.window
    return None if found is None else window_label(found.kind, found.low, found.high)


def planned(_: Row) -> bool:
    """Accept every row."""
    return True


def known(row: Row) -> bool:
    """Accept rows whose estimate could be made."""
    return row.known


class Entry(NamedTuple):
    """A column of estimates: which row it takes in each line, and what it shows of that row."""

    column: Column
    quantity: str
    labels: Mapping[str, Label] = {}
    """Labels that the line does not have."""
    show: Callable[[Row], Value] = estimate_of


def names(labels: Sequence[Label], printed: Mapping[str, str] | None = None) -> dict[Label, str]:
    """Return ``labels`` as they are printed, some of them by a name of their own.

    >>> names((0.001, 1.0)), names(("live", "pin"), {"pin": "Pin 0"})
    ({0.001: '0.001', 1.0: '1'}, {'live': 'live', 'pin': 'Pin 0'})
    """
    texts = {label: label_text(label) for label in labels}
    return {label: (printed or {}).get(text, text) for label, text in texts.items()}


def pivot(
    found: Estimates,
    index: Sequence[Index],
    entries: Sequence[Entry],
    shown: Callable[[Row], bool] = planned,
) -> tuple[tuple[Value, ...], ...]:
    """Return the lines of a table, the first column of labels varying slowest.

    A line appears if any of its entries has a row that ``shown`` accepts.
    """
    lines: list[tuple[Value, ...]] = []
    for combination in product(*(column.names for column in index)):
        labels = {column.label: label for column, label in zip(index, combination, strict=True)}
        rows = [found.find(entry.quantity, **labels, **entry.labels) for entry in entries]
        if any(row is not None and shown(row) for row in rows):
            texts = (column.names[labels[column.label]] for column in index)
            values = (
                None if row is None else entry.show(row)
                for entry, row in zip(entries, rows, strict=True)
            )
            lines.append((*texts, *values))
    return tuple(lines)


def pivot_table(
    label: str,
    title: str,
    found: Estimates,
    index: Sequence[Index],
    entries: Sequence[Entry],
    note: str,
    *,
    shown: Callable[[Row], bool] = planned,
    tells_n: bool = True,
) -> Table:
    """Return the table of :func:`pivot` with its headings."""
    columns = (*(Column(one.heading) for one in index), *(entry.column for entry in entries))
    return Table(label, title, columns, pivot(found, index, entries, shown), note, tells_n)


def keep_filled(*tables: Table) -> tuple[Table, ...]:
    """Return the tables that have a line."""
    return tuple(table for table in tables if table.rows)
