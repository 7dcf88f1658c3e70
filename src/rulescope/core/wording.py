"""Counts as text."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """Return a number of things in words.

    >>> counted(1, "seed"), counted(1008, "lifetime")
    ('1 seed', '1,008 lifetimes')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
