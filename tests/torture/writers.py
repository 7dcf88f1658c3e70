"""Many processes that commit the same runs into one store at once: each run exactly once."""

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
from rulescope.records import Store
from rulescope.records.record import encode
from rulescope.spec.baseline_config import RandomPolicy
from rulescope.spec.run_spec import RunSpec

START_SECONDS, LAST_SECONDS = 120.0, 600.0


class Written(NamedTuple):
    """What became of the runs."""

    commits: int
    """Calls of ``commit``, of all processes together."""
    won: dict[str, int]
    """By run id, how many processes were told that theirs is the record that is kept."""
    problems: list[str]
    rubbish: int


def _specs(runs: int) -> list[RunSpec]:
    return [
        RunSpec(learner=RandomPolicy(), iterations=20, log_every=10, seed=seed)
        for seed in range(runs)
    ]


def _write(root: Path, runs: int, writer: int, ready: Barrier, told: Queue[list[str]]) -> None:
    """Bring every run into the store, in an order of our own; tell which are ours."""
    files = {}
    for spec in _specs(runs):
        record = made_up(spec)
        # Not part of the science hash, but of the files: no two writers bring the same bytes.
        manifest = msgspec.structs.replace(record.manifest, seconds=float(writer + 1))
        files[spec.id] = encode(replace(record, manifest=manifest))
    order = list(files)
    random.Random(writer).shuffle(order)
    store = Store(root)
    ready.wait(START_SECONDS)
    told.put([run for run in order if store.commit_files(run, files[run])])


def torture(root: Path, processes: int, runs: int) -> Written:
    """Let ``processes`` commit the same ``runs`` at once, each in another order."""
    context = multiprocessing.get_context("spawn")
    ready, told = context.Barrier(processes), context.Queue()
    writers = [
        context.Process(target=_write, args=(root, runs, writer, ready, told), daemon=True)
        for writer in range(processes)
    ]
    for each in writers:
        each.start()
    won = Counter(run for _ in writers for run in told.get(timeout=LAST_SECONDS))
    for each in writers:
        each.join()
    store = Store(root)
    problems = [f"{problem.id}: {problem.problem}" for problem in store.verify()]
    problems += [f"{item.path.name}: in quarantine" for item in store.quarantined()]
    problems += [f"a writer ended with code {each.exitcode}" for each in writers if each.exitcode]
    here, wanted = set(store.ids()), {spec.id for spec in _specs(runs)}
    problems += [f"{run}: not in the store" for run in wanted - here]
    problems += [f"{run}: in the store, but nobody's" for run in here - wanted]
    rubbish = sum(1 for _ in (root / "tmp").iterdir())
    return Written(
        processes * runs, {run: won[run] for run in wanted | set(won)}, problems, rubbish
    )
