"""What an assay is: a grid of cells, as data, and a pure analysis of what their lifetimes left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import UnionType
from typing import Any, NamedTuple

import msgspec
import numpy as np

from rulescope.assays.cohorts import REFERENCE_INDEXED, Cohort
from rulescope.assays.frame import Frame, Label
from rulescope.assays.results import Results
from rulescope.assays.subject import Subject, apply_agent, apply_variant, named
from rulescope.core.errors import SpecError, nearest
from rulescope.envs.world_config import WORLDS, Boundary, Change, DeepSea
from rulescope.learners.baseline_config import RandomPolicy
from rulescope.learners.disco_config import AGENTS, Disco
from rulescope.learners.learner_base import RunShape
from rulescope.learners.learner_config import VARIANTS, LearnerSpec, Plugin, adapt_to_world
from rulescope.learners.open_config import Open
from rulescope.render.display_names import canonical_arm, variant_of
from rulescope.run_spec import Intervention, Pin, RunSpec
from rulescope.stats import tail_from, updates_for_depth

PRESETS = ("smoke", "quick", "standard", "paper")
"""Seconds, minutes, hours, and the published budgets. They change budgets, never meanings."""
LARGEST_SCALE = 1e12
"""As in a run's specification."""
EPISODIC = Boundary()
MASKED = Boundary(terminals="masked")
"""Of what a learner is told: every episode end, or none."""


def prefix(iterations: int) -> int:
    """Return a fifth of a lifetime: what a donor lives, and when a freeze sets in.

    (400 of 2,000 as published. A learner first learns after 32 iterations, so not under 40, unless
    the lifetime would be over by then.)
    """
    return min(max(iterations // 5, 40), iterations - 1)


@dataclass(frozen=True)
class Budget:
    """How much of an assay is run: a preset, perhaps narrowed."""

    seeds: int
    """Seeds are consecutive from 0."""
    iterations: int
    """Of two lanes and 29 steps each. Learners with other habits live for as many interactions."""
    arms: tuple[str, ...]
    scales: tuple[float, ...] = (1.0,)
    tasks: tuple[str, ...] = ("catch",)
    conditions: tuple[str, ...] = ()
    """What else is varied, such as what changes in the world; each assay names its own."""
    log_every: int = 20
    episodes: int | None = None
    """Length of a lifetime in DeepSea, where an episode has as many steps as the sea is deep.
    ``iterations`` is then that of the deepest."""
    agent: str = "published"
    """Conventions of the learner, by a name of
    :data:`~rulescope.learners.disco_config.AGENTS`; the learner's own if empty."""
    rule: str = "disco103"
    subject: Subject | None = None
    """Who is audited, if the rule's name does not tell."""

    @property
    def audited(self) -> Subject:
        """The rule under audit and its learner."""
        return self.subject or named(self.rule)

    @property
    def prefix(self) -> int:
        """Iterations of a donor, and the time of a freeze; see :func:`prefix`."""
        return prefix(self.iterations)

    def length(self, task: str) -> int:
        """Return the iterations of a lifetime in ``task``."""
        world = WORLDS[task]
        if self.episodes is None or not isinstance(world, DeepSea):
            return self.iterations
        return int(updates_for_depth(world.depth, self.episodes))


class Arm(NamedTuple):
    """Who learns, and what is done to it."""

    learner: str = "rule"
    """``rule``, the rule under audit, or a variant of its learner such as ``rule-no-aux``; or a
    baseline, by a name of :data:`rulescope.learners.learner_config.VARIANTS`."""
    interventions: tuple[Intervention, ...] = ()
    legacy: bool = False
    """Whether a Disco learner has the Retrace index of the agent ``legacy``; its other conventions,
    the alignment of trajectories among them, are those of the budget."""
    learning_rate: float | None = None
    """If not the learner's own."""
    rule: str | None = None
    """Rule of an OPEN learner, if not its own. (That of a Disco learner is the budget's.)"""
    null: bool = False
    """Whether who is audited learns under its null rule."""


CONTROLS: dict[str, Arm] = {
    "rule-pin": Arm("rule", (Pin(carrier="recurrent"),)),
    "rule-null": Arm("rule", null=True),
}
"""Who is audited without its history, and without the knowledge in its rule."""


class Cell(NamedTuple):
    """One arm under one condition, with a lifetime for every seed."""

    labels: Mapping[str, Label]
    """A value for each axis of the assay, such as ``{"task": "catch", "arm": "live", ...}``."""
    runs: tuple[RunSpec, ...]
    """In the order of the seeds."""


@dataclass(frozen=True)
class Assay:
    """One question put to a rule."""

    id: str
    """As in the published catalogue: E1, E2, E-IF, P1."""
    name: str
    """As typed: scale, inheritance, interface, interface-state."""
    question: str
    arms: tuple[str, ...]
    """Every arm there is; control arms that no preset runs by itself come last."""
    tasks: tuple[str, ...]
    presets: Mapping[str, Budget]
    grid: Callable[[Budget], list[Cell]]
    analyse: Callable[[Frame], Results]
    conditions: tuple[str, ...] = ()
    """Every condition there is, if the assay varies something besides tasks, arms and scales."""
    columns: tuple[str, ...] = ("score", "effective_bins")
    """Log columns that the analysis reads."""
    states: tuple[str, ...] = ("recurrent/h", "recurrent/c")
    """Terminal states that the analysis reads."""
    figures: tuple[str, ...] = ()
    """Labels of the published figures that this assay feeds, such as ``fig:scale``."""
    cohort: Cohort = REFERENCE_INDEXED
    """The agent that the published counterpart fits, and why."""

    def budget(self, preset: str) -> Budget:
        """Return the budget called ``preset``, with the agent of the assay's cohort."""
        if preset not in self.presets:
            raise SpecError(f"--preset: no {preset!r}{nearest(preset, self.presets)}")
        return replace(self.presets[preset], agent=self.cohort.agent)


def learner(budget: Budget, *, null: bool = False, interface: str = "default") -> Disco | Plugin:
    """Return the learner of the rule under audit, or of its ``null`` rule.

    Perhaps with another value interface.
    """
    subject = budget.audited
    chosen = subject.null_learner() if null else subject.learner
    if isinstance(chosen, Disco):
        return apply_agent(chosen, budget.agent, interface)
    if interface != "default" or isinstance(chosen, Open):
        raise SpecError(f"--arms: {subject.rule!r} has no value interface to be {interface!r}")
    return chosen


class Measures(NamedTuple):
    """How a lifetime is cut into iterations."""

    lanes: int
    steps: int
    iterations: int
    remainder: int
    log_every: int


def measures(budget: Budget, who: LearnerSpec, task: str) -> Measures:
    """Return the measures of a lifetime of ``who``, which has the interactions of ``budget``.

    What is no whole iteration of a learner with habits of its own is its ``remainder``.
    """
    iterations, usual, own = budget.length(task), RunShape(), who.usual_shape
    if (own.lanes, own.steps) == (usual.lanes, usual.steps):
        return Measures(own.lanes, own.steps, iterations, 0, budget.log_every)
    each = iterations * usual.lanes * usual.steps // own.lanes
    whole, rest = divmod(each, own.steps)
    return Measures(own.lanes, own.steps, whole, rest, own.log_every)


def enough(budget: Budget, learner: str, task: str, fewest: int) -> None:
    """Raise unless a lifetime of the learner called so has ``fewest`` iterations of its own."""
    made = measures(budget, VARIANTS[learner], task)
    if made.iterations < fewest:
        usual, one = RunShape(), made.lanes * made.steps
        least = -(-fewest * one // (usual.lanes * usual.steps))
        raise SpecError(
            f"--iterations: {budget.length(task)} of {usual.lanes * usual.steps} interactions are "
            f"less than {fewest} of {learner}'s ({one:,} each); nearest: {least}"
        )


def lifetime(
    budget: Budget,
    who: LearnerSpec,
    seed: int,
    *,
    scale: float = 1.0,
    task: str = "catch",
    interventions: tuple[Intervention, ...] = (),
    boundary: Boundary = EPISODIC,
    change: Change | None = None,
) -> RunSpec:
    """Return one lifetime of ``budget``.

    Every assay makes its lifetimes here, so that cells which two assays have in common are one
    run in the store.
    """
    lanes, steps, iterations, remainder, log_every = measures(budget, who, task)
    return RunSpec(
        learner=adapt_to_world(who, WORLDS[task]),
        environment=WORLDS[task],
        boundary=boundary,
        change=change,
        scale=float(scale),
        interventions=interventions,
        iterations=iterations,
        log_every=log_every,
        lanes=lanes,
        steps=steps,
        remainder=remainder,
        seed=seed,
    )


def lifetimes(
    budget: Budget,
    arm: Arm,
    *,
    task: str = "catch",
    scale: float = 1.0,
    boundary: Boundary = EPISODIC,
    change: Change | None = None,
) -> tuple[RunSpec, ...]:
    """Return the lifetimes of ``arm`` under one condition, one for each seed of ``budget``."""
    return tuple(
        lifetime(
            budget,
            _who(budget, arm),
            seed,
            scale=scale,
            task=task,
            interventions=arm.interventions,
            boundary=boundary,
            change=change,
        )
        for seed in range(budget.seeds)
    )


def sweep(
    axes: Mapping[str, Sequence[Any]],
    runs: Callable[[dict[str, Label]], Sequence[RunSpec]],
) -> list[Cell]:
    """Return a cell for every combination of labels; ``runs`` gives its lifetimes, seed by seed.

    The first axis varies slowest. A combination without lifetimes has no cell.

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


def at_unit_scale(budget: Budget, assay: str) -> None:
    """Raise if ``budget`` asks for reward scales in an assay that has none."""
    if budget.scales != (1.0,):
        raise SpecError(f"--scales: {assay} has reward scale 1 alone")


def _who(budget: Budget, arm: Arm) -> LearnerSpec:
    """Return the learner of ``arm``: that of the rule under audit, or a baseline."""
    variant = variant_of(arm.learner)
    who = VARIANTS[variant]
    if isinstance(who, Disco):
        audited = learner(budget, null=arm.null)
        who = apply_variant(audited, variant)
        if arm.legacy:
            if not isinstance(who, Disco) or not budget.audited.has_agents:
                raise SpecError(
                    f"--arms: {audited.rule!r} has a learner of its own, without a legacy indexing"
                )
            retrace = AGENTS["legacy"].retrace
            conventions = msgspec.structs.replace(who.conventions, retrace=retrace)
            who = msgspec.structs.replace(who, conventions=conventions)
    if arm.rule is not None and isinstance(who, Open):
        who = msgspec.structs.replace(who, rule=arm.rule)
    if arm.learning_rate is not None and not isinstance(who, RandomPolicy):
        who = msgspec.structs.replace(who, learning_rate=arm.learning_rate)
    return who


def narrowed(
    assay: Assay,
    budget: Budget,
    *,
    seeds: int | None = None,
    iterations: int | None = None,
    episodes: int | None = None,
    arms: Sequence[str] = (),
    scales: Sequence[float] = (),
    tasks: Sequence[str] = (),
    conditions: Sequence[str] = (),
    agent: str | None = None,
    rule: str | None = None,
    subject: Subject | None = None,
) -> Budget:
    """Return ``budget`` with what was asked for; anything unknown is an error that names it."""
    arms = [canonical_arm(arm) for arm in arms]
    _known("--arms", arms, assay.arms)
    _known("--tasks", tasks, assay.tasks)
    _known("--conditions", conditions, assay.conditions)
    if agent is not None:
        _known("--agent", [agent], AGENTS)
    check_measures(budget.seeds if seeds is None else seeds, scales)
    _check_length(assay, budget, iterations, episodes)
    chosen = replace(
        budget,
        seeds=seeds or budget.seeds,
        iterations=iterations or budget.iterations,
        episodes=episodes or budget.episodes,
        arms=_ordered(arms, assay.arms) or budget.arms,
        scales=tuple(sorted({float(scale) for scale in scales})) or budget.scales,
        tasks=_ordered(tasks, assay.tasks) or budget.tasks,
        conditions=_ordered(conditions, assay.conditions) or budget.conditions,
        rule=subject.learner.rule if subject else rule or budget.rule,
        subject=subject,
    )
    chosen = replace(chosen, agent=_agent(chosen, agent))
    chosen = replace(chosen, iterations=max(chosen.length(task) for task in chosen.tasks))
    if agent is not None and not _has_rule(assay, chosen, Disco):
        raise SpecError(f"--agent: no learner of this part of {assay.id} comes as several agents")
    if rule is not None and not _has_rule(assay, chosen, Disco | Open | Plugin):
        raise SpecError(f"--rule: no learner of this part of {assay.id} has a rule")
    return chosen


def _agent(budget: Budget, asked: str | None) -> str:
    """Return the agent of the rule under audit: the one asked for, the usual one, or its own."""
    if not budget.agent or budget.audited.has_agents:
        return asked or budget.agent
    if asked is not None:
        budget.audited.require_agents()
    return ""


def check_measures(seeds: int, scales: Sequence[float]) -> None:
    """Raise an error that names the option if there cannot be such lifetimes."""
    if seeds < 1:
        raise SpecError(f"--seeds: {seeds} is not a number of lifetimes")
    for scale in scales:
        if not 0.0 < scale <= LARGEST_SCALE:
            raise SpecError(f"--scales: {scale:g} is not between 0 and {LARGEST_SCALE:g}")


def _has_rule(assay: Assay, budget: Budget, kinds: type | UnionType) -> bool:
    return any(isinstance(cell.runs[0].learner, kinds) for cell in assay.grid(budget))


def _check_length(
    assay: Assay, budget: Budget, iterations: int | None, episodes: int | None
) -> None:
    if budget.episodes is None and episodes is not None:
        raise SpecError(f"--episodes: lifetimes of {assay.id} are counted in --iterations")
    if budget.episodes is not None and iterations is not None:
        raise SpecError(f"--iterations: lifetimes of {assay.id} are counted in --episodes")
    if episodes is not None and episodes < 1:
        raise SpecError(f"--episodes: {episodes} is not the length of a lifetime")
    if iterations is None:
        return
    if iterations < budget.log_every:
        raise SpecError(f"--iterations: {iterations} is less than one log row ({budget.log_every})")
    if not _has_tail(iterations, budget.log_every):
        near = -(-iterations // budget.log_every) * budget.log_every
        raise SpecError(
            f"--iterations: {iterations} has no log row (every {budget.log_every}) in its last "
            f"fifth, which scores are read from; nearest: {near}"
        )


def _has_tail(iterations: int, log_every: int) -> bool:
    rows = np.arange(log_every, iterations + 1, log_every)
    return bool(tail_from(rows, 0.8, iterations).any())


def _known(option: str, names: Sequence[str], valid: Sequence[str] | Mapping[str, object]) -> None:
    for name in names:
        if name not in valid:
            raise SpecError(f"{option}: no {name!r}{nearest(name, valid)}")


def _ordered(chosen: Sequence[str], valid: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in valid if name in chosen)
