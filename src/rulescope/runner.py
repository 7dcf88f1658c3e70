"""From a spec to a record in the store: found, resumed, or made."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from rulescope import plugin_sources
from rulescope.core.arrays import Arrays
from rulescope.core.signals import Interrupts
from rulescope.lifetime import Lifetime, Progress
from rulescope.records import Record
from rulescope.spec import run_spec as specs
from rulescope.spec.run_spec import RunSpec

_log = logging.getLogger(__name__)

CHECKPOINT_SECONDS = 60.0
"""A killed run loses at most about this much work."""


class Paused(Exception):
    """A lifetime was stopped on request; its checkpoint is in the store."""

    def __init__(self, iteration: int) -> None:
        super().__init__(f"stopped after iteration {iteration}")
        self.iteration = iteration


class Keep(Protocol):
    """What making a record takes of a :class:`~rulescope.records.Store`."""

    def __contains__(self, run: str) -> bool: ...

    def read(self, run: str) -> Record:
        """Return a verified record."""
        ...

    def commit(self, record: Record) -> str:
        """Keep ``record``; return its id."""
        ...

    def save_checkpoint(self, run: str, state: Arrays) -> None:
        """Keep (or replace) the checkpoint of ``run``."""
        ...

    def load_checkpoint(self, run: str) -> dict[str, NDArray[Any]] | None:
        """Return the checkpoint of ``run``, or None if there is none that can be trusted."""
        ...

    def drop_checkpoint(self, run: str) -> None:
        """Remove the checkpoint of ``run``, if there is one."""
        ...


def find_or_make(
    spec: RunSpec,
    store: Keep,
    *,
    report: Callable[[Progress], None] | None = None,
    stop_after: int | None = None,
    stop: Callable[[], bool] | None = None,
    weights: Path | None = None,
    device: str = "cpu",
) -> Record:
    """Return the record of ``spec``, living the lifetime (or the rest of it) if need be.

    Donors are found or made first. A checkpoint is kept every minute, and before the lifetime is
    left: after iteration ``stop_after``, or when ``stop``, asked after every iteration, says so
    (then :class:`Paused` is raised), or at Ctrl-C or SIGTERM (then ``KeyboardInterrupt``; a second
    one does not wait for the iteration). The next call goes on from there to the bit. A caller who
    gives ``stop`` answers signals itself.
    """
    spec = specs.checked(spec)
    if spec.id in store:
        record = store.read(spec.id)
        plugin_sources.require_same_world(spec, record.manifest)
        return record
    missing = (item for key, item in specs.with_donors([spec]).items() if key not in store)
    plugin_sources.require_plugins(missing)
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
        # A record must be the work of one program: half a lifetime of another is of no use.
        _log.warning("run %s starts again: its checkpoint is another version's", spec.id[:12])
    with Interrupts() if stop is None else nullcontext() as interrupts:
        keep = _Keeper(lifetime, store, report, stop, interrupts)
        lifetime.run(stop_after, keep)
        if not lifetime.finished:
            keep.now()
            raise Paused(lifetime.iteration)
        record = lifetime.record()
        store.commit(record)
        store.drop_checkpoint(spec.id)
    if interrupts is not None and interrupts.asked:
        raise KeyboardInterrupt  # it came while the last iteration was made
    return record


class _Keeper:
    """Passes progress on, and keeps a checkpoint now and then, and before the lifetime is left."""

    def __init__(
        self,
        lifetime: Lifetime,
        store: Keep,
        report: Callable[[Progress], None] | None,
        stop: Callable[[], bool] | None,
        interrupts: Interrupts | None,
    ) -> None:
        self._lifetime, self._store, self._report = lifetime, store, report
        self._stop, self._interrupts = stop, interrupts
        self._kept = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        if self._report is not None:
            self._report(progress)
        if self._lifetime.finished:
            return  # only the record is left to be made, which takes less than a checkpoint
        if self._interrupts is not None and self._interrupts.asked:
            self.now()
            raise KeyboardInterrupt
        if self._stop is not None and self._stop():
            self.now()
            raise Paused(self._lifetime.iteration)
        if time.monotonic() - self._kept >= CHECKPOINT_SECONDS:
            self.now()

    def now(self) -> None:
        """Keep a checkpoint of this moment."""
        self._store.save_checkpoint(self._lifetime.spec.id, self._lifetime.save())
        self._kept = time.monotonic()
