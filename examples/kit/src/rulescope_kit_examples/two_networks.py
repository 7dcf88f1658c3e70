"""A learner with torch modules and an optimiser of torch, and a history of its own."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rulescope import kit
from rulescope.core import seeds
from rulescope.learners.learner import Choice, Learner, Rollout
from rulescope.learners.plugin_rule import Setup
from rulescope_kit_examples.actor_critic_loss import actor_critic_loss


def make_network(setup: Setup, outputs: int) -> nn.Sequential:
    """Return a network with two hidden layers; random numbers come from torch's generator."""
    first, second = setup.agent.hidden
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(setup.observation_shape), first),
        nn.LayerNorm(first),
        nn.ReLU(),
        nn.Linear(first, second),
        nn.ReLU(),
        nn.Linear(second, outputs),
    )


class TwoNetworks(Learner):
    """A2C with one network for the policy and one for the value, trained by RMSprop.

    Its history is the mean square of all rewards so far, the unit in which it learns.
    """

    CARRIERS = ("recurrent", "moments", "params")
    metrics = ("loss", "unit")

    def __init__(self, setup: Setup) -> None:
        self.device = torch.device(setup.device)
        with kit.torch_random(seeds.stream(setup.seed, "network")):
            policy, value = make_network(setup, setup.actions), make_network(setup, 1)
        self.networks = nn.ModuleDict({"policy": policy, "value": value}).to(self.device)
        named = self.networks.named_parameters()
        self.optimiser = torch.optim.RMSprop(named, setup.learning_rate, centered=True)
        self.history = {"mean_square": torch.zeros(()), "rollouts": torch.zeros(())}
        self.streams = {"action": seeds.stream(setup.seed, "action")}
        self.carriers = {
            "recurrent": kit.tensors_carrier(self.history),
            "moments": kit.optimiser_carrier(self.optimiser),
            "params": kit.module_carrier(self.networks),
        }

    def act(self, observation: NDArray[np.float32]) -> Choice:
        """Sample an action for each lane's observation [N, *shape]."""
        with torch.no_grad():
            logits = self.networks["policy"](self._tensor(observation))
        return Choice(kit.sample_actions(self.streams["action"], logits), {})

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        """Make one step on the rollout, with rewards in units of their size."""
        lanes = rollout.observations.shape[:2]
        rows = self._tensor(rollout.observations).flatten(0, 1)
        logits = self.networks["policy"](rows).view(*lanes, -1)[:-1]
        seen = kit.see(rollout, logits, self.networks["value"](rows).view(lanes))
        unit = self._update_unit(seen.rewards.cpu())
        loss = actor_critic_loss(seen, seen.rewards / unit)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.networks.parameters(), 0.5)
        self.optimiser.step()
        return {"loss": loss.item(), "unit": unit} if measure else {}

    def _update_unit(self, rewards: Tensor) -> float:
        """Return the root mean square of all rewards so far, those of [S, N] included."""
        rollouts, before = self.history["rollouts"] + 1, self.history["mean_square"]
        after = before + (rewards.square().mean() - before) / rollouts
        self.history |= {"mean_square": after, "rollouts": rollouts}
        return math.sqrt(float(after)) or 1.0

    def _tensor(self, array: NDArray[np.float32]) -> Tensor:
        return torch.from_numpy(np.array(array)).to(self.device)
