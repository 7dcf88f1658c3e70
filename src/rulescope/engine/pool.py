"""A crew of workers, whatever they are: listened to, and replaced one by one when they die or hang.

What a worker is, is for others to say: a process here (``processes``), or anywhere in a cluster
(``cluster``).

Time is counted as listened, not by the clock: when the parent itself was stopped for a while (as by
Ctrl-Z, or a laptop's lid), nobody is overdue for it.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from rulescope.core.errors import RulescopeError
from rulescope.engine.campaign import Pace
from rulescope.engine.messages import Beat, Ended, Ready, Said, Unfit

STARTS = 3
"""How many workers may fail to start in a row."""


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


class Member(ABC):
    """A worker, seen from the parent."""

    def __init__(self) -> None:
        self.heard = self.ready = self.leaving = False
        self.run: str | None = None
        self.iteration = 0
        self.pace = Pace()
        self.silent = self.still = self.overdue = 0.0
        """Seconds since its last sign of life and its last progress, and since it should pause."""
        self.unfit = ""
        self.pid: int | None = None
        self.host = ""
        """Its machine, if it is not this one."""

    @abstractmethod
    def say(self, what: bytes | None) -> None:
        """Send a spec to live, or None to pause; to a dead one this does nothing."""

    @abstractmethod
    def hear(self) -> Iterator[Said]:
        """Yield what it has said since, until it has no more to say; EOFError if it has ended."""

    @abstractmethod
    def dead(self) -> bool:
        """Tell whether it is known to have ended; what it said before may still be heard."""

    @abstractmethod
    def kill(self) -> None:
        """End it, even if it hears nothing."""

    @abstractmethod
    def bury(self) -> str:
        """Give back what it held, once it has ended; return how it did."""

    def got_to(self, iteration: int) -> None:
        """Note the last iteration that it finished."""
        if iteration != self.iteration:
            self.iteration, self.still = iteration, 0.0
        if iteration:
            self.pace.note(iteration)


class Crew(ABC):
    """At most :attr:`size` workers."""

    HERE = True
    """Whether all of them are on this machine, where what fails once will fail again."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self.members: list[Member] = []
        self._failed_starts = 0
        self._anyone_ready = self._stopping = False
        self._spent: defaultdict[str, float] = defaultdict(float)
        self._listened = time.monotonic()

    @property
    @abstractmethod
    def size(self) -> int:
        """How many there may be."""

    @abstractmethod
    def _hire(self) -> Member:
        """Start a worker."""

    @abstractmethod
    def _wait(self, seconds: float) -> None:
        """Return as soon as anybody has something to say, after ``seconds`` at the latest."""

    @abstractmethod
    def close(self) -> None:
        """Send everybody home: idle workers leave, others are killed."""

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

        The first goes ahead alone: if none can be started, that is said once.
        """
        most = self.size if any(member.heard for member in self.members) else 1
        while len(self.members) < min(wanted, most):
            self.members.append(self._hire())

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

    # What they say

    def listen(self, seconds: float) -> list[Ended]:
        """Wait for news, ``seconds`` at most; return what became of runs that have ended."""
        self._wait(seconds)
        ended: list[Ended] = []
        for member in list(self.members):
            ended += self._news(member)
        ended += self._impatience(2.0 * seconds)
        return ended

    def _news(self, member: Member) -> Iterator[Ended]:
        dead = member.dead()  # looked at first: what it said before its end is still to be heard
        try:
            for said in member.hear():
                member.heard, member.silent = True, 0.0
                match said:
                    case Beat(run, iteration) if run == member.run:
                        member.got_to(iteration)
                    case Ready(pid):
                        member.ready, member.pid = True, pid
                        self._anyone_ready, self._failed_starts = True, 0
                    case Unfit(cause):
                        member.unfit = cause
                    case Ended():
                        yield self._ended(member, said)
        except EOFError:
            dead = True
        if dead:
            yield from self._lost(member)

    def _ended(self, member: Member, said: Ended) -> Ended:
        member.run = None
        said = said._replace(host=member.host)
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
        member.kill()
        yield from self._lost(member, f"{why}, and was killed")

    def _lost(self, member: Member, why: str = "") -> Iterator[Ended]:
        """Strike off a dead worker, which ``why``; what it was living has failed, this time."""
        self.members.remove(member)
        how = member.bury()
        why = why or how
        if member.run is not None:
            cause = f"its worker {why}"
            ended = Ended(member.run, "failed", member.iteration, cause, host=member.host)
            yield self._late(ended) if member.overdue > 0.0 else ended
        elif not member.ready and not self._stopping:
            self._failed_starts += 1
            hopeless = not self._anyone_ready and (self.HERE or member.unfit)
            if hopeless or self._failed_starts >= STARTS:
                told = f"failed to import what it needs ({member.unfit})" if member.unfit else why
                raise EngineError(f"worker processes cannot be started: the last one {told}")
