"""The bootstrap draws behind estimates, kept for those who ask for them.

Draws are large and seldom wanted, so an estimate does not carry them along. Inside of
:func:`keeping_draws` every estimate that is made from draws is remembered with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from rulescope.stats.array_checks import FloatArray

if TYPE_CHECKING:
    from rulescope.stats.intervals import Estimate


class KeptDraws:
    """Estimates that were made while draws were kept, with their draws."""

    def __init__(self) -> None:
        # By identity: two estimates may be equal and come from different draws. The estimate is
        # held as well, so that its identity is not given to another.
        self._kept: dict[int, tuple[Estimate, FloatArray]] = {}

    def keep(self, found: Estimate, samples: FloatArray) -> None:
        """Remember ``samples`` [draws] of ``found``."""
        self._kept[id(found)] = (found, samples)

    def of(self, found: Estimate) -> FloatArray | None:
        """Return the draws [draws] of ``found``; None if it was not made from any."""
        kept = self._kept.get(id(found))
        return None if kept is None else kept[1]


_KEEPING: ContextVar[KeptDraws | None] = ContextVar("keeping", default=None)


@contextmanager
def keeping_draws() -> Iterator[KeptDraws]:
    """Remember the draws of every bootstrap estimate that is made inside."""
    kept = KeptDraws()
    before = _KEEPING.set(kept)
    try:
        yield kept
    finally:
        _KEEPING.reset(before)


def with_draws(found: Estimate, samples: FloatArray) -> Estimate:
    """Return ``found``, having remembered ``samples`` [draws] if they are kept."""
    kept = _KEEPING.get()
    if kept is not None and found.method == "bootstrap":
        kept.keep(found, samples)
    return found
