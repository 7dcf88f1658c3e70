"""Analyses of the replication's records; each assay is analysed once, on demand."""

from __future__ import annotations

from functools import cache, cached_property
from typing import NamedTuple

from documents.spans import DocumentError
from rulescope.assays import ASSAYS, Budget, Results, Selection, find, narrowed, published
from rulescope.assays.comparison import compare, in_words, tally
from rulescope.assays.plan import Plan
from rulescope.assays.published_agreement import as_estimate
from rulescope.core.errors import SpecError, nearest
from rulescope.records import Store
from rulescope.stats import Estimate


class Source(NamedTuple):
    """Part of the records: the published grid of an assay, with one agent."""

    assay: str
    agent: str | None

    @classmethod
    def of(cls, word: str, agent: str | None) -> Source:
        """Read ``ASSAY`` or ``ASSAY@AGENT``; without a name it is ``agent``."""
        name, _, own = word.partition("@")
        if name not in ASSAYS:
            raise DocumentError(f"no assay {name!r}{nearest(name, ASSAYS)}")
        return cls(name, own or (agent if agent is not None and _accepts(name, agent) else None))

    @property
    def command(self) -> str:
        """The command that prints our estimates of it beside the published ones."""
        chosen = "" if self.agent is None else f" --agent {self.agent}"
        return f"rulescope compare {self.assay}{chosen} --store replication/store"


def check_agent(agent: str) -> None:
    """Raise unless there is such an agent."""
    try:
        _budget("E1", agent)
    except SpecError as fault:
        raise DocumentError(f"agent: {fault}") from fault


@cache
def _accepts(name: str, agent: str) -> bool:
    """Return whether the agent of an assay can be chosen: not if it has no Disco learner."""
    try:
        _budget(name, agent)
    except SpecError:
        return False
    return True


def _budget(name: str, agent: str | None) -> Budget:
    """Return the published budget of an assay, with ``agent`` if one is named."""
    assay = find(name)
    budget = assay.budget("paper")
    if agent is None:
        return budget
    return narrowed(assay, budget, Selection(agent=agent))


class Analyses:
    """The records of one store, analysed on demand."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._plans: dict[Source, Plan] = {}
        self._results: dict[Source, Results] = {}

    @cached_property
    def records(self) -> list[str]:
        """Ids of all records."""
        return list(self.store.ids())

    def plan(self, source: Source) -> Plan:
        """Return the published grid of ``source``, and which of its lifetimes there are."""
        if source not in self._plans:
            self._plans[source] = Plan.of(find(source.assay), _budget(*source), self.store)
        return self._plans[source]

    def results(self, source: Source) -> Results:
        """Return the results of the records of ``source``."""
        if source not in self._results:
            self._results[source] = self.plan(source).analyse(self.store)
        return self._results[source]

    def ours(self, source: Source, key: str) -> Estimate:
        """Return our estimate called ``key``."""
        found = self.results(source).estimates
        if key not in found:
            raise DocumentError(f"{source.assay}: no estimate {key!r}{nearest(key, found)}")
        return found[key]

    def seeds(self, source: Source, name: str) -> list[float]:
        """Return the readout of every lifetime of a cell, in the order of the seeds."""
        rows = self.results(source).estimates.rows
        seeds = {row.name: row.finite_seeds for row in rows if row.seeds is not None}
        if name not in seeds:
            raise DocumentError(f"{source.assay}: no seeds of {name!r}{nearest(name, seeds)}")
        return list(seeds[name])

    def crossings(self, source: Source, name: str, limit: float) -> list[int]:
        """Return when the score of each lifetime of a cell is first at ``limit``, if it ever is."""
        plan = self.plan(source)
        cells = {
            "/".join(f"{x:g}" if isinstance(x, float) else x for x in cell.labels.values()): cell
            for cell in plan.cells
        }
        if name not in cells:
            raise DocumentError(f"{source.assay}: no cell {name!r}{nearest(name, cells)}")
        logs = [self.store.read(run.id).log for run in cells[name].runs if run.id in plan.present]
        passed = [(log["iteration"], log["score"] >= limit) for log in logs]
        return [int(iteration[there][0]) for iteration, there in passed if there.any()]

    def agreement(self, source: Source) -> str:
        """Return how many published values are contradicted, undecided and reproduced."""
        return in_words(tally(compare(self.results(source))))


def printed(source: Source, key: str) -> Estimate:
    """Return the published value called ``key``."""
    found = published.estimates(source.assay)
    if key not in found:
        raise DocumentError(f"{source.assay}: nothing published as {key!r}{nearest(key, found)}")
    return as_estimate(found[key])
