"""Runs a specification into a record of the store: loaded, resumed, or computed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from rulescope import run_packages
from rulescope import run_spec as specs
from rulescope.core.arrays import Arrays
from rulescope.core.signals import Interrupts
from rulescope.lifetime import Lifetime, Progress
from rulescope.records import Record
from rulescope.run_spec import RunSpec

_log = logging.getLogger(__name__)

CHECKPOINT_SECONDS = 60.0
"""Seconds between checkpoints: a killed run loses at most about this much work."""


class Paused(Exception):
    """A run was paused on request; its checkpoint is in the store."""

    def __init__(self, iteration: int) -> None:
        super().__init__(f"stopped after iteration {iteration}")
        self.iteration = iteration


class RecordStore(Protocol):
    """The part of a :class:`~rulescope.records.Store` that running a specification needs."""

    def __contains__(self, run: str) -> bool: ...

    def read(self, run: str) -> Record:
        """Return a verified record."""
        ...

    def commit(self, record: Record) -> str:
        """Store ``record``; return its id."""
        ...

    def save_checkpoint(self, run: str, state: Arrays) -> None:
        """Store (or replace) the checkpoint of ``run``."""
        ...

    def load_checkpoint(self, run: str) -> dict[str, NDArray[Any]] | None:
        """Return the checkpoint of ``run``, or None if there is no intact one."""
        ...

    def drop_checkpoint(self, run: str) -> None:
        """Remove the checkpoint of ``run``, if there is one."""
        ...


def find_or_make(
    spec: RunSpec,
    store: RecordStore,
    *,
    report: Callable[[Progress], None] | None = None,
    stop_after: int | None = None,
    stop: Callable[[], bool] | None = None,
    weights: Path | None = None,
    device: str = "cpu",
) -> Record:
    """Return the record of ``spec``; run the lifetime, or the rest of it, if there is none.

    Donors are loaded or run first. A checkpoint is stored every minute, and when the run pauses:
    after iteration ``stop_after``, or when ``stop``, called after every iteration, returns True
    (both raise :class:`Paused`), or at Ctrl-C or SIGTERM (``KeyboardInterrupt``; a second signal
    does not wait for the iteration). The next call resumes bit-identically from the checkpoint.
    With ``stop`` given, the caller handles signals itself.
    """
    spec = specs.checked(spec)
    if spec.id in store:
        record = store.read(spec.id)
        run_packages.require_same_world(spec, record.manifest)
        return record
    missing = (item for key, item in specs.with_donors([spec]).items() if key not in store)
    run_packages.require_plugins(missing)
    donors = {
        donor.id: find_or_make(
            donor, store, report=report, stop=stop, weights=weights, device=device
        ).state
        for donor in spec.donors
    }
    lifetime = Lifetime(spec, device=device, weights=weights, donors=donors)
    checkpoint = store.load_checkpoint(spec.id)
    if checkpoint is not None and lifetime.accepts(checkpoint):
        lifetime.load(checkpoint)
    elif checkpoint is not None:
        # A record must be the work of one program: another one's checkpoint cannot be used.
        _log.warning("run %s starts again: its checkpoint is another version's", spec.id[:12])
    with Interrupts() if stop is None else nullcontext() as interrupts:
        checkpoints = _Checkpointer(lifetime, store, report, stop, interrupts)
        lifetime.run(stop_after, checkpoints)
        if not lifetime.finished:
            checkpoints.save()
            raise Paused(lifetime.iteration)
        record = lifetime.record()
        store.commit(record)
        store.drop_checkpoint(spec.id)
    if interrupts is not None and interrupts.asked:
        raise KeyboardInterrupt  # it came during the last iteration
    return record


class _Checkpointer:
    """Reports progress, and stores a checkpoint every minute and when the run stops."""

    def __init__(
        self,
        lifetime: Lifetime,
        store: RecordStore,
        report: Callable[[Progress], None] | None,
        stop: Callable[[], bool] | None,
        interrupts: Interrupts | None,
    ) -> None:
        self._lifetime, self._store, self._report = lifetime, store, report
        self._stop, self._interrupts = stop, interrupts
        self._saved = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        if self._report is not None:
            self._report(progress)
        if self._lifetime.finished:
            return  # only the record remains, which takes less time than a checkpoint
        if self._interrupts is not None and self._interrupts.asked:
            self.save()
            raise KeyboardInterrupt
        if self._stop is not None and self._stop():
            self.save()
            raise Paused(self._lifetime.iteration)
        if time.monotonic() - self._saved >= CHECKPOINT_SECONDS:
            self.save()

    def save(self) -> None:
        """Store a checkpoint of the current state."""
        self._store.save_checkpoint(self._lifetime.spec.id, self._lifetime.save())
        self._saved = time.monotonic()
