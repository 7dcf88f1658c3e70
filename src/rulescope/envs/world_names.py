"""Worlds by name: those of this package, of plug-ins, and any Gymnasium environment.

The name of a Gymnasium world is a whole configuration, see docs/worlds.md:

    gymnasium:ID?argument=value&argument=value+Wrapper?argument=value#part
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from rulescope.core import entry_points
from rulescope.core.errors import SpecError, nearest
from rulescope.core.structs import explain
from rulescope.envs import gymnasium_adapter
from rulescope.envs.environment_factory import make
from rulescope.envs.plugin_world import pin_plugin_world
from rulescope.envs.world_config import (
    WORLDS,
    Argument,
    Boundary,
    EnvironmentSpec,
    Gymnasium,
    PluginWorld,
    WorldWrapper,
)

PREFIX = "gymnasium:"
MODULES = {"MiniGrid-": "minigrid", "BabyAI-": "minigrid", "ALE/": "ale_py"}
"""Packages that register ids only when they are imported, by the beginning of those ids."""
KEY = re.compile(r"^environment\.[a-z_]+(\[\d+\])?(\.[a-z_]+)?: ")
"""The key of a specification at the beginning of an error."""
WORDS: dict[str, Any] = {"true": True, "false": False, "none": None, "null": None}


def find_world(name: str, option: str = "--env") -> EnvironmentSpec:
    """Return the configuration of the world called ``name``, the source of its code filled in.

    Anything that would stop a run of it is a :class:`SpecError` that begins with ``option``.
    """
    if name.startswith(PREFIX):
        return _gymnasium(name, option)
    plugins = entry_points.list_names("world")
    if name in WORLDS and name in plugins:
        # Either could be meant, and the results of the wrong one would look right.
        raise SpecError(f"{option}: {name!r} is also the name of a plug-in, which must change it")
    if name in plugins:
        return pin_plugin_world(name)
    if name not in WORLDS:
        hint = nearest(name, [*WORLDS, *plugins])
        raise SpecError(f"{option}: no {name!r}{hint}, or {PREFIX}ID (docs/worlds.md)")
    return WORLDS[name]


def name_world(world: EnvironmentSpec) -> str:
    """Return the name by which :func:`find_world` finds a world, as far as it has one.

    >>> name_world(WORLDS["tracking"]), name_world(Gymnasium(id="CartPole-v1"))
    ('tracking', 'gymnasium:CartPole-v1')
    """
    if isinstance(world, PluginWorld):
        return world.name
    if isinstance(world, Gymnasium):
        parts = [world.id + _query(world.arguments)]
        parts += [each.name + _query(each.arguments) for each in world.wrappers]
        seen = "" if world.observation is None else f"#{quote(world.observation)}"
        return f"{PREFIX}{'+'.join(parts)}{seen}"
    named = (name for name, known in WORLDS.items() if known == world)
    return next(named, str(world.__struct_config__.tag))


def parse_gymnasium(name: str, option: str = "--env") -> Gymnasium:
    """Return the configuration that ``name`` describes; nothing is imported or looked up.

    >>> parse_gymnasium("gymnasium:FrozenLake-v1?is_slippery=false").arguments
    (Argument(name='is_slippery', value=False),)
    """
    whole, sharp, part = name.removeprefix(PREFIX).partition("#")
    (world, *arguments), *wrappers = (_split(each, name, option) for each in whole.split("+"))
    if not world or (sharp and not part):
        what = "a part" if world else "an id"
        raise SpecError(f"{option}: {name!r} lacks {what}; try gymnasium:CartPole-v1")
    config = Gymnasium(
        id=world,
        arguments=tuple(arguments),
        wrappers=tuple(WorldWrapper(name=one, arguments=tuple(its)) for one, *its in wrappers),
        observation=unquote(part) if sharp else None,
    )
    data = msgspec.to_builtins(config)
    try:  # what was made in Python is not checked
        return msgspec.convert(data, Gymnasium)
    except msgspec.ValidationError as fault:
        raise SpecError(f"{option}: {name!r}: {explain(fault, Gymnasium, data)}") from None


def _gymnasium(name: str, option: str) -> Gymnasium:
    """Return the world of ``name``, made once to see that it can be used."""
    config = parse_gymnasium(name, option)
    # Always with its module: whether another world has imported it must not change the id of a run.
    modules = [module for first, module in MODULES.items() if config.id.startswith(first)]
    if modules and find_spec(modules[0]) is not None:
        config = msgspec.structs.replace(config, id=f"{modules[0]}:{config.id}")
    try:
        pinned = gymnasium_adapter.pin_source(config)
        make(pinned, Boundary(), 1.0, lanes=1)
    except SpecError as fault:
        # The keys of a specification, as "environment.wrappers[0]: ", are nothing that was typed.
        raise SpecError(f"{option}: {KEY.sub('', str(fault))}") from None
    return pinned


def _split(text: str, name: str, option: str) -> tuple[Any, ...]:
    """Return what stands before the question mark, and the arguments after it."""
    before, _, query = text.partition("?")
    arguments = []
    for pair in filter(None, query.split("&")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise SpecError(f"{option}: {pair!r} in {name!r} is no argument; write {pair}=VALUE")
        arguments.append(Argument(name=key, value=_value(unquote(value))))
    return before, *sorted(arguments, key=lambda each: each.name)


def _value(text: str) -> Any:
    """Return the value of an argument: JSON, or else the text itself.

    >>> [_value(text) for text in ("False", "8", "4x4", '"8"', "[1, 2]")]
    [False, 8, '4x4', '8', (1, 2)]
    """
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return tuple(found) if isinstance(found, list) else found


def _query(arguments: tuple[Argument, ...]) -> str:
    """Return arguments as they stand in a name."""
    pairs = (f"{each.name}={_text(each.value)}" for each in arguments)
    text = "&".join(pairs)
    return f"?{text}" if text else ""


def _text(value: Any) -> str:
    """Return a value such that :func:`_value` reads it back."""
    plain = isinstance(value, str) and _value(value) == value
    return quote(value if plain else msgspec.json.encode(value).decode(), safe="[]:/.")
