"""Experience of a population: fresh rollouts, and the replay that each agent learns from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core.arrays import Arrays


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
