"""A pool of workers of any kind, which are watched and replaced one by one when they fail.

What a worker is, subclasses define: a local process (``process_pool``) or a Ray actor
(``ray_pool``).

Timeouts count the time spent polling, not wall-clock time: when the parent process itself was
suspended (by Ctrl-Z, or a closed laptop), no worker times out because of it.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

from rulescope.core.errors import RulescopeError
from rulescope.engine.campaign import RateMeter
from rulescope.engine.messages import Assignment, Heartbeat, Message, Ready, RunEnded, StartFailed

MAX_FAILED_STARTS = 3
"""Workers that may fail to start in a row."""


class EngineError(RulescopeError):
    """Workers cannot be started, or the machine lacks the resources for the campaign."""


class Timeouts(NamedTuple):
    """After how many seconds a worker is replaced, and a run is stopped."""

    heartbeat: float = 60.0
    """Without a message: workers send a heartbeat every second, even during long iterations."""
    iteration: float = 1800.0
    """Without a completed iteration, though heartbeats arrive."""
    start: float = 300.0
    """Without a message while the worker starts and imports the caller's script."""
    run: float | None = None
    """For one run, over all its attempts in this campaign; None: no limit."""


class WorkerHandle(ABC):
    """A worker as its pool sees it."""

    def __init__(self) -> None:
        self.responded = False
        """Whether any message has arrived."""
        self.ready = False
        self.exiting = False
        self.run: str | None = None
        """Id of the assigned run."""
        self.iteration = 0
        self.meter = RateMeter()
        self.silent = self.stalled = self.overdue = 0.0
        """Seconds since its last message, since its last completed iteration, and since its run
        exceeded the time limit."""
        self.start_error = ""
        self.pid: int | None = None
        self.host = ""
        """Its machine; empty if it is this one."""

    @abstractmethod
    def send(self, assignment: Assignment | None) -> None:
        """Send a run, or None to pause the run; no effect if the worker has exited."""

    @abstractmethod
    def receive(self) -> Iterator[Message]:
        """Yield the messages that have arrived; raise EOFError if the worker has exited."""

    @abstractmethod
    def has_exited(self) -> bool:
        """Return whether it is known to have exited; earlier messages may still be received."""

    @abstractmethod
    def kill(self) -> None:
        """End it at once, even if it does not respond."""

    @abstractmethod
    def reap(self) -> str:
        """Free what the handle of an exited worker holds; return how the worker ended."""

    def update_iteration(self, iteration: int) -> None:
        """Set the last completed iteration."""
        if iteration != self.iteration:
            self.iteration, self.stalled = iteration, 0.0
        if iteration:
            self.meter.update(iteration)


H = TypeVar("H", bound=WorkerHandle)


class Pool(ABC, Generic[H]):
    """At most :attr:`size` workers."""

    LOCAL = True
    """Whether all workers are on this machine, where a failed start will fail again."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self.workers: list[H] = []
        self._failed_starts = 0
        self._any_ready = self._stopping = False
        self._run_seconds: defaultdict[str, float] = defaultdict(float)
        self._polled = time.monotonic()

    @property
    @abstractmethod
    def size(self) -> int:
        """The largest number of workers."""

    @abstractmethod
    def _spawn(self) -> H:
        """Start a worker."""

    @abstractmethod
    def _wait(self, seconds: float) -> None:
        """Return as soon as any message has arrived, after ``seconds`` at the latest."""

    @abstractmethod
    def close(self) -> None:
        """End all workers: idle ones exit, others are killed."""

    @property
    def busy(self) -> list[H]:
        """Workers with a run."""
        return [worker for worker in self.workers if worker.run is not None]

    @property
    def idle(self) -> list[H]:
        """Workers that accept a run."""
        return [w for w in self.workers if w.ready and w.run is None and not w.exiting]

    def grow(self, wanted: int) -> None:
        """Spawn workers until there are ``wanted``, or :attr:`size` if that is less.

        The first one is spawned alone: if workers cannot start, there is one error only.
        """
        limit = self.size if any(worker.responded for worker in self.workers) else 1
        while len(self.workers) < min(wanted, limit):
            self.workers.append(self._spawn())

    def assign(self, worker: H, run: str, assignment: Assignment) -> None:
        """Let an idle worker execute ``run``."""
        worker.run, worker.iteration, worker.meter = run, 0, RateMeter()
        worker.stalled = worker.overdue = 0.0
        worker.send(assignment)

    def pause(self) -> None:
        """Ask every worker to stop after its iteration, with a checkpoint."""
        self._stopping = True
        for worker in self.busy:
            worker.send(None)

    def poll(self, seconds: float) -> list[RunEnded]:
        """Wait for messages, at most ``seconds``; return the runs that have ended."""
        self._wait(seconds)
        ended: list[RunEnded] = []
        for worker in list(self.workers):
            ended += self._receive(worker)
        ended += self._check_timeouts(2.0 * seconds)
        return ended

    def _receive(self, worker: H) -> Iterator[RunEnded]:
        exited = worker.has_exited()  # before receiving: messages sent before the exit still count
        try:
            for message in worker.receive():
                worker.responded, worker.silent = True, 0.0
                match message:
                    case Heartbeat(run, iteration) if run == worker.run:
                        worker.update_iteration(iteration)
                    case Ready(pid):
                        worker.ready, worker.pid = True, pid
                        self._any_ready, self._failed_starts = True, 0
                    case StartFailed(cause):
                        worker.start_error = cause
                    case RunEnded():
                        yield self._release(worker, message)
        except EOFError:
            exited = True
        if exited:
            yield from self._remove(worker)

    def _release(self, worker: H, ended: RunEnded) -> RunEnded:
        """Take the run that has ended from its worker."""
        worker.run = None
        ended = ended._replace(host=worker.host)
        if ended.outcome == "paused" and worker.overdue > 0.0:
            return self._exceeded_limit(ended)
        # A pause was requested by us, or the worker received SIGTERM and is about to exit.
        worker.exiting = ended.outcome == "paused"
        return ended

    def _exceeded_limit(self, ended: RunEnded) -> RunEnded:
        limit = f"{self._timeouts.run:g} s"
        cause = f"not finished within the time limit of {limit}; run it again to continue"
        return ended._replace(outcome="failed", cause=cause, retry=False)

    def _check_timeouts(self, limit: float) -> Iterator[RunEnded]:
        """Kill workers that hang; pause runs over their limit; count at most ``limit`` seconds."""
        now = time.monotonic()
        passed, self._polled = min(now - self._polled, limit), now
        allowed = self._timeouts
        for worker in list(self.workers):
            worker.silent += passed
            silence = allowed.heartbeat if worker.responded else allowed.start
            if worker.silent > silence:
                yield from self._kill(worker, f"sent no heartbeat for {silence:g} s")
                continue
            if worker.run is None:
                continue
            worker.stalled += passed
            self._run_seconds[worker.run] += passed
            if worker.overdue > 0.0:
                worker.overdue += passed
            elif allowed.run is not None and self._run_seconds[worker.run] > allowed.run:
                worker.overdue = passed
                worker.send(None)
            if worker.stalled > allowed.iteration:
                yield from self._kill(worker, f"finished no iteration in {allowed.iteration:g} s")
            elif worker.overdue > allowed.heartbeat:
                yield from self._kill(worker, "did not finish its iteration")

    def _kill(self, worker: H, why: str) -> Iterator[RunEnded]:
        worker.kill()
        yield from self._remove(worker, f"{why} and was killed")

    def _remove(self, worker: H, why: str = "") -> Iterator[RunEnded]:
        """Remove an exited worker; its run counts as one failed attempt."""
        self.workers.remove(worker)
        how = worker.reap()
        why = why or how
        if worker.run is not None:
            cause = f"its worker {why}"
            ended = RunEnded(worker.run, "failed", worker.iteration, cause, host=worker.host)
            yield self._exceeded_limit(ended) if worker.overdue > 0.0 else ended
        elif not worker.ready and not self._stopping:
            self._failed_starts += 1
            hopeless = not self._any_ready and (self.LOCAL or worker.start_error)
            if hopeless or self._failed_starts >= MAX_FAILED_STARTS:
                if worker.start_error:
                    why = f"failed to import what it needs ({worker.start_error})"
                raise EngineError(f"worker processes cannot be started: the last one {why}")
