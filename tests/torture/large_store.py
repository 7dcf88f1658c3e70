"""Costs of a store of many records: commits, index, queries over all logs, and status.

The records are made up (see ``made_up_records``), 100 log rows each. After an interrupt the next
call continues. Times and memory are those of new processes, including their start.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import rulescope
from made_up_records import made_up
from rulescope.learners.learner_config import VARIANTS
from rulescope.records import Store
from rulescope.run_spec import RunSpec

QUERY = (
    "SELECT learner, scale, iteration, avg(score), stddev(score), max(effective_bins) "
    "FROM runs JOIN logs USING (id) GROUP BY ALL"
)
DURABLE = 100
"""Records that are flushed to the disk as usual; the others are not."""


class Cost(NamedTuple):
    """The seconds and the peak megabytes of one command."""

    seconds: float
    memory: float


class Costs(NamedTuple):
    """The costs of a store of ``records`` records."""

    records: int
    commit: float
    """Milliseconds per record, flushed to the disk; 0 if the store was complete already."""
    listing: float
    """Seconds to list all ids."""
    status: Cost
    first_query: Cost
    """Over all logs, without an index."""
    query: Cost
    """Over all logs, with an index."""
    query_after_ten: Cost
    """Over all logs, with ten new records."""


def spec(number: int) -> RunSpec:
    """Return the specification of run ``number``; all are different."""
    learner = VARIANTS["disco" if number % 2 else "a2c"]
    return RunSpec(learner=learner, scale=10.0 ** (number % 7 - 3), seed=number)


def fill(store: Store, count: int) -> float:
    """Fill ``store`` up to ``count`` records; return milliseconds per flushed record."""
    missing = [each for each in map(spec, range(count)) if each.id not in store]
    start = time.perf_counter()
    for each in missing[:DURABLE]:
        store.commit(made_up(each))
    cost = 1000 * (time.perf_counter() - start) / max(len(missing[:DURABLE]), 1)
    real = os.fsync
    os.fsync = lambda _: None  # type: ignore[assignment]
    try:
        for each in missing[DURABLE:]:
            store.commit(made_up(each))
    finally:
        os.fsync = real
    return cost


def cost(*command: str) -> Cost:
    """Run ``rulescope`` with these arguments; return its cost."""
    program = "from rulescope.cli.main import run; run()"
    paths = str(Path(rulescope.__file__).parents[1])
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", program, *command],
        env=os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"rulescope {' '.join(command)} ended with {process.returncode}")
    return Cost(time.perf_counter() - start, _megabytes(used))


def _megabytes(used: resource.struct_rusage) -> float:
    return used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def torture(root: Path, count: int, log: Callable[[str], None] = lambda _: None) -> Costs:
    """Fill a store and measure its costs."""
    store = Store(root)
    commit = fill(store, count)
    log(f"{count:,} records are there")
    start = time.perf_counter()
    listed = sum(1 for _ in store.ids())
    listing = time.perf_counter() - start
    assert listed == count, f"{root}: holds {listed:,} records instead of {count:,}"
    shutil.rmtree(root / "index", ignore_errors=True)
    where = ("--store", str(root))
    query = ("records", "query", QUERY, "--csv", *where)
    status, first, later = cost("status", *where), cost(*query), cost(*query)
    for number in range(10):
        store.delete(spec(number).id)
    fill(store, count)
    return Costs(count, commit, listing, status, first, later, cost(*query))
