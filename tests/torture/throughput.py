"""The throughput of two workers and of one, on Disco lifetimes of standard size.

The result is only meaningful on an idle machine.
"""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.disco_comparison import FALLBACK, RULE
from rulescope.engine.local_engine import run_all
from rulescope.learners.disco_config import Disco
from rulescope.records import Store
from rulescope.rules import released_rules, weight_files
from rulescope.run_spec import RunSpec


class Throughput(NamedTuple):
    """Iterations per second of a whole campaign, including the start of its workers."""

    rule: str
    one: list[float]
    two: list[float]
    ratios: list[float]
    """Two workers over one, by round."""
    load: float
    """Load of the machine at the start: well above zero means that it was not idle."""

    @property
    def ratio(self) -> float:
        """The median over rounds."""
        return statistics.median(self.ratios)


def torture(folder: Path, rounds: int = 3, lifetimes: int = 4, iterations: int = 300) -> Throughput:
    """Measure in rounds: the same lifetimes with one worker, then with two."""
    load = os.getloadavg()[0]
    rule = RULE if weight_files.find(released_rules.get(RULE)) is not None else FALLBACK
    specs = [
        RunSpec(learner=Disco(rule=rule), iterations=iterations, seed=seed)
        for seed in range(lifetimes)
    ]
    one: list[float] = []
    two: list[float] = []
    for number in range(rounds):
        for workers, speeds in ((1, one), (2, two)):
            start = time.perf_counter()
            store = Store(folder / f"{number}-{workers}")
            campaign = run_all(specs, store, workers=workers, name="throughput")
            speeds.append(campaign.total / (time.perf_counter() - start))
            if campaign.failed:
                raise RuntimeError(f"lifetimes failed: {campaign.failed}")
    ratios = [fast / slow for slow, fast in zip(one, two, strict=True)]
    return Throughput(rule, one, two, ratios, load)
