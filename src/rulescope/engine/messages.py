"""Messages from a worker to its pool. Imports nothing heavy: a worker needs them before torch.

In the other direction a worker receives an :class:`Assignment` (run it) or None (pause the run at a
checkpoint); a closed pipe means that the worker should exit.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class Assignment(NamedTuple):
    """A run for a worker, and the branch checkpoints that it starts from and saves."""

    canonical: bytes
    """The canonical form of its spec."""
    start: int
    """This and the next as in :class:`rulescope.runner.Sharing`."""
    users: dict[int, tuple[str, ...]]


class Heartbeat(NamedTuple):
    """The worker is alive and has completed ``iteration`` of ``run``, its latest run."""

    run: str
    iteration: int
    """0 before the first one completed by this worker, also for a resumed run."""


class Ready(NamedTuple):
    """Everything is imported: the worker accepts runs."""

    pid: int


class StartFailed(NamedTuple):
    """The worker could not import what it needs."""

    cause: str


class RunEnded(NamedTuple):
    """A run has ended in this worker."""

    run: str
    outcome: Literal["done", "paused", "failed"]
    iteration: int = 0
    cause: str = ""
    retry: bool = True
    """Whether a failed run may succeed in another attempt."""
    trace: str = ""
    host: str = ""
    """Machine of the worker; empty if it is that of the pool."""


Message = Heartbeat | Ready | StartFailed | RunEnded
