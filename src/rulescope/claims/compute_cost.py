"""What it costs to decide a claim, from the pace of the records that a store has."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import suppress
from statistics import median

from rulescope import run_spec
from rulescope.core.errors import RecordError, SpecError
from rulescope.records import Store
from rulescope.run_spec import RunSpec

UNKNOWN_PACE = 0.1
"""Seconds of an iteration of a learner of which there is no record: that of Disco on 8x8 Catch."""


class Pace:
    """Seconds of one iteration by kind of lifetime, on whichever machines made the records."""

    def __init__(self, store: Store | None) -> None:
        by_kind: dict[Hashable, list[float]] = {}
        for spec, seconds in () if store is None else _timed(store):
            for kind in _kinds(spec):
                by_kind.setdefault(kind, []).append(seconds)
        self._pace = {kind: median(seconds) for kind, seconds in by_kind.items()}

    def minutes(self, specs: Iterable[RunSpec]) -> float:
        """Return the minutes that ``specs`` take on one core."""
        return sum(self._seconds(spec) for spec in specs) / 60

    def _seconds(self, spec: RunSpec) -> float:
        known = (self._pace[kind] for kind in _kinds(spec) if kind in self._pace)
        return next(known, UNKNOWN_PACE) * (spec.iterations - spec.start)


def _timed(store: Store) -> Iterator[tuple[RunSpec, float]]:
    """Yield the specification of every record, and the seconds of one of its iterations."""
    for run in store.ids():
        # A damaged record, or one of another version, is reported where its content matters.
        with suppress(RecordError, SpecError):
            manifest = store.manifest(run)
            spec = run_spec.decode(manifest.canonical)
            yield spec, manifest.seconds / max(spec.iterations - spec.start, 1)


def _kinds(spec: RunSpec) -> tuple[Hashable, ...]:
    """Return what the time of an iteration depends on, the most specific first."""
    shape = (spec.learner.kind, spec.lanes, spec.steps)
    return ((*shape, spec.environment), (*shape, type(spec.environment)), shape)
