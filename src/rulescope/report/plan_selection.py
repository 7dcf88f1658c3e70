"""Selection of the plans that get a page: the plans in a store, else those that a search finds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from rulescope.assays import ASSAYS, Assay, Budget, Cell
from rulescope.assays.cohorts import UNPUBLISHED
from rulescope.assays.estimates import Label
from rulescope.assays.plan import Plan, interactions
from rulescope.assays.subject import Subject
from rulescope.core.errors import RulescopeError
from rulescope.learners.learner_config import Plugin
from rulescope.report.plan_search import (
    PUBLISHED,
    Known,
    present_runs,
    search_lengths,
    search_preset,
    search_presets,
    variants,
)
from rulescope.run_spec import RunSpec

_log = logging.getLogger(__name__)

Specs = Mapping[str, RunSpec]
"""All runs of a store, by id."""
Recorded = Sequence[tuple[Assay, Budget]]
"""Assays and budgets of the plans in a store."""
Labels = tuple[tuple[str, Label], ...]


@dataclass(frozen=True)
class SelectedPlan:
    """A plan that gets a page."""

    plan: Plan
    others: tuple[tuple[int, int], ...] = ()
    """Other lengths at which the store has runs of the assay: iterations, number of runs."""
    tag: str = ""
    """Distinguishes plug-ins of one name: the beginning of the source's hash, else empty."""


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A plan of which the store has runs."""

    plan: Plan
    recorded: bool = False

    @property
    def group(self) -> tuple[str, ...]:
        """Assay, worlds that the user named, agent, rule, source of a plug-in.

        Candidates of one group share a page.
        """
        return (self.plan.assay.id, _worlds(self.plan.budget), *_subject(self.plan.budget))


def select_plans(
    specs: Specs,
    preset: str | None = None,
    observed: Collection[str] = (),
    recorded: Recorded = (),
) -> list[SelectedPlan]:
    """Return the plans of which ``specs`` (all runs of a store) hold any run.

    Of each assay, rule and agent the budget with most interactions is taken, or that of ``preset``.
    Runs that belong to no ``recorded`` plan are searched for. Runs ``observed`` by a mechanism view
    (ids) were made for it: their length, which no preset has, makes no assay of them.
    """
    known = frozenset(specs.values())
    found = [] if preset else _recorded_candidates(recorded, known)
    planned = {key for each in found for key in (*each.plan.runs, *each.plan.donors)}
    left = {key: spec for key, spec in specs.items() if key not in planned}
    if left:
        if any(_is_as_published(each.plan) for each in found):
            found += _published_candidates(known, {each.plan.assay.id for each in found})
        found += _searched_candidates(left, known, preset, observed)
    groups: dict[tuple[str, ...], list[_Candidate]] = {}
    for each in found:
        groups.setdefault(each.group, []).append(each)
    order, largest = _subject_order(known), [_largest(group) for group in groups.values()]
    selected = [
        each
        for assay in ASSAYS.values()
        for each in _without_repeats(
            sorted(
                (each for each in largest if each.plan.assay.id == assay.id),
                key=lambda each: order(each.plan),
            )
        )
    ]
    tags = _plugin_tags(known)
    return [
        SelectedPlan(
            each.plan,
            _other_lengths(each, groups[each.group]),
            tags.get(_rule_and_source(each), ""),
        )
        for each in (selected if preset else _without_coincidences(selected))
    ]


def _recorded_candidates(recorded: Recorded, known: Known) -> list[_Candidate]:
    """Return the plans of a store that have runs; plans of one group and length are united.

    Of a published grid, everything is shown that is missing, however little was planned.
    """
    united: dict[tuple[object, ...], list[tuple[Assay, Budget]]] = {}
    for assay, budget in recorded:
        length = (budget.iterations, budget.episodes, budget.log_every)
        key = (assay.id, _worlds(budget), _subject(budget), length)
        united.setdefault(key, []).append((assay, budget))
    found: list[Plan] = []
    for plans in united.values():
        plan = _united_plan(plans[0][0], [budget for _, budget in plans], known)
        if plan is None or not present_runs(plan):
            continue
        whole: list[Plan] = []
        if _is_as_published(plan):
            whole = list(search_preset(plan.assay, PUBLISHED, "paper", known, known))
        found += whole
        if not any(plan.runs.keys() <= each.runs.keys() for each in whole):
            found.append(plan)
    return [_Candidate(plan, recorded=True) for plan in found]


def _published_candidates(known: Known, without: Collection[str]) -> list[_Candidate]:
    """Return the published grids that have runs, except those of the assays ``without``.

    Published assays have cells in common: in a store with runs beyond its plans, a plan of one
    assay must not hide that another has runs too.
    """
    return [
        _Candidate(plan)
        for assay in ASSAYS.values()
        if assay.id not in without and assay.cohort != UNPUBLISHED
        for plan in search_preset(assay, PUBLISHED, "paper", known, known)
    ]


def _united_plan(assay: Assay, budgets: Sequence[Budget], known: Known) -> Plan | None:
    """Return the plan of every cell and seed that any of ``budgets`` has, in grid order."""
    cells: dict[Labels, Cell] = {}
    for budget in sorted(budgets, key=lambda each: each.seeds):  # the most seeds last: they stay
        cells |= _grid(assay, budget)
    if not cells:
        return None
    if len(budgets) == 1:
        return Plan.of_cells(assay, budgets[0], list(cells.values()), lambda _, run: run in known)
    whole = replace(
        max(budgets, key=lambda each: each.seeds),
        arms=tuple(arm for arm in assay.arms if any(arm in each.arms for each in budgets)),
        scales=tuple(sorted({scale for each in budgets for scale in each.scales})),
        tasks=tuple(
            task
            for task in dict.fromkeys((*assay.tasks, *budgets[0].references))
            if any(task in each.tasks for each in budgets)
        ),
        conditions=tuple(
            name for name in assay.conditions if any(name in each.conditions for each in budgets)
        ),
    )
    order = {labels: i for i, labels in enumerate(_grid(assay, whole))}
    ordered = sorted(cells, key=lambda labels: order.get(labels, len(order)))
    return Plan.of_cells(
        assay, whole, [cells[labels] for labels in ordered], lambda _, run: run in known
    )


def _grid(assay: Assay, budget: Budget) -> dict[Labels, Cell]:
    """Return the cells of a budget by their labels; none, after a warning, if it has no grid."""
    try:
        return {tuple(cell.labels.items()): cell for cell in assay.grid(budget)}
    except RulescopeError as fault:
        _log.warning("plan of %s ignored: %s", assay.id, fault)
        return {}


def _searched_candidates(
    left: Specs, known: Known, preset: str | None, observed: Collection[str]
) -> list[_Candidate]:
    """Return the plans that runs without a recorded plan belong to."""
    specs = frozenset(left.values())
    rules = variants(specs)
    found = search_presets(specs, known, rules, preset)
    if preset is None:
        planned = {key for plan in found for key in (*plan.runs, *plan.donors)}
        odd = [spec for key, spec in left.items() if key not in planned | set(observed)]
        found += search_lengths(odd, known, rules)
    return [_Candidate(plan) for plan in found]


def _worlds(budget: Budget) -> str:
    """Return the worlds that the user named, with their configurations; empty without any."""
    return repr(budget.worlds) if budget.worlds else ""


def _rule_and_source(candidate: _Candidate) -> tuple[str, str]:
    _, rule, source = _subject(candidate.plan.budget)
    return rule, source


def _subject(budget: Budget) -> tuple[str, str, str]:
    """Return agent, rule, and the source of a plug-in."""
    return budget.agent, budget.subject.rule, _source(budget.subject)


def _source(subject: Subject) -> str:
    """Return the source of a plug-in; empty for other rules."""
    return subject.learner.source if isinstance(subject.learner, Plugin) else ""


def _subject_order(known: Known) -> Callable[[Plan], int]:
    """Return a function that ranks plans of one assay: the published first, then by rule."""
    order = variants(known)

    def rank(plan: Plan) -> int:
        agent, rule, source = _subject(plan.budget)
        if (agent, rule, source) == _subject(plan.assay.budget("paper")):
            return 0
        found = (
            i
            for i, each in enumerate(order)
            if each.subject is not None
            and (each.subject.driver, _source(each.subject)) == (rule, source)
            and each.agent in (None, agent)
        )
        return next(found, len(order))

    return rank


def _largest(group: list[_Candidate]) -> _Candidate:
    """Return the candidate with most interactions in the store; the first of equals."""
    return max(group, key=lambda each: interactions(present_runs(each.plan)))


def _other_lengths(best: _Candidate, group: list[_Candidate]) -> tuple[tuple[int, int], ...]:
    length = best.plan.budget.iterations
    others = {
        each.plan.budget.iterations: len(present_runs(each.plan))
        for each in group
        if not best.plan.runs.keys() & each.plan.present and each.plan.budget.iterations != length
    }
    return tuple(sorted(others.items()))


def _without_repeats(found: list[_Candidate]) -> list[_Candidate]:
    """Return the plans that add runs: baselines are the same runs under every rule."""
    # Plans with runs under their rule come before those that have baselines alone.
    order = sorted(
        found,
        key=lambda each: not any(hasattr(run.learner, "rule") for run in present_runs(each.plan)),
    )
    seen: set[str] = set()
    kept = []
    for each in order:
        held = {run.id for run in present_runs(each.plan)}
        if held - seen:
            kept.append(each)
            seen |= held
    return kept


def _without_coincidences(found: list[_Candidate]) -> list[_Candidate]:
    """Return the recorded plans, those that have runs of their own, and those as published.

    Assays have cells in common. Of a published grid it is good to know that some of it is there
    already; elsewhere, a page whose runs were all made for other assays adds nothing.
    """
    seen: set[str] = set()
    kept: set[_Candidate] = set()
    for each in sorted(
        found,
        key=lambda each: (each.plan.assay.cohort == UNPUBLISHED, -len(present_runs(each.plan))),
    ):
        held = {run.id for run in present_runs(each.plan)}
        if each.recorded or held - seen or _is_as_published(each.plan):
            kept.add(each)
            seen |= held
    return [each for each in found if each in kept]


def _is_as_published(plan: Plan) -> bool:
    """Return whether a plan has rule, agent and length of the published budget, if there is one."""
    if plan.assay.cohort == UNPUBLISHED:
        return False
    paper = plan.assay.budget("paper")
    terms = ("subject", "agent", "iterations", "episodes", "worlds")
    return all(getattr(plan.budget, name) == getattr(paper, name) for name in terms)


def _plugin_tags(known: Known) -> dict[tuple[str, str], str]:
    """Return the tags of plug-ins of one name and several sources, by rule and source."""
    learners = {run.learner for run in known if isinstance(run.learner, Plugin)}
    found = {(Subject(learner).driver, learner.source) for learner in learners}
    names = [rule for rule, _ in found]
    return {(rule, source): source[:8] for rule, source in found if names.count(rule) > 1}
