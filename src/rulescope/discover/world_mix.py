"""Several worlds that step as one: the worlds of a population of agents.

Observations of different sizes are padded with zeros to one shape, and where a world has fewer
actions than another, surplus actions wrap around to its first ones. So agents of different worlds
have parameters of one shape, and are updated together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rulescope import envs
from rulescope.core.arrays import Arrays, unprefix
from rulescope.discover.discovery_spec import World
from rulescope.envs.environment import Actions, Array, Step


class WorldMix:
    """The worlds of N agents with ``lanes`` lanes each; the lanes of an agent are adjacent."""

    def __init__(self, worlds: Sequence[World], lanes: int) -> None:
        self.worlds = [
            envs.make(world.environment, world.boundary, 1.0, lanes * world.agents)
            for world in worlds
        ]
        self.actions = max(env.actions for env in self.worlds)
        self.observation_shape = tuple(
            max(sides) for sides in zip(*(e.observation_shape for e in self.worlds), strict=True)
        )
        ends = np.cumsum([env.lanes for env in self.worlds])
        self._lanes = [
            slice(int(end) - e.lanes, int(end)) for e, end in zip(self.worlds, ends, strict=True)
        ]

    def reset(self, seed: int) -> Array:
        """Reset every world; return the first observations [lanes, *observation_shape]."""
        return self._padded([env.reset(seed + i) for i, env in enumerate(self.worlds)])

    def step(self, actions: Actions) -> Step:
        """Advance every lane by one of ``actions`` [lanes]."""
        steps = [
            env.step(actions[lanes] % env.actions)
            for env, lanes in zip(self.worlds, self._lanes, strict=True)
        ]
        return Step(
            observation=self._padded([step.observation for step in steps]),
            reward=np.concatenate([step.reward for step in steps]),
            terminal=np.concatenate([step.terminal for step in steps]),
            payoff=np.concatenate([step.payoff for step in steps]),
            ended=np.concatenate([step.ended for step in steps]),
        )

    def _padded(self, observations: list[Array]) -> Array:
        padded = np.zeros((self._lanes[-1].stop, *self.observation_shape), np.float32)
        for lanes, own in zip(self._lanes, observations, strict=True):
            padded[lanes, : own.shape[1], : own.shape[2]] = own
        return padded

    def scores(self, payoffs: NDArray[np.floating[Any]]) -> list[float]:
        """Return the score of each world for ``payoffs`` [..., lanes]: 0 random, 1 optimal play."""
        return [
            env.references.rate_score(float(payoffs[..., lanes].mean()))
            for env, lanes in zip(self.worlds, self._lanes, strict=True)
        ]

    def save(self) -> dict[str, NDArray[Any]]:
        """Return everything that :meth:`load` needs."""
        return {
            f"{i}/{name}": np.array(a)
            for i, env in enumerate(self.worlds)
            for name, a in env.save().items()
        }

    def load(self, state: Arrays) -> None:
        """Continue from what :meth:`save` returned."""
        for i, env in enumerate(self.worlds):
            env.load(unprefix(str(i), state))
