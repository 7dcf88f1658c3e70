"""A pool of local worker processes, which write into the store themselves."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from rulescope.engine.messages import Assignment, Message
from rulescope.engine.worker import run_worker
from rulescope.engine.worker_pool import Pool, Timeouts, WorkerHandle

EXIT_SECONDS = 5.0
"""Time that an idle worker has to exit."""
UNGUARDED = 78
"""Exit code of a worker that runs the caller's script again instead of working."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class ProcessHandle(WorkerHandle):
    """A worker process at the other end of a pipe."""

    def __init__(self, process: SpawnProcess, pipe: Connection) -> None:
        super().__init__()
        self.process, self.pipe = process, pipe

    def send(self, assignment: Assignment | None) -> None:
        """Send a run, or None to pause the run; no effect if the worker has exited."""
        with suppress(OSError):  # the next poll notices the exit
            self.pipe.send(assignment)

    def receive(self) -> Iterator[Message]:
        """Yield the messages that have arrived; raise EOFError if the worker has exited."""
        while self.pipe.poll():
            try:
                message = self.pipe.recv()
            except OSError:  # it was killed in the middle of a message
                raise EOFError from None
            yield message

    def has_exited(self) -> bool:
        """Return whether the process has exited."""
        return self.process.exitcode is not None

    def kill(self) -> None:
        """Kill the process by SIGKILL: a stopped one would not receive SIGTERM."""
        self.process.kill()
        self.process.join()

    def reap(self) -> str:
        """Close the pipe and the process; return how the process ended."""
        self.pipe.close()
        how = _wait_for_exit(self.process)
        self.process.close()
        return how


class ProcessPool(Pool[ProcessHandle]):
    """At most ``size`` processes that write into the store at ``root``."""

    def __init__(
        self,
        size: int,
        root: Path,
        weights: Path | None,
        timeouts: Timeouts,
        device: str = "cpu",
    ) -> None:
        super().__init__(timeouts)
        self._size, self._root, self._weights, self._device = size, root, weights, device
        self._context = multiprocessing.get_context("spawn")

    @property
    def size(self) -> int:
        """The largest number of workers."""
        return self._size

    def _spawn(self) -> ProcessHandle:
        ours, theirs = self._context.Pipe()
        arguments = (theirs, self._root.absolute(), self._weights, self._device)
        process = self._context.Process(target=run_worker, args=arguments, daemon=True)
        with _one_thread(), _blocked_interrupts():
            process.start()
        theirs.close()
        return ProcessHandle(process, ours)

    def _wait(self, seconds: float) -> None:
        wait([part for w in self.workers for part in (w.pipe, w.process.sentinel)], seconds)

    def close(self) -> None:
        """End all workers: idle ones exit, others are killed."""
        for worker in self.workers:
            if worker.run is not None or not worker.ready:
                worker.process.kill()
            worker.pipe.close()
        until = time.monotonic() + EXIT_SECONDS
        for worker in self.workers:
            worker.process.join(max(until - time.monotonic(), 0.1))
            if worker.process.exitcode is None:
                worker.kill()
            worker.process.close()
        self.workers.clear()


def refuse_rerun_script() -> None:
    """Exit if this is a worker that runs its caller's script again and would start workers."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(UNGUARDED)


def _wait_for_exit(process: SpawnProcess) -> str:
    """Wait until a process has exited; return how it ended."""
    process.join(EXIT_SECONDS)
    if process.exitcode is None:  # it has closed its pipe, but does not exit
        process.kill()
        process.join()
    code = process.exitcode or 0
    if code == UNGUARDED:
        return (
            "ran the script again that started it; put what the script does under "
            "`if __name__ == '__main__':`"
        )
    if code >= 0:
        return f"ended with code {code}"
    name = {each.value: each.name for each in signal.Signals}.get(-code, f"signal {-code}")
    hint = ", as the system does when memory runs out" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"


@contextmanager
def _one_thread() -> Iterator[None]:
    """Give processes started within one thread each, unless the environment already says how many.

    (Libraries read these variables when they are loaded, perhaps before the worker's first line.)
    """
    added = [name for name in THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def _blocked_interrupts() -> Iterator[None]:
    """Block Ctrl-C in processes started within, even before their first line."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:  # a signal to this process is only delayed
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
