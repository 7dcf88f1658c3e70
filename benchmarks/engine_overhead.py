"""The cost of running a lifetime through an engine: the local one, and Ray on this machine.

    python -m benchmarks.engine_overhead --runs 200 --workers 2

The lifetimes have one iteration, so that nearly all of the time is that of the engine and the
store. Start-up, the time until the first record is in the store, is measured separately.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from rulescope.engine import local_engine, ray_engine
from rulescope.engine.campaign import Campaign
from rulescope.learners.baseline_config import RandomPolicy
from rulescope.records import Store
from rulescope.run_spec import RunSpec
from rulescope.runner import find_or_make

TINY = RunSpec(learner=RandomPolicy(), iterations=1, log_every=1, steps=2, lanes=1)


def main() -> None:
    """Measure without an engine and with each engine; print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    specs = [msgspec.structs.replace(TINY, seed=seed) for seed in range(options.runs)]
    print(f"in this process  {1000 * time_alone(specs):6.1f} ms a lifetime, without any engine")
    engines: dict[str, Callable[..., Campaign]] = {
        "local": local_engine.run_all,
        "ray": ray_engine.run_all,
    }
    for name, run_all in engines.items():
        start, each = time_through(run_all, specs, options.workers)
        print(
            f"{name:6}{options.workers} workers  {1000 * each:6.1f} ms a lifetime, "
            f"{start:.1f} s until the first"
        )


def time_alone(specs: list[RunSpec]) -> float:
    """Return the median seconds of a lifetime in this process."""
    spent = []
    with tempfile.TemporaryDirectory() as folder:
        for spec in specs:
            began = time.perf_counter()
            find_or_make(spec, Store(Path(folder)))
            spent.append(time.perf_counter() - began)
    return statistics.median(spent)


def time_through(
    run_all: Callable[..., Campaign], specs: list[RunSpec], workers: int
) -> tuple[float, float]:
    """Return the seconds until the first record, and the mean seconds of each later one."""
    marks: list[tuple[float, int]] = []

    def mark(campaign: Campaign) -> None:
        if campaign.finished:
            marks.append((time.perf_counter(), campaign.finished))

    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        run_all(specs, Store(Path(folder)), workers=workers, report=mark)
    (first, some), (last, everything) = marks[0], marks[-1]
    return first - began, (last - first) / (everything - some)


if __name__ == "__main__":
    main()
