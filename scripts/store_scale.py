"""What a store of many records costs: to fill, to index, and to ask about all logs.

    python scripts/store_scale.py [--folder FOLDER] [COUNT ...]

The records are made up (see ``rulescope.bench.synthetic``), 100 log rows each. Stopped, it goes on
where it was. Times and memory of queries are those of processes of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rulescope.bench.synthetic import made_up
from rulescope.learners.variants import VARIANTS
from rulescope.records import Store
from rulescope.records.query import asking
from rulescope.spec import RunSpec

QUESTION = (
    "SELECT learner, scale, iteration, avg(score), stddev(score), max(effective_bins) "
    "FROM runs JOIN logs USING (id) GROUP BY ALL"
)
DURABLE = 100
"""Records that are written as always, flushed to the disk; the others need not survive."""


def spec(number: int) -> RunSpec:
    """Return the specification of one of any number of different lifetimes."""
    learner = VARIANTS["disco" if number % 2 else "a2c"]
    return RunSpec(learner=learner, scale=10.0 ** (number % 7 - 3), seed=number)


def fill(store: Store, count: int) -> dict[str, float]:
    """Bring ``store`` to ``count`` records; return milliseconds a record, durable and not."""
    missing = [number for number in range(count) if spec(number).id not in store]
    real = os.fsync
    costs = {}
    for name, part in (("durable", missing[:DURABLE]), ("fast", missing[DURABLE:])):
        start = time.perf_counter()
        for number in part:
            store.commit(made_up(spec(number)))
        if part:
            costs[name] = 1000 * (time.perf_counter() - start) / len(part)
        os.fsync = lambda _: None  # type: ignore[assignment]
    os.fsync = real
    return costs


def ask(root: Path) -> dict[str, Any]:
    """Ask in this process; return how long it took and how much memory."""
    start = time.perf_counter()
    with asking(Store(root)) as questions:
        ready = time.perf_counter()
        groups = sum(1 for _ in questions.ask(QUESTION).rows)
        [[rows]] = questions.ask("SELECT count(*) FROM logs").rows
    done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "index_s": ready - start,
        "query_s": done - ready,
        "memory_mb": peak,
        "groups": groups,
        "rows": rows,
    }


def asked(root: Path) -> dict[str, Any]:
    """Ask in a process of its own."""
    command = [sys.executable, __file__, "--ask", str(root)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[str, Any] = json.loads(said)
    return found


def measure(root: Path, count: int) -> None:
    """Fill one store and print what it costs."""
    store = Store(root)
    start = time.perf_counter()
    costs = fill(store, count)
    print(f"{count:,} records, filled in {time.perf_counter() - start:.0f} s", end="")
    print("".join(f"; {cost:.1f} ms a record ({name})" for name, cost in costs.items()))
    start = time.perf_counter()
    listed = sum(1 for _ in store.ids())
    print(f"  listing {listed:,} ids: {time.perf_counter() - start:.2f} s")
    shutil.rmtree(root / "index", ignore_errors=True)
    for name in ("no index yet", "index there", "10 records anew"):
        if name == "10 records anew":
            for number in range(10):
                store.delete(spec(number).id)
            fill(store, count)
        found = asked(root)
        both = found["index_s"] + found["query_s"]
        print(
            f"  {name}: {both:.2f} s (index {found['index_s']:.2f} s, {1000 * both / count:.2f} ms "
            f"a record), {found['memory_mb']:.0f} MB, {found['rows']:,} log rows"
        )


def main() -> None:
    """Measure stores of several sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", nargs="*", type=int, default=[1000, 20000])
    parser.add_argument("--folder", type=Path, default=Path("store-scale"))
    parser.add_argument("--ask", type=Path)
    chosen = parser.parse_args()
    if chosen.ask:
        print(json.dumps(ask(chosen.ask)))
        return
    for count in chosen.counts:
        measure(chosen.folder / str(count), count)


if __name__ == "__main__":
    main()
