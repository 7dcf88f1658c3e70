"""Budgets of campaigns in a store: written when a campaign starts, read by reports."""

from __future__ import annotations

import logging
import math

from msgspec.structs import replace

from rulescope.assays import ASSAYS, Assay, Budget
from rulescope.assays.subject import Subject, make_subject, split_history
from rulescope.core.errors import RecordError
from rulescope.learners.disco_config import AGENTS, Disco
from rulescope.learners.further_config import Lpg, Lpo
from rulescope.learners.learner_config import Plugin
from rulescope.learners.open_config import Open
from rulescope.records import Store
from rulescope.records.plans import CampaignPlan, add_plan, read_plans
from rulescope.rules.rule_weights import CONTENT

MAX_RUNS = 1_000_000
"""Runs of a plan, at most: a store from elsewhere may name any number of them."""

_log = logging.getLogger(__name__)


def record_plan(store: Store, assay: Assay, budget: Budget, typed_rule: str | None = None) -> None:
    """Write the assay and ``budget`` of a campaign into ``store``.

    No result depends on it, so a store that cannot be written is a warning, not an error.
    """
    subject, learner = budget.subject, None
    if isinstance(subject.learner, Plugin) or (
        isinstance(subject.learner, Disco | Lpo | Lpg) and subject != make_subject(subject.rule)
    ):
        learner = subject.learner
    plan = CampaignPlan(
        assay=assay.id,
        typed_rule=typed_rule or "",
        rule=subject.rule,
        learner=learner,
        label="" if learner is None else subject.label,
        null_rule=None if learner is None else subject.null,
        agent=budget.agent,
        seeds=budget.seeds,
        iterations=budget.iterations,
        episodes=budget.episodes,
        log_every=budget.log_every,
        arms=budget.arms,
        scales=budget.scales,
        tasks=budget.tasks,
        conditions=budget.conditions,
        worlds=budget.worlds,
    )
    try:
        add_plan(store, plan)
    except RecordError as fault:
        _log.warning("plan of %s not recorded: %s", assay.id, fault)


def recorded_budgets(store: Store) -> list[tuple[Assay, Budget]]:
    """Return the distinct assays and budgets of the plans in ``store``.

    Plans that this version cannot expand, and oversized ones, are ignored with a warning.
    """
    found: dict[tuple[str, Budget], Assay] = {}
    for plan in read_plans(store):
        problem = _problem(plan)
        if problem:
            _log.warning("plan of %s ignored: %s", plan.assay, problem)
        else:
            found[plan.assay, _budget(plan)] = ASSAYS[plan.assay]
    return [(assay, budget) for (_, budget), assay in found.items()]


def _problem(plan: CampaignPlan) -> str | None:
    """Return why a plan cannot be used: a store from elsewhere may name anything."""
    assay = ASSAYS.get(plan.assay)
    if assay is None:
        return "no such assay"
    for names, valid in (
        (plan.arms, assay.arms),
        (plan.tasks, (*assay.tasks, *(each.name for each in plan.worlds))),
        (plan.conditions, assay.conditions),
        ((plan.agent,), ("", *AGENTS)),
    ):
        unknown = [name for name in names if name not in valid]
        if unknown:
            return f"no {unknown[0]!r} in this version"
    axes = (plan.arms, plan.scales, plan.tasks, plan.conditions or ("",))
    runs = plan.seeds * math.prod(len(axis) for axis in axes)
    return f"more than {MAX_RUNS:,} runs" if runs > MAX_RUNS else None


def _budget(plan: CampaignPlan) -> Budget:
    return Budget(
        seeds=plan.seeds,
        iterations=plan.iterations,
        arms=plan.arms,
        scales=plan.scales,
        tasks=plan.tasks,
        conditions=plan.conditions,
        worlds=plan.worlds,
        log_every=plan.log_every,
        episodes=plan.episodes,
        agent=plan.agent,
        subject=_subject(plan),
    )


def _subject(plan: CampaignPlan) -> Subject:
    """Return the rule under audit of a plan."""
    if plan.learner is not None:
        chosen = split_history(plan.rule)[1]
        return Subject(plan.learner, plan.null_rule, plan.label, chosen=chosen)
    of_open = ASSAYS[plan.assay].budget("paper").subject.architecture == "open"
    if of_open and plan.rule.startswith(CONTENT):  # whose name does not say that it is OPEN's
        return Subject(replace(Open(), rule=plan.rule))
    return make_subject(plan.rule)
