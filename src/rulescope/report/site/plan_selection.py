"""Which assays a store has something to say about, and at which budget each is shown.

Records do not tell for which assay they were lived, and need not: a grid is data, so whether a
store holds lifetimes of it can be looked up. Tried are the presets of every assay, under every
rule and agent that the store has (see :mod:`.variants`); what no preset accounts for is tried as
a grid of that length.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

from rulescope.assays import ASSAYS, Assay, Budget, Cell, narrowed
from rulescope.assays.frame import Label
from rulescope.assays.plan import Plan, interactions
from rulescope.core.errors import RulescopeError
from rulescope.report.site.subjects_found import PUBLISHED, Variant, variants
from rulescope.spec.learner_base import RunShape
from rulescope.spec.run_spec import RunSpec, with_donors
from rulescope.spec.world_config import DeepSea
from rulescope.stats import updates_for_depth

ORDER = ("paper", "standard", "quick", "smoke")
"""Of presets that have as many lifetimes: the published one tells best what is missing."""

T = TypeVar("T")
Specs = Mapping[str, RunSpec]
Known = frozenset[RunSpec]
"""All that the store has; looked up as it is, because to hash thousands of ids takes seconds."""


@dataclass(frozen=True)
class Shown:
    """A plan that gets a page."""

    plan: Plan
    others: tuple[tuple[int, int], ...] = ()
    """Other lengths at which there are lifetimes of the assay: iterations, how many."""
    tag: str = ""
    """What tells its rule from another of the same name, if there is one."""


def choose(specs: Specs, preset: str | None = None, watched: Collection[str] = ()) -> list[Shown]:
    """Return the plans of which ``specs`` (all that a store has) hold lifetimes.

    Of each assay, rule and agent the budget with most to show is taken, or that of ``preset``.
    Lifetimes that were ``watched`` (ids) were lived for a mechanism view: that they have a length
    that no preset has makes no assay of them.
    """
    known = frozenset(specs.values())
    rules = variants(known)
    found = {
        (assay.id, variant): [
            plan
            for name in ([preset] if preset else _distinct(assay))
            for plan in _preset(assay, variant, name, known)
        ]
        for assay in ASSAYS.values()
        for variant in rules
    }
    if preset is None:
        accounted = {
            key for plans in found.values() for plan in plans for key in (*plan.runs, *plan.donors)
        }
        odd = [spec for key, spec in specs.items() if key not in accounted | set(watched)]
        others = [
            (key, plan)
            for key in found
            for plan in _of_other_lengths(ASSAYS[key[0]], key[1], odd, known)
        ]
        for key, plan in _own(others, known):
            found[key].append(plan)
    chosen = [
        shown
        for assay in ASSAYS.values()
        for shown in _without_repeats(
            [_best(found[assay.id, variant], variant.tag) for variant in rules]
        )
    ]
    return chosen if preset else _not_by_chance(chosen)


def _distinct(assay: Assay) -> list[str]:
    """Return the presets of ``assay`` that differ in length: one with fewer seeds is part of one
    with more."""
    lengths = {name: assay.budget(name) for name in reversed(ORDER)}
    last = {(b.iterations, b.episodes, b.log_every): name for name, b in lengths.items()}
    return [name for name in ORDER if name in last.values()]


def _preset(assay: Assay, variant: Variant, preset: str, known: Known) -> Iterator[Plan]:
    """Yield the plan of a preset if there is any of it, with the controls that there are."""
    usual, arms = assay.budget(preset), variant.arms(assay.id)
    asked: dict[str, Any] = variant.asked
    wider: dict[str, Any] = {"arms": arms}
    if variant.subject is not None:
        asked["arms"] = [arm for arm in usual.arms if arm in arms] or arms
        wider["subject"] = variant.subject
    for budget, cells in _asked_for(assay, usual, asked):
        again = variant != PUBLISHED and budget == usual
        if again or not any(map(known.intersection, _runs(cells))):
            continue
        planned = frozenset(cell.runs for cell in cells)
        wide = [grid for _, grid in _asked_for(assay, budget, wider)]
        kept = [
            cell
            for cell in (wide[0] if wide else cells)
            if cell.runs in planned or known.intersection(cell.runs)
        ]
        yield _plan(assay, budget, kept, known)


def _not_by_chance(found: list[Shown]) -> list[Shown]:
    """Return those that have lifetimes of their own, and those of the published budgets.

    Assays have cells in common. Of a published grid it is good to know that some of it is there
    already; elsewhere a page of lifetimes that were lived for other assays only says so.
    """
    seen: set[str] = set()
    kept: list[Shown] = []
    for shown in sorted(found, key=lambda shown: -len(_held(shown.plan))):
        held = {run.id for run in _held(shown.plan)}
        if held - seen or _as_published(shown.plan):
            kept.append(shown)
            seen |= held
    return [shown for shown in found if shown in kept]


def _as_published(plan: Plan) -> bool:
    paper = plan.assay.budget("paper")
    terms = ("rule", "agent", "iterations", "episodes")
    return all(getattr(plan.budget, name) == getattr(paper, name) for name in terms)


def _of_other_lengths(
    assay: Assay, variant: Variant, odd: Sequence[RunSpec], known: Known
) -> Iterator[Plan]:
    """Yield plans of lengths or scales that no preset has: of the labels and seeds there are."""
    paper = assay.budget("paper")
    for length in sorted(_lengths(odd, paper.episodes is not None)):
        most = max(spec.seed for spec in odd) + 1
        asked = {**variant.asked, **dict(length), "arms": variant.arms(assay.id)}
        scales = sorted({spec.scale for spec in odd})
        # Some assays have scale 1 alone, and some all others.
        tries = [asked | {"scales": s} for s in (scales, [s for s in scales if s != 1.0]) if s]
        usual = replace(paper, seeds=most)
        grids = (found for each in [*tries, asked] for found in _asked_for(assay, usual, each))
        for budget, grid in islice(grids, 1):
            cells = [cell for cell in grid if known.intersection(cell.runs)]
            seeds = {run.seed for runs in _runs(cells) for run in runs if run in known}
            if any(map(frozenset(odd).intersection, _runs(cells))):
                cells = [
                    cell._replace(runs=tuple(run for run in cell.runs if run.seed in seeds))
                    for cell in cells
                ]
                yield _plan(assay, budget, cells, known)


def _own(found: list[tuple[T, Plan]], known: Known) -> Iterator[tuple[T, Plan]]:
    """Yield the plans that account for lifetimes that no larger one does, without other conditions.

    Of lengths that no preset has nobody said for which assay they were lived: most likely for the
    one that accounts for most of them. What a smaller one has in common with it counts only where
    the smaller one has something of its own to compare it with.
    """
    seen: set[RunSpec] = set()
    for key, plan in sorted(found, key=lambda each: -len(_held(each[1]))):
        own = set(_held(plan)) - seen
        cells = [cell for cell in plan.cells if own.intersection(cell.runs)]
        labels = {tuple(_condition(cell)) for cell in cells}
        if own:
            kept = [cell for cell in plan.cells if tuple(_condition(cell)) in labels]
            yield key, _plan(plan.assay, plan.budget, kept, known)
        seen |= own


def _condition(cell: Cell) -> list[Label]:
    return [label for axis, label in cell.labels.items() if axis != "arm"]


def _lengths(specs: Iterable[RunSpec], by_episodes: bool) -> set[tuple[tuple[str, int], ...]]:
    """Return the lengths of lifetimes, as they are asked for."""
    usual = RunShape()
    found: set[tuple[tuple[str, int], ...]] = set()
    for spec in specs:
        if by_episodes and isinstance(spec.environment, DeepSea):
            found |= {(("episodes", e),) for e in _episodes(spec.environment.depth, spec)}
        elif not by_episodes and (spec.lanes, spec.steps) == (usual.lanes, usual.steps):
            found.add((("iterations", spec.iterations),))
    return found


def _episodes(depth: int, spec: RunSpec) -> Iterator[int]:
    """Yield the roundest number of episodes that makes lifetimes as long as ``spec``."""
    near = spec.iterations * spec.lanes * spec.steps / depth
    for step in (1000, 100, 10, 1):
        episodes = int(near // step) * step
        if episodes and updates_for_depth(depth, episodes) == spec.iterations:
            yield episodes
            return


def _asked_for(
    assay: Assay, budget: Budget, asked: Mapping[str, Any]
) -> Iterator[tuple[Budget, list[Cell]]]:
    """Yield ``budget`` with what is asked for, and its grid, if the assay can have it so."""
    try:
        chosen = narrowed(assay, budget, **asked)
        cells = assay.grid(chosen)
    except RulescopeError:
        return
    yield chosen, cells


def _runs(cells: Iterable[Cell]) -> Iterator[tuple[RunSpec, ...]]:
    return (cell.runs for cell in cells)


def _plan(assay: Assay, budget: Budget, cells: Sequence[Cell], known: Known) -> Plan:
    """Return the plan of these cells alone."""
    runs = {run.id: run for cell in cells for run in cell.runs}
    everything = with_donors(runs.values())
    donors = {key: run for key, run in everything.items() if key not in runs}
    present = frozenset(key for key, run in everything.items() if run in known)
    return Plan(assay, budget, tuple(cells), runs, donors, present)


def _held(plan: Plan) -> list[RunSpec]:
    return [run for key, run in plan.runs.items() if key in plan.present]


def _best(plans: list[Plan], tag: str) -> Shown | None:
    """Return the plan with most of a lifetime in it; the others' lengths are told."""
    if not plans:
        return None
    best = max(plans, key=lambda plan: interactions(_held(plan)))  # the first of equals
    others = {
        plan.budget.iterations: len(_held(plan))
        for plan in plans
        if not best.runs.keys() & plan.present and plan.budget.iterations != best.budget.iterations
    }
    return Shown(best, tuple(sorted(others.items())), tag)


def _without_repeats(found: list[Shown | None]) -> list[Shown]:
    """Return those that add something: baselines are the same lifetimes under every rule."""
    known = [shown for shown in found if shown is not None]
    # One with lifetimes under its rule comes before one that has baselines alone.
    known.sort(key=lambda shown: not any(hasattr(run.learner, "rule") for run in _held(shown.plan)))
    seen: set[str] = set()
    kept = []
    for shown in known:
        held = {run.id for run in _held(shown.plan)}
        if held - seen:
            kept.append(shown)
            seen |= held
    return kept
