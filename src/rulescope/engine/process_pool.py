"""Workers that are processes of this machine, which write into the store themselves."""

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

from rulescope.engine.messages import Said
from rulescope.engine.pool import Crew, Member, Patience
from rulescope.engine.worker import work

LEAVE_SECONDS = 5.0
"""How long an idle worker may take to leave when all is done."""
UNGUARDED = 78
"""Exit code of a worker that runs the caller's script again instead of working."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class WorkerProcess(Member):
    """A worker at the other end of a pipe."""

    def __init__(self, process: SpawnProcess, pipe: Connection) -> None:
        super().__init__()
        self.process, self.pipe = process, pipe

    def say(self, what: bytes | None) -> None:
        """Send a spec to live, or None to pause; to a dead one this does nothing."""
        with suppress(OSError):  # its end will be noticed when we listen
            self.pipe.send(what)

    def hear(self) -> Iterator[Said]:
        """Yield what it has said since, until it has no more to say; EOFError if it has ended."""
        while self.pipe.poll():
            try:
                said = self.pipe.recv()
            except OSError:  # it was killed in the middle of a word
                raise EOFError from None
            yield said

    def dead(self) -> bool:
        """Tell whether the process has ended."""
        return self.process.exitcode is not None

    def kill(self) -> None:
        """End the process, also one that is stopped, which would not hear of SIGTERM."""
        self.process.kill()
        self.process.join()

    def bury(self) -> str:
        """Close the pipe and the process; return how that ended."""
        self.pipe.close()
        how = _end(self.process)
        self.process.close()
        return how


class Processes(Crew):
    """At most ``size`` processes on the store at ``root``."""

    def __init__(self, size: int, root: Path, weights: Path | None, patience: Patience) -> None:
        super().__init__(patience)
        self._size, self._root, self._weights = size, root, weights
        self._context = multiprocessing.get_context("spawn")
        self.members: list[WorkerProcess] = []  # type: ignore[assignment]  # no others here

    @property
    def size(self) -> int:
        """How many there may be."""
        return self._size

    def _hire(self) -> WorkerProcess:
        ours, theirs = self._context.Pipe()
        arguments = (theirs, self._root.absolute(), self._weights)
        process = self._context.Process(target=work, args=arguments, daemon=True)
        with _one_thread(), _deaf_to_interrupts():
            process.start()
        theirs.close()
        return WorkerProcess(process, ours)

    def _wait(self, seconds: float) -> None:
        wait([part for m in self.members for part in (m.pipe, m.process.sentinel)], seconds)

    def close(self) -> None:
        """Send everybody home: idle workers leave, others are killed."""
        for member in self.members:
            if member.run is not None or not member.ready:
                member.process.kill()
            member.pipe.close()
        until = time.monotonic() + LEAVE_SECONDS
        for member in self.members:
            member.process.join(max(until - time.monotonic(), 0.1))
            if member.process.exitcode is None:
                member.kill()
            member.process.close()
        self.members.clear()


def refuse_rerun_script() -> None:
    """End a worker that runs its caller's script again, which would start workers of its own."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(UNGUARDED)


def _end(process: SpawnProcess) -> str:
    """Say how a process ended."""
    process.join(LEAVE_SECONDS)
    if process.exitcode is None:  # it said good-bye, but does not go
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
    """Let processes that are started within have one thread each, unless somebody said otherwise.

    (Libraries read this when they are loaded, which may be before the worker's first line.)
    """
    added = [name for name in THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Let processes that are started within never see Ctrl-C, not even before their first line."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:  # ours is only late
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
