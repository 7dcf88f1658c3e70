"""Runs a specification into a record of the store: loaded, resumed, or computed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from rulescope import run_packages, shared_prefix
from rulescope import run_spec as specs
from rulescope.core.arrays import Arrays
from rulescope.core.errors import RecordError
from rulescope.core.signals import Interrupts
from rulescope.lifetime import Lifetime, Progress
from rulescope.records import Record
from rulescope.records.branch_checkpoints import BranchCheckpoints
from rulescope.run_spec import RunSpec

_log = logging.getLogger(__name__)

CHECKPOINT_SECONDS = 60.0
"""Seconds between checkpoints: a killed run loses at most about this much work."""


class Paused(Exception):
    """A run was paused on request; its checkpoint is in the store."""

    def __init__(self, iteration: int) -> None:
        super().__init__(f"stopped after iteration {iteration}")
        self.iteration = iteration


class Sharing(NamedTuple):
    """What a run shares with others that have the same first iterations."""

    checkpoints: BranchCheckpoints
    start: int = 0
    """Iteration of the branch checkpoint to start from; 0: none."""
    users: Mapping[int, tuple[str, ...]] = {}
    """Iterations after which to save a branch checkpoint, with the runs that start from it."""


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
    sharing: Sharing | None = None,
) -> Record:
    """Return the record of ``spec``; run the lifetime, or the rest of it, if there is none.

    Donors are loaded or run first. A checkpoint is stored every minute, and when the run pauses:
    after iteration ``stop_after``, or when ``stop``, called after every iteration, returns True
    (both raise :class:`Paused`), or at Ctrl-C or SIGTERM (``KeyboardInterrupt``; a second signal
    does not wait for the iteration). The next call resumes bit-identically from the checkpoint.
    With ``stop`` given, the caller handles signals itself. With ``sharing``, a run without a
    checkpoint of its own starts from that of a run with the same first iterations, if there is one.
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
    else:
        if checkpoint is not None:
            # A record must be the work of one program: another one's checkpoint cannot be used.
            _log.warning("run %s starts again: its checkpoint is another version's", spec.id[:12])
        if sharing is not None and sharing.start:
            _load_branch(lifetime, sharing)
    with Interrupts() if stop is None else nullcontext() as interrupts:
        checkpoints = _Checkpointer(lifetime, store, report, stop, interrupts, sharing)
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


def _load_branch(lifetime: Lifetime, sharing: Sharing) -> None:
    """Start ``lifetime`` from its branch checkpoint; without a valid one it starts anew."""
    branch = shared_prefix.branch_of(lifetime.spec, sharing.start)
    state = sharing.checkpoints.load(branch)
    if state is None or not lifetime.load_branch(state):
        _log.warning("run %s starts without a shared state", lifetime.spec.id[:12])


class _Checkpointer:
    """Reports progress, and stores a checkpoint every minute and when the run stops."""

    def __init__(
        self,
        lifetime: Lifetime,
        store: RecordStore,
        report: Callable[[Progress], None] | None,
        stop: Callable[[], bool] | None,
        interrupts: Interrupts | None,
        sharing: Sharing | None,
    ) -> None:
        self._lifetime, self._store, self._report = lifetime, store, report
        self._stop, self._interrupts, self._sharing = stop, interrupts, sharing
        self._saved = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        if self._sharing is not None and progress.iteration in self._sharing.users:
            self._save_branch(self._sharing)  # before the report, which starts the other runs
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

    def _save_branch(self, sharing: Sharing) -> None:
        """Store the current state for other runs; an error does not concern this run."""
        iteration = self._lifetime.iteration
        branch = shared_prefix.branch_of(self._lifetime.spec, iteration)
        try:
            sharing.checkpoints.save(branch, sharing.users[iteration], self._lifetime.save_branch())
        except RecordError as fault:
            _log.warning("no branch checkpoint for other runs: %s", fault)
