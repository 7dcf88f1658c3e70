"""A learned optimiser as a ``torch.optim.Optimizer``; what it carries is the history."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Optimizer

from rulescope import kit
from rulescope.core import arrays, seeds
from rulescope.learners.learner import Choice, Learner, Rollout
from rulescope.learners.plugin_rule import Setup
from rulescope.rules.rule_weights import RuleWeights
from rulescope_kit_examples.actor_critic_loss import actor_critic_loss

DECAYS = (0.5, 0.9, 0.99)
"""Of the averages of the gradient that are inputs of the network."""
WEIGHTS = {
    "hidden": np.array(
        [[0.2, 0.6, 0.3], [-0.3, 0.1, 0.8], [0.5, 0.5, -0.2], [0.1, 0.9, 0.1]], np.float32
    ),
    "output": np.array([0.5, 0.2, 0.2, 0.6], np.float32),
}
"""Weights of the network. These are typed by hand; a trained rule would read its own from a file
of its package, with :func:`rulescope.core.arrays.read`."""


class SmallOptimiser(Optimizer):
    """For each parameter, a small network turns averages of its gradient into an update.

    All it remembers is in ``state``: the averages [3, *shape] and that of the squared gradient.
    """

    def __init__(
        self, params: Iterable[tuple[str, Tensor]], lr: float, weights: dict[str, Tensor]
    ) -> None:
        self.weights = weights
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        assert closure is None, "the loss is evaluated by the caller"
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    param -= group["lr"] * self._direction(self.state[param], param.grad)

    def _direction(self, state: dict[str, Any], gradient: Tensor) -> Tensor:
        """Return the update of a parameter, of its shape, and store the new averages."""
        if not state:
            state["averages"] = torch.zeros(len(DECAYS), *gradient.shape).to(gradient)
            state["square"] = torch.zeros_like(gradient)
        for average, decay in zip(state["averages"], DECAYS, strict=True):
            average.lerp_(gradient, 1.0 - decay)
        state["square"].lerp_(gradient.square(), 0.01)
        inputs = state["averages"] / (state["square"].sqrt() + 1e-6)
        hidden = torch.tensordot(self.weights["hidden"], inputs, dims=1).tanh()
        update: Tensor = torch.tensordot(self.weights["output"], hidden, dims=1)
        return update


class LearnedOptimiser(Learner):
    """A2C's loss, minimised by :class:`SmallOptimiser`, whose averages are ``recurrent``."""

    CARRIERS = ("recurrent", "params")
    metrics = ("loss",)

    def __init__(self, setup: Setup) -> None:
        self.device = torch.device(setup.device)
        width, _ = setup.agent.hidden
        with kit.torch_random(seeds.stream(setup.seed, "network")):
            self.network = nn.Sequential(
                nn.Linear(math.prod(setup.observation_shape), width),
                nn.ReLU(),
                nn.Linear(width, setup.actions + 1),
            ).to(self.device)
        self.weights = {name: self._tensor(each) for name, each in WEIGHTS.items()}
        named = self.network.named_parameters()
        self.optimiser = SmallOptimiser(named, setup.learning_rate, self.weights)
        content = arrays.digest(WEIGHTS)
        self.rule = RuleWeights("learned-optimiser", MappingProxyType(WEIGHTS), content, content)
        self.streams = {"action": seeds.stream(setup.seed, "action")}
        self.carriers = {
            "recurrent": kit.optimiser_carrier(self.optimiser),
            "params": kit.module_carrier(self.network),
        }

    def rule_digest(self) -> str:
        """Return the digest of the weights as they are in memory."""
        return arrays.digest({name: each.cpu().numpy() for name, each in self.weights.items()})

    def act(self, observation: NDArray[np.float32]) -> Choice:
        """Sample an action for each lane's observation [N, *shape]."""
        with torch.no_grad():
            outputs = self.network(self._tensor(observation).flatten(1))
        return Choice(kit.sample_actions(self.streams["action"], outputs[:, :-1]), {})

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        """Make one step of the learned optimiser on the rollout."""
        outputs = self.network(self._tensor(rollout.observations).flatten(2))
        seen = kit.see(rollout, outputs[:-1, :, :-1], outputs[..., -1])
        loss = actor_critic_loss(seen, seen.rewards)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        return {"loss": loss.item()} if measure else {}

    def _tensor(self, array: NDArray[np.float32]) -> Tensor:
        return torch.from_numpy(np.array(array)).to(self.device)
