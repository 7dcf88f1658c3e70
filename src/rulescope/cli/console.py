"""The console that text and tables are printed to."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, JustifyMethod
from rich.table import Table

WIDTH = 1000
"""Wider than anything printed: a terminal wraps long lines, but a truncated number is lost."""


def console(quiet: bool = False) -> Console:
    """Return a console on standard output that truncates neither text nor tables."""
    return Console(highlight=False, soft_wrap=True, width=WIDTH, quiet=quiet)


def printable(text: str) -> str:
    """Return ``text`` without control characters: a store may come from an untrusted source."""
    return "".join(mark if mark.isprintable() else "\ufffd" for mark in text)


def span(numbers: Iterable[int]) -> str:
    """Return the least and the greatest of ``numbers`` as text.

    >>> span([2000, 20000, 3000]), span([12, 12])
    ('2,000 to 20,000', '12')
    """
    values = sorted(numbers)
    least, greatest = values[0], values[-1]
    return f"{least:,}" if least == greatest else f"{least:,} to {greatest:,}"


def make_table(*headings: str, no_wrap: bool = False) -> Table:
    """Return an empty table; a heading that starts with ``>`` is that of a column of numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        justify: JustifyMethod = "right" if heading.startswith(">") else "left"
        table.add_column(heading.removeprefix(">"), justify=justify, no_wrap=no_wrap)
    return table
