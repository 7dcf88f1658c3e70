"""Rules and worlds of other packages: the one place that looks at entry points.

A package offers a rule or a world under a name of its choice, in the entry point group
``rulescope.rules`` or ``rulescope.worlds``. Finding, listing and hashing never imports it; only
using it does. Specifications hold a name and the hash of the package's source, and are refused
where the source is another one: a record says which program made it, and the same program makes it
again. See docs/plugins.md.
"""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import msgspec

from rulescope.core import source_hash
from rulescope.core.errors import RecordError, SpecError, nearest, refusing_exit
from rulescope.spec.plugin_config import LEARNING_RATE, Plugin, Setup
from rulescope.spec.world_config import Argument, Gymnasium, PluginWorld

if TYPE_CHECKING:
    from rulescope.envs.environment import Environment
    from rulescope.learners.learner import Learner
    from rulescope.records.record import Manifest
    from rulescope.spec.run_spec import Intervention, RunSpec

_log = logging.getLogger(__name__)

Kind = Literal["rule", "world"]
GROUPS: dict[Kind, str] = {"rule": "rulescope.rules", "world": "rulescope.worlds"}
"""The entry point groups."""


class Installed(NamedTuple):
    """Something that a package offers."""

    kind: Kind
    name: str
    package: str
    """Name and version of the distribution."""
    value: str
    """Where it is: ``module:attribute``."""


def rules() -> list[str]:
    """Return the names of the installed rules."""
    return sorted({each.name for each in installed("rule")})


def worlds() -> list[str]:
    """Return the names of the installed worlds."""
    return sorted({each.name for each in installed("world")})


def installed(kind: Kind) -> list[Installed]:
    """Return what is installed, by name; nothing is imported."""
    found = sorted(entry_points(group=GROUPS[kind]), key=lambda each: (each.name, each.value))
    return [Installed(kind, each.name, _package(each), each.value) for each in found]


def pinned(name: str) -> Plugin:
    """Return the learner of the installed rule ``name``: as its package is now, and no other."""
    point = _find("rule", name)
    source, rule = _source(point), _rule(point)
    rate = getattr(rule, "LEARNING_RATE", LEARNING_RATE)
    return Plugin(rule=name, source=source, carriers=_carriers(point, rule), learning_rate=rate)


def pinned_world(name: str) -> PluginWorld:
    """Return the installed world ``name``: as its package is now, and no other."""
    point = _find("world", name)
    source = _source(point)
    _load(point)  # told now if it cannot be
    return PluginWorld(name=name, source=source)


def pinned_gymnasium(
    name: str, arguments: Mapping[str, Any] | None = None, **fields: Any
) -> Gymnasium:
    """Return the Gymnasium world ``name``: as its code is now, and no other.

    ``arguments`` are those of ``gymnasium.make``, ``fields`` those of
    :class:`~rulescope.spec.world_config.Gymnasium`.
    """
    given = tuple(
        Argument(name=key, value=tuple(value) if isinstance(value, list) else value)
        for key, value in sorted((arguments or {}).items())
    )
    return _pinned(Gymnasium(id=name, arguments=given, **fields))


def _pinned(world: Gymnasium) -> Gymnasium:
    from rulescope.envs.gymnasium_adapter import known_source

    source = known_source(world)
    return msgspec.structs.replace(world, source=source)


def with_source(spec: RunSpec) -> RunSpec:
    """Return ``spec`` with the source of its Gymnasium world filled in, donors' worlds included.

    So its id follows from the code of the world. What names a source already stays as it is.
    """
    world, origin = spec.environment, spec.origin
    if isinstance(world, Gymnasium) and world.source is None:
        world = _pinned(world)
    if origin is not None:
        origin = msgspec.structs.replace(origin, run=with_source(origin.run))
    return msgspec.structs.replace(
        spec,
        environment=world,
        origin=origin,
        interventions=tuple(map(_with_source, spec.interventions)),
    )


def _with_source(item: Intervention) -> Intervention:
    donor, donors = getattr(item, "donor", None), getattr(item, "donors", None)
    if donor is not None:
        return msgspec.structs.replace(item, donor=with_source(donor))
    if donors is not None:
        return msgspec.structs.replace(item, donors=tuple(map(with_source, donors)))
    return item


def require_same_world(spec: RunSpec, manifest: Manifest) -> None:
    """Raise :class:`RecordError` if a record was made by other code of its world than is here.

    This concerns Gymnasium worlds without a source: the id of the run does not depend on their
    code. Where Gymnasium or the world is not installed, a record can be read all the same.
    """
    world = spec.environment
    if not isinstance(world, Gymnasium) or world.source is not None:
        return
    made_by = manifest.runtime.get("world_sha256")
    try:
        here = _pinned(world).source
    except SpecError:
        return
    if made_by is None:
        _log.warning(
            "run %s: its record does not say which code of the world %r made it",
            spec.id[:12],
            world.id,
        )
    elif made_by != here:
        raise RecordError(
            f"run {spec.id[:12]}: its record was made by other code of the world {world.id!r} "
            f"({str(made_by)[:12]}) than is here ({str(here)[:12]}), and the specification names "
            f"none; set environment.source to {here!r} to make it anew under another id"
        )


def learner(config: Plugin, setup: Setup) -> Learner:
    """Build the learner that ``config`` names.

    Where its rule has no weights to be known by, it is known by its source.
    """
    from rulescope.rules.loading import RuleWeights

    point = _verified("rule", config.rule, config.source)
    rule = _rule(point)
    declared = _carriers(point, rule)
    if set(declared) != set(config.carriers):
        raise SpecError(
            f"learner.carriers: the rule {config.rule!r} has {', '.join(declared)}, not "
            f"{', '.join(config.carriers)}"
        )
    with refusing_exit(f"the rule {config.rule!r}"):
        made = cast("Callable[[Setup], Learner]", rule)(setup)
    if set(made.carriers) != set(declared):
        raise _wrong(
            point,
            f"CARRIERS promises {', '.join(declared)}, but carriers are {', '.join(made.carriers)}",
        )
    known = made.rule or RuleWeights(config.rule, {}, config.source, config.source)
    made.rule = replace(known, name=config.rule, sha256=config.source)
    if made.rule_digest() != known.content:  # found at the end, it would have cost a lifetime
        raise _wrong(point, "rule_digest() of a fresh learner is not rule.content")
    return made


def environment(config: PluginWorld, lanes: int) -> Environment:
    """Build ``lanes`` copies of the world that ``config`` names."""
    from rulescope.envs.environment import Environment

    point = _verified("world", config.name, config.source)
    with refusing_exit(f"the world {config.name!r}"):
        made = cast("Callable[[int], object]", _load(point))(lanes)
    if not isinstance(made, Environment) or made.lanes != lanes:
        what = f"one of {made.lanes} lanes" if isinstance(made, Environment) else f"{type(made)}"
        raise _wrong(
            point,
            f"called with {lanes}, it must return a rulescope.envs.environment.Environment of so "
            f"many lanes, not {what}",
        )
    return made


def require(specs: Iterable[RunSpec]) -> None:
    """Raise :class:`SpecError` unless every plug-in of ``specs`` is here, as the specs know it.

    To be called before anything runs. Of plug-ins nothing is imported; Gymnasium worlds with a
    source are made.
    """
    specs = list(specs)
    for world in {spec.environment for spec in specs if isinstance(spec.environment, Gymnasium)}:
        from rulescope.envs.gymnasium_adapter import require_source

        require_source(world)
    for kind, name, source in sorted({each for spec in specs for each in _used(spec)}):
        _verified(kind, name, source)


def _used(spec: RunSpec) -> Iterator[tuple[Kind, str, str]]:
    if isinstance(spec.learner, Plugin):
        yield "rule", spec.learner.rule, spec.learner.source
    if isinstance(spec.environment, PluginWorld):
        yield "world", spec.environment.name, spec.environment.source


def distributions(spec: RunSpec) -> tuple[set[str], set[str]]:
    """Return the distributions of other packages that ``spec`` runs, and their modules, by name."""
    found: set[str] = set()
    modules: set[str] = set()
    for kind, name, _ in _used(spec):
        point = _find(kind, name)
        found |= {point.dist.name} if point.dist else set()
        modules.add(point.module)
    if isinstance(spec.environment, Gymnasium):
        from rulescope.envs.gymnasium_adapter import origin

        found.add("gymnasium")
        modules |= set(origin(spec.environment).modules)
    return found, modules


def _verified(kind: Kind, name: str, source: str) -> EntryPoint:
    """Return the installed plug-in; raise unless its source is the one asked for."""
    point = _find(kind, name)
    here = _source(point)
    if here != source:
        key = "learner.source" if kind == "rule" else "environment.source"
        raise SpecError(
            f"{key}: the {kind} {name!r} of {_package(point)} is {here[:12]} here, not "
            f"{source[:12]}: its package was edited, or is another version. Install the other one, "
            "or make the run anew with this one (it gets another id)"
        )
    return point


def _find(kind: Kind, name: str) -> EntryPoint:
    points = entry_points(group=GROUPS[kind])
    found = list(points.select(name=name))
    if not found and not points:
        raise SpecError(
            f"no plug-in {kind} is called {name!r}: none is installed (packages offer them in the "
            f"entry point group {GROUPS[kind]!r})"
        )
    if not found:
        raise SpecError(f"no plug-in {kind} is called {name!r}{nearest(name, points.names)}")
    if len(found) > 1:
        packages = " and ".join(sorted(map(_package, found)))
        raise SpecError(f"the {kind} {name!r} is offered by {packages}; uninstall all but one")
    return found[0]


def _package(point: EntryPoint) -> str:
    """Return the name and version of the distribution that offers ``point``."""
    try:
        return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
    except KeyError:  # metadata without a name or a version
        return "an unnamed package"


_EXPECTED = {
    GROUPS["rule"]: "a class derived from rulescope.learners.learner.Learner",
    GROUPS["world"]: "a function (lanes) -> rulescope.envs.environment.Environment",
}
"""What an entry point of each group must be."""


def _load(point: EntryPoint) -> Any:
    """Import what the entry point names, which must at least be callable."""
    try:
        with refusing_exit("it"):
            found = point.load()
    except Exception as fault:
        cause = f"{type(fault).__name__}: {fault}"
        raise _wrong(point, f"it cannot be imported: {cause}") from fault
    if not callable(found):
        raise _wrong(point, f"it must be {_EXPECTED[point.group]}, not {type(found)}")
    return found


def _rule(point: EntryPoint) -> type[Learner]:
    """Import the class of a rule."""
    from rulescope.learners.learner import Learner

    found = _load(point)
    if not isinstance(found, type) or not issubclass(found, Learner):
        raise _wrong(point, f"it must be {_EXPECTED[point.group]}, not {found!r}")
    if inspect.isabstract(found):
        lacking = ", ".join(sorted(found.__abstractmethods__))
        raise _wrong(point, f"the class {found.__name__} does not define {lacking}")
    rate = getattr(found, "LEARNING_RATE", LEARNING_RATE)
    if not isinstance(rate, int | float) or not 0.0 < rate <= 100.0 or math.isnan(rate):
        raise _wrong(point, f"LEARNING_RATE must be a number above 0, at most 100, not {rate!r}")
    return found


def _carriers(point: EntryPoint, rule: type[Learner]) -> tuple[str, ...]:
    """Return the names of the carriers that a rule's class promises."""
    names = getattr(rule, "CARRIERS", None)
    listed = names if isinstance(names, tuple) else ()
    named = all(isinstance(each, str) and each and "/" not in each for each in listed)
    if not listed or not named or len(set(listed)) < len(listed):
        raise _wrong(
            point,
            f"the class {rule.__name__} must name its carriers, such as "
            f"CARRIERS = ('recurrent', 'params'), not {names!r}",
        )
    return listed


def _wrong(point: EntryPoint, what: str) -> SpecError:
    kind = next(kind for kind, group in GROUPS.items() if group == point.group)
    return SpecError(f"the {kind} {point.name!r} of {_package(point)} ({point.value}): {what}")


# What identifies a plug-in


def _source(point: EntryPoint) -> str:
    """Return the sha256 of the top-level package, or module, that ``point`` is in."""
    try:
        return source_hash.digest(source_hash.home_of(point.module))
    except ImportError as fault:
        raise _wrong(point, str(fault)) from None
    except OSError as fault:
        raise _wrong(point, f"its source cannot be read: {fault}") from None
