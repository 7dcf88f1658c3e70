"""Versions of the other packages that a run uses: worlds, plug-ins and their dependencies."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType

from rulescope import plugin_sources
from rulescope.core.runtime import Identity
from rulescope.envs.world_config import Gymnasium, MinAtar, PluginWorld
from rulescope.learners.learner_config import Plugin
from rulescope.run_spec import RunSpec

_KNOWN = ("rulescope", "numpy", "torch")
"""Distributions that every manifest names anyway."""


def find_declared(spec: RunSpec) -> Identity:
    """Return what the runtime identity of ``spec`` holds besides that of the machine.

    ``package_NAME`` is the version of a distribution that provides the world or the rule, or of a
    declared dependency; ``world_sha256`` is the source of a Gymnasium world. The result does not
    depend on what this process has imported, so a checkpoint can depend on it.
    """
    roots, modules = plugin_sources.list_distributions(spec)
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
    _, modules = plugin_sources.list_distributions(spec)
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
