"""Experience of a population: its worlds, fresh rollouts, and the replay of each agent.

The worlds step as one. Observations of different sizes are padded with zeros to one shape, and
where a world has fewer actions than another, surplus actions wrap around to its first ones. So
agents of different worlds have parameters of one shape, and are updated together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from rulescope import envs
from rulescope.core.arrays import Arrays, unprefix
from rulescope.discover.discovery_spec import World
from rulescope.envs.environment import Actions, Array, Step


class Experience(NamedTuple):
    """B trajectories of T transitions for each of N agents."""

    observations: Tensor
    """[N, T + 1, B, *observation_shape]"""
    actions: Tensor
    """[N, T, B] int64"""
    rewards: Tensor
    """[N, T, B] as the learner receives them: scaled"""
    terminals: Tensor
    """[N, T, B] as the learner receives them: 1.0 where an episode ended, unless masked"""
    behaviour: Tensor
    """[N, T, B, A] logits of the policy that acted"""
    payoffs: Tensor
    """[N, T, B] unscaled rewards"""
    ended: Tensor
    """[N, T, B] 1.0 where an episode ended in the world"""


class PopulationReplay:
    """The latest ``capacity`` trajectories of each of N agents, first in first out."""

    def __init__(self, like: Experience, capacity: int) -> None:
        """``like`` has all shapes but the number of trajectories."""
        self.capacity = capacity
        self._columns = [x.new_zeros(len(x), x.shape[1], capacity, *x.shape[3:]) for x in like]
        self._device = like.actions.device
        self.appended = np.zeros(len(like.actions), dtype=np.int64)
        """[N] trajectories that each agent has appended since its start"""

    def append(self, experience: Experience) -> None:
        """Append the trajectories of every agent."""
        width = experience.actions.shape[2]
        agents = torch.arange(len(self.appended), device=self._device).unsqueeze(1)
        places = (self.appended[:, None] + np.arange(width)) % self.capacity
        slots = torch.tensor(places, device=self._device)
        for column, new in zip(self._columns, experience, strict=True):
            column.transpose(1, 2)[agents, slots] = new.transpose(1, 2)
        self.appended += width

    def sample(self, stream: Generator, batch: int) -> Experience:
        """Return ``batch`` trajectories of each agent, drawn uniformly with replacement."""
        filled = np.minimum(self.appended, self.capacity)[:, None]
        places = (stream.random((len(filled), batch)) * filled).astype(np.int64)
        slots = torch.tensor(places, device=self._device)
        agents = torch.arange(len(filled), device=self._device).unsqueeze(1)
        return Experience(
            *(column.transpose(1, 2)[agents, slots].transpose(1, 2) for column in self._columns)
        )

    def clear(self, agent: int) -> None:
        """Remove the trajectories of ``agent``."""
        self.appended[agent] = 0

    def save(self) -> dict[str, NDArray[np.generic]]:
        """Return everything that :meth:`load` needs."""
        named = zip(Experience._fields, self._columns, strict=True)
        return {name: column.cpu().numpy().copy() for name, column in named} | {
            "appended": self.appended.copy()
        }

    def load(self, state: Arrays) -> None:
        """Continue from what :meth:`save` returned."""
        for name, column in zip(Experience._fields, self._columns, strict=True):
            column.copy_(torch.tensor(state[name]))
        self.appended = np.array(state["appended"])


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
