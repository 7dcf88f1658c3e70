"""The source hashes of the plug-ins and Gymnasium worlds that a run uses: fill in, verify, list.

A specification holds the name of a plug-in and the hash of its source, and a run is refused where
the installed source differs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

import msgspec

from rulescope.core import entry_points
from rulescope.core.entry_points import Kind
from rulescope.core.errors import RecordError, SpecError
from rulescope.envs import gymnasium_adapter
from rulescope.envs.world_config import Gymnasium, PluginWorld
from rulescope.learners.learner_config import Plugin
from rulescope.records.record import Manifest
from rulescope.run_spec import Intervention, RunSpec

_log = logging.getLogger(__name__)


def fill_in_sources(spec: RunSpec) -> RunSpec:
    """Return ``spec`` with the source of its Gymnasium world filled in, donors' worlds included.

    Its id then depends on the code of the world. A source that is given already is kept.
    """
    world, origin = spec.environment, spec.origin
    if isinstance(world, Gymnasium) and world.source is None:
        world = gymnasium_adapter.pin_source(world)
    if origin is not None:
        origin = msgspec.structs.replace(origin, run=fill_in_sources(origin.run))
    return msgspec.structs.replace(
        spec,
        environment=world,
        origin=origin,
        interventions=tuple(map(_fill_in_donors, spec.interventions)),
    )


def _fill_in_donors(item: Intervention) -> Intervention:
    donor, donors = getattr(item, "donor", None), getattr(item, "donors", None)
    if donor is not None:
        return msgspec.structs.replace(item, donor=fill_in_sources(donor))
    if donors is not None:
        return msgspec.structs.replace(item, donors=tuple(map(fill_in_sources, donors)))
    return item


def require_same_world(spec: RunSpec, manifest: Manifest) -> None:
    """Raise :class:`RecordError` if the installed code of the world is not the one of the record.

    This concerns Gymnasium worlds without a source: the id of the run does not depend on their
    code. Where Gymnasium or the world is not installed, the record can still be read.
    """
    world = spec.environment
    if not isinstance(world, Gymnasium) or world.source is not None:
        return
    recorded = manifest.runtime.get("world_sha256")
    try:
        here = gymnasium_adapter.known_source(world)
    except SpecError:
        return
    if recorded is None:
        _log.warning(
            "run %s: its record does not say which code of the world %r made it",
            spec.id[:12],
            world.id,
        )
    elif recorded != here:
        raise RecordError(
            f"run {spec.id[:12]}: its record was made by other code of the world {world.id!r} "
            f"({str(recorded)[:12]}) than is here ({str(here)[:12]}), and the specification names "
            f"none; set environment.source to {here!r} to make it anew under another id"
        )


def require_plugins(specs: Iterable[RunSpec]) -> None:
    """Raise :class:`SpecError` unless every plug-in of ``specs`` is installed with its source.

    Call it before anything runs. It imports no plug-in, but makes Gymnasium worlds that have a
    source.
    """
    specs = list(specs)
    for world in {spec.environment for spec in specs if isinstance(spec.environment, Gymnasium)}:
        gymnasium_adapter.require_source(world)
    for kind, name, source in sorted({each for spec in specs for each in _plugins(spec)}):
        entry_points.require_source(kind, name, source)


def list_distributions(spec: RunSpec) -> tuple[set[str], set[str]]:
    """Return the names of the distributions of other packages that ``spec`` runs, and modules."""
    found: set[str] = set()
    modules: set[str] = set()
    for kind, name, _ in _plugins(spec):
        point = entry_points.find_entry_point(kind, name)
        found |= {point.dist.name} if point.dist else set()
        modules.add(point.module)
    if isinstance(spec.environment, Gymnasium):
        found.add("gymnasium")
        modules |= set(gymnasium_adapter.origin(spec.environment).modules)
    return found, modules


def _plugins(spec: RunSpec) -> Iterator[tuple[Kind, str, str]]:
    """Yield kind, name and source of each plug-in that ``spec`` uses."""
    if isinstance(spec.learner, Plugin):
        yield "rule", spec.learner.rule, spec.learner.source
    if isinstance(spec.environment, PluginWorld):
        yield "world", spec.environment.name, spec.environment.source
