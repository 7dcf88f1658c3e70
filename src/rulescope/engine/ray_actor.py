"""A worker on some machine of a cluster: gets all that a run needs as bytes, and gives bytes back.

It writes no records to its own disk and shares none with anybody. Donors' records and a checkpoint
come with the run; finished records and new checkpoints are handed back, each in the form in which
a store keeps it, to be verified by whoever brings it into the store.
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
from rulescope.engine.messages import Beat, Ended, Ready, Unfit
from rulescope.engine.worker import Living, cause_of
from rulescope.records.record import Record, decode, encode

Files = dict[str, bytes]
"""The content of a record's files."""


class Begun(NamedTuple):
    """What a worker says first."""

    said: Ready | Unfit
    host: str


class Seen(NamedTuple):
    """How far a run is."""

    beat: Beat
    checkpoint: bytes | None
    """The last one, unless it was handed back before."""


class Outcome(NamedTuple):
    """What became of a run, and all that is worth keeping of it."""

    ended: Ended
    made: dict[str, Files]
    """Finished records by id; donors are among them only if they did not come with the run."""
    checkpoint: bytes | None


class Luggage:
    """What a run is given on its way, and what it has to bring home; see ``runner.RecordStore``."""

    def __init__(self, run: str, donors: Mapping[str, Files], checkpoint: bytes | None) -> None:
        self.run, self._records, self._given = run, dict(donors), checkpoint
        self.made: dict[str, Files] = {}
        self.checkpoint: bytes | None = None
        """The newest that was made on the way."""

    def __contains__(self, run: str) -> bool:
        return run in self._records

    def read(self, run: str) -> Record:
        """Return a verified record."""
        return decode(run, self._records[run])

    def commit(self, record: Record) -> str:
        """Keep ``record`` to be handed back."""
        run = record.manifest.id
        self.made[run] = self._records[run] = encode(record)
        return run

    def save_checkpoint(self, run: str, state: Arrays) -> None:
        """Keep the checkpoint to be handed back; a donor's is not worth its way."""
        if run == self.run:
            self.checkpoint = arrays.pack(state, compress=False)

    def load_checkpoint(self, run: str) -> dict[str, NDArray[Any]] | None:
        """Return the checkpoint that came with the run."""
        if run != self.run or self._given is None:
            return None
        return arrays.unpack(self._given)

    def drop_checkpoint(self, run: str) -> None:
        """Forget the checkpoint."""
        if run == self.run:
            self._given = self.checkpoint = None


class Remote(Living):
    """Lives runs in one thread, while another answers for it."""

    def __init__(self, program: str, weights: Mapping[str, bytes], device: str) -> None:
        super().__init__()
        self._program, self._weights, self._device = program, weights, device
        self._luggage = Luggage("", {}, None)
        self._shown: bytes | None = None
        self._unwanted = ""

    def begin(self) -> Begun:
        """Import everything, and see to it that the rules' weights are here."""
        try:
            from rulescope.core import runtime

            here = runtime.program_name()
            if here != self._program:
                raise ImportError(f"rulescope {here} is here, but {self._program} is needed")
            runtime.single_threaded(self._device)
            for rule, content in self._weights.items():
                _bring_weights(rule, content)
        except BaseException as fault:
            return Begun(Unfit(cause_of(fault)), platform.node())
        return Begun(Ready(os.getpid()), platform.node())

    def make(self, canonical: bytes, donors: dict[str, Files], checkpoint: bytes | None) -> Outcome:
        """Live a run, or the rest of it."""
        from rulescope.spec import run_spec

        self._luggage = luggage = Luggage(run_spec.decode(canonical).id, donors, checkpoint)
        ended = self.live(canonical, luggage, device=self._device)
        self._unwanted = ""  # whoever gives it again wants it
        return Outcome(ended, luggage.made, luggage.checkpoint)

    def look(self) -> Seen:
        """Return how far the run is, with the newest checkpoint unless that was shown before."""
        newest = self._luggage.checkpoint  # once: the run may make another meanwhile
        fresh = None if newest is self._shown else newest
        self._shown = newest
        return Seen(self.at, fresh)

    def pause(self, run: str) -> None:
        """Let ``run`` stop at a checkpoint."""
        self._unwanted = run

    def asked_to_stop(self) -> bool:
        """Tell whether what is being lived is not wanted for now."""
        return self._unwanted == self._luggage.run


def _bring_weights(name: str, content: bytes) -> None:
    """Put the weights of a rule into this machine's cache, unless a good copy is here."""
    from rulescope.rules import locate, registry

    rule = registry.get(name)
    if locate.find(rule) is None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / rule.basename).write_bytes(content)
            locate.fetch(rule, Path(folder))
