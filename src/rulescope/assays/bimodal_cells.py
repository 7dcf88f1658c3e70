"""Two-humped cells: some lifetimes learned, the others did not, and the mean is nobody's score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rulescope.assays.frame import Floats
from rulescope.assays.results import Table
from rulescope.stats import Estimate, is_bimodal
from rulescope.stats.agreement import Counts
from rulescope.stats.bimodality import split_groups

SEEDS = "seeds/"
"""What keys of series begin with that hold the lifetimes' own values [seeds] of an estimate."""
LEVELS = ("score", "auc", "final", "endpoint", "return", "success")
"""Kinds of estimates on a scale from 0 (random) to 1 (optimal): they may have two humps."""
RETURNS = ("E-A4m",)
"""Assays whose levels are returns of a game without a known optimum."""
WORDS = "two-humped cells, whose mean no lifetime had"


def is_level(assay: str, key: str) -> bool:
    """Return whether an estimate is a level from 0 (random) to 1 (optimal)."""
    return key.partition("/")[0] in LEVELS and assay not in RETURNS


def learned_of(seeds: Floats) -> Counts:
    """Return how many lifetimes of a two-humped cell learned, of how many."""
    lower, upper = split_groups(seeds)
    return Counts(len(upper), len(upper), len(lower) + len(upper))


def two_humped_cells(assay: str, series: Mapping[str, Floats]) -> dict[str, Counts]:
    """Return the keys of two-humped levels among ``series``, and how many lifetimes learned."""
    return {
        key.removeprefix(SEEDS): learned_of(values)
        for key, values in series.items()
        if key.startswith(SEEDS) and is_level(assay, key.removeprefix(SEEDS)) and is_bimodal(values)
    }


def in_words(cells: Mapping[str, Counts]) -> str:
    """Return two-humped cells in words; nothing if there are none.

    >>> in_words({"score/catch/pin/1000": Counts(3, 3, 8)})
    'two-humped cells, whose mean no lifetime had: score/catch/pin/1000 (3 of 8 learned)'
    """
    if not cells:
        return ""
    return f"{WORDS}: {', '.join(f'{key} ({count} learned)' for key, count in cells.items())}"


def noted_below(
    tables: Iterable[Table], found: Mapping[str, Estimate], cells: Mapping[str, Counts]
) -> tuple[Table, ...]:
    """Return ``tables``, with the two-humped cells that each shows named in its note."""
    return tuple(_noted(table, found, cells) for table in tables)


def _noted(table: Table, found: Mapping[str, Estimate], cells: Mapping[str, Counts]) -> Table:
    shown = {id(value) for row in table.rows for value in row}
    here = {key: count for key, count in cells.items() if id(found.get(key)) in shown}
    if not here:
        return table
    words = in_words(here)
    return replace(table, note=f"{table.note} {words[:1].upper()}{words[1:]}.".lstrip())
