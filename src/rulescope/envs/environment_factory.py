"""Builds the world of a run from its configuration."""

from __future__ import annotations

from rulescope.core.errors import SpecError
from rulescope.envs.boundaries import Masked, Scaled, Synthetic
from rulescope.envs.catch import CatchEnv
from rulescope.envs.catch_stream import CatchStreamEnv
from rulescope.envs.changes import apply_change
from rulescope.envs.deep_sea import DeepSeaEnv
from rulescope.envs.environment import Environment
from rulescope.envs.gymnasium_adapter import GymnasiumEnv
from rulescope.envs.minatar import MinAtarEnv
from rulescope.envs.plugin_world import make_plugin_world
from rulescope.envs.tracking import TrackingEnv
from rulescope.envs.world_config import (
    Boundary,
    Catch,
    CatchStream,
    Change,
    DeepSea,
    EnvironmentSpec,
    Gymnasium,
    MinAtar,
    PluginWorld,
    Tracking,
)


def make(
    environment: EnvironmentSpec,
    boundary: Boundary,
    scale: float,
    lanes: int,
    change: Change | None = None,
    steps: int = 29,
) -> Environment:
    """Build the world of a run: ``lanes`` copies of it, its change, reward scale and boundary.

    ``steps`` are the interactions of each lane in one iteration, by which a change is timed.

    >>> from rulescope.envs.world_config import Boundary, Catch
    >>> make(Catch(), Boundary(), scale=1.0, lanes=2).reset(seed=0).shape
    (2, 8, 8)
    """
    env = _world(environment, lanes)
    if change is not None:
        env = apply_change(env, environment, change, steps)
    if scale != 1.0:
        env = Scaled(env, scale)
    if boundary.terminals == "masked":
        return Masked(env)
    if boundary.terminals == "synthetic":
        if boundary.interval is None:
            raise SpecError("boundary.interval: synthetic terminals need an interval, such as 29")
        return Synthetic(env, boundary.interval)
    return env


def _world(environment: EnvironmentSpec, lanes: int) -> Environment:
    match environment:
        case Catch():
            return CatchEnv(environment, lanes)
        case CatchStream():
            return CatchStreamEnv(environment, lanes)
        case Tracking():
            return TrackingEnv(environment, lanes)
        case DeepSea():
            return DeepSeaEnv(environment, lanes)
        case MinAtar():
            return MinAtarEnv(environment, lanes)
        case Gymnasium():
            return GymnasiumEnv(environment, lanes)
        case PluginWorld():
            return make_plugin_world(environment, lanes)
