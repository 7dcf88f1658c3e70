"""Evidence from a store: what the records of the first seeds show of an estimate.

Seeds are taken in their order, and only whole seed blocks: a seed counts when every lifetime of
the claim's cells with that seed is there. What a campaign happened to finish first decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np

from rulescope import assays
from rulescope.assays import Results
from rulescope.assays.bimodal_cells import is_level
from rulescope.assays.estimates import Row
from rulescope.assays.plan import Plan
from rulescope.assays.published_agreement import SHARES
from rulescope.assays.selection import narrowed
from rulescope.claims.decision import Floats, Reading
from rulescope.claims.ledger import CellsOf, Claim, Name, Part
from rulescope.core.errors import SpecError
from rulescope.records import Store
from rulescope.run_spec import RunSpec
from rulescope.stats import Estimate, wilson
from rulescope.stats.agreement import estimate_difference
from rulescope.stats.sequential_counts import LOOKS

WITHOUT_SEEDS = {
    ("E1", "width"),
    ("E1", "contrast"),
    ("E1", "displacement"),
    ("E1", "between"),
    ("E1", "principal"),
    ("E-LR", "selected"),
    ("directions", "spanning"),
}
"""Quantities of whole curves or cells, or of the best of several, which no single seed has."""
WITHOUT_INTERVAL = {("E1", "principal"), ("directions", "spanning")}
"""Of these, quantities that have no interval either: no evidence decides them."""


def planned_looks(claim: Claim) -> tuple[int, ...]:
    """Return the numbers of seeds at which ``claim`` is looked at, up to its cap.

    >>> from rulescope.claims.ledger import select
    >>> planned_looks(select(["clamping-amplifies-mismatch"])[0])
    (6, 9, 12, 18, 27)
    """
    if claim.n > LOOKS[-1]:  # campaigns of random play: one look at as many as were published
        return (claim.n,)
    return tuple(look for look in LOOKS if look <= max(claim.cap, LOOKS[0]))


@dataclass
class RecordEvidence:
    """Plans and analyses of parts of the published grids, each made once."""

    store: Store | None
    agent: str | None = None
    """Conventions of the learner, if not those of each assay's published cohort."""
    _plans: dict[tuple[CellsOf, int], Plan] = field(default_factory=dict)
    _results: dict[tuple[CellsOf, int], Results] = field(default_factory=dict)

    def plan(self, cells: CellsOf, seeds: int) -> Plan:
        """Return the lifetimes of ``cells`` for the first ``seeds``, at the published length."""
        key = cells, seeds
        if key not in self._plans:
            assay = assays.find(cells.assay)
            budget = narrowed(assay, assay.budget("paper"), cells.selection(seeds))
            if self.agent is not None:  # without effect on learners that come as one agent
                budget = replace(budget, agent=self.agent)
            self._plans[key] = _of_first(Plan.of(assay, budget, self.store), seeds)
        return self._plans[key]

    def of_published_agent(self, claim: Claim) -> bool:
        """Return whether the lifetimes of ``claim`` are those of the published cohorts' agents.

        They are not where an assay cannot be run with the agent.
        """
        usual = RecordEvidence(None)
        try:
            return all(
                self.plan(cells, 1).runs.keys() == usual.plan(cells, 1).runs.keys()
                for cells in claim.cells
            )
        except SpecError:
            return False

    def blocks(self, claim: Claim) -> int:
        """Return the number of seeds, from the first on, of which all lifetimes are there."""
        return min(self._blocks(cells, planned_looks(claim)[-1]) for cells in claim.cells)

    def _blocks(self, cells: CellsOf, most: int) -> int:
        plan = self.plan(cells, most)
        missing = [run.seed for key, run in plan.runs.items() if key not in plan.present]
        return min(missing, default=most)

    def missing(self, claim: Claim, seeds: int) -> dict[str, RunSpec]:
        """Return the lifetimes that ``claim`` lacks for the first ``seeds``, donors included."""
        lacking: dict[str, RunSpec] = {}
        for cells in claim.cells:
            lacking |= self.plan(cells, seeds).missing
        return lacking

    def runs(self, claim: Claim, seeds: int) -> list[str]:
        """Return the ids of the lifetimes behind a verdict on the first ``seeds``."""
        found = (self.plan(cells, seeds).runs for cells in claim.cells)
        return sorted({key for runs in found for key in runs})

    def results(self, cells: CellsOf, seeds: int) -> Results:
        """Return the analysis of ``cells`` for the first ``seeds``, with its bootstrap draws."""
        key = cells, seeds
        if key not in self._results:
            assert self.store is not None
            self._results[key] = self.plan(cells, seeds).analyse(self.store, draws=True)
        return self._results[key]

    def readings(self, claim: Claim, part: Part, looks: Sequence[int]) -> dict[int, Reading]:
        """Return what the records show of ``part`` at each of ``looks`` that they reach."""
        reached = self.blocks(claim)
        found = {}
        for look in looks:
            if look > reached:
                break
            reading = self._reading(claim, part, look)
            if reading is not None:
                found[look] = reading
        return found

    def empty_reading(self, part: Part) -> Reading:
        """Return a reading without evidence: what kind of quantity ``part`` is about.

        All but geometry, and differences of shares, have values of single seeds. Those that have
        none have an interval, with few exceptions; its bounds are unknown here.
        """
        first, second = part.first, part.second
        names = [first] if second is None else [first, second]
        shares = [name.quantity in SHARES for name in names]
        if all(shares) and second is None:
            return Reading(0, math.nan, happened=0)
        kind = first.assay, first.quantity
        if any(shares) or kind in WITHOUT_SEEDS:
            interval = None if kind in WITHOUT_INTERVAL else unknown_bounds
            return Reading(0, math.nan, bounds=interval)
        level = all(is_level(name.assay, name.quantity) for name in names)
        return Reading(0, math.nan, np.empty(0), level=level, signed=level and second is not None)

    def latest(self, claim: Claim, part: Part) -> Reading:
        """Return what all complete seeds show of ``part``; only its kind if there are none."""
        seeds = self.blocks(claim)
        found = self._reading(claim, part, seeds) if seeds else None
        return found if found is not None and found.decidable else self.empty_reading(part)

    def _reading(self, claim: Claim, part: Part, look: int) -> Reading | None:
        first = self._row(claim, part.first, look)
        if first is None or part.second is None:
            return None if first is None else first.reading(look)
        second = self._row(claim, part.second, look)
        return None if second is None else difference(first, second, look)

    def _row(self, claim: Claim, name: Name, look: int) -> Analysed | None:
        """Return the row called ``name`` in the analysis of the cells that have it."""
        for cells in claim.cells:
            if cells.assay != name.assay:
                continue
            results = self.results(cells, look)
            if name.row in results.estimates and results.estimates.row(name.row).known:
                return Analysed(name, results.estimates.row(name.row), results.draws)
        return None

    def row(self, claim: Claim, name: Name) -> Row | None:
        """Return the row called ``name`` from all complete seeds."""
        seeds = self.blocks(claim)
        found = self._row(claim, name, seeds) if seeds else None
        return None if found is None else found.row


def _of_first(plan: Plan, seeds: int) -> Plan:
    """Return ``plan`` without other lifetimes than those of the first ``seeds``.

    A grid may have more of some arm: for each seed of a learner there are several random campaigns.
    """
    cells = tuple(
        cell._replace(runs=tuple(run for run in cell.runs if run.seed < seeds))
        for cell in plan.cells
    )
    runs = {run.id: run for cell in cells for run in cell.runs}
    return replace(plan, cells=cells, runs=runs)


@dataclass(frozen=True)
class Analysed:
    """A row of an analysis with the draws that the analysis made."""

    name: Name
    row: Row
    draws: Mapping[str, Floats]

    @property
    def share(self) -> bool:
        """Whether it is a share of lifetimes."""
        return self.row.quantity in SHARES

    @property
    def exact(self) -> bool:
        """Whether the value is computed, not measured."""
        return self.row.quantity == "chance"

    @property
    def level(self) -> bool:
        """Whether single values lie between 0 (random) and 1 (optimal)."""
        return is_level(self.name.assay, self.row.quantity)

    @property
    def happened(self) -> int:
        """The number of lifetimes behind a share."""
        return round(self.row.estimate.value * self.row.estimate.n)

    def reading(self, look: int) -> Reading:
        """Return what the row shows."""
        one = self.row.estimate
        if self.share:
            return Reading(look, one.value, happened=self.happened, bounds=self._share_bounds)
        draws = self.draws.get(self.row.name)
        seeds = self.row.seeds
        return Reading(look, one.value, seeds, level=self.level, bounds=quantiles(draws))

    def _share_bounds(self, error: float) -> tuple[float, float]:
        found = share_at(self, error)
        return found.low, found.high


def difference(first: Analysed, second: Analysed, look: int) -> Reading:
    """Return what two rows show of their difference.

    Seeds are paired where both rows have values of single seeds. Shares of lifetimes are compared
    by the interval of their difference.
    """
    value = first.row.estimate.value - second.row.estimate.value
    if second.exact and first.share:  # a share against a known probability, moved to zero
        return Reading(look, value, bounds=_shifted(first, second.row.estimate.value))
    if first.share and second.share:
        return Reading(look, value, bounds=_newcombe(first, second))
    seeds = None
    if first.row.seeds is not None and second.row.seeds is not None:
        seeds = first.row.seeds - second.row.seeds
    pair = first.draws.get(first.row.name), second.draws.get(second.row.name)
    apart = None if pair[0] is None or pair[1] is None else pair[0] - pair[1]
    level = first.level and second.level
    return Reading(look, value, seeds, level=level, signed=level, bounds=quantiles(apart))


def quantiles(draws: Floats | None) -> Callable[[float], tuple[float, float]] | None:
    """Return the percentile interval of bootstrap ``draws`` [draws] by its one-sided error."""
    if draws is None or not np.isfinite(draws).any():
        return None

    def bounds(error: float) -> tuple[float, float]:
        low, high = np.nanquantile(draws, [error, 1.0 - error])
        return float(low), float(high)

    return bounds


def unknown_bounds(error: float) -> tuple[float, float]:
    """Return the bounds of an interval that has not been measured yet."""
    del error
    return math.nan, math.nan


def share_at(row: Analysed, error: float) -> Estimate:
    """Return a share with the Wilson interval that has ``error`` on each side."""
    return wilson(row.happened, row.row.estimate.n, NormalDist().inv_cdf(1.0 - error))


def _newcombe(first: Analysed, second: Analysed) -> Callable[[float], tuple[float, float]]:
    def bounds(error: float) -> tuple[float, float]:
        found = estimate_difference(share_at(first, error), share_at(second, error))
        return found.low, found.high

    return bounds


def _shifted(share: Analysed, by: float) -> Callable[[float], tuple[float, float]]:
    def bounds(error: float) -> tuple[float, float]:
        found = share_at(share, error)
        return found.low - by, found.high - by

    return bounds
