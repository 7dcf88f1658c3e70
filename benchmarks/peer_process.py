"""A peer in a process of its own, one turn at a time when asked.

In one process the two sides would share a heap, and each would find the other's leftovers where its
own memory was: a cost that neither has when it is used alone.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import multiprocessing
import time
from collections.abc import Callable
from typing import Any, Protocol

from rulescope.core import runtime
from rulescope.core.errors import RulescopeError


class PeerMissingError(RulescopeError):
    """The peer is not installed."""


class Turns(Protocol):
    """Another implementation of our work."""

    def warm_up(self, updates: int) -> None:
        """Make ``updates`` updates, and whatever must come before the first."""

    def iterate(self) -> object:
        """Take the turn that is timed."""


def package(name: str, module: str) -> Any:
    """Return the peer's ``module``, or raise with the command that installs ``name``."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise PeerMissingError(
            f"{name} is not installed, so nothing is compared with it; "
            "`pip install rulescope[bench]` adds it"
        ) from None


def version(name: str, module: str) -> str:
    """Return the version of the installed peer, or raise with the command that installs it."""
    package(name, module)
    return importlib.metadata.version(name)


class PeerProcess:
    """The process that a peer lives in."""

    def __init__(self, name: str, build: Callable[[], Turns], warm_up: int) -> None:
        """``build`` is called in the new process; the peer has made ``warm_up`` updates then."""
        methods = multiprocessing.get_all_start_methods()
        context: Any = multiprocessing.get_context("fork" if "fork" in methods else "spawn")
        self._name = name
        self._line, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, build, warm_up), daemon=True)
        self._process.start()
        theirs.close()
        self._answer()

    def seconds(self) -> float:
        """Let the peer take one turn; return how long it took."""
        self._line.send(True)
        return self._answer()

    def close(self) -> None:
        """End the process."""
        self._line.send(False)
        self._process.join()

    def _answer(self) -> float:
        try:
            return float(self._line.recv())
        except EOFError:
            raise RulescopeError(f"{self._name} failed; its message is above") from None


def _serve(line: Any, build: Callable[[], Turns], warm_up: int) -> None:
    """Take a turn whenever ``line`` asks for it, and answer with the seconds taken."""
    runtime.single_threaded()
    peer = build()
    peer.warm_up(warm_up)
    line.send(0.0)
    while line.recv():
        start = time.perf_counter()
        peer.iterate()
        line.send(time.perf_counter() - start)
