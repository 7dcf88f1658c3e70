"""Worlds of other packages: found by name, built, and checked at every step.

The first violation of the environment contract stops the run. See
:mod:`rulescope.core.entry_points`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rulescope.core import entry_points
from rulescope.core.errors import WorldError, refusing_exit
from rulescope.envs.boundaries import Wrapper
from rulescope.envs.environment import Array, Environment, Step
from rulescope.envs.world_config import PluginWorld


class Checked(Wrapper):
    """Raises :class:`WorldError` where a world returns an invalid step.

    Otherwise a NaN among the rewards would look like an episode that has not ended yet.
    """

    def __init__(self, env: Environment, name: str) -> None:
        super().__init__(env)
        self._name = name

    def reset(self, seed: int) -> Array:
        """Start the world anew."""
        first = super().reset(seed)
        self._numbers("the first observation", first, self.observation_shape)
        return first

    def convert_step(self, step: Step) -> Step:
        """Return ``step`` unchanged, if it is valid."""
        if not isinstance(step, Step):
            raise self._wrong(
                f"step returned {_shown(step)}, not a rulescope.envs.environment.Step"
            )
        self._numbers("observation", step.observation, self.observation_shape)
        self._numbers("reward", step.reward)
        self._numbers("payoff", step.payoff)
        self._flags("terminal", step.terminal)
        self._flags("ended", step.ended)
        if self.goals:
            self._flags("goal", step.goal)
        if (step.truncated is None) != (step.final is None):
            raise self._wrong("truncated and final must be given together, or both be None")
        if step.truncated is not None:
            self._flags("truncated", step.truncated)
            self._numbers("final", step.final, self.observation_shape)
            if (step.truncated & ~step.ended).any():
                raise self._wrong("truncated is set where ended is not")
        return step

    def flipped(self) -> tuple[int, ...]:
        """Return the opposites of the actions in the wrapped world."""
        return self.env.flipped()

    def _numbers(self, what: str, array: Any, shape: tuple[int, ...] = ()) -> None:
        self._array(what, array, "biuf", "numbers", (self.lanes, *shape))
        if not np.isfinite(array).all():
            bad = array[~np.isfinite(array)].flat[0]
            raise self._wrong(f"{what} holds {bad}; all numbers must be finite")

    def _flags(self, what: str, array: Any) -> None:
        self._array(what, array, "b", "bool", (self.lanes,))

    def _array(self, what: str, array: Any, kinds: str, meant: str, shape: tuple[int, ...]) -> None:
        is_array = isinstance(array, np.ndarray)
        if not is_array or array.dtype.kind not in kinds or array.shape != shape:
            raise self._wrong(
                f"{what} must be an array {list(shape)} of {meant}, not {_shown(array)}"
            )

    def _wrong(self, what: str) -> WorldError:
        return WorldError(f"the world {self._name!r}: {what}")


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        array: NDArray[Any] = value
        return f"an array {list(array.shape)} of {array.dtype}"
    return " ".join(f"{value!r}".split())[:80]


def checked_reward(world: str, reward: Any) -> float:
    """Return the reward of one Gymnasium step, which must be one finite number."""
    number = _number(reward)
    if number is None:
        raise WorldError(f"the world {world!r}: reward must be one number, not {_shown(reward)}")
    if not np.isfinite(number):
        raise WorldError(f"the world {world!r}: reward is {number}; it must be finite")
    return number


def checked_flag(world: str, what: str, flag: Any) -> bool:
    """Return a flag of one Gymnasium step, which must be one truth value."""
    plain = flag.item() if isinstance(flag, np.ndarray | np.generic) and flag.size == 1 else flag
    if not isinstance(plain, bool):
        raise WorldError(f"the world {world!r}: {what} must be True or False, not {_shown(flag)}")
    return plain


def _number(value: Any) -> float | None:
    """Return ``value`` as a float if it is one number; arrays of one element count as one."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.item() if value.size == 1 and value.dtype.kind in "biuf" else None
    return float(value) if isinstance(value, int | float) else None


def checked_step(world: str, returned: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Return the result of a Gymnasium ``step``, which must be five values."""
    if not isinstance(returned, tuple) or len(returned) != 5:
        raise WorldError(
            f"the world {world!r}: step must return (observation, reward, terminated, truncated, "
            f"info), not {_shown(returned)}"
        )
    return returned


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
