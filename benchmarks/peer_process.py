"""A peer in a separate process that runs one turn on request.

In one process both sides would share a heap and caches, which costs time that neither needs when it
is used alone.
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


class Peer(Protocol):
    """Another implementation of the same work."""

    def warm_up(self, updates: int) -> None:
        """Make ``updates`` updates, after the iterations that precede the first one."""

    def iterate(self) -> object:
        """Run one timed turn."""


def import_peer(name: str, module: str) -> Any:
    """Return the peer's ``module``, or raise with the command that installs ``name``."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise PeerMissingError(
            f"{name} is not installed, so there is no comparison with it; "
            "`pip install rulescope[bench]` adds it"
        ) from None


def peer_version(name: str, module: str) -> str:
    """Return the version of the installed peer, or raise with the command that installs it."""
    import_peer(name, module)
    return importlib.metadata.version(name)


class PeerProcess:
    """The process that a peer runs in."""

    def __init__(self, name: str, build: Callable[[], Peer], warm_up: int) -> None:
        """``build`` makes the peer in the new process, which starts with ``warm_up`` updates."""
        methods = multiprocessing.get_all_start_methods()
        context: Any = multiprocessing.get_context("fork" if "fork" in methods else "spawn")
        self._name = name
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, build, warm_up), daemon=True)
        self._process.start()
        theirs.close()
        self._receive()

    def seconds(self) -> float:
        """Run one turn of the peer; return its seconds."""
        self._connection.send(True)
        return self._receive()

    def close(self) -> None:
        """End the process."""
        self._connection.send(False)
        self._process.join()

    def _receive(self) -> float:
        try:
            return float(self._connection.recv())
        except EOFError:
            raise RulescopeError(f"{self._name} failed; its message is above") from None


def _serve(connection: Any, build: Callable[[], Peer], warm_up: int) -> None:
    """Run a turn for every request on ``connection``, and send its seconds."""
    runtime.single_threaded()
    peer = build()
    peer.warm_up(warm_up)
    connection.send(0.0)
    while connection.recv():
        start = time.perf_counter()
        peer.iterate()
        connection.send(time.perf_counter() - start)
