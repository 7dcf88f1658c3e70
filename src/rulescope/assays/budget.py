"""How much of an assay is run, and for which rule."""

from __future__ import annotations

from dataclasses import dataclass

from rulescope.assays.subject import DISCO103, Subject
from rulescope.core.errors import SpecError
from rulescope.envs.tasks import Task
from rulescope.envs.world_config import WORLDS, DeepSea, EnvironmentSpec
from rulescope.envs.world_references import WorldReferences
from rulescope.stats import updates_for_depth

PRESETS = ("smoke", "quick", "standard", "paper")
"""Seconds, minutes, hours, and the published budgets. They change budgets, never meanings."""
LARGEST_SCALE = 1e12
"""As in a run's specification."""


def prefix(iterations: int) -> int:
    """Return a fifth of a lifetime: the length of a donor's run, and the iteration of a freeze.

    (400 of 2,000 as published. A learner first updates after 32 iterations, so at least 40, unless
    the lifetime is shorter.)
    """
    return min(max(iterations // 5, 40), iterations - 1)


@dataclass(frozen=True)
class Budget:
    """How much of an assay is run: a preset, perhaps narrowed."""

    seeds: int
    """Seeds are consecutive from 0."""
    iterations: int
    """Of two lanes and 29 steps each. Learners with rollouts of another size run for as many
    interactions."""
    arms: tuple[str, ...]
    scales: tuple[float, ...] = (1.0,)
    tasks: tuple[str, ...] = ("catch",)
    conditions: tuple[str, ...] = ()
    """The values of an axis of the assay's own, such as the change in the world."""
    log_every: int = 20
    episodes: int | None = None
    """Length of a lifetime in DeepSea, where an episode has as many steps as the sea is deep.
    ``iterations`` is then that of the deepest."""
    agent: str = "published"
    """Conventions of the learner, by a name of
    :data:`~rulescope.learners.disco_config.AGENTS`; the learner's own if empty."""
    subject: Subject = DISCO103
    """The rule under audit and its learner."""
    worlds: tuple[Task, ...] = ()
    """Those of ``tasks`` that are no tasks of the assay itself: any worlds, named by the user."""

    @property
    def prefix(self) -> int:
        """Iterations of a donor, and the iteration of a freeze; see :func:`prefix`."""
        return prefix(self.iterations)

    def world(self, task: str) -> EnvironmentSpec:
        """Return the world of ``task``."""
        named = {each.name: each.world for each in self.worlds}
        return named[task] if task in named else WORLDS[task]

    @property
    def references(self) -> dict[str, WorldReferences]:
        """What scores are measured by in each of ``worlds``."""
        return {each.name: each.references for each in self.worlds}

    def one_task(self, usual: str, assay: str) -> str:
        """Return the task of an assay that runs in one world: ``usual``, or the user's."""
        if not self.worlds:
            return usual
        if len(self.tasks) > 1:
            raise SpecError(f"--tasks: {assay} runs in one world at a time; name one of them")
        return self.tasks[0]

    def length(self, task: str) -> int:
        """Return the iterations of a lifetime in ``task``."""
        world = self.world(task)
        if self.episodes is None or not isinstance(world, DeepSea):
            return self.iterations
        return int(updates_for_depth(world.depth, self.episodes))
