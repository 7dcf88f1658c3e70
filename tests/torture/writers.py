"""Many processes that commit the same runs to one store: each run is committed exactly once."""

from __future__ import annotations

import multiprocessing
import random
from collections import Counter
from dataclasses import replace
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import NamedTuple

import msgspec

from made_up_records import made_up
from rulescope.learners.baseline_config import RandomPolicy
from rulescope.records import Store
from rulescope.records.record import encode
from rulescope.run_spec import RunSpec

START_SECONDS, LAST_SECONDS = 120.0, 600.0


class Written(NamedTuple):
    """The commits, and the problems found."""

    commits: int
    """Commits of all processes together."""
    won: dict[str, int]
    """Run id to the number of processes whose record was new."""
    problems: list[str]
    leftovers: int


def _specs(runs: int) -> list[RunSpec]:
    return [
        RunSpec(learner=RandomPolicy(), iterations=20, log_every=10, seed=seed)
        for seed in range(runs)
    ]


def _write(root: Path, runs: int, writer: int, ready: Barrier, won: Queue[list[str]]) -> None:
    """Commit every run in a random order; put those that were new into ``won``."""
    files = {}
    for spec in _specs(runs):
        record = made_up(spec)
        # Part of the files, not of the science hash: the files of all writers differ.
        manifest = msgspec.structs.replace(record.manifest, seconds=float(writer + 1))
        files[spec.id] = encode(replace(record, manifest=manifest))
    order = list(files)
    random.Random(writer).shuffle(order)
    store = Store(root)
    ready.wait(START_SECONDS)
    won.put([run for run in order if store.commit_files(run, files[run])])


def torture(root: Path, processes: int, runs: int) -> Written:
    """Commit the same ``runs`` from ``processes`` at once, each in another order."""
    context = multiprocessing.get_context("spawn")
    ready, queue = context.Barrier(processes), context.Queue()
    writers = [
        context.Process(target=_write, args=(root, runs, writer, ready, queue), daemon=True)
        for writer in range(processes)
    ]
    for each in writers:
        each.start()
    won = Counter(run for _ in writers for run in queue.get(timeout=LAST_SECONDS))
    for each in writers:
        each.join()
    store = Store(root)
    problems = [f"{problem.id}: {problem.problem}" for problem in store.verify()]
    problems += [f"{item.path.name}: in quarantine" for item in store.quarantined()]
    problems += [f"a writer ended with code {each.exitcode}" for each in writers if each.exitcode]
    here, wanted = set(store.ids()), {spec.id for spec in _specs(runs)}
    problems += [f"{run}: not in the store" for run in wanted - here]
    problems += [f"{run}: in the store, but not expected" for run in here - wanted]
    leftovers = sum(1 for _ in (root / "tmp").iterdir())
    return Written(
        processes * runs, {run: won[run] for run in wanted | set(won)}, problems, leftovers
    )
