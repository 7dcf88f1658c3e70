"""The grid of an assay: arms, cells, and the runs of each cell.

Every assay makes its runs here, so that a cell which two assays have in common is one run in the
store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from msgspec.structs import replace

from rulescope.assays.budget import Budget
from rulescope.assays.estimates import Label
from rulescope.assays.subject import SubjectLearner, apply_agent, apply_variant
from rulescope.core.errors import SpecError
from rulescope.envs.world_config import Boundary, Change
from rulescope.learners.baseline_config import RandomPolicy
from rulescope.learners.disco_config import AGENTS, Disco
from rulescope.learners.learner_base import RunShape
from rulescope.learners.learner_config import VARIANTS, LearnerSpec, adapt_to_world
from rulescope.learners.open_config import Open
from rulescope.render.display_names import variant_of
from rulescope.run_spec import Intervention, Pin, RunSpec

EPISODIC = Boundary()
MASKED = Boundary(terminals="masked")
"""The learner observes every end of an episode, or none."""


Interventions = tuple[Intervention, ...]


class Arm(NamedTuple):
    """A learner, and the interventions on it."""

    learner: str = "rule"
    """``rule``, the rule under audit, or a variant of its learner such as ``rule-no-aux``; or a
    baseline, by a name of :data:`rulescope.learners.learner_config.VARIANTS`."""
    interventions: Interventions | Callable[[Budget], Interventions] = ()
    """Or a function that returns them, if they depend on the length of a lifetime; see
    :func:`resolve_interventions`."""
    legacy: bool = False
    """Whether a Disco learner has the Retrace index of the agent ``legacy``; its other conventions,
    the alignment of trajectories among them, are those of the budget."""
    learning_rate: float | None = None
    """If not the learner's own."""
    discount: float | None = None
    """If not the learner's own."""
    rule: str | None = None
    """Rule of an OPEN learner, if not its own. (That of a Disco learner is the budget's.)"""
    null: bool = False
    """Whether the learner of the rule under audit has the null rule instead."""
    words: str = ""
    """A phrase that explains the arm below a figure, such as ``both: pin and hold``; empty if its
    name needs no explanation."""
    table_name: str = ""
    """As printed in the tables of its assay; empty if as in figures or in the grid."""


CONTROLS: dict[str, Arm] = {
    "rule-pin": Arm("rule", (Pin(carrier="recurrent"),)),
    "rule-null": Arm("rule", null=True),
}
"""The rule under audit without its history, and its learner with random weights in the rule."""


def arm_words(arms: Mapping[str, Arm]) -> dict[str, str]:
    """Return the phrases that explain ``arms``, of those that have one."""
    return {name: arm.words for name, arm in arms.items() if arm.words}


def table_names(arms: Mapping[str, Arm]) -> dict[str, str]:
    """Return the names of ``arms`` in tables, of those that have one."""
    return {name: arm.table_name for name, arm in arms.items() if arm.table_name}


def resolve_interventions(budget: Budget, arm: Arm) -> Interventions:
    """Return the interventions of ``arm`` in lifetimes of ``budget``.

    >>> from rulescope.run_spec import Freeze
    >>> half = Arm(interventions=lambda b: (Freeze(carrier="recurrent", at=b.iterations // 2),))
    >>> resolve_interventions(Budget(seeds=1, iterations=60, arms=("half",)), half)[0].at
    30
    """
    return arm.interventions(budget) if callable(arm.interventions) else arm.interventions


class Cell(NamedTuple):
    """One arm under one condition, with a run for every seed."""

    labels: Mapping[str, Label]
    """A value for each axis of the assay, such as ``{"task": "catch", "arm": "live", ...}``."""
    runs: tuple[RunSpec, ...]
    """In the order of the seeds."""


def sweep(
    axes: Mapping[str, Sequence[Any]],
    runs: Callable[[dict[str, Label]], Sequence[RunSpec]],
) -> list[Cell]:
    """Return a cell for every combination of labels; ``runs`` returns its runs, seed by seed.

    The first axis varies slowest. A combination without runs has no cell.

    >>> [dict(cell.labels) for cell in sweep({"arm": ("live", "pin")}, lambda at: [RunSpec()])]
    [{'arm': 'live'}, {'arm': 'pin'}]
    """
    cells = []
    for labels in product(*axes.values()):
        at = dict(zip(axes, labels, strict=True))
        found = tuple(runs(at))
        if found:
            cells.append(Cell(at, found))
    return cells


def make_runs(
    budget: Budget,
    arm: Arm,
    *,
    task: str = "catch",
    scale: float = 1.0,
    boundary: Boundary = EPISODIC,
    change: Change | None = None,
) -> tuple[RunSpec, ...]:
    """Return the runs of ``arm`` under one condition, one for each seed of ``budget``."""
    learner, interventions = _arm_learner(budget, arm), resolve_interventions(budget, arm)
    return tuple(
        make_run(
            budget,
            learner,
            seed,
            scale=scale,
            task=task,
            interventions=interventions,
            boundary=boundary,
            change=change,
        )
        for seed in range(budget.seeds)
    )


def make_run(
    budget: Budget,
    learner: LearnerSpec,
    seed: int,
    *,
    scale: float = 1.0,
    task: str = "catch",
    interventions: Interventions = (),
    boundary: Boundary = EPISODIC,
    change: Change | None = None,
) -> RunSpec:
    """Return the run of ``learner`` with one seed, of the length of ``budget``.

    Interventions on ``recurrent`` act on the history of the subject, if the learner is its.
    """
    if type(learner) is type(budget.subject.learner):
        interventions = budget.subject.act_on_history(interventions)
    shape, remainder = run_shape(budget, learner, task)
    return RunSpec(
        learner=adapt_to_world(learner, budget.world(task)),
        environment=budget.world(task),
        boundary=boundary,
        change=change,
        scale=float(scale),
        interventions=interventions,
        iterations=shape.iterations,
        log_every=shape.log_every,
        lanes=shape.lanes,
        steps=shape.steps,
        remainder=remainder,
        seed=seed,
    )


def run_shape(budget: Budget, learner: LearnerSpec, task: str) -> tuple[RunShape, int]:
    """Return the shape of a run of ``learner`` with the interactions of ``budget``.

    If the learner's rollouts have another size than the budget's, some steps at the end may fill no
    whole iteration of it: the second value.
    """
    iterations, usual, own = budget.length(task), RunShape(), learner.usual_shape
    if (own.lanes, own.steps) == (usual.lanes, usual.steps):
        return own._replace(iterations=iterations, log_every=budget.log_every), 0
    steps = iterations * usual.lanes * usual.steps // own.lanes
    whole, remainder = divmod(steps, own.steps)
    return own._replace(iterations=whole), remainder


def require_iterations(budget: Budget, learner: str, task: str, least: int) -> None:
    """Raise unless a run of the learner called so has ``least`` iterations of its own."""
    shape, _ = run_shape(budget, VARIANTS[learner], task)
    if shape.iterations < least:
        usual, one = RunShape(), shape.lanes * shape.steps
        nearest = -(-least * one // (usual.lanes * usual.steps))
        raise SpecError(
            f"--iterations: {budget.length(task)} of {usual.lanes * usual.steps} interactions are "
            f"less than {least} of {learner}'s ({one:,} each); nearest: {nearest}"
        )


def require_unit_scale(budget: Budget, assay: str) -> None:
    """Raise if ``budget`` has reward scales in an assay that does not vary them."""
    if budget.scales != (1.0,):
        raise SpecError(f"--scales: {assay} has reward scale 1 alone")


def subject_learner(
    budget: Budget, *, null: bool = False, interface: str = "default"
) -> SubjectLearner:
    """Return the learner of the rule under audit, or of its ``null`` rule.

    ``interface`` is its value interface, by a name of
    :data:`~rulescope.learners.disco_config.INTERFACES`.
    """
    subject = budget.subject
    if isinstance(subject.learner, Open):
        raise SpecError(
            f"--rule: {subject.rule!r} is a rule of OPEN, which drives no Disco learner"
        )
    chosen = subject.null_learner() if null else subject.learner
    if isinstance(chosen, Disco):
        return apply_agent(chosen, budget.agent, interface)
    if interface != "default":
        raise SpecError(f"--arms: {subject.rule!r} has no value interface to be {interface!r}")
    return chosen


def _arm_learner(budget: Budget, arm: Arm) -> LearnerSpec:
    """Return the learner of ``arm``: that of the rule under audit, or a baseline."""
    variant = variant_of(arm.learner)
    learner = VARIANTS[variant]
    if isinstance(learner, Disco):
        learner = apply_variant(subject_learner(budget, null=arm.null), variant)
        if arm.legacy:
            learner = _with_legacy_index(budget, learner)
    if arm.rule is not None and isinstance(learner, Open):
        learner = replace(learner, rule=arm.rule)
    if arm.learning_rate is not None and not isinstance(learner, RandomPolicy):
        learner = replace(learner, learning_rate=arm.learning_rate)
    if arm.discount is not None:
        if "discount" not in learner.__struct_fields__:
            name = getattr(learner, "rule", learner.kind)
            raise SpecError(f"the learner {name!r} has no discount to vary")
        learner = replace(learner, discount=arm.discount)
    return learner


def _with_legacy_index(budget: Budget, learner: SubjectLearner) -> Disco:
    """Return ``learner`` with the Retrace index of the agent ``legacy``."""
    if not isinstance(learner, Disco) or not budget.subject.has_agents:
        raise SpecError(
            f"--arms: {budget.subject.name!r} has a learner of its own, without a legacy indexing"
        )
    conventions = replace(learner.conventions, retrace=AGENTS["legacy"].retrace)
    return replace(learner, conventions=conventions)
