"""The worker processes: started, listened to, and replaced one by one when they die or hang.

Time is counted as listened, not by the clock: when the parent itself was stopped for a while (as by
Ctrl-Z, or a laptop's lid), nobody is overdue for it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import NamedTuple

from rulescope.engine.campaign import Pace
from rulescope.engine.messages import Beat, Ended, Ready, Said, Unfit
from rulescope.engine.worker import work
from rulescope.errors import RulescopeError

STARTS = 3
"""How many workers may fail to start in a row."""
LEAVE_SECONDS = 5.0
"""How long an idle worker may take to leave when all is done."""
UNGUARDED = 78
"""Exit code of a worker that runs the caller's script again instead of working."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class EngineError(RulescopeError):
    """Workers cannot be started, or the machine cannot carry the campaign."""


class Patience(NamedTuple):
    """How long a worker may take for what; in seconds."""

    silent: float = 60.0
    """Without a sign of life, before it counts as hung: it beats once a second, even when one
    iteration takes long."""
    still: float = 1800.0
    """Alive, but without finishing an iteration, before it counts as hung."""
    starting: float = 300.0
    """Without a sign of life, while it starts and imports the caller's script."""
    run: float | None = None
    """For one run altogether, all attempts in this campaign together; None: as long as it takes."""


class Member:
    """A worker, seen from the parent."""

    def __init__(self, process: SpawnProcess, pipe: Connection) -> None:
        self.process, self.pipe = process, pipe
        self.heard = self.ready = self.leaving = False
        self.run: str | None = None
        self.iteration = 0
        self.pace = Pace()
        self.silent = self.still = self.overdue = 0.0
        """Seconds since its last sign of life and its last progress, and since it should pause."""
        self.unfit = ""

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
            self.heard, self.silent = True, 0.0
            yield said

    def got_to(self, iteration: int) -> None:
        """Note the last iteration that it finished."""
        if iteration != self.iteration:
            self.iteration, self.still = iteration, 0.0
        if iteration:
            self.pace.note(iteration)


class Crew:
    """At most ``size`` workers on the store at ``root``."""

    def __init__(self, size: int, root: Path, weights: Path | None, patience: Patience) -> None:
        self._size, self._root, self._weights, self._patience = size, root, weights, patience
        self._context = multiprocessing.get_context("spawn")
        self.members: list[Member] = []
        self._failed_starts = 0
        self._anyone_ready = self._stopping = False
        self._spent: defaultdict[str, float] = defaultdict(float)
        self._listened = time.monotonic()

    # Who is here

    @property
    def busy(self) -> list[Member]:
        """Those who have a run."""
        return [member for member in self.members if member.run is not None]

    @property
    def idle(self) -> list[Member]:
        """Those who could have one."""
        return [m for m in self.members if m.ready and m.run is None and not m.leaving]

    def staff(self, wanted: int) -> None:
        """Start workers until there are as many as are ``wanted``, or as many as there may be.

        The first goes ahead alone: if no process can be started here, that is said once.
        """
        most = self._size if any(member.heard for member in self.members) else 1
        while len(self.members) < min(wanted, most):
            ours, theirs = self._context.Pipe()
            arguments = (theirs, self._root.absolute(), self._weights)
            process = self._context.Process(target=work, args=arguments, daemon=True)
            with _one_thread(), _deaf_to_interrupts():
                process.start()
            theirs.close()
            self.members.append(Member(process, ours))

    def give(self, member: Member, run: str, canonical: bytes) -> None:
        """Let an idle worker live a run."""
        member.run, member.iteration, member.pace = run, 0, Pace()
        member.still = member.overdue = 0.0
        member.say(canonical)

    def pause(self) -> None:
        """Ask everybody to stop at the next iteration, with a checkpoint."""
        self._stopping = True
        for member in self.busy:
            member.say(None)

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
                member.process.kill()
                member.process.join()
            member.process.close()
        self.members.clear()

    # What they say

    def listen(self, seconds: float) -> list[Ended]:
        """Wait for news, ``seconds`` at most; return what became of runs that have ended."""
        sources = [part for m in self.members for part in (m.pipe, m.process.sentinel)]
        wait(sources, seconds)
        ended: list[Ended] = []
        for member in list(self.members):
            ended += self._news(member)
        ended += self._impatience(2.0 * seconds)
        return ended

    def _news(self, member: Member) -> Iterator[Ended]:
        # Looked at first: what a dead worker said before its end is still in the pipe.
        dead = member.process.exitcode is not None
        try:
            for said in member.hear():
                match said:
                    case Beat(run, iteration) if run == member.run:
                        member.got_to(iteration)
                    case Ready():
                        member.ready, self._anyone_ready, self._failed_starts = True, True, 0
                    case Unfit(cause):
                        member.unfit = cause
                    case Ended():
                        yield self._ended(member, said)
        except EOFError:
            dead = True
        if dead:
            yield from self._lost(member, _end(member.process))

    def _ended(self, member: Member, said: Ended) -> Ended:
        member.run = None
        if said.how == "paused" and member.overdue > 0.0:
            return self._late(said)
        # Whoever pauses otherwise was asked by us, or was told to end (SIGTERM) and is leaving.
        member.leaving = said.how == "paused"
        return said

    def _late(self, ended: Ended) -> Ended:
        limit = f"{self._patience.run:g} s"
        cause = f"not done within the time limit of {limit}; run it again to go on from there"
        return ended._replace(how="failed", cause=cause, again=False)

    # Who is missed

    def _impatience(self, most: float) -> Iterator[Ended]:
        """End those who hang; ask those to stop who take too long."""
        now = time.monotonic()
        passed, self._listened = min(now - self._listened, most), now
        allowed = self._patience
        for member in list(self.members):
            member.silent += passed
            limit = allowed.silent if member.heard else allowed.starting
            if member.silent > limit:
                yield from self._end(member, f"gave no sign of life for {limit:g} s")
                continue
            if member.run is None:
                continue
            member.still += passed
            self._spent[member.run] += passed
            if member.overdue > 0.0:
                member.overdue += passed
            elif allowed.run is not None and self._spent[member.run] > allowed.run:
                member.overdue = passed
                member.say(None)
            if member.still > allowed.still:
                yield from self._end(member, f"finished no iteration in {allowed.still:g} s")
            elif member.overdue > allowed.silent:
                yield from self._end(member, "did not end its iteration")

    def _end(self, member: Member, why: str) -> Iterator[Ended]:
        member.process.kill()  # also ends one that is stopped, which would not hear of SIGTERM
        member.process.join()
        yield from self._lost(member, f"{why}, and was killed")

    def _lost(self, member: Member, why: str) -> Iterator[Ended]:
        """Strike off a dead worker, which ``why``; what it was living has failed, this time."""
        self.members.remove(member)
        member.pipe.close()
        member.process.join()
        member.process.close()
        if member.run is not None:
            ended = Ended(member.run, "failed", member.iteration, f"its worker {why}")
            yield self._late(ended) if member.overdue > 0.0 else ended
        elif not member.ready and not self._stopping:
            self._failed_starts += 1
            if not self._anyone_ready or self._failed_starts >= STARTS:
                told = f"failed to import what it needs ({member.unfit})" if member.unfit else why
                raise EngineError(f"worker processes cannot be started: the last one {told}")


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
