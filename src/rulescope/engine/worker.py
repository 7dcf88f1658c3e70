"""A worker process: lives one run after another, in one thread, and says that it is alive.

A second thread talks to the parent, because an iteration may be long: it sends a beat every second,
which shows that the process runs, with the last finished iteration, which shows that the run gets
on. The parent judges the two apart. The same thread hears when to stop, and that the parent is
gone; then the run under way leaves a checkpoint, and the worker ends.
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
from rulescope.engine.messages import Beat, Ended, Ready, Said, Unfit

if TYPE_CHECKING:
    from rulescope.lifetime import Progress
    from rulescope.runner import RecordStore

BEAT_SECONDS = 1.0
"""Time between two signs of life."""
ORPHAN_SECONDS = 600.0
"""How long a worker without a parent may take to finish its iteration."""
CAUSE, TRACE = 2_000, 8_000
"""The most characters of a cause and of a traceback that are kept."""


def work(pipe: Connection, root: Path, weights: Path | None) -> None:
    """Live what comes through ``pipe`` into the store at ``root`` until there is no more."""
    # Ctrl-C reaches every process of a terminal; the parent alone answers, and tells us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker = _Worker(pipe)
    signal.signal(signal.SIGTERM, lambda *_: worker.leave())
    threading.Thread(target=worker.talk, daemon=True).start()
    try:
        # Torch takes seconds to import: beat meanwhile. All of the program is imported before the
        # first run, because it may be edited while this process works.
        from rulescope.core import runtime
        from rulescope.records import Store

        runtime.single_threaded()
    except BaseException as fault:
        worker.tell(Unfit(cause_of(fault)))
        return
    worker.tell(Ready(os.getpid()))
    store = Store(root)
    while not (worker.leaving or worker.stale) and (canonical := worker.jobs.get()) is not None:
        ended = worker.live(canonical, store, weights)
        # Nothing is wrong with the run: who pauses is replaced, and another process goes on.
        worker.tell(ended._replace(how="paused") if worker.stale else ended)


class Living:
    """Lives runs, one at a time; other threads may ask how far it is, and ask it to stop."""

    def __init__(self) -> None:
        self.at = Beat("", 0)
        self.stale = False
        """Whether the program was edited since it was imported: another process must go on."""

    def live(
        self, canonical: bytes, store: RecordStore, weights: Path | None = None, device: str = "cpu"
    ) -> Ended:
        """Make one record; return what became of it."""
        from rulescope import runner
        from rulescope.core import runtime
        from rulescope.spec import run_spec

        item = run_spec.decode(canonical)
        self.at = Beat(item.id, 0)
        try:
            runner.find_or_make(
                item,
                store,
                report=self._note,
                stop=self.asked_to_stop,
                weights=weights,
                device=device,
            )
        except runner.Paused as pause:
            return Ended(item.id, "paused", pause.iteration)
        except BaseException as fault:
            self.stale = isinstance(fault, runtime.MixedSourceError)
            again = may_pass(fault)
            known = isinstance(fault, RulescopeError) and not again
            trace = "" if known else traceback.format_exc()[-TRACE:]
            return Ended(item.id, "failed", self.at.iteration, cause_of(fault), again, trace)
        return Ended(item.id, "done", item.iterations)

    def asked_to_stop(self) -> bool:
        """Tell whether the run should be left at a checkpoint; asked after every iteration."""
        raise NotImplementedError

    def _note(self, progress: Progress) -> None:
        self.at = Beat(self.at.run, progress.iteration)  # in one step: another thread reads it


class _Worker(Living):
    """One that is talked to through a pipe."""

    def __init__(self, pipe: Connection) -> None:
        super().__init__()
        self.jobs: SimpleQueue[bytes | None] = SimpleQueue()
        self.leaving = False
        self._pausing = False
        self._pipe = pipe
        self._speaking = threading.Lock()

    def leave(self) -> None:
        """Stop at the next checkpoint, then end (also called by a signal: nothing may block)."""
        self.leaving = True
        self.jobs.put(None)

    def talk(self) -> None:
        """Listen, and say once a second that all is well."""
        try:
            while True:
                if self._pipe.poll(BEAT_SECONDS):
                    heard = self._pipe.recv()
                    self._pausing = heard is None
                    if heard is not None:
                        self.jobs.put(heard)
                with self._speaking:
                    self._pipe.send(self.at)
        except (EOFError, OSError):  # the parent has hung up, or is dead
            self.leave()
            time.sleep(ORPHAN_SECONDS)
            os._exit(1)

    def tell(self, said: Said) -> None:
        """Say something to the parent, if it is still there."""
        try:
            with self._speaking:
                self._pipe.send(said)
        except OSError:
            self.leave()

    def asked_to_stop(self) -> bool:
        """Tell whether the parent said so, or is gone."""
        return self._pausing or self.leaving


_LOGIC = (
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


def may_pass(fault: BaseException) -> bool:
    """Return whether a run that raised ``fault`` may succeed when it is tried again.

    Lifetimes are deterministic: what is wrong with the run, its weights or its code will be wrong
    again. Disks, memory and networks may recover. (A conflict of two records is of the first kind:
    the next attempt would find the other record, and the conflict would be forgotten.)
    """
    if isinstance(fault, RulescopeError):
        return isinstance(fault, PassingError)
    return not isinstance(fault, _LOGIC)


def cause_of(fault: BaseException) -> str:
    """Return what went wrong in one line or a few."""
    return f"{type(fault).__name__}: {fault}"[:CAUSE]
