"""The judge of a meta-step: a value function for every agent, learned apart from its learner.

It sees unscaled rewards and the true ends of episodes, so what counts as good does not depend on
what an agent is told. Everything here has the agents' axis N in front.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope.discover.discovery_spec import Objective
from rulescope.discover.experience import Experience
from rulescope.learners.actor_critic import generalised_advantages
from rulescope.learners.direction_clipped_adam import Moments, clipped_adam
from rulescope.learners.disco.value_estimates import normalise, update_average
from rulescope.learners.torso import Network
from rulescope.spec.baseline_config import NetworkSizes


class CriticState(NamedTuple):
    """What the critics carry from one meta-step to the next."""

    params: Tensor
    """[N, size]"""
    moments: Moments
    average: Tensor
    """[N, 3] moving average of the advantages"""


class Critic:
    """Shapes and functions of the critics of one population."""

    def __init__(self, observation_shape: tuple[int, ...], config: Objective) -> None:
        self.config = config
        hidden = (config.critic_hidden, config.critic_hidden)
        self._network = Network(observation_shape, 1, NetworkSizes(hidden=hidden))

    def fresh(self, seed: int) -> CriticState:
        """Return one critic that has seen nothing."""
        params = self._network.initial(seed)
        moments = Moments.fresh(params)._replace(updates=torch.zeros(()))
        return CriticState(params, moments, torch.tensor([0.0, 0.0, 1.0]))

    @torch.no_grad()
    def judge(self, state: CriticState, seen: Experience) -> tuple[Tensor, CriticState]:
        """Return normalised advantages [N, T, B] of ``seen``, and the critics after learning it."""
        config = self.config
        value = torch.vmap(self._value)(state.params, seen.observations)  # [N, T + 1, B]
        advantage = self._advantages(seen, value)
        aim = value[:, :-1] + advantage
        moved = [
            update_average(average, own, config.averages_decay)
            for average, own in zip(state.average, advantage, strict=True)
        ]
        average = torch.stack(moved)
        judged = torch.vmap(lambda x, a: normalise(x, a, centre=True))(advantage, average)
        params, moments = state.params, state.moments
        for _ in range(config.critic_updates):
            gradient = torch.vmap(torch.func.grad(self._loss))(params, seen.observations, aim)
            params, moments = torch.vmap(self._descend)(params, gradient, moments)
        return judged, CriticState(params, moments, average)

    def _advantages(self, seen: Experience, value: Tensor) -> Tensor:
        """Return the advantages [N, T, B] of what was done, for ``value`` [N, T + 1, B]."""

        def column(x: Tensor) -> NDArray[np.float64]:
            return x.transpose(0, 1).flatten(1).double().numpy()  # [T, N * B]

        found = generalised_advantages(
            column(seen.payoffs),
            column(seen.ended),
            column(value),
            self.config.discount,
            self.config.trace,
        )
        return torch.tensor(found).float().view(len(found), len(value), -1).transpose(0, 1)

    def _value(self, params: Tensor, observations: Tensor) -> Tensor:
        """Return the values [...] of ``observations`` [..., *shape] in the eyes of one critic."""
        leading = observations.shape[:2]
        rows = observations.flatten(0, 1)
        said = self._network.outputs(self._network.layout.views(params), rows)
        return said.view(leading)

    def _loss(self, params: Tensor, observations: Tensor, aim: Tensor) -> Tensor:
        return (self._value(params, observations)[:-1] - aim).square().mean()

    def _descend(
        self, params: Tensor, gradient: Tensor, moments: Moments
    ) -> tuple[Tensor, Moments]:
        return clipped_adam(params, gradient, moments, self.config.critic_rate)
