"""Worlds that other packages provide, see :mod:`rulescope.core.entry_points`."""

from __future__ import annotations

from rulescope.core import entry_points
from rulescope.core.errors import refusing_exit
from rulescope.envs.contract_checks import Checked
from rulescope.envs.environment import Environment
from rulescope.envs.world_config import PluginWorld

_EXPECTED = "a function (lanes) -> rulescope.envs.environment.Environment"


def pin_plugin_world(name: str) -> PluginWorld:
    """Return the configuration of the installed world ``name`` with the hash of its source."""
    point = entry_points.find_entry_point("world", name)
    source = entry_points.hash_source(point)
    entry_points.load_object(point, _EXPECTED)  # a faulty plug-in is reported here, not in a run
    return PluginWorld(name=name, source=source)


def make_plugin_world(config: PluginWorld, lanes: int) -> Environment:
    """Build ``lanes`` copies of the world that ``config`` names; every step is checked."""
    point = entry_points.require_source("world", config.name, config.source)
    with refusing_exit(f"the world {config.name!r}"):
        made = entry_points.load_object(point, _EXPECTED)(lanes)
    if not isinstance(made, Environment) or made.lanes != lanes:
        found = f"one of {made.lanes} lanes" if isinstance(made, Environment) else f"{type(made)}"
        raise entry_points.plugin_error(
            point,
            f"called with {lanes}, it must return a rulescope.envs.environment.Environment with "
            f"that many lanes, not {found}",
        )
    return Checked(made, config.name)
