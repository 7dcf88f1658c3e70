"""Where text for people goes."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console

WIDTH = 1000
"""Wider than anything printed: a terminal breaks long lines, but nobody mends a cut-off number."""


def console(quiet: bool = False) -> Console:
    """Return the standard output, for text and tables that are never truncated."""
    return Console(highlight=False, soft_wrap=True, width=WIDTH, quiet=quiet)


def printable(text: str) -> str:
    """Return ``text`` without what could steer a terminal: a store may come from anybody."""
    return "".join(mark if mark.isprintable() else "\ufffd" for mark in text)


def spanned(numbers: Iterable[int]) -> str:
    """Return the least and the greatest of ``numbers`` in words.

    >>> spanned([2000, 20000, 3000]), spanned([12, 12])
    ('2,000 to 20,000', '12')
    """
    known = sorted(numbers)
    least, greatest = known[0], known[-1]
    return f"{least:,}" if least == greatest else f"{least:,} to {greatest:,}"
