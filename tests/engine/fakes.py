"""Fake workers: they start at once, compute nothing, and fail as the seed of a run says."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from made_up_records import made_up
from rulescope import runner
from rulescope.core import runtime
from rulescope.core.errors import DivergedError, ExitError, PassingError, RecordError, WorldError
from rulescope.engine import worker
from rulescope.learners.baseline_config import RandomPolicy
from rulescope.lifetime import Progress
from rulescope.records import Store
from rulescope.run_spec import RunSpec

STEP_SECONDS = 0.002
DIVERGES, RAISES, RAISES_TWICE, STUCK_ONCE, STUCK = 1001, 1002, 1003, 1004, 1005
WRONG: dict[int, BaseException] = {
    1011: RecordError("cannot be continued"),
    1012: WorldError("reward is NaN"),
    1013: ExitError("the rule called sys.exit(0)"),
    1014: TypeError("the rule is wrong"),
}
"""Seed to an error that is not retryable."""
DAMAGED_ONCE, MIXED_ONCE = 1021, 1022
BASE = RunSpec(learner=RandomPolicy(), iterations=20, log_every=10)


def fake(seed: int = 0, **changes: Any) -> RunSpec:
    return msgspec.structs.replace(BASE, seed=seed, **changes)


def endless(seed: int = 0) -> RunSpec:
    return fake(seed, iterations=10_000_000)


def run_worker(pipe: Connection, root: Path, weights: Path | None, device: str) -> None:
    """Do as a real worker does, with fake runs and more heartbeats."""
    worker.HEARTBEAT_SECONDS = 0.1
    runtime.single_threaded = lambda *_: None
    runner.find_or_make = run  # type: ignore[assignment]
    worker.run_worker(pipe, root, weights, device)


def run_real_worker(pipe: Connection, root: Path, weights: Path | None, device: str) -> None:
    """Do as a real worker does, with more heartbeats."""
    worker.HEARTBEAT_SECONDS = 0.1
    worker.run_worker(pipe, root, weights, device)


def run_worker_without_torch(
    pipe: Connection, root: Path, weights: Path | None, device: str
) -> None:
    """Fail to start, as without torch."""

    def fail(*_: object) -> None:
        raise ImportError("libtorch: no such file")

    runtime.single_threaded = fail  # type: ignore[assignment]
    worker.run_worker(pipe, root, weights, device)


def run(
    spec: RunSpec,
    store: Store,
    *,
    report: Callable[[Progress], None],
    stop: Callable[[], bool],
    weights: Path | None,  # noqa: ARG001
    device: str,  # noqa: ARG001
    sharing: runner.Sharing,  # noqa: ARG001
) -> None:
    """Count the iterations, with a short sleep for each."""
    attempt = _count_attempt(spec, store)
    kept = store.load_checkpoint(spec.id)
    for iteration in range(1 if kept is None else int(kept["iteration"]) + 1, spec.iterations + 1):
        time.sleep(STEP_SECONDS)
        _fail(spec, attempt)
        report(Progress(iteration, spec.iterations, 0.0))
        if stop():
            store.save_checkpoint(spec.id, {"iteration": np.array(iteration)})
            raise runner.Paused(iteration)
    store.commit(made_up(spec))
    store.drop_checkpoint(spec.id)


def _fail(spec: RunSpec, attempt: int) -> None:
    """Raise, or hang, as the seed of ``spec`` says."""
    match spec.seed:
        case s if s == DIVERGES:
            raise DivergedError("not finite")
        case s if s == RAISES or (s == RAISES_TWICE and attempt <= 2):
            raise OSError(f"attempt {attempt}: the disk is away")
        case s if s in WRONG:
            raise WRONG[s]
        case s if s == DAMAGED_ONCE and attempt <= 1:
            raise PassingError("its donor was damaged")
        case s if s == MIXED_ONCE and attempt <= 1:
            raise runtime.MixedSourceError("edited")
        case s if s == STUCK or (s == STUCK_ONCE and attempt <= 1):
            time.sleep(3600)


def _count_attempt(spec: RunSpec, store: Store) -> int:
    """Return the number of this attempt at ``spec``, from 1; kept in the store."""
    folder = store.root / "attempts" / spec.id
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{os.getpid()}-{time.monotonic_ns()}").touch()
    return len(list(folder.iterdir()))
