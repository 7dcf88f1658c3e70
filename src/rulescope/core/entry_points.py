"""Entry points through which other packages provide rules and worlds: find, hash, import.

A package provides a rule or a world under a name of its choice in the entry point group
``rulescope.rules`` or ``rulescope.worlds``. Listing, finding and hashing never import the package.
See docs/plugins.md.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from importlib.metadata import EntryPoint
from typing import Any, Literal, NamedTuple

from rulescope.core import plugin_source
from rulescope.core.errors import SpecError, nearest, refusing_exit

Kind = Literal["rule", "world"]
GROUPS: dict[Kind, str] = {"rule": "rulescope.rules", "world": "rulescope.worlds"}
"""The entry point group of each kind of plug-in."""


class Installed(NamedTuple):
    """One installed plug-in."""

    kind: Kind
    name: str
    package: str
    """Name and version of the distribution."""
    value: str
    """The object as ``module:attribute``."""


def list_installed(kind: Kind) -> list[Installed]:
    """Return the installed plug-ins, sorted by name."""
    found = sorted(metadata.entry_points(group=GROUPS[kind]), key=lambda p: (p.name, p.value))
    return [Installed(kind, point.name, _package(point), point.value) for point in found]


def list_names(kind: Kind) -> list[str]:
    """Return the names of the installed plug-ins, sorted."""
    return sorted({each.name for each in list_installed(kind)})


def find_entry_point(kind: Kind, name: str) -> EntryPoint:
    """Return the one entry point called ``name``; raise :class:`SpecError` if there is none."""
    points = metadata.entry_points(group=GROUPS[kind])
    found = list(points.select(name=name))
    if not found and not points:
        raise SpecError(
            f"no plug-in {kind} is called {name!r}: none is installed (packages provide them in "
            f"the entry point group {GROUPS[kind]!r})"
        )
    if not found:
        raise SpecError(f"no plug-in {kind} is called {name!r}{nearest(name, points.names)}")
    if len(found) > 1:
        packages = " and ".join(sorted(map(_package, found)))
        raise SpecError(f"the {kind} {name!r} is provided by {packages}; uninstall all but one")
    return found[0]


def require_source(kind: Kind, name: str, source: str) -> EntryPoint:
    """Return the entry point ``name``; raise :class:`SpecError` unless its hash is ``source``."""
    point = find_entry_point(kind, name)
    here = hash_source(point)
    if here != source and _hash_package(point) != source:
        key = "learner.source" if kind == "rule" else "environment.source"
        raise SpecError(
            f"{key}: the {kind} {name!r} of {_package(point)} is {here[:12]} here, not "
            f"{source[:12]}: its package was edited, or is another version. Install the other one, "
            "or make the run anew with this one (it gets another id)"
        )
    return point


def hash_source(point: EntryPoint) -> str:
    """Return the sha256 of the code that the module of ``point`` imports in its distribution."""
    return _hash(point, plugin_source.hash_module)


def _hash_package(point: EntryPoint) -> str:
    """Return the source of ``point`` as specifications of earlier versions hold it."""
    return _hash(point, plugin_source.hash_whole_package)


def _hash(point: EntryPoint, digest: Callable[[str], str]) -> str:
    try:
        return digest(point.module)
    except ImportError as fault:
        raise plugin_error(point, str(fault)) from None
    except OSError as fault:
        raise plugin_error(point, f"its source cannot be read: {fault}") from None


def load_object(point: EntryPoint, expected: str) -> Any:
    """Import the object of ``point``; raise :class:`SpecError` if it fails or is not callable.

    ``expected`` describes a valid object, for the error message.
    """
    try:
        with refusing_exit("it"):
            found = point.load()
    except Exception as fault:
        cause = f"{type(fault).__name__}: {fault}"
        raise plugin_error(point, f"it cannot be imported: {cause}") from fault
    if not callable(found):
        raise plugin_error(point, f"it must be {expected}, not {type(found)}")
    return found


def plugin_error(point: EntryPoint, problem: str) -> SpecError:
    """Return the error that names the plug-in, its package and the problem."""
    kind = next(kind for kind, group in GROUPS.items() if group == point.group)
    return SpecError(f"the {kind} {point.name!r} of {_package(point)} ({point.value}): {problem}")


def _package(point: EntryPoint) -> str:
    """Return the name and version of the distribution that provides ``point``."""
    try:
        return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
    except KeyError:  # metadata without a name or a version
        return "an unnamed package"
