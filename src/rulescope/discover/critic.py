"""Critics of the objective: a value function for every agent, separate from its learner.

They learn from unscaled rewards and the true ends of episodes, so the objective does not depend on
how an agent's rewards are scaled or its terminals masked. All arrays have the agents' axis N first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope.discover.discovery_spec import Objective
from rulescope.discover.experience import Experience
from rulescope.learners.a2c import generalised_advantages
from rulescope.learners.adam import Moments, clipped_adam
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.learners.disco.value_estimates import normalise, update_average
from rulescope.learners.torso import Network


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

    def initial(self, seed: int) -> CriticState:
        """Return the initial state of one critic, without the axis N."""
        params = self._network.initial(seed)
        moments = Moments.fresh(params)._replace(updates=torch.zeros(()))
        return CriticState(params, moments, torch.tensor([0.0, 0.0, 1.0]))

    @torch.no_grad()
    def advantages(self, state: CriticState, experience: Experience) -> tuple[Tensor, CriticState]:
        """Return normalised advantages [N, T, B], and the critics after learning from them."""
        config = self.config
        value = torch.vmap(self._value)(state.params, experience.observations)  # [N, T + 1, B]
        advantage = self._generalised_advantages(experience, value)
        target = value[:, :-1] + advantage
        average = torch.stack(
            [
                update_average(average, own, config.averages_decay)
                for average, own in zip(state.average, advantage, strict=True)
            ]
        )
        normalised = torch.vmap(lambda x, a: normalise(x, a, centre=True))(advantage, average)
        params, moments = state.params, state.moments
        gradient_of = torch.vmap(torch.func.grad(self._loss))
        for _ in range(config.critic_updates):
            gradient = gradient_of(params, experience.observations, target)
            params, moments = torch.vmap(self._descend)(params, gradient, moments)
        return normalised, CriticState(params, moments, average)

    def _generalised_advantages(self, experience: Experience, value: Tensor) -> Tensor:
        """Return the advantages [N, T, B] of the actions taken, for ``value`` [N, T + 1, B]."""

        def column(x: Tensor) -> NDArray[np.float64]:
            return x.transpose(0, 1).flatten(1).double().cpu().numpy()  # [T, N * B]

        found = generalised_advantages(
            column(experience.payoffs),
            column(experience.ended),
            column(value),
            self.config.discount,
            self.config.trace,
        )
        advantages = torch.tensor(found, dtype=torch.float32, device=value.device)
        return advantages.view(len(found), len(value), -1).transpose(0, 1)

    def _value(self, params: Tensor, observations: Tensor) -> Tensor:
        """Return one critic's values [T, B] of ``observations`` [T, B, *observation_shape]."""
        rows = observations.flatten(0, 1)
        values = self._network.outputs(self._network.layout.views(params), rows)
        return values.view(observations.shape[:2])

    def _loss(self, params: Tensor, observations: Tensor, target: Tensor) -> Tensor:
        return (self._value(params, observations)[:-1] - target).square().mean()

    def _descend(
        self, params: Tensor, gradient: Tensor, moments: Moments
    ) -> tuple[Tensor, Moments]:
        return clipped_adam(params, gradient, moments, self.config.critic_rate)
