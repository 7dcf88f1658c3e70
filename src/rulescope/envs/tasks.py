"""A task: a world that an assay or an audit is run in, under the name that was typed."""

from __future__ import annotations

from rulescope.core.structs import Frozen
from rulescope.envs.world_config import EnvironmentSpec
from rulescope.envs.world_names import find_world
from rulescope.envs.world_references import WorldReferences, find_references


class Task(Frozen, frozen=True):
    """A world that is not among those of an assay, with its references."""

    name: str
    """As typed; results, tables and figures are labelled with it."""
    world: EnvironmentSpec
    references: WorldReferences


def find_task(name: str, best: float | None = None, option: str = "--tasks") -> Task:
    """Return the world called ``name`` with its references; ``best`` is a stated upper one.

    Random play is sampled here if its mean is not known exactly, which takes seconds.
    """
    world = find_world(name, option)
    return Task(name=name, world=world, references=find_references(world, name, best))
