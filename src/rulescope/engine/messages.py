"""What the parent and its workers say to each other. Light: a worker reads it before torch.

To a worker goes the canonical form of a spec (live this), or None (stop what you are living, at a
checkpoint). A pipe that is closed says: leave. From a worker comes one of the following.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class Beat(NamedTuple):
    """I am alive; of ``run``, the last that I was given, I have finished ``iteration``."""

    run: str
    iteration: int
    """0 before the first that is finished here, wherever the run goes on from."""


class Ready(NamedTuple):
    """Everything is imported: I can live runs now."""

    pid: int


class Unfit(NamedTuple):
    """I could not import what it takes."""

    cause: str


class Ended(NamedTuple):
    """What became of a run."""

    run: str
    how: Literal["done", "paused", "failed"]
    iteration: int = 0
    cause: str = ""
    again: bool = True
    """Whether a failed run may fare better next time."""
    trace: str = ""
    host: str = ""
    """Where it failed, unless on the machine of the parent."""


Said = Beat | Ready | Unfit | Ended
