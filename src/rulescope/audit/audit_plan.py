"""An audit from its plan to its profile: its assays, how much of each a preset runs, its runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from rulescope.assays import PRESETS, Assay, Budget, Results, Selection, find, narrowed
from rulescope.assays.plan import Plan
from rulescope.assays.selection import UNSUITED
from rulescope.assays.subject import Subject, find_subject
from rulescope.audit import evidence, history_answer, optimiser_profile, profile_axes
from rulescope.audit.history_answer import LEAST_SEEDS
from rulescope.audit.profile import Profile
from rulescope.core.disk import stem
from rulescope.core.errors import SpecError, nearest
from rulescope.envs.tasks import Task, find_task
from rulescope.learners.open_config import Open
from rulescope.records import Store
from rulescope.rules.weight_folder import gather_weights
from rulescope.run_spec import RunSpec

AGENT = "published"
"""Conventions of the learner in an audit of a released rule, unless another agent is named."""
_LEARNERS = ("rule", "rule-pin", "rule-null", "a2c")
_CROSSED = ("live", "match-clamp", "match-natural", "cross-clamp", "cross-natural")
_ON_HISTORY = ("pin", "rule-pin", "rule-freeze")
"""Arms that intervene on the history; a rule without one has only the others."""
_FEW_REPLAYS = ("rule", "rule-freeze", "dqn", "dqn-cleared")
_REPLAYS = ("rule", "rule-freeze", "dqn", "dqn-28672", "dqn-cleared")
_WIDE: dict[str, Selection] = {
    "exposure": Selection(arms=_LEARNERS),
    "E1": Selection(arms=("live", "pin"), tasks=("catch",)),
    "E2": Selection(arms=_CROSSED),
    "E-A3c": Selection(arms=("rule", "rule-pin", "rule-null", "a2c")),
    "E3": Selection(arms=_REPLAYS, tasks=("catch",), conditions=("action-flip", "reward-move")),
    "E-A5": Selection(arms=("rule", "a2c", "dqn")),
}
"""What a profile reads, of the budgets that an assay has itself."""
_HORIZON: dict[str, Selection] = {"F2": Selection(arms=("rule", "rule-pin", "a2c", "dqn"))}

DISCO: dict[str, dict[str, Selection]] = {
    "smoke": {
        "exposure": Selection(arms=_LEARNERS),
        "E1": Selection(arms=("live", "pin")),
        "E2": Selection(arms=_CROSSED, scales=(10.0,)),
        "E-A3c": Selection(arms=("rule", "rule-pin", "a2c")),
        "E3": Selection(arms=_FEW_REPLAYS),
        "E-A5": Selection(arms=("rule", "a2c")),
    },
    "quick": {
        "exposure": Selection(seeds=LEAST_SEEDS, iterations=600, arms=_LEARNERS),
        "E1": Selection(
            seeds=LEAST_SEEDS,
            iterations=600,
            arms=("live", "pin"),
            scales=(1e-1, 1.0, 1e1, 1e2),
        ),
        "E2": Selection(seeds=LEAST_SEEDS, iterations=600, arms=_CROSSED, scales=(10.0,)),
        "E-A3c": Selection(
            seeds=LEAST_SEEDS,
            iterations=600,
            arms=("rule", "rule-pin", "a2c"),
        ),
        "E3": Selection(seeds=LEAST_SEEDS, iterations=1000, arms=_FEW_REPLAYS),
        "E-A5": Selection(
            seeds=LEAST_SEEDS,
            episodes=4000,
            arms=("rule", "a2c", "dqn"),
            tasks=("deep-sea-8",),
        ),
    },
    "standard": {"F2": replace(_HORIZON["F2"], seeds=LEAST_SEEDS)} | _WIDE,
    "paper": _HORIZON | _WIDE,
}
"""For rules that set a learner's targets, and for plug-ins: by preset and assay."""

FIGURES: dict[str, tuple[str, ...]] = {
    "exposure": ("v5:fig:app-streams",),
    "E1": ("scale-audit", "fig:detail-scale"),
    "E2": ("fig:detail-inheritance",),
    "E-A3c": ("v5:fig:app-streams",),
    "E3": ("change-streams",),
    "E-A5": ("v5:fig:app-exploration",),
    "F2": ("fig:behavior",),
}
"""What is drawn of each assay in an audit: what needs no other assay beside it."""

OPEN: dict[str, dict[str, Selection]] = {
    "smoke": {"OPEN": Selection()},
    "quick": {"OPEN": Selection(seeds=LEAST_SEEDS)},
    "standard": {"OPEN": Selection(seeds=LEAST_SEEDS)},
    "paper": {"OPEN": Selection()},
}
"""For rules that are optimisers. Their history is asked for in the games they were made for."""


def budgets(
    subject: Subject,
    preset: str,
    *,
    seeds: int | None = None,
    only: Sequence[str] = (),
    agent: str | None = None,
    task: Task | None = None,
) -> list[tuple[Assay, Budget]]:
    """Return the assays of an audit, each with its budget.

    ``seeds`` overrides the preset's; ``only`` names the assays to be run, all if empty. All assays
    of one audit have one ``agent``, whatever the cohorts of their published counterparts. With a
    ``task`` all run in that world, and those that cannot are left out.
    """
    if agent is not None:
        subject.require_agents()
    if task is not None and subject.architecture == "open":
        raise SpecError(f"--env: a rule of OPEN is audited in its games, not in {task.name!r}")
    planned = _possible((OPEN if subject.architecture == "open" else DISCO)[preset], subject)
    if task is not None:
        planned = {name: each for name, each in planned.items() if find(name).any_world}
    wanted = [find(name).id for name in only]
    for typed, name in zip(only, wanted, strict=True):
        if name not in planned:
            why = _unsuited_reason(name, task, subject)
            raise SpecError(f"--only: {typed!r} is not in this audit{why}{nearest(name, planned)}")
    found = []
    for name, chosen in planned.items():
        if not wanted or name in wanted:
            selection = replace(
                _for_subject(chosen, subject),
                seeds=chosen.seeds if seeds is None else seeds,
                agent=(agent or AGENT) if subject.has_agents else None,
            )
            if task is not None:
                selection = replace(selection, tasks=(), worlds=(task,))
            found.append((find(name), narrowed(find(name), find(name).budget(preset), selection)))
    return found


def _unsuited_reason(name: str, task: Task | None, subject: Subject) -> str:
    """Return why an audit has not the assay ``name``; empty if no such reason is known."""
    if task is not None and name in UNSUITED:
        return f" in {task.name}: {UNSUITED[name]}"
    if name == "E2" and not has_history(subject):
        return f": {subject.name!r} has no history that could be transplanted"
    return ""


def has_history(subject: Subject) -> bool:
    """Return whether a rule carries a state through a lifetime that an audit can act on."""
    return bool(subject.history)


def _possible(planned: Mapping[str, Selection], subject: Subject) -> dict[str, Selection]:
    """Return the assays that are possible: a rule without history has nothing to transplant."""
    return {name: part for name, part in planned.items() if has_history(subject) or name != "E2"}


def _for_subject(chosen: Selection, subject: Subject) -> Selection:
    """Return ``chosen`` for one rule, with the arms and tasks that are possible for it."""
    if subject.architecture == "open":
        # The usual rule is taken for each game's own, so its own game is the only possible one.
        usual = subject.rule == Open().rule
        games = (f"gymnax-{subject.rule.removeprefix('open-')}",) if usual else ()
        return replace(chosen, subject=subject, tasks=games)
    # Without weights there is no null rule.
    arms = [arm for arm in chosen.arms if arm != "rule-null" or subject.null is not None]
    if not has_history(subject):
        arms = [arm for arm in arms if arm not in _ON_HISTORY]
    return replace(chosen, subject=subject, arms=arms)


@dataclass(frozen=True)
class Audit:
    """The assays of an audit, each with the runs that the store has and lacks."""

    subject: Subject
    preset: str
    agent: str | None
    """As asked for; None is the usual one."""
    weights: Path | None
    """Where the rule's weights are, if not in the usual places."""
    plans: tuple[Plan, ...]
    task: Task | None = None
    """The world of all assays, if not their own."""
    only: tuple[str, ...] = ()
    """Ids of the assays that were asked for; empty: all."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """What is not asked in the world of the audit, and why."""
        if self.task is None:
            return ()
        name, planned = self.task.name, DISCO[self.preset]
        asked = [key for key in planned if not self.only or key in self.only]
        gone = [f"{key} ({find(key).name}): {UNSUITED[key]}" for key in asked if key in UNSUITED]
        for each in self.plans:
            labels = {cell.labels.get("condition") for cell in each.cells}
            lost = [one for one in each.budget.conditions if one not in labels]
            why = f"not possible in {name}"
            if each.assay.id == "exposure":
                other = "without" if self.task.references.measure == "return" else "with"
                why = f"asked in a world {other} episodes, unlike {name}"
            gone += [f"{each.assay.id} {condition}: {why}" for condition in lost]
        return tuple(gone)

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
        other = "" if self.agent in (None, AGENT) else f"-{self.agent}"
        where = "" if self.task is None else f"-in-{stem(self.task.name)}"
        return f"audit-{self.subject.folder}{other}-{self.preset}{where}"


def plan_audits(
    rules: Sequence[str],
    store: Store,
    *,
    preset: str = "quick",
    seeds: int | None = None,
    only: Sequence[str] = (),
    agent: str | None = None,
    weights: Path | None = None,
    env: str | None = None,
    reference_best: float | None = None,
) -> tuple[Audit, ...]:
    """Return the audits of several rules, in their order; options are as of :func:`plan_audit`."""
    made: dict[str, Audit] = {}
    for rule in rules:
        try:
            one = plan_audit(
                rule,
                store,
                preset=preset,
                seeds=seeds,
                only=only,
                agent=agent,
                weights=weights,
                env=env,
                reference_best=reference_best,
            )
        except SpecError as fault:
            raise SpecError(
                f"{fault} (audit of {rule!r})" if len(rules) > 1 else f"{fault}"
            ) from None
        if one.folder_name in made:
            raise SpecError(f"{rule!r}: named twice; an audit has each rule once")
        made[one.folder_name] = one
    return tuple(made.values())


def missing_runs(audits: Iterable[Audit]) -> dict[str, RunSpec]:
    """Return the runs and donors that the store lacks for ``audits``, each once, by id."""
    return {key: spec for audit in audits for key, spec in audit.missing.items()}


@contextmanager
def located_weights(audits: Sequence[Audit]) -> Iterator[Path | None]:
    """Yield where the weights of all ``audits`` are; None if in the usual places.

    Several rules of which any is in a place of its own are gathered in a folder for as long as this
    lasts.
    """
    if len(audits) == 1 or not any(audit.weights for audit in audits):
        yield audits[0].weights
        return
    places = {
        rule: audit.weights
        for audit in audits
        for spec in audit.missing.values()
        if isinstance(rule := getattr(spec.learner, "rule", None), str)
    }
    with TemporaryDirectory(prefix="rulescope-weights-") as folder:
        yield gather_weights(places, Path(folder))


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
    env: str | None = None,
    reference_best: float | None = None,
) -> Audit:
    """Return the audit of the rule called so, as far as ``store`` has it.

    ``rule`` is anything that :func:`find_subject` knows. ``seeds`` overrides the
    preset's, ``only`` names the assays (all if empty). ``env`` is the world to audit in, if not the
    assays' own; ``reference_best`` its upper reference, if the user states it.
    """
    if preset not in PRESETS:
        raise SpecError(f"--preset: no {preset!r}{nearest(preset, PRESETS)}")
    subject, weights = find_subject(rule, weights)
    if env is None and reference_best is not None:
        raise SpecError("--reference-best: needs --env, the world whose upper reference it is")
    task = None if env is None else find_task(env, reference_best, "--env")
    chosen = budgets(subject, preset, seeds=seeds, only=only, agent=agent, task=task)
    plans = tuple(Plan.of(assay, budget, store) for assay, budget in chosen)
    asked = tuple(find(name).id for name in only)
    return Audit(subject, preset, agent, weights, plans, task, asked)


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
    subject = audit.subject
    if subject.architecture == "open":
        axes, compared = optimiser_profile.axes_of(results), optimiser_profile.comparisons(results)
    else:
        axes, compared = profile_axes.axes_of(results), evidence.comparisons(results)
    answer = history_answer.answer(compared, has_history=has_history(subject))
    content = subject.rule if subject.rule != subject.name else ""
    runs = {run: store.manifest(run).science_hash for run in sorted(used)}
    agent = audit.plans[0].budget.agent
    planned = {plan.assay.id: plan.budget for plan in audit.plans}
    learner = f"{subject.description}, agent {agent}" if agent else subject.description
    if audit.task is not None:
        learner += f", in {audit.task.name}"
    notes = (
        *(f"left out: {line}" for line in audit.left_out),
        *(f"{name}: {note}" for name, each in results.items() for note in each.notes),
    )
    return Profile(
        subject.name,
        audit.preset,
        learner,
        axes,
        notes,
        content,
        runs,
        answer,
        world="" if audit.task is None else audit.task.name,
        references="" if audit.task is None else audit.task.references.words,
        budgets={name: describe_budget(planned[name], audit.task) for name in results},
    )


def describe_budget(budget: Budget, task: Task | None = None) -> str:
    """Return what decides whether numbers of two rules may be compared: all but rule and seeds."""
    length = f"{budget.iterations:,} iterations"
    if budget.episodes is not None:
        length = f"{budget.episodes:,} episodes"
    scales = [f"{scale:g}" for scale in budget.scales]
    where = f", scales {', '.join(scales)}" if scales != ["1"] else ""
    return f"{length}{where}{'' if task is None else _describe_world(task)}"


def _describe_world(task: Task) -> str:
    """Return what scores in a named world rest on: its code, and what they are measured by."""
    known = task.references
    best = "no upper reference" if known.best is None else f"best {known.best:.6g} ({known.kind})"
    source = getattr(task.world, "source", None)
    code = "" if source is None else f", source {source[:12]}"
    return f", in {task.name}{code}, {known.measure}: random {known.random:.6g}, {best}"
