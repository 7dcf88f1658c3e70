"""Lifetimes without computation, which use donors, logs and checkpoints as real ones do.

The result depends on every iteration and on the terminal state of every donor: a run that resumed
from a wrong checkpoint, or had a wrong donor, has another science hash.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rulescope import runner
from rulescope.core import runtime
from rulescope.core.arrays import Arrays, digest
from rulescope.interventions import States
from rulescope.lifetime import Progress
from rulescope.records import Record
from rulescope.run_spec import RunSpec

STEP_SECONDS = 0.0005


class LightLifetime:
    """Replaces :class:`rulescope.lifetime.Lifetime`."""

    def __init__(
        self,
        spec: RunSpec,
        *,
        device: str = "cpu",  # noqa: ARG002
        weights: Path | None = None,  # noqa: ARG002
        donors: States | None = None,
    ) -> None:
        self.spec, self.iteration = spec, 0
        self._inherited = {donor.id: digest((donors or {})[donor.id]) for donor in spec.donors}
        start = f"{spec.id}|{sorted(self._inherited.items())}".encode()
        self._history = hashlib.sha256(start).digest()
        self._log: list[float] = []

    @property
    def finished(self) -> bool:
        return self.iteration >= self.spec.iterations

    def run(
        self, until: int | None = None, report: Callable[[Progress], None] | None = None
    ) -> None:
        last = self.spec.iterations if until is None else min(until, self.spec.iterations)
        while self.iteration < last:
            time.sleep(STEP_SECONDS)
            self.iteration += 1
            self._history = hashlib.sha256(self._history).digest()
            if self.iteration % self.spec.log_every == 0:
                self._log.append(int.from_bytes(self._history[:4], "big") / 2**32)
            if report is not None:
                report(Progress(self.iteration, self.spec.iterations, 0.0))

    def accepts(self, checkpoint: Arrays) -> bool:
        return "history" in checkpoint

    def save(self) -> dict[str, NDArray[Any]]:
        return {
            "history": np.frombuffer(self._history, np.uint8),
            "iteration": np.array(self.iteration),
            "log": np.array(self._log),
        }

    def load(self, checkpoint: Arrays) -> None:
        self._history = checkpoint["history"].tobytes()
        self.iteration = int(checkpoint["iteration"])
        self._log = checkpoint["log"].tolist()

    def record(self) -> Record:
        rows = np.arange(1, len(self._log) + 1) * self.spec.log_every
        state = np.frombuffer(self._history, np.uint8)
        return Record.make(
            self.spec,
            {"iteration": rows.astype(np.float64), "score": np.array(self._log)},
            {f"{carrier}/history": state for carrier in self.spec.kept},
            source={"version": "made up"},
            runtime={"made up": True},
            rule=None,
            started=datetime.now(UTC),
            seconds=0.0,
            inherited=self._inherited,
        )


@contextmanager
def light_lifetimes() -> Iterator[None]:
    """Use light lifetimes in this process while entered."""
    before = runtime.single_threaded, vars(runner)["Lifetime"]
    use_light_lifetimes()
    try:
        yield
    finally:
        runtime.single_threaded, vars(runner)["Lifetime"] = before


def use_light_lifetimes() -> None:
    """Use light lifetimes in this process, which never imports torch."""
    runtime.single_threaded = lambda *_: None
    vars(runner)["Lifetime"] = LightLifetime
