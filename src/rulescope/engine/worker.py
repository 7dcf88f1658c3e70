"""The code inside a worker process: one run after another, in one thread.

A second thread exchanges messages with the pool, because an iteration may take long. Every second
it sends a heartbeat, which shows that the process is alive, with the last completed iteration,
which shows that the run makes progress; the pool has a timeout for each. The same thread receives
requests to pause and notices when the parent process is gone; then the run in progress saves a
checkpoint and the worker exits.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from rulescope.core.errors import PassingError, RulescopeError
from rulescope.engine.messages import Assignment, Heartbeat, Message, Ready, RunEnded, StartFailed

if TYPE_CHECKING:
    from rulescope.lifetime import Progress
    from rulescope.runner import RecordStore, Sharing

HEARTBEAT_SECONDS = 1.0
"""Time between two heartbeats."""
ORPHAN_SECONDS = 600.0
"""Time that a worker without a parent has to complete its iteration."""
MAX_CAUSE, MAX_TRACE = 2_000, 8_000
"""Characters kept of a cause and of a traceback."""


def run_worker(pipe: Connection, root: Path, weights: Path | None, device: str = "cpu") -> None:
    """Execute every run received through ``pipe`` into the store at ``root``, then exit."""
    # Ctrl-C reaches every process of a terminal; only the parent handles it, and asks us to pause.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker = _ProcessWorker(pipe)
    signal.signal(signal.SIGTERM, lambda *_: worker.request_exit())
    threading.Thread(target=worker.exchange_messages, daemon=True).start()
    try:
        # Torch takes seconds to import: heartbeats are sent meanwhile. The whole program is
        # imported before the first run, because its files may be edited while this process works.
        from rulescope.core import runtime
        from rulescope.records import Store
        from rulescope.records.branch_checkpoints import BranchCheckpoints
        from rulescope.runner import Sharing

        runtime.single_threaded(device)
    except BaseException as fault:
        worker.send(StartFailed(describe_error(fault)))
        return
    worker.send(Ready(os.getpid()))
    store = Store(root)
    while not worker.exiting and not worker.source_changed:
        assignment = worker.assignments.get()
        if assignment is None:
            break
        sharing = Sharing(BranchCheckpoints(store), assignment.start, assignment.users)
        ended = worker.execute(assignment.canonical, store, weights, device, sharing)
        # The run did not fail: a worker that pauses is replaced, and its successor resumes the run.
        worker.send(ended._replace(outcome="paused") if worker.source_changed else ended)


class RunWorker:
    """Runs one spec at a time; other threads may read its progress and ask it to pause."""

    def __init__(self) -> None:
        self.heartbeat = Heartbeat("", 0)
        self.source_changed = False
        """Whether the program was edited since it was imported: another process must resume."""

    def execute(
        self,
        canonical: bytes,
        store: RecordStore,
        weights: Path | None = None,
        device: str = "cpu",
        sharing: Sharing | None = None,
    ) -> RunEnded:
        """Make the record of one spec; errors are part of the result and not raised."""
        from rulescope import run_spec, runner
        from rulescope.core import runtime

        spec = run_spec.decode(canonical)
        self.heartbeat = Heartbeat(spec.id, 0)
        try:
            runner.find_or_make(
                spec,
                store,
                report=self._update_heartbeat,
                stop=self.should_pause,
                weights=weights,
                device=device,
                sharing=sharing,
            )
        except runner.Paused as pause:
            return RunEnded(spec.id, "paused", pause.iteration)
        except BaseException as fault:
            self.source_changed = isinstance(fault, runtime.MixedSourceError)
            retry = is_retryable(fault)
            expected = isinstance(fault, RulescopeError) and not retry
            trace = "" if expected else traceback.format_exc()[-MAX_TRACE:]
            iteration = self.heartbeat.iteration
            return RunEnded(spec.id, "failed", iteration, describe_error(fault), retry, trace)
        return RunEnded(spec.id, "done", spec.iterations)

    def should_pause(self) -> bool:
        """Return whether the run should stop at a checkpoint; called after every iteration."""
        raise NotImplementedError

    def _update_heartbeat(self, progress: Progress) -> None:
        # One assignment, since another thread reads it.
        self.heartbeat = Heartbeat(self.heartbeat.run, progress.iteration)


class _ProcessWorker(RunWorker):
    """A worker that is connected to its pool by a pipe."""

    def __init__(self, pipe: Connection) -> None:
        super().__init__()
        self.assignments: SimpleQueue[Assignment | None] = SimpleQueue()
        """Runs to execute; None ends the worker."""
        self.exiting = False
        self._pausing = False
        self._pipe = pipe
        self._send_lock = threading.Lock()

    def request_exit(self) -> None:
        """Exit after the next checkpoint (also called by a signal handler: must not block)."""
        self.exiting = True
        self.assignments.put(None)

    def exchange_messages(self) -> None:
        """Receive runs and requests to pause; send a heartbeat every second."""
        try:
            while True:
                if self._pipe.poll(HEARTBEAT_SECONDS):
                    received = self._pipe.recv()
                    self._pausing = received is None
                    if received is not None:
                        self.assignments.put(received)
                with self._send_lock:
                    self._pipe.send(self.heartbeat)
        except (EOFError, OSError):  # the parent has closed the pipe, or is gone
            self.request_exit()
            time.sleep(ORPHAN_SECONDS)
            os._exit(1)

    def send(self, message: Message) -> None:
        """Send a message; without a parent, exit."""
        try:
            with self._send_lock:
                self._pipe.send(message)
        except OSError:
            self.request_exit()

    def should_pause(self) -> bool:
        """Return whether the pool asked for a pause, or the worker is about to exit."""
        return self._pausing or self.exiting


_LOGIC_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    NotImplementedError,
    TypeError,
    ValueError,
)
"""Errors of a program's logic, which do not depend on the state of the machine."""


def is_retryable(fault: BaseException) -> bool:
    """Return whether a run that raised ``fault`` may succeed in another attempt.

    Lifetimes are deterministic: an error in the run, its weights or its code will occur again.
    Disks, memory and networks may recover. (A conflict between two records is not retryable: the
    next attempt would find the other record and hide the conflict.)
    """
    if isinstance(fault, RulescopeError):
        return isinstance(fault, PassingError)
    return not isinstance(fault, _LOGIC_ERRORS)


def describe_error(fault: BaseException) -> str:
    """Return the type and message of an error, at most :data:`MAX_CAUSE` characters."""
    return f"{type(fault).__name__}: {fault}"[:MAX_CAUSE]
