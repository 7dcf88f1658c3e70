"""Workers that live nothing: they start in a moment, and misbehave as the seed of a run says."""

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
from rulescope.lifetime import Progress
from rulescope.records import Store
from rulescope.spec.baseline_config import RandomPolicy
from rulescope.spec.run_spec import RunSpec

STEP = 0.002
DIVERGES, RAISES, RAISES_TWICE, STUCK_ONCE, STUCK = 1001, 1002, 1003, 1004, 1005
WRONG: dict[int, BaseException] = {
    1011: RecordError("cannot be continued"),
    1012: WorldError("reward is NaN"),
    1013: ExitError("the rule called sys.exit(0)"),
    1014: TypeError("the rule is wrong"),
}
"""Faults, by seed, that the next attempt would meet again."""
DAMAGED_ONCE, MIXED_ONCE = 1021, 1022
BASE = RunSpec(learner=RandomPolicy(), iterations=20, log_every=10)


def fake(seed: int = 0, **changes: Any) -> RunSpec:
    return msgspec.structs.replace(BASE, seed=seed, **changes)


def endless(seed: int = 0) -> RunSpec:
    return fake(seed, iterations=10_000_000)


def work(pipe: Connection, root: Path, weights: Path | None) -> None:
    """Do as a real worker does, but for living; and beat faster."""
    worker.BEAT_SECONDS = 0.1
    runtime.single_threaded = lambda *_: None
    runner.find_or_make = live  # type: ignore[assignment]
    worker.work(pipe, root, weights)


def eager_work(pipe: Connection, root: Path, weights: Path | None) -> None:
    """Do all that a real worker does, and beat faster."""
    worker.BEAT_SECONDS = 0.1
    worker.work(pipe, root, weights)


def work_without_import(pipe: Connection, root: Path, weights: Path | None) -> None:
    """Fail as where torch is not to be had."""

    def fail(*_: object) -> None:
        raise ImportError("libtorch: no such file")

    runtime.single_threaded = fail  # type: ignore[assignment]
    worker.work(pipe, root, weights)


def live(
    spec: RunSpec,
    store: Store,
    *,
    report: Callable[[Progress], None],
    stop: Callable[[], bool],
    weights: Path | None,  # noqa: ARG001
    device: str,  # noqa: ARG001
) -> None:
    """Count to the number of iterations; each takes a moment."""
    tries = _tries(spec, store)
    kept = store.load_checkpoint(spec.id)
    for iteration in range(1 if kept is None else int(kept["iteration"]) + 1, spec.iterations + 1):
        time.sleep(STEP)
        _misbehave(spec, tries)
        report(Progress(iteration, spec.iterations, 0.0))
        if stop():
            store.save_checkpoint(spec.id, {"iteration": np.array(iteration)})
            raise runner.Paused(iteration)
    store.commit(made_up(spec))
    store.drop_checkpoint(spec.id)


def _misbehave(spec: RunSpec, tries: int) -> None:
    match spec.seed:
        case s if s == DIVERGES:
            raise DivergedError("not finite")
        case s if s == RAISES or (s == RAISES_TWICE and tries <= 2):
            raise OSError(f"attempt {tries}: the disk is away")
        case s if s in WRONG:
            raise WRONG[s]
        case s if s == DAMAGED_ONCE and tries <= 1:
            raise PassingError("its donor was damaged")
        case s if s == MIXED_ONCE and tries <= 1:
            raise runtime.MixedSourceError("edited")
        case s if s == STUCK or (s == STUCK_ONCE and tries <= 1):
            time.sleep(3600)


def _tries(spec: RunSpec, store: Store) -> int:
    """Count this attempt, for later ones to see."""
    folder = store.root / "attempts" / spec.id
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{os.getpid()}-{time.monotonic_ns()}").touch()
    return len(list(folder.iterdir()))
