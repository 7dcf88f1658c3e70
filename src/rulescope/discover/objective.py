"""The meta-loss: how good each agent's policy is after learning, and what the rule's targets cost.

Differentiable in the agents' new parameters and in what the rule emitted, and through both of them
in the rule. All functions have the agents' axis N in front and return one number for each agent.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rulescope.discover.discovery_spec import Objective
from rulescope.discover.experience import Experience
from rulescope.discover.population import Emitted
from rulescope.learners.disco.agent_network import Agent
from rulescope.learners.disco.losses import kl


class Judgement(NamedTuple):
    """The parts of the meta-loss, each [N]."""

    policy: Tensor
    """Mean of -log policy(action) * normalised advantage"""
    entropy: Tensor
    """Of the policy"""
    prediction_entropy: Tensor
    """Of y and of z for the action taken, added"""
    target_size: Tensor
    """Squared mean logits of the three targets, added"""
    target_divergence: Tensor
    """KL(slow policy || policy target)"""

    def total(self, config: Objective) -> Tensor:
        """Return the meta-loss [N]."""
        return (
            self.policy
            - config.entropy * self.entropy
            - config.prediction_entropy * self.prediction_entropy
            + config.target_size * self.target_size
            + config.target_divergence * self.target_divergence
        )


def judge(
    agent: Agent, params: Tensor, seen: Experience, advantages: Tensor, emitted: list[Emitted]
) -> Judgement:
    """Judge ``params`` [N, size] on fresh experience with ``advantages`` [N, T, B]."""

    def one(
        flat: Tensor, observations: Tensor, actions: Tensor, worth: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        said = agent.outputs(agent.layout.views(flat), observations[:-1].flatten(0, 1))
        taken = actions.flatten()
        log_policy = said.logits.log_softmax(-1)
        chosen = log_policy.gather(-1, taken.unsqueeze(-1)).squeeze(-1)
        z = said.z.take_along_dim(taken.view(-1, 1, 1), 1).squeeze(1)
        policy = -(chosen * worth.flatten()).mean()
        return policy, entropy(said.logits), entropy(said.y) + entropy(z)

    policy, of_policy, of_predictions = torch.vmap(one)(
        params, seen.observations, seen.actions, advantages
    )
    return Judgement(
        policy=policy,
        entropy=of_policy,
        prediction_entropy=of_predictions,
        target_size=_mean([_size(told) for told in emitted]),
        target_divergence=_mean([_divergence(told) for told in emitted]),
    )


def entropy(logits: Tensor) -> Tensor:
    """Return the mean entropy of the distributions that ``logits`` [..., K] stand for."""
    log = logits.log_softmax(-1)
    return -(log.exp() * log).sum(-1).mean()


def _size(told: Emitted) -> Tensor:
    return sum(
        (logits.mean((1, 2, 3)).square() for logits in (told.policy, told.y, told.z)),
        start=torch.zeros(()),
    )


def _divergence(told: Emitted) -> Tensor:
    return kl((told.slow + 1e-8).log(), told.policy).mean((1, 2))


def _mean(items: list[Tensor]) -> Tensor:
    return torch.stack(items).mean(0)
