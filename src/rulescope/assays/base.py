"""What an assay is: a grid of cells, as data, and a pure analysis of what their lifetimes left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rulescope.assays.frame import Frame, Label
from rulescope.assays.results import Results
from rulescope.envs.config import WORLDS
from rulescope.errors import SpecError, nearest
from rulescope.learners.disco.config import INTERFACES, PROFILES, Disco
from rulescope.spec import Intervention, RunSpec
from rulescope.stats import tail_from

PRESETS = ("smoke", "quick", "standard", "paper")
"""Seconds, minutes, hours, and the published budgets. They change budgets, never meanings."""
LARGEST_SCALE = 1e12
"""As in a run's specification."""
NULL_RULE = "random:0"
"""Rule of the ``null`` arm: the same architecture without the knowledge."""


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
    arms: tuple[str, ...]
    scales: tuple[float, ...] = (1.0,)
    tasks: tuple[str, ...] = ("catch",)
    log_every: int = 20
    profile: str = "published"
    """Conventions of the learner: published, reference or legacy."""
    rule: str = "disco103"

    @property
    def prefix(self) -> int:
        """Iterations of a donor, and the time of a freeze; see :func:`prefix`."""
        return prefix(self.iterations)


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
    figures: tuple[str, ...] = ()
    """Labels of the published figures that this assay feeds, such as ``fig:scale``."""

    def budget(self, preset: str) -> Budget:
        """Return the budget called ``preset``."""
        if preset not in self.presets:
            raise SpecError(f"--preset: no {preset!r}{nearest(preset, self.presets)}")
        return self.presets[preset]


def learner(budget: Budget, *, rule: str | None = None, interface: str = "default") -> Disco:
    """Return the learner of ``budget``, perhaps with another rule or value interface."""
    return Disco(
        rule=rule or budget.rule,
        conventions=PROFILES[budget.profile],
        interface=INTERFACES[interface],
    )


def lifetime(
    budget: Budget,
    who: Disco,
    seed: int,
    *,
    scale: float,
    task: str = "catch",
    interventions: tuple[Intervention, ...] = (),
) -> RunSpec:
    """Return one lifetime of ``budget``.

    Every assay makes its lifetimes here, so that cells which two assays have in common are one
    run in the store.
    """
    return RunSpec(
        learner=who,
        environment=WORLDS[task],
        scale=float(scale),
        interventions=interventions,
        iterations=budget.iterations,
        log_every=budget.log_every,
        seed=seed,
    )


def narrowed(
    assay: Assay,
    budget: Budget,
    *,
    seeds: int | None = None,
    iterations: int | None = None,
    arms: Sequence[str] = (),
    scales: Sequence[float] = (),
    tasks: Sequence[str] = (),
    profile: str | None = None,
    rule: str | None = None,
) -> Budget:
    """Return ``budget`` with what was asked for; anything unknown is an error that names it."""
    _known("--arms", arms, assay.arms)
    _known("--tasks", tasks, assay.tasks)
    if profile is not None:
        _known("--profile", [profile], PROFILES)
    if seeds is not None and seeds < 1:
        raise SpecError(f"--seeds: {seeds} is not a number of lifetimes")
    if iterations is not None and iterations < budget.log_every:
        raise SpecError(f"--iterations: {iterations} is less than one log row ({budget.log_every})")
    if iterations is not None and not _has_tail(iterations, budget.log_every):
        near = -(-iterations // budget.log_every) * budget.log_every
        raise SpecError(
            f"--iterations: {iterations} has no log row (every {budget.log_every}) in its last "
            f"fifth, which scores are read from; nearest: {near}"
        )
    for scale in scales:
        if not 0.0 < scale <= LARGEST_SCALE:
            raise SpecError(f"--scales: {scale:g} is not between 0 and {LARGEST_SCALE:g}")
    return replace(
        budget,
        seeds=seeds or budget.seeds,
        iterations=iterations or budget.iterations,
        arms=_ordered(arms, assay.arms) or budget.arms,
        scales=tuple(sorted({float(scale) for scale in scales})) or budget.scales,
        tasks=_ordered(tasks, assay.tasks) or budget.tasks,
        profile=profile or budget.profile,
        rule=rule or budget.rule,
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
