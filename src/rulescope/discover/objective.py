"""The meta-loss: quality of each agent's policy after learning, and regularisers of the targets.

Differentiable in the agents' new parameters and in the targets that the rule emitted, and through
both of them in the rule. All arrays have the agents' axis N first.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rulescope.discover.discovery_spec import Objective
from rulescope.discover.experience import Experience
from rulescope.discover.population import EmittedTargets
from rulescope.learners.disco.agent_network import Agent
from rulescope.learners.disco.losses import kl


class MetaLossTerms(NamedTuple):
    """The terms of the meta-loss, each [N]."""

    policy: Tensor
    """Mean of -log policy(action) * normalised advantage"""
    entropy: Tensor
    """Of the policy"""
    prediction_entropy: Tensor
    """Sum of those of y, and of z for the action taken"""
    target_size: Tensor
    """Sum of the squared mean logits of the three targets"""
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


def meta_loss_terms(
    agent: Agent,
    params: Tensor,
    experience: Experience,
    advantages: Tensor,
    emitted: list[EmittedTargets],
) -> MetaLossTerms:
    """Evaluate ``params`` [N, size] on fresh experience with ``advantages`` [N, T, B].

    ``emitted`` are the targets of each update that led to ``params``.
    """

    def of_agent(
        flat: Tensor, observations: Tensor, actions: Tensor, advantages: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        outputs = agent.outputs(agent.layout.views(flat), observations[:-1].flatten(0, 1))
        taken = actions.flatten()
        log_policy = outputs.logits.log_softmax(-1)
        log_taken = log_policy.gather(-1, taken.unsqueeze(-1)).squeeze(-1)
        z = outputs.z.take_along_dim(taken.view(-1, 1, 1), 1).squeeze(1)
        policy = -(log_taken * advantages.flatten()).mean()
        return policy, mean_entropy(outputs.logits), mean_entropy(outputs.y) + mean_entropy(z)

    policy, entropy, prediction_entropy = torch.vmap(of_agent)(
        params, experience.observations, experience.actions, advantages
    )
    return MetaLossTerms(
        policy=policy,
        entropy=entropy,
        prediction_entropy=prediction_entropy,
        target_size=torch.stack([_size(targets) for targets in emitted]).mean(0),
        target_divergence=torch.stack([_divergence(targets) for targets in emitted]).mean(0),
    )


def mean_entropy(logits: Tensor) -> Tensor:
    """Return the mean entropy of the distributions with ``logits`` [..., K]."""
    log = logits.log_softmax(-1)
    return -(log.exp() * log).sum(-1).mean()


def _size(targets: EmittedTargets) -> Tensor:
    return sum(
        (logits.mean((1, 2, 3)).square() for logits in (targets.policy, targets.y, targets.z)),
        start=torch.zeros(()),
    )


def _divergence(targets: EmittedTargets) -> Tensor:
    return kl((targets.slow + 1e-8).log(), targets.policy).mean((1, 2))
