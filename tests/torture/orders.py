"""The same campaign in different ways: whoever lives a run, and whenever, it comes out the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from torture.campaign import Lives
from torture.kills import undisturbed

Run = Callable[[Path], dict[str, str]]
"""Runs the grid into a new store and returns its science hashes by id."""


class Ordered(NamedTuple):
    """Which ways were tried, of how many runs, and where the first of them differs from others."""

    ways: list[str]
    runs: int
    different: dict[str, list[str]]


def ways(lives: Lives = "real", seeds: int = 3) -> dict[str, Run]:
    """Return the ways to run the grid, the one that others are compared with first.

    Another engine is another entry here: a function that fills a store.
    """
    here = partial(undisturbed, lives=lives, seeds=seeds)
    return {
        "1 worker": partial(here, workers=1),
        "2 workers": partial(here, workers=2),
        "2 workers, shuffled": partial(here, workers=2, shuffle=1),
        "3 workers, shuffled otherwise": partial(here, workers=3, shuffle=2),
    }


def torture(folder: Path, tried: dict[str, Run]) -> Ordered:
    """Run the grid in every way of ``tried``, each in a store of its own below ``folder``."""
    found = {name: run(folder / name.replace(" ", "-")) for name, run in tried.items()}
    first = next(iter(found.values()))
    different = {
        name: [run for run in sorted({*first, *other}) if first.get(run) != other.get(run)]
        for name, other in found.items()
    }
    return Ordered(
        list(found), len(first), {name: runs for name, runs in different.items() if runs}
    )
