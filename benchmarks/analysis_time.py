"""The time that the analysis of a full-size assay takes, from the store to the tables.

    python -m benchmarks.analysis_time [ASSAY] [STORE]

The records are synthetic (see ``tests/made_up_records.py``); writing them is not timed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from rulescope import assays
from rulescope.assays.plan import Plan
from rulescope.assays.results_folder import write_results
from rulescope.records import Store

TESTS = Path(__file__).parents[1] / "tests"


def main(name: str = "E1", folder: str | None = None) -> None:
    """Fill a store, then time each step of the analysis."""
    import made_up_records

    assay = assays.find(name)
    with tempfile.TemporaryDirectory() as temporary:
        store = Store(Path(folder or temporary) / "store")
        budget = assay.budget("paper")
        empty = Plan.of(assay, budget, store)
        made_up_records.fill(store, [*empty.runs.values(), *empty.donors.values()])
        clock = [time.perf_counter()]
        plan = Plan.of(assay, budget, store)
        clock.append(time.perf_counter())
        results = plan.analyse(store)
        clock.append(time.perf_counter())
        used = {key: store.read(key).manifest.science_hash for key in plan.present}
        paths = write_results(assay, results, {}, used, Path(temporary) / "results")
        clock.append(time.perf_counter())
    steps = [later - earlier for earlier, later in pairwise(clock)]
    print(f"{assay.id}: {len(plan.runs)} lifetimes, {len(results.estimates)} estimates")
    print(f"plan {steps[0]:.1f} s, read and analyse {steps[1]:.1f} s, ", end="")
    print(f"write {len(paths)} files {steps[2]:.1f} s, together {sum(steps):.1f} s")


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    main(*sys.argv[1:3])
