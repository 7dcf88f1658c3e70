"""A worker of a Ray cluster, seen from here: what goes to it out of the store, and comes back."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rulescope.core import arrays
from rulescope.core.arrays import ArrayFileError
from rulescope.core.errors import RecordError
from rulescope.engine.messages import Ended, Said
from rulescope.engine.pool import Member
from rulescope.engine.ray_actor import Begun, Outcome, Seen
from rulescope.engine.worker import BEAT_SECONDS, cause_of, may_pass
from rulescope.records import ConflictError, Store
from rulescope.records.record import encode
from rulescope.spec import run_spec

if TYPE_CHECKING:
    from ray import ObjectRef

_log = logging.getLogger(__name__)


class Actor(Member):
    """A worker somewhere in the cluster."""

    def __init__(self, actor: Any, store: Store) -> None:
        super().__init__()
        self._actor, self._store = actor, store
        self._began: ObjectRef[Begun] | None = actor.begin.remote()
        self._making: ObjectRef[Outcome] | None = None
        self._looking: ObjectRef[Seen] | None = None
        self._looked: float = 0.0
        self._refused: Ended | None = None
        self._fate: str = "is lost"

    def say(self, what: bytes | None) -> None:
        """Send a spec to live, with what it needs from the store, or None to pause."""
        if what is None:
            self._actor.pause.remote(self.run)
            return
        item = run_spec.decode(what)
        try:
            donors = {
                d.id: encode(self._store.read(d.id)) for d in item.donors if d.id in self._store
            }
            kept = self._store.load_checkpoint(item.id)
        except RecordError as fault:
            self._refused = Ended(item.id, "failed", 0, cause_of(fault), may_pass(fault))
            return
        checkpoint = None if kept is None else arrays.pack(kept, compress=False)
        self._making = self._actor.make.remote(what, donors, checkpoint)

    @property
    def awaited(self) -> list[ObjectRef[Any]]:
        """What should not be left waiting, once it is said."""
        return [ref for ref in (self._began, self._making) if ref is not None]

    def hear(self) -> Iterator[Said]:
        """Yield what it has said since; EOFError if it has ended."""
        import ray

        try:
            yield from self._heard()
        except ray.exceptions.RayError as fault:
            self._fate = f"is lost: {shortly(fault)}"
            raise EOFError from None

    def _heard(self) -> Iterator[Said]:
        if self._refused is not None:
            ended, self._refused = self._refused, None
            yield ended
        if self._began is not None and (begun := _arrived(self._began)):
            self._began, self.host = None, begun.host
            yield begun.said
            if not self.ready:
                raise EOFError
        if self._looking is not None and (seen := _arrived(self._looking)):
            self._looking = None
            if seen.beat.run == self.run:
                self._keep(seen.checkpoint)
            yield seen.beat
        if self._making is not None and (outcome := _arrived(self._making)):
            self._making = self._looking = None
            yield self._brought(outcome)
        # Also an idle one: it may be lost as well.
        if self.ready and not self._looking and time.monotonic() - self._looked >= BEAT_SECONDS:
            self._looking, self._looked = self._actor.look.remote(), time.monotonic()

    def _brought(self, outcome: Outcome) -> Ended:
        """Bring what a run has made into the store."""
        ended = outcome.ended
        try:
            for run, files in outcome.made.items():
                self._store.adopt(run, files)
            if ended.how == "done":
                self._store.drop_checkpoint(ended.run)
        except RecordError as fault:
            again = not isinstance(fault, ConflictError)  # which would come again
            return ended._replace(how="failed", cause=cause_of(fault), again=again)
        self._keep(outcome.checkpoint)
        return ended

    def _keep(self, checkpoint: bytes | None) -> None:
        """Bring a checkpoint into the store; one that cannot be kept is only work lost."""
        if checkpoint is not None and self.run is not None:
            try:
                self._store.save_checkpoint(self.run, arrays.unpack(checkpoint))
            except (RecordError, ArrayFileError) as fault:
                _log.warning("%s", fault)

    def dead(self) -> bool:
        """Tell nothing: whoever listens to it hears of its end."""
        return False

    def kill(self) -> None:
        """End the process of the actor."""
        import ray

        ray.kill(self._actor)

    def bury(self) -> str:
        """Make sure that it does not go on; return how it ended."""
        with suppress(Exception):
            self.kill()
        return self._fate


def _arrived(ref: ObjectRef[Any]) -> Any:
    """Return what ``ref`` stands for, if it is here, else None."""
    import ray

    done, _ = ray.wait([ref], timeout=0)
    return ray.get(ref) if done else None


def shortly(fault: BaseException) -> str:
    """Return the kind and the first lines of an error of Ray's, which may run to pages."""
    lines = [line.strip() for line in str(fault).splitlines() if line.strip()]
    return f"{type(fault).__name__}: {' '.join(lines[:2])}"[:500]
