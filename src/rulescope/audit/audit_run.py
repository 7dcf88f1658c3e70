"""An audit from its plan to its profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from rulescope.assays import PRESETS, Results
from rulescope.assays.plan import Plan
from rulescope.assays.subject import Subject, find_subject
from rulescope.audit import audit_plan, evidence, history_answer, optimiser_profile, profile_axes
from rulescope.audit.profile import Profile
from rulescope.core.errors import SpecError, nearest
from rulescope.records import Store
from rulescope.run_spec import RunSpec


@dataclass(frozen=True)
class Audit:
    """The assays of an audit, each with the runs that the store has and lacks."""

    audited: Subject
    preset: str
    agent: str | None
    """As asked for; None is the usual one."""
    weights: Path | None
    """Where the rule's weights are, if not in the usual places."""
    plans: tuple[Plan, ...]

    @cached_property
    def runs(self) -> dict[str, RunSpec]:
        """All runs and donors, by id."""
        return {
            key: spec
            for plan in self.plans
            for key, spec in (*plan.runs.items(), *plan.donors.items())
        }

    @cached_property
    def missing(self) -> dict[str, RunSpec]:
        """The runs and donors that the store lacks, by id."""
        return {key: spec for plan in self.plans for key, spec in plan.missing.items()}

    @property
    def folder_name(self) -> str:
        """The name of its results folder."""
        other = "" if self.agent in (None, audit_plan.AGENT) else f"-{self.agent}"
        return f"audit-{self.audited.folder}{other}-{self.preset}"


class AuditResults(NamedTuple):
    """The profile of a rule, and the assays behind it."""

    profile: Profile
    assays: dict[str, tuple[Plan, Results]]
    """By id; an assay without a single run is left out."""


def plan_audit(
    rule: str,
    store: Store,
    *,
    preset: str = "quick",
    seeds: int | None = None,
    only: Sequence[str] = (),
    agent: str | None = None,
    weights: Path | None = None,
) -> Audit:
    """Return the audit of the rule called so, as far as ``store`` has it.

    ``rule`` is anything that :func:`find_subject` knows. ``seeds`` overrides the
    preset's, ``only`` names the assays (all if empty).
    """
    if preset not in PRESETS:
        raise SpecError(f"--preset: no {preset!r}{nearest(preset, PRESETS)}")
    audited, weights = find_subject(rule, weights)
    chosen = audit_plan.budgets(
        audited.rule, audited.subject, preset, seeds=seeds, only=only, agent=agent
    )
    plans = tuple(Plan.of(assay, budget, store) for assay, budget in chosen)
    return Audit(audited, preset, agent, weights, plans)


def analyse_audit(audit: Audit, store: Store) -> AuditResults:
    """Analyse the runs of ``audit`` that ``store`` has by now."""
    found: dict[str, tuple[Plan, Results]] = {}
    for each in audit.plans:
        plan = Plan.of(each.assay, each.budget, store)
        if any(key in plan.present for key in plan.runs):
            found[plan.assay.id] = plan, plan.analyse(store)
    results = {name: each for name, (_, each) in found.items()}
    used = {run for plan, _ in found.values() for run in plan.present}
    return AuditResults(_make_profile(audit, results, used, store), found)


def _make_profile(
    audit: Audit, results: Mapping[str, Results], used: set[str], store: Store
) -> Profile:
    audited = audit.audited
    if audited.subject is None:
        axes, compared = optimiser_profile.axes_of(results), optimiser_profile.comparisons(results)
    else:
        axes, compared = profile_axes.axes_of(results), evidence.comparisons(results)
    answer = history_answer.answer(compared, has_history=audit_plan.has_history(audited.subject))
    content = audited.rule if audited.rule != audited.name else ""
    runs = {run: store.manifest(run).science_hash for run in sorted(used)}
    agent = audit.plans[0].budget.agent
    learner = f"{audited.description}, agent {agent}" if agent else audited.description
    notes = tuple(f"{name}: {note}" for name, each in results.items() for note in each.notes)
    return Profile(audited.name, audit.preset, learner, axes, notes, content, runs, answer)
