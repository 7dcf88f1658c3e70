"""The code inside a Ray actor: a worker that receives and returns everything as bytes.

It writes no records to its own disk and shares no disk with others. Donors' records and a
checkpoint come with the run. Finished records and new checkpoints are returned, in the form in
which a store keeps them, and are verified when they are committed to the store.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from rulescope.core import arrays
from rulescope.core.arrays import Arrays
from rulescope.engine.messages import Heartbeat, Ready, RunEnded, StartFailed
from rulescope.engine.worker import RunWorker, describe_error
from rulescope.records.record import Record, decode, encode

Files = dict[str, bytes]
"""The content of a record's files by name."""


class StartReport(NamedTuple):
    """Whether an actor could start, and where."""

    message: Ready | StartFailed
    host: str


class ProgressReport(NamedTuple):
    """The progress of a run."""

    heartbeat: Heartbeat
    checkpoint: bytes | None
    """The newest one; None if there is none, or if it was reported before."""


class RunReport(NamedTuple):
    """How a run has ended, with all that is worth keeping."""

    ended: RunEnded
    records: dict[str, Files]
    """Finished records by id; those of donors only if they did not come with the run."""
    checkpoint: bytes | None


class MemoryStore:
    """The part of a store that one run needs, in memory; see ``runner.RecordStore``."""

    def __init__(self, run: str, donors: Mapping[str, Files], checkpoint: bytes | None) -> None:
        self.run, self._records, self._initial = run, dict(donors), checkpoint
        self.committed: dict[str, Files] = {}
        self.checkpoint: bytes | None = None
        """The newest one that was saved here."""

    def __contains__(self, run: str) -> bool:
        return run in self._records

    def read(self, run: str) -> Record:
        """Return a verified record."""
        return decode(run, self._records[run])

    def commit(self, record: Record) -> str:
        """Keep ``record`` to be returned."""
        run = record.manifest.id
        self.committed[run] = self._records[run] = encode(record)
        return run

    def save_checkpoint(self, run: str, state: Arrays) -> None:
        """Keep the checkpoint to be returned; those of donors are not worth the transfer."""
        if run == self.run:
            self.checkpoint = arrays.pack(state, compress=False)

    def load_checkpoint(self, run: str) -> dict[str, NDArray[Any]] | None:
        """Return the checkpoint that came with the run."""
        if run != self.run or self._initial is None:
            return None
        return arrays.unpack(self._initial)

    def drop_checkpoint(self, run: str) -> None:
        """Remove the checkpoint."""
        if run == self.run:
            self._initial = self.checkpoint = None


class RayActor(RunWorker):
    """Runs specs in one thread, while another answers requests."""

    def __init__(self, program: str, weights: Mapping[str, bytes], device: str) -> None:
        super().__init__()
        self._program, self._weights, self._device = program, weights, device
        self._store = MemoryStore("", {}, None)
        self._reported: bytes | None = None
        self._paused_run = ""

    def start(self) -> StartReport:
        """Import everything, and install the rules' weights if this machine lacks them."""
        try:
            from rulescope.core import runtime

            here = runtime.program_name()
            if here != self._program:
                raise ImportError(f"this node has rulescope {here}, but needs {self._program}")
            runtime.single_threaded(self._device)
            for rule, content in self._weights.items():
                _install_weights(rule, content)
        except BaseException as fault:
            return StartReport(StartFailed(describe_error(fault)), platform.node())
        return StartReport(Ready(os.getpid()), platform.node())

    def run(
        self, canonical: bytes, donors: dict[str, Files], checkpoint: bytes | None
    ) -> RunReport:
        """Run a spec, from ``checkpoint`` if there is one."""
        from rulescope import run_spec

        self._store = store = MemoryStore(run_spec.decode(canonical).id, donors, checkpoint)
        ended = self.execute(canonical, store, device=self._device)
        self._paused_run = ""  # the same run may be assigned again
        return RunReport(ended, store.committed, store.checkpoint)

    def report_progress(self) -> ProgressReport:
        """Return the progress of the run, with the newest checkpoint if it is new."""
        newest = self._store.checkpoint  # read once: the other thread may replace it
        new = None if newest is self._reported else newest
        self._reported = newest
        return ProgressReport(self.heartbeat, new)

    def pause(self, run: str) -> None:
        """Stop ``run`` at a checkpoint."""
        self._paused_run = run

    def should_pause(self) -> bool:
        """Return whether the present run was paused."""
        return self._paused_run == self._store.run


def _install_weights(name: str, content: bytes) -> None:
    """Put the weights of a rule into this machine's cache, unless a valid copy is here."""
    from rulescope.rules import released_rules, weight_files

    rule = released_rules.get(name)
    if weight_files.find(rule) is None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / rule.basename).write_bytes(content)
            weight_files.fetch(rule, Path(folder))
