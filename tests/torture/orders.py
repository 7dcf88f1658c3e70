"""One campaign with different workers and orders of runs: the science hashes are equal."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from torture.campaign_process import Lifetimes
from torture.kills import undisturbed

Run = Callable[[Path], dict[str, str]]
"""Runs the grid into a new store; returns its science hashes by id."""


class Ordered(NamedTuple):
    """The ways that were compared, the number of runs, and the runs that differ by way."""

    ways: list[str]
    runs: int
    different: dict[str, list[str]]


def ways(lifetimes: Lifetimes = "real", seeds: int = 3) -> dict[str, Run]:
    """Return the ways to run the grid by name; all are compared with the first."""
    here = partial(undisturbed, lifetimes=lifetimes, seeds=seeds)
    return {
        "1 worker": partial(here, workers=1),
        "2 workers": partial(here, workers=2),
        "2 workers, shuffled": partial(here, workers=2, shuffle=1),
        "3 workers, shuffled otherwise": partial(here, workers=3, shuffle=2),
    }


def torture(folder: Path, tried: dict[str, Run]) -> Ordered:
    """Run the grid in every way of ``tried``, each in its own store below ``folder``."""
    found = {name: run(folder / name.replace(" ", "-")) for name, run in tried.items()}
    first = next(iter(found.values()))
    different = {
        name: [run for run in sorted({*first, *other}) if first.get(run) != other.get(run)]
        for name, other in found.items()
    }
    return Ordered(
        list(found), len(first), {name: runs for name, runs in different.items() if runs}
    )
