"""A pool of Ray actors: runs go out of the store as bytes, records and checkpoints come back."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from rulescope import run_spec
from rulescope.core import arrays, runtime
from rulescope.core.arrays import ArrayFileError
from rulescope.core.errors import RecordError
from rulescope.engine.messages import Assignment, Message, RunEnded
from rulescope.engine.process_pool import THREADS
from rulescope.engine.ray_actor import ProgressReport, RayActor, RunReport, StartReport
from rulescope.engine.worker import HEARTBEAT_SECONDS, describe_error, is_retryable
from rulescope.engine.worker_pool import EngineError, Pool, Timeouts, WorkerHandle
from rulescope.records import ConflictError, Store
from rulescope.records.record import encode
from rulescope.records.sizes import readable

if TYPE_CHECKING:
    from ray import ObjectRef

_log = logging.getLogger(__name__)

COUNT_SECONDS = 5.0
"""Time between two counts of a cluster's nodes, which come and go."""


class Share(NamedTuple):
    """The resources of a node that a run takes; fractions let runs share a core or a GPU."""

    cpus: float = 1.0
    gpus: float = 0.0
    """If more than 0, runs compute on a GPU."""

    @property
    def device(self) -> str:
        """Where learners compute; Ray shows a run the GPU that it was given as the first one."""
        return "cuda" if self.gpus else "cpu"

    def require_possible(self) -> None:
        """Raise :class:`EngineError` if no node could give this share."""
        if self.cpus <= 0.0 or self.gpus < 0.0 or (self.gpus > 1.0 and self.gpus % 1.0):
            raise EngineError(
                f"{self.cpus:g} CPU, {self.gpus:g} GPU: a run takes more than 0 CPUs, and a "
                "fraction of a GPU or whole GPUs"
            )


class ActorHandle(WorkerHandle):
    """A Ray actor, with the answers that it still owes."""

    def __init__(self, actor: Any, store: Store) -> None:
        super().__init__()
        self._actor, self._store = actor, store
        self._start: ObjectRef[StartReport] | None = actor.start.remote()
        self._run: ObjectRef[RunReport] | None = None
        self._progress: ObjectRef[ProgressReport] | None = None
        self._asked: float = 0.0
        self._unsent: RunEnded | None = None
        self._end: str = "is lost"

    def send(self, assignment: Assignment | None) -> None:
        """Send a run with its donors and checkpoint, or None to pause the run."""
        if assignment is None:
            self._actor.pause.remote(self.run)
            return
        canonical = assignment.canonical
        spec = run_spec.decode(canonical)
        try:
            donors = {
                d.id: encode(self._store.read(d.id)) for d in spec.donors if d.id in self._store
            }
            saved = self._store.load_checkpoint(spec.id)
        except RecordError as fault:
            cause, retry = describe_error(fault), is_retryable(fault)
            self._unsent = RunEnded(spec.id, "failed", 0, cause, retry)
            return
        checkpoint = None if saved is None else arrays.pack(saved, compress=False)
        self._run = self._actor.run.remote(canonical, donors, checkpoint)

    @property
    def awaited(self) -> list[ObjectRef[Any]]:
        """Answers that should be received as soon as they arrive."""
        return [ref for ref in (self._start, self._run) if ref is not None]

    def receive(self) -> Iterator[Message]:
        """Yield the messages that have arrived; raise EOFError if the actor has ended."""
        import ray

        try:
            yield from self._answers()
        except ray.exceptions.RayError as fault:
            self._end = f"is lost: {summarize(fault)}"
            raise EOFError from None

    def _answers(self) -> Iterator[Message]:
        if self._unsent is not None:
            ended, self._unsent = self._unsent, None
            yield ended
        if self._start is not None and (start := _get_if_done(self._start)):
            self._start, self.host = None, start.host
            yield start.message
            if not self.ready:
                raise EOFError
        if self._progress is not None and (progress := _get_if_done(self._progress)):
            self._progress = None
            if progress.heartbeat.run == self.run:
                self._save_checkpoint(progress.checkpoint)
            yield progress.heartbeat
        if self._run is not None and (report := _get_if_done(self._run)):
            self._run = self._progress = None
            yield self._commit(report)
        # Idle actors are asked too: they may be lost as well.
        now = time.monotonic()
        if self.ready and not self._progress and now - self._asked >= HEARTBEAT_SECONDS:
            self._progress, self._asked = self._actor.report_progress.remote(), now

    def _commit(self, report: RunReport) -> RunEnded:
        """Bring the records of a run into the store."""
        ended = report.ended
        try:
            for run, files in report.records.items():
                self._store.commit_files(run, files)
            if ended.outcome == "done":
                self._store.drop_checkpoint(ended.run)
        except RecordError as fault:
            retry = not isinstance(fault, ConflictError)  # a conflict would occur again
            return ended._replace(outcome="failed", cause=describe_error(fault), retry=retry)
        self._save_checkpoint(report.checkpoint)
        return ended

    def _save_checkpoint(self, checkpoint: bytes | None) -> None:
        """Bring a checkpoint into the store; if that fails, only work is lost."""
        if checkpoint is not None and self.run is not None:
            try:
                self._store.save_checkpoint(self.run, arrays.unpack(checkpoint))
            except (RecordError, ArrayFileError) as fault:
                _log.warning("%s", fault)

    def has_exited(self) -> bool:
        """Return False: the end of an actor is only noticed by receiving."""
        return False

    def kill(self) -> None:
        """End the process of the actor."""
        import ray

        ray.kill(self._actor)

    def reap(self) -> str:
        """Make sure that the actor has ended; return how it did."""
        with suppress(Exception):
            self.kill()
        return self._end


class RayPool(Pool[ActorHandle]):
    """Workers on the Ray cluster that this process is connected to."""

    LOCAL = False

    def __init__(
        self,
        workers: int | None,
        store: Store,
        weights: dict[str, bytes],
        share: Share,
        memory: int,
        timeouts: Timeouts,
    ) -> None:
        # An actor may wait for a free node for any time.
        super().__init__(timeouts._replace(start=math.inf))
        import ray

        self._workers, self._store = workers, store
        self._per_run = {"CPU": share.cpus, "GPU": share.gpus, "memory": float(memory)}
        self._arguments = (runtime.program_name(), ray.put(weights), share.device)
        remote: Any = ray.remote  # its type stubs lack some options
        self._actor_class = remote(
            num_cpus=share.cpus,
            num_gpus=share.gpus,
            memory=memory,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=2,
            scheduling_strategy="SPREAD",
            runtime_env={"env_vars": dict.fromkeys(THREADS, "1")},
        )(RayActor)
        self._slots, self._counted = 0, -math.inf

    @property
    def size(self) -> int:
        """The largest number of workers: as many as the nodes have room for, unless given."""
        if self._workers is not None:
            return self._workers
        if time.monotonic() - self._counted > COUNT_SECONDS:
            self._slots, self._counted = sum(map(self._count_slots, _nodes())), time.monotonic()
        return max(self._slots, 1)

    def require_room(self) -> None:
        """Raise :class:`EngineError` if no node could ever take a run."""
        nodes = _nodes()
        if not any(map(self._count_slots, nodes)):
            nodes.sort(key=lambda node: (node.get("GPU", 0.0), node.get("CPU", 0.0)), reverse=True)
            largest = "; ".join(map(_describe_resources, nodes[:3])) or "nothing"
            raise EngineError(
                "no node of the Ray cluster has room for a run, which takes "
                f"{_describe_resources(self._per_run)}; its largest have {largest}. "
                "--cpus-per-run and --gpus-per-run set what a run takes; --force waits for a "
                "larger node"
            )

    def _count_slots(self, node: dict[str, float]) -> int:
        """Count the runs that fit on a node."""
        taken = {name: amount for name, amount in self._per_run.items() if amount > 0.0}
        return min(int(node.get(name, 0.0) / each + 1e-9) for name, each in taken.items())

    def _spawn(self) -> ActorHandle:
        return ActorHandle(self._actor_class.remote(*self._arguments), self._store)

    def _wait(self, seconds: float) -> None:
        import ray

        awaited = [ref for worker in self.workers for ref in worker.awaited]
        if awaited:
            ray.wait(awaited, timeout=seconds)
        else:
            time.sleep(seconds)

    def close(self) -> None:
        """End all workers."""
        for worker in self.workers:
            worker.reap()
        self.workers.clear()


def _nodes() -> list[dict[str, float]]:
    """Return the resources of every node that is alive, free or not."""
    import ray

    nodes: Any = ray.nodes  # without types
    return [node["Resources"] for node in nodes() if node["Alive"]]


def _describe_resources(resources: dict[str, float]) -> str:
    """Return resources such as ``1 CPU, 0.5 GPU, 2.0 GB memory``."""
    parts = [f"{resources.get('CPU', 0.0):g} CPU"]
    parts += [f"{resources['GPU']:g} GPU"] if resources.get("GPU") else []
    parts += [f"{readable(int(resources['memory']))} memory"] if resources.get("memory") else []
    return ", ".join(parts)


def _get_if_done(ref: ObjectRef[Any]) -> Any:
    """Return the value of ``ref``, or None if it has not arrived."""
    import ray

    done, _ = ray.wait([ref], timeout=0)
    return ray.get(ref) if done else None


def summarize(fault: BaseException) -> str:
    """Return the type and the first two lines of an error of Ray, which may fill pages."""
    lines = [line.strip() for line in str(fault).splitlines() if line.strip()]
    return f"{type(fault).__name__}: {' '.join(lines[:2])}"[:500]
