"""Two-humped cells, in which some lifetimes learned and the others did not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rulescope.assays.estimates import Estimates, Floats
from rulescope.assays.results import Table
from rulescope.stats import is_bimodal
from rulescope.stats.agreement import Counts
from rulescope.stats.centre import split_groups

LEVELS = ("score", "auc", "final", "endpoint", "return", "success")
"""Quantities on a scale from 0 (random) to 1 (optimal), which may have two humps."""
RETURNS = ("E-A4m",)
"""Assays whose levels are returns of a game without a known optimum."""
WORDS = "two-humped cells, whose mean no lifetime had"


def is_level(assay: str, quantity: str) -> bool:
    """Return whether a quantity is a level from 0 (random) to 1 (optimal)."""
    return quantity in LEVELS and assay not in RETURNS


def learned_of(seeds: Floats) -> Counts:
    """Return how many lifetimes of a two-humped cell learned, of how many."""
    lower, upper = split_groups(seeds)
    return Counts(len(upper), len(upper), len(lower) + len(upper))


def bimodal_cells(assay: str, found: Estimates) -> dict[str, Counts]:
    """Return the names of two-humped levels, and how many lifetimes of each learned."""
    return {
        row.name: learned_of(row.seeds)
        for row in found.rows
        if row.seeds is not None and is_level(assay, row.quantity) and is_bimodal(row.seeds)
    }


def describe_cells(cells: Mapping[str, Counts]) -> str:
    """Return two-humped cells in words; nothing if there are none.

    >>> describe_cells({"score/catch/pin/1000": Counts(3, 3, 8)})
    'two-humped cells, whose mean no lifetime had: score/catch/pin/1000 (3 of 8 learned)'
    """
    if not cells:
        return ""
    return f"{WORDS}: {', '.join(f'{name} ({count} learned)' for name, count in cells.items())}"


def name_below(
    tables: Iterable[Table], found: Estimates, cells: Mapping[str, Counts]
) -> tuple[Table, ...]:
    """Return ``tables``; the note below each names the two-humped cells that it shows."""
    return tuple(_name_below(table, found, cells) for table in tables)


def _name_below(table: Table, found: Estimates, cells: Mapping[str, Counts]) -> Table:
    shown = {id(value) for row in table.rows for value in row}
    here = {name: count for name, count in cells.items() if id(found[name]) in shown}
    if not here:
        return table
    words = describe_cells(here)
    return replace(table, note=f"{table.note} {words[:1].upper()}{words[1:]}.".lstrip())
