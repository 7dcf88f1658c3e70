"""Worlds to learn in, and what a learner is told of them."""

from __future__ import annotations

from rulescope.envs.base import Environment
from rulescope.envs.boundaries import Masked, Scaled, Synthetic
from rulescope.envs.catch import CatchEnv
from rulescope.envs.config import Boundary, EnvironmentSpec
from rulescope.envs.conformance import check_env
from rulescope.errors import SpecError

__all__ = ["check_env", "make"]


def make(environment: EnvironmentSpec, boundary: Boundary, scale: float, lanes: int) -> Environment:
    """Build the world of a run: ``lanes`` copies of it, its reward scale and its boundary.

    >>> from rulescope.envs.config import Boundary, Catch
    >>> make(Catch(), Boundary(), scale=1.0, lanes=2).reset(seed=0).shape
    (2, 8, 8)
    """
    env: Environment = CatchEnv(environment, lanes)
    if scale != 1.0:
        env = Scaled(env, scale)
    if boundary.terminals == "masked":
        return Masked(env)
    if boundary.terminals == "synthetic":
        if boundary.interval is None:
            raise SpecError("boundary.interval: synthetic terminals need an interval, such as 29")
        return Synthetic(env, boundary.interval)
    return env
