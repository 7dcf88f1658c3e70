"""From a spec to a record in the store: found, resumed, or made."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rulescope import spec as specs
from rulescope.lifetime import Lifetime, Progress
from rulescope.records import Record, Store
from rulescope.spec import RunSpec

_log = logging.getLogger(__name__)

CHECKPOINT_SECONDS = 60.0
"""A killed run loses at most about this much work."""


class Paused(Exception):
    """A lifetime was stopped on request; its checkpoint is in the store."""

    def __init__(self, iteration: int) -> None:
        super().__init__(f"stopped after iteration {iteration}")
        self.iteration = iteration


def find_or_make(
    spec: RunSpec,
    store: Store,
    *,
    report: Callable[[Progress], None] | None = None,
    stop_after: int | None = None,
    weights: Path | None = None,
    device: str = "cpu",
) -> Record:
    """Return the record of ``spec``, living the lifetime (or the rest of it) if need be.

    Donors are found or made first. A checkpoint is kept every minute, at ``stop_after`` (then
    :class:`Paused` is raised) and when the run is interrupted; the next call goes on from there to
    the bit.
    """
    spec = specs.checked(spec)
    if spec.id in store:
        return store.read(spec.id)
    donors = {
        donor.id: find_or_make(donor, store, report=report, weights=weights, device=device).state
        for donor in spec.donors
    }
    lifetime = Lifetime(spec, device=device, weights=weights, donors=donors)
    checkpoint = store.load_checkpoint(spec.id)
    if checkpoint is not None and lifetime.accepts(checkpoint):
        lifetime.load(checkpoint)
    elif checkpoint is not None:
        # A record must be the work of one program: half a lifetime of another is of no use.
        _log.warning("run %s starts again: its checkpoint is another version's", spec.id[:12])
    keep = _Keeper(lifetime, store, report)
    with keep.watching():
        lifetime.run(stop_after, keep)
    if not lifetime.finished:
        keep.now()
        raise Paused(lifetime.iteration)
    record = lifetime.record()
    store.commit(record)
    store.drop_checkpoint(spec.id)
    return record


class _Keeper:
    """Passes progress on, and keeps a checkpoint now and then, and when interrupted."""

    def __init__(
        self, lifetime: Lifetime, store: Store, report: Callable[[Progress], None] | None
    ) -> None:
        self._lifetime, self._store, self._report = lifetime, store, report
        self._kept = time.monotonic()
        self._interrupted = False

    def __call__(self, progress: Progress) -> None:
        if self._report is not None:
            self._report(progress)
        if self._interrupted:
            self.now()
            raise KeyboardInterrupt
        if time.monotonic() - self._kept >= CHECKPOINT_SECONDS:
            self.now()

    def now(self) -> None:
        """Keep a checkpoint of this moment."""
        self._store.save_checkpoint(self._lifetime.spec.id, self._lifetime.save())
        self._kept = time.monotonic()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Hold an interrupt back until the iteration under way is whole."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread may receive signals
            return

        def remember(*_: object) -> None:
            self._interrupted = True

        before = signal.signal(signal.SIGINT, remember)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
