"""The other packages that a run uses: plug-ins, Gymnasium worlds and their dependencies.

A specification holds the name of a plug-in and the hash of its source, and a run is refused where
the installed source differs. The record of a run holds the versions of all these packages.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType

import msgspec

from rulescope.core import entry_points
from rulescope.core.entry_points import Kind
from rulescope.core.errors import RecordError, SpecError
from rulescope.core.runtime import Identity
from rulescope.envs import gymnasium_adapter
from rulescope.envs.world_config import Gymnasium, MinAtar, PluginWorld
from rulescope.learners.learner_config import Plugin
from rulescope.learners.plugin_rule import check_plugin
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

    Call it before anything runs. It imports rules with options, which only their classes can check,
    and makes Gymnasium worlds that have a source.
    """
    specs = list(specs)
    for world in {spec.environment for spec in specs if isinstance(spec.environment, Gymnasium)}:
        gymnasium_adapter.require_source(world)
    for learner in dict.fromkeys(spec.learner for spec in specs):
        if isinstance(learner, Plugin) and (learner.options or learner.null_seed is not None):
            check_plugin(learner)
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


_KNOWN = ("rulescope", "numpy", "torch")
"""Distributions that every manifest names anyway."""


def find_declared(spec: RunSpec) -> Identity:
    """Return what the runtime identity of ``spec`` holds besides that of the machine.

    ``package_NAME`` is the version of a distribution that provides the world or the rule, or of a
    declared dependency; ``world_sha256`` is the source of a Gymnasium world. The result does not
    depend on what this process has imported, so a checkpoint can depend on it.
    """
    roots, modules = list_distributions(spec)
    roots |= {name for module in modules for name in _distributions_of(module)}
    identity = _versions(roots)
    if isinstance(spec.environment, MinAtar):
        # Its games need NumPy alone; its other dependencies are for drawing and training.
        installed = _installed("minatar")
        identity |= {"package_minatar": installed[0]} if installed else {}
    if isinstance(spec.environment, Gymnasium):
        from rulescope.envs.gymnasium_adapter import origin

        identity["world_sha256"] = origin(spec.environment).source
    return identity


def find_used(spec: RunSpec) -> Identity:
    """Return :func:`find_declared`, and what is known only at the end of a run.

    That is the packages that a plug-in imported without declaring them, and for code of other
    packages ``native_threads``: threads of this process that Python did not start, such as those
    of JAX or of a BLAS. Torch counts only its own.
    """
    _, modules = list_distributions(spec)
    imported = {name for module in _imported_by(modules) for name in _distributions_of(module)}
    identity = _versions(imported) | find_declared(spec)
    foreign = isinstance(spec.learner, Plugin) or isinstance(
        spec.environment, PluginWorld | Gymnasium
    )
    threads = _native_threads() if foreign else None
    return identity if threads is None else identity | {"native_threads": threads}


def _versions(roots: Iterable[str]) -> Identity:
    """Return the versions of the distributions ``roots`` and of all their dependencies."""
    versions: Identity = {}
    waiting = sorted(roots)
    while waiting:
        key = _normalise(waiting.pop())
        if key in _KNOWN or f"package_{key}" in versions:
            continue
        installed = _installed(key)
        if installed is not None:
            versions[f"package_{key}"], needed = installed
            waiting += needed
    return dict(sorted(versions.items()))


@cache
def _installed(name: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the version of a distribution and the names of its dependencies."""
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    needed = [line for line in found.requires or () if "extra ==" not in line]
    names = (re.match(r"[A-Za-z0-9._-]+", line) for line in needed)
    return found.version, tuple(match[0] for match in names if match)


def _normalise(name: str) -> str:
    """Return the name of a distribution in one spelling, which can be part of a column name.

    >>> _normal("Farama-Notifications")
    'farama_notifications'
    """
    return re.sub(r"[-_.]+", "_", name).lower()


@cache
def _distributions_of(module: str) -> tuple[str, ...]:
    """Return the distributions that provide the top-level package of ``module``."""
    top = module.partition(".")[0]
    return tuple(_providers().get(top, ()))


@cache
def _providers() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())


def _imported_by(modules: Iterable[str]) -> set[str]:
    """Return the names of the modules whose contents the packages of ``modules`` use."""
    tops = {module.partition(".")[0] for module in modules}
    own = [m for name, m in list(sys.modules.items()) if name.partition(".")[0] in tops]
    return {name for module in own for name in _modules_used(module)}


def _modules_used(module: ModuleType) -> Iterator[str]:
    for value in list(vars(module).values()):
        name = value.__name__ if isinstance(value, ModuleType) else _module_of(value)
        if isinstance(name, str):
            yield name


def _module_of(value: object) -> object:
    try:
        return getattr(value, "__module__", None)
    except Exception:  # a lazy object of another package may raise anything
        return None


def _native_threads() -> int | None:
    """Return the number of threads of this process that Python did not start (Linux only)."""
    try:
        tasks = {int(path.name) for path in Path("/proc/self/task").iterdir()}
    except OSError:
        return None
    return len(tasks - {each.native_id for each in threading.enumerate()} - {os.getpid()})
