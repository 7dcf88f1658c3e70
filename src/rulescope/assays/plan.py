"""From an assay and a budget to results: the planned runs, those in a store, their analysis."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from rulescope.assays import ASSAYS, Assay, Budget, Cell, Results, gather
from rulescope.assays.estimates import label_text
from rulescope.assays.figures import figures_in_worlds
from rulescope.core.errors import RecordError, SpecError
from rulescope.records import Record, Store
from rulescope.run_spec import RunSpec, with_donors
from rulescope.stats import RecordedDraws, recording_draws, seed_blocks

CALIBRATION = 8
"""Iterations that are timed to estimate the duration of a campaign."""
PATIENCE = 2.0
"""Seconds after which no further one is timed."""


Stored = Callable[[str, RunSpec], bool]
"""Returns whether a run exists, given its id and its specification."""


@dataclass(frozen=True)
class Plan:
    """All runs of an assay at a budget, and which of them a store lacks."""

    assay: Assay
    budget: Budget
    cells: tuple[Cell, ...]
    runs: Mapping[str, RunSpec]
    """The runs of the cells, by id."""
    donors: Mapping[str, RunSpec]
    """Runs whose state is transplanted into others, by id, if they are in no cell."""
    present: frozenset[str]
    """Ids of the runs and donors that the store has."""

    @classmethod
    def of(cls, assay: Assay, budget: Budget, store: Store | None = None) -> Plan:
        """Expand the grid of ``assay``, and find out which of its runs ``store`` has, if given."""

        def stored(key: str, _: RunSpec) -> bool:
            return store is not None and key in store

        return cls.of_cells(assay, budget, assay.grid(budget), stored)

    @classmethod
    def of_cells(cls, assay: Assay, budget: Budget, cells: Sequence[Cell], stored: Stored) -> Plan:
        """Return the plan of these ``cells`` of ``assay``; ``stored`` says which runs exist."""
        runs = {run.id: run for cell in cells for run in cell.runs}
        everything = with_donors(runs.values())
        donors = {key: run for key, run in everything.items() if key not in runs}
        present = frozenset(key for key, run in everything.items() if stored(key, run))
        return cls(assay, budget, tuple(cells), runs, donors, present)

    @cached_property
    def missing(self) -> dict[str, RunSpec]:
        """The runs that the store lacks, by id; a donor only if a missing run needs it."""
        wanted = with_donors(run for key, run in self.runs.items() if key not in self.present)
        return {key: run for key, run in wanted.items() if key not in self.present}

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of all cells together."""
        return tuple(sorted({run.seed for cell in self.cells for run in cell.runs}))

    def done(self, cell: Cell) -> int:
        """Return how many runs of ``cell`` the store has."""
        return sum(run.id in self.present for run in cell.runs)

    def analyse(self, store: Store, *, draws: bool = False) -> Results:
        """Return the results of the runs in ``store``; labels of which it has none are left out.

        With ``draws`` the results also hold the bootstrap draws behind them.
        """
        cells = self._run_cells()
        if not cells:
            raise RecordError(f"{store.root}: holds no lifetime of this grid of {self.assay.id}")

        records = self._read(store)
        budget = self.budget
        frame = gather(
            cells,
            records.get,
            columns=self.assay.columns,
            episodes=budget.episodes,
            states=self.assay.states,
            rule=budget.subject.rule,
            agent=budget.agent,
            worlds=budget.references,
        )
        if draws:
            with recording_draws() as kept:
                results = self.assay.analyse(frame)
            results = replace(results, draws=collect_draws(results, kept, frame.seeds))
        else:
            results = self.assay.analyse(frame)
        return replace(results, notes=(*self._left_out(cells), *results.notes))

    def _read(self, store: Store) -> dict[str, Record]:
        """Return the records that ``store`` has; one error names all that are damaged."""
        found, faults = {}, []
        for key in self.runs:
            if key in self.present:
                try:
                    found[key] = store.read(key)
                except RecordError as fault:
                    faults.append(str(fault))
        if faults:
            again = "run the assay again to make them anew"
            raise RecordError("\n".join([*faults, f"{len(faults)} damaged: {again}"]))
        return found

    def _left_out(self, cells: Sequence[Cell]) -> list[str]:
        """Return a note that names the planned labels of which no run is in the store."""
        gone = []
        for axis in self.cells[0].labels:
            kept = {cell.labels[axis] for cell in cells}
            lost = dict.fromkeys(
                cell.labels[axis] for cell in self.cells if cell.labels[axis] not in kept
            )
            gone += [f"{axis} {', '.join(map(label_text, lost))}"] if lost else []
        return [f"not run: {'; '.join(gone)}"] if gone else []

    def _run_cells(self) -> list[Cell]:
        """Drop every label, and every seed, that has no run in the store.

        A narrowed grid is a coarser one, not one with holes: a scale that was never run must not
        break the window of scales around it.
        """
        begun = [cell for cell in self.cells if self.done(cell)]
        labels = {axis: {cell.labels[axis] for cell in begun} for axis in self.cells[0].labels}
        seeds = {run.seed for cell in begun for run in cell.runs if run.id in self.present}
        return [
            cell._replace(runs=tuple(run for run in cell.runs if run.seed in seeds))
            for cell in self.cells
            if all(label in labels[axis] for axis, label in cell.labels.items())
        ]


def collect_draws(
    results: Results, kept: RecordedDraws, seeds: Sequence[int]
) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
    """Return the draws [draws] of every estimate that has any, and the seeds of each draw.

    An estimate that is another one in other units has no draws of its own.
    """
    found: dict[str, NDArray[np.float64] | NDArray[np.int64]] = {
        key: samples
        for key, one in results.estimates.items()
        if (samples := kept.of(one)) is not None
    }
    sizes = {len(samples) for samples in found.values()}
    found |= {f"blocks/{size}": seed_blocks(len(seeds), size) for size in sorted(sizes)}
    return found | {"seeds": np.array(seeds, dtype=np.int64)}


def interactions(specs: Iterable[RunSpec]) -> int:
    """Return the interactions of all ``specs`` together."""
    return sum(spec.interactions for spec in specs)


def seconds_left(
    specs: Sequence[RunSpec],
    workers: int,
    weights: Path | None = None,
    shared: Mapping[str, int] | None = None,
    device: str = "cpu",
) -> float:
    """Estimate the duration of ``specs`` from a few iterations of each kind of run.

    ``shared`` are the iterations that a run need not execute, by run id.
    """
    pace: dict[object, float] = {}
    total = 0.0
    for spec in specs:
        kind = _pace_kind(spec)
        if kind not in pace:
            pace[kind] = iteration_seconds(spec, weights, device)
        saved = (shared or {}).get(spec.id, 0)
        total += pace[kind] * (spec.iterations - spec.start - saved)
    return total / max(min(workers, len(specs)), 1)


def _pace_kind(spec: RunSpec) -> object:
    """Return what the time of an iteration depends on."""
    learner = spec.learner
    sizes = (getattr(learner, "agent", None), getattr(learner, "batch", None))
    return (spec.environment, type(learner), sizes, spec.lanes, spec.steps)


def iteration_seconds(spec: RunSpec, weights: Path | None = None, device: str = "cpu") -> float:
    """Return the duration of an iteration of a run like ``spec``, after its first update."""
    from rulescope.lifetime import Lifetime  # here, because torch takes seconds to import

    warm = spec.learner.first_update(spec.lanes, spec.steps) + 2
    plain = msgspec.structs.replace(
        spec, interventions=(), change=None, origin=None, marks=(), iterations=warm + CALIBRATION
    )
    timed = msgspec.structs.replace(plain, log_every=plain.iterations)
    life = Lifetime(timed, device=device, weights=weights)
    life.run(until=warm)
    started, passed = time.perf_counter(), 0.0
    while not life.finished and passed < PATIENCE:
        life.advance()
        passed = time.perf_counter() - started
    return passed / (life.iteration - warm)


def companions(assay: Assay) -> list[Assay]:
    """Return the other assays that share a figure with ``assay``."""
    return [
        other
        for other in ASSAYS.values()
        if other.id != assay.id and set(other.figures) & set(assay.figures)
    ]


def write(
    plan: Plan,
    results: Results,
    store: Store,
    folder: Path,
    figures: tuple[str, ...] | None = None,
    *,
    alone: bool = False,
) -> list[Path]:
    """Write ``results`` as a folder, with the panels of other assays where ``store`` has them.

    With ``alone``, figures have the panels of this assay only.
    """
    from rulescope.assays.results_folder import (
        write_results,  # here, because drawing is not always needed
    )

    others = {}
    if plan.budget.worlds:  # panels of other assays, and most figures, are of their own worlds
        alone, figures = True, figures_in_worlds(results)
    for other in () if alone else companions(plan.assay):
        try:
            theirs = Plan.of(other, _comparable_budget(plan, other), store)
        except SpecError:  # it has no grid of this length, or none for this rule
            continue
        if any(key in theirs.present for key in theirs.runs):
            others[other.id] = theirs.analyse(store)
    used = {key: store.read(key).manifest.science_hash for key in sorted(plan.present)}
    return write_results(plan.assay, results, others, used, folder, figures)


def _comparable_budget(plan: Plan, other: Assay) -> Budget:
    """Return the budget of the whole grid of another assay that is most like that of ``plan``.

    If ``plan`` has the length of one of its presets, seeds and length are those of the other's
    preset of that name; otherwise those of ``plan``. The agent is that of the other's cohort if
    ``plan`` has that of its own, else the agent of ``plan``.
    """
    budget, whole = plan.budget, other.budget("paper")
    # (Presets of two names may have one length: the published one has all seeds.)
    names = ("paper", *plan.assay.presets)
    like = next((name for name in names if _same_length(plan.assay.budget(name), budget)), None)
    its = other.budget(like) if like else budget
    usual = budget.agent == plan.assay.cohort.agent
    episodes = None if whole.episodes is None else its.episodes or whole.episodes
    return replace(
        whole,
        seeds=max(its.seeds, budget.seeds),
        iterations=its.iterations,
        episodes=episodes,
        agent=whole.agent if usual else budget.agent,
        subject=budget.subject,
    )


def _same_length(one: Budget, other: Budget) -> bool:
    """Return whether runs of two budgets of an assay have one length, in the same worlds."""
    if one.episodes is None:
        return one.iterations == other.iterations
    return one.episodes == other.episodes
