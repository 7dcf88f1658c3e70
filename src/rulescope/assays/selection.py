"""The part of an assay that is asked for, and the budget that it is narrowed to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import UnionType

import numpy as np

from rulescope.assays.assay import Assay
from rulescope.assays.budget import LARGEST_SCALE, Budget
from rulescope.assays.subject import OPEN, Subject
from rulescope.core.errors import SpecError, nearest
from rulescope.envs.tasks import Task, find_task
from rulescope.learners.disco_config import AGENTS, Disco
from rulescope.learners.learner_config import Plugin
from rulescope.learners.open_config import Open
from rulescope.render.display_names import canonical_arm
from rulescope.stats import tail_from

UNSUITED = {
    "E-A3c": "it asks about a world that never resets, and runs in CatchStream alone",
    "E-A5": "it asks how deep a reward may lie, and runs in DeepSea alone",
    "F2": "it asks about a long lifetime on a large board, and runs in Catch 24×24 alone",
}
"""Assays that have no meaning in another world, and why; others read too much of their own."""


@dataclass(frozen=True)
class Selection:
    """What is asked for of an assay; a field that is None or empty leaves the budget as it is."""

    seeds: int | None = None
    """Number of seeds, from 0."""
    iterations: int | None = None
    episodes: int | None = None
    """Length of a lifetime, in assays that count it in episodes."""
    arms: Sequence[str] = ()
    scales: Sequence[float] = ()
    """Reward scales."""
    tasks: Sequence[str] = ()
    conditions: Sequence[str] = ()
    agent: str | None = None
    """Conventions of the learner, by a name of
    :data:`~rulescope.learners.disco_config.AGENTS`."""
    subject: Subject | None = None
    """The rule under audit."""
    reference_best: float | None = None
    """The upper reference of the one world of ``tasks`` that is no task of the assay, if the user
    states it."""
    worlds: Sequence[Task] = ()
    """Worlds to run in instead of the tasks of the assay."""


def narrowed(assay: Assay, budget: Budget, selection: Selection) -> Budget:
    """Return ``budget`` with what ``selection`` names; an unknown name is an error with it."""
    arms = [canonical_arm(arm) for arm in selection.arms]
    _require_known("--arms", arms, assay.arms)
    worlds = tuple(selection.worlds) or _named_worlds(assay, selection)
    tasks = (*assay.tasks, *(each.name for each in worlds if each.name not in assay.tasks))
    chosen_tasks = selection.tasks or [each.name for each in selection.worlds]
    _require_known("--conditions", selection.conditions, assay.conditions)
    if selection.agent is not None:
        _require_known("--agent", [selection.agent], AGENTS)
    seeds = budget.seeds if selection.seeds is None else selection.seeds
    check_seeds_and_scales(seeds, selection.scales)
    _check_length(assay, budget, selection)
    chosen = replace(
        budget,
        seeds=seeds,
        iterations=selection.iterations or budget.iterations,
        episodes=selection.episodes or budget.episodes,
        arms=_ordered(arms, assay.arms) or budget.arms,
        scales=tuple(sorted({float(scale) for scale in selection.scales})) or budget.scales,
        tasks=_ordered(chosen_tasks, tasks) or budget.tasks,
        worlds=worlds,
        conditions=_ordered(selection.conditions, assay.conditions) or budget.conditions,
    )
    chosen = with_subject(chosen, selection.subject or budget.subject, selection.agent)
    chosen = replace(chosen, iterations=max(chosen.length(task) for task in chosen.tasks))
    if selection.agent is not None and not _has_learner(assay, chosen, Disco):
        raise SpecError(f"--agent: no learner of this part of {assay.id} comes as several agents")
    if selection.subject is not None:
        _require_driven(assay, chosen)
        _require_history(assay, chosen)
    return chosen


def _named_worlds(assay: Assay, selection: Selection) -> tuple[Task, ...]:
    """Return the worlds among the tasks of ``selection`` that are none of the assay's own."""
    others = [name for name in dict.fromkeys(selection.tasks) if name not in assay.tasks]
    if others and not assay.any_world:
        _require_own_tasks(assay, others)
    best = selection.reference_best
    if best is not None and len(others) != 1:
        raise SpecError(
            f"--reference-best: states the reference of one world beside those of {assay.id} "
            f"({', '.join(assay.tasks)}); --tasks names {len(others)}"
        )
    return tuple(find_task(name, best) for name in others)


def _require_own_tasks(assay: Assay, names: Sequence[str]) -> None:
    """Raise unless all ``names`` are tasks of an assay that runs in no other world."""
    for name in names:
        if name not in assay.tasks:
            why = UNSUITED.get(assay.id)
            reason = f" for {assay.id}: {why}" if why else ""
            raise SpecError(f"--tasks: no {name!r}{reason}{nearest(name, assay.tasks)}")


def with_subject(budget: Budget, subject: Subject, agent: str | None = None) -> Budget:
    """Return ``budget`` for the rule ``subject``.

    Its agent is ``agent``, or the budget's if None; none if the rule has a learner of its own.
    """
    if budget.agent and not subject.has_agents:
        if agent is not None:
            subject.require_agents()
        return replace(budget, subject=subject, agent="")
    return replace(budget, subject=subject, agent=agent or budget.agent)


def check_seeds_and_scales(seeds: int, scales: Sequence[float]) -> None:
    """Raise an error that names the option if no run can have these."""
    if seeds < 1:
        raise SpecError(f"--seeds: {seeds} is not a number of lifetimes")
    for scale in scales:
        if not 0.0 < scale <= LARGEST_SCALE:
            raise SpecError(f"--scales: {scale:g} is not between 0 and {LARGEST_SCALE:g}")


def _require_driven(assay: Assay, budget: Budget) -> None:
    """Raise unless the rule under audit drives a learner in the grid of ``budget``."""
    kinds = Disco | Open | Plugin | type(budget.subject.learner)
    if not _has_learner(assay, budget, kinds):
        raise SpecError(f"--rule: no learner of this part of {assay.id} has a rule")
    rule = budget.subject.rule
    if budget.subject.architecture == "open" and not any(
        isinstance(learner, Open) and rule in (OPEN, learner.rule)
        for learner in (cell.runs[0].learner for cell in assay.grid(budget))
    ):
        raise SpecError(
            f"--rule: {rule!r} is a rule of OPEN, and does not drive this part of {assay.id}"
        )


def _require_history(assay: Assay, budget: Budget) -> None:
    """Raise, naming the arms, if some act on the history of a rule that has none."""
    if budget.subject.history:
        return
    cells = assay.grid(budget)
    acting = {
        cell.labels.get("arm")
        for cell in cells
        for item in cell.runs[0].interventions
        if item.carrier not in cell.runs[0].learner.carrier_names
    }
    if not acting:
        return
    others = [arm for arm in budget.arms if arm not in acting]
    named = ", ".join(repr(arm) for arm in budget.arms if arm in acting)
    advice = f"possible: --arms {','.join(others)}" if others else "no other arm is left"
    raise SpecError(
        f"--arms: no {named} of {assay.id} is possible: {budget.subject.name!r} has no history "
        f"(no carrier 'recurrent') to intervene on; {advice}"
    )


def _has_learner(assay: Assay, budget: Budget, kinds: type | UnionType) -> bool:
    return any(isinstance(cell.runs[0].learner, kinds) for cell in assay.grid(budget))


def _check_length(assay: Assay, budget: Budget, selection: Selection) -> None:
    """Raise an error that names the option if the analysis cannot read runs of this length."""
    iterations, episodes, log_every = selection.iterations, selection.episodes, budget.log_every
    if budget.episodes is None and episodes is not None:
        raise SpecError(f"--episodes: lifetimes of {assay.id} are counted in --iterations")
    if budget.episodes is not None and iterations is not None:
        raise SpecError(f"--iterations: lifetimes of {assay.id} are counted in --episodes")
    if episodes is not None and episodes < 1:
        raise SpecError(f"--episodes: {episodes} is not the length of a lifetime")
    if iterations is None:
        return
    if iterations < log_every:
        raise SpecError(f"--iterations: {iterations} is less than one log row ({log_every})")
    if not _has_tail(iterations, log_every):
        near = -(-iterations // log_every) * log_every
        raise SpecError(
            f"--iterations: {iterations} has no log row (every {log_every}) in its last "
            f"fifth, which scores are read from; nearest: {near}"
        )


def _has_tail(iterations: int, log_every: int) -> bool:
    """Return whether the last fifth of a run has a log row."""
    rows = np.arange(log_every, iterations + 1, log_every)
    return bool(tail_from(rows, 0.8, iterations).any())


def _require_known(
    option: str, names: Sequence[str], valid: Sequence[str] | Mapping[str, object]
) -> None:
    for name in names:
        if name not in valid:
            raise SpecError(f"{option}: no {name!r}{nearest(name, valid)}")


def _ordered(chosen: Sequence[str], valid: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in valid if name in chosen)
