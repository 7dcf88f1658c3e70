"""A small record to write, read and damage."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from rulescope.core.arrays import Arrays
from rulescope.records import Record, RuleIdentity
from rulescope.run_spec import RunSpec

RULE = RuleIdentity(name="disco103", sha256="a" * 64, digest="b" * 64)
STARTED = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)


def sample_log() -> Arrays:
    return {
        "iteration": np.array([20, 40, 60], dtype=np.int64),
        "score": np.array([0.25, np.nan, -0.0], dtype=np.float64),
        "policy": np.arange(6, dtype=np.float32).reshape(3, 2),
    }


def sample_state() -> Arrays:
    return {
        "averages/moment": np.array(0.5, dtype=np.float32),
        "recurrent/h": np.linspace(-1, 1, 7, dtype=np.float32),
    }


def sample(
    seed: int = 0,
    *,
    log: Arrays | None = None,
    started: datetime = STARTED,
    seconds: float = 1.25,
    torch: str = "2.6.0",
) -> Record:
    """Return a record of the default specification with this ``seed``."""
    return Record.make(
        RunSpec(iterations=60, seed=seed),
        sample_log() if log is None else log,
        sample_state(),
        source={"version": "0.1.0", "commit": None, "dirty": None},
        runtime={"torch": torch, "threads": 1},
        rule=RULE,
        started=started,
        seconds=seconds,
    )


def changed_log() -> Arrays:
    """Return the sample log with one bit of one value flipped."""
    log = dict(sample_log())
    bits = log["score"].view(np.uint64).copy()
    bits[0] ^= np.uint64(1)
    return log | {"score": bits.view(np.float64)}
