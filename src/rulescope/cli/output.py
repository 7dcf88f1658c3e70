"""Where text for people goes."""

from __future__ import annotations

from rich.console import Console

WIDTH = 1000
"""Wider than anything printed: a terminal breaks long lines, but nobody mends a cut-off number."""


def console(quiet: bool = False) -> Console:
    """Return the standard output, for text and tables that are never truncated."""
    return Console(highlight=False, soft_wrap=True, width=WIDTH, quiet=quiet)


def counted(number: int, thing: str) -> str:
    """Return a number of things in words.

    >>> counted(1, "seed"), counted(0, "donor")
    ('1 seed', '0 donors')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
