"""Wrappers that change what the learner observes of rewards and episode ends.

Each one replaces ``reward`` or ``terminal``; the observation, ``payoff``, ``ended`` and the
references of the world are unchanged.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from rulescope.envs.environment import Actions, Array, Environment, State, Step


class Wrapper(Environment):
    """An environment around an environment; subclasses define :meth:`convert_step`."""

    def __init__(self, env: Environment) -> None:
        self.env = env
        self.lanes = env.lanes
        self.actions = env.actions
        self.observation_shape = env.observation_shape
        self.references = env.references
        self.goals = env.goals

    @abstractmethod
    def convert_step(self, step: Step) -> Step:
        """Return ``step`` as the learner observes it."""

    def reset(self, seed: int) -> Array:
        """Start the wrapped world anew."""
        return self.env.reset(seed)

    def step(self, actions: Actions) -> Step:
        """Advance the wrapped world and convert its step."""
        return self.convert_step(self.env.step(actions))

    def save(self) -> State:
        """Return the state of the wrapped world."""
        return self.env.save()

    def load(self, state: State) -> None:
        """Restore the wrapped world."""
        self.env.load(state)


class Scaled(Wrapper):
    """Reports ``payoff * scale`` as the reward."""

    def __init__(self, env: Environment, scale: float) -> None:
        super().__init__(env)
        if not (math.isfinite(scale) and scale > 0.0):
            raise ValueError(f"scale must be positive and finite, not {scale}")
        self.scale = scale

    def convert_step(self, step: Step) -> Step:
        """Replace the reward; the product is computed in float64 and rounded once."""
        return step._replace(reward=(step.payoff * self.scale).astype(np.float32))


class Masked(Wrapper):
    """Never reports an episode end."""

    def convert_step(self, step: Step) -> Step:
        """Replace the terminal flags by False."""
        return step._replace(terminal=np.zeros(self.lanes, np.bool_))


class CountingWrapper(Wrapper):
    """A wrapper that counts the steps of its lanes, as part of its state."""

    COUNTER: str
    """Name of the count in the state."""
    MEANING: str
    """Description of the wrapper, for the error message about a state of another one."""

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self._steps = 0

    def save(self) -> State:
        """Return the state of the wrapped world and the count."""
        return {**super().save(), self.COUNTER: np.array(self._steps)}

    def load(self, state: State) -> None:
        """Restore the wrapped world and the count."""
        inner = dict(state)
        try:
            steps = inner.pop(self.COUNTER)
        except KeyError:
            raise ValueError(f"not a state of {self.MEANING}: no {self.COUNTER!r}") from None
        super().load(inner)
        self._count(int(np.asarray(steps, np.int64)))

    def _count(self, steps: int) -> None:
        self._steps = steps


class Synthetic(CountingWrapper):
    """Reports an episode end at every ``interval``-th step, independently of the world.

    Steps are counted from the reset of the environment, and a true episode end does not restart
    the count: the flags are set at steps ``interval``, ``2 * interval``, ... of every lane.
    """

    COUNTER = "synthetic.steps"
    MEANING = "synthetic terminals"

    def __init__(self, env: Environment, interval: int) -> None:
        super().__init__(env)
        if interval < 1:
            raise ValueError(f"interval must be at least 1, not {interval}")
        self.interval = interval

    def reset(self, seed: int) -> Array:
        """Start the wrapped world and the count anew."""
        self._count(0)
        return super().reset(seed)

    def convert_step(self, step: Step) -> Step:
        """Replace the terminal flags by those of the count."""
        self._count(self._steps + 1)
        return step._replace(terminal=np.full(self.lanes, self._steps % self.interval == 0))
