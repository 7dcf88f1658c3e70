"""What A2C, PPO and A2C-PopArt share: one network with a policy and a value, and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope import seeds
from rulescope.learners.base import Carrier, Choice, Learner, Rollout
from rulescope.learners.baselines import A2C, PPO, A2CPopArt
from rulescope.learners.optimiser import Adam, flat_carrier
from rulescope.learners.torso import Evaluation, Network

METRICS = ("loss_policy", "loss_value", "entropy", "advantage_std", "gradient_norm")


class ActorCritic(Learner):
    """Acts by sampling from its policy. The network's outputs are [logits of A actions, value]."""

    def __init__(
        self,
        config: A2C | PPO | A2CPopArt,
        observation_shape: tuple[int, ...],
        actions: int,
        seed: int,
        device: str = "cpu",
    ) -> None:
        self.device = torch.device(device)
        self.network = Network(observation_shape, actions + 1, config.agent)
        self.params = self.network.initial(seed).to(self.device)
        self.views = self.network.layout.views(self.params)
        self.gradient = torch.zeros_like(self.params)
        self._into = self.network.layout.views(self.gradient)
        self.optimiser = Adam(self.params, config.learning_rate, config.max_norm)
        self.streams = {"action": seeds.stream(seed, "action")}
        self.carriers: dict[str, Carrier] = {
            "moments": self.optimiser.carrier,
            "params": flat_carrier(self.params),
        }

    def act(self, observation: NDArray[np.float32]) -> Choice:
        """Sample from the policy: the largest of logits plus Gumbel noise."""
        outputs = self.network.outputs(self.views, self.tensor(observation)).cpu().numpy()
        logits = outputs[:, :-1]
        noise = self.streams["action"].gumbel(size=logits.shape)
        return Choice((logits + noise).argmax(axis=1), {"logits": logits})

    def evaluate(self, rows: Tensor) -> Evaluation:
        """Return the network with the present parameters on ``rows`` [R, *shape]."""
        return Evaluation(self.network, self.views, rows)

    def descend(self, evaluation: Evaluation, at_outputs: Tensor) -> float:
        """Make one step of the optimiser; rows of ``evaluation`` beyond ``at_outputs`` count 0.

        Returns the norm of the gradient.
        """
        beyond = len(evaluation.outputs) - len(at_outputs)
        if beyond:
            at_outputs = torch.nn.functional.pad(at_outputs, (0, 0, 0, beyond))
        evaluation.gradient_(at_outputs, self._into)
        return self.optimiser.step_(self.gradient)

    def tensor(self, array: NDArray[Any]) -> Tensor:
        """Return a copy on the learner's device; floating point numbers become float32."""
        kind = torch.float32 if array.dtype.kind == "f" else None
        return torch.tensor(array, dtype=kind, device=self.device)


def gae(
    rollout: Rollout, values: NDArray[np.floating[Any]], discount: float, trace: float
) -> NDArray[np.float64]:
    """Return generalised advantage estimates [S, N] for ``values`` [S + 1, N].

    The value after the last step is the bootstrap. A terminal cuts both the value of what follows
    (it belongs to another episode) and the trace.
    """
    worth = values.astype(np.float64)
    onward = discount * (1.0 - rollout.terminals)
    surprise = rollout.rewards + onward * worth[1:] - worth[:-1]
    advantages = np.empty_like(surprise)
    running = np.zeros(surprise.shape[1])
    for t in reversed(range(len(surprise))):
        running = surprise[t] + trace * onward[t] * running
        advantages[t] = running
    return advantages


class Decisions:
    """What the network says about R decisions; losses and their gradient in closed form.

    The loss is ``-mean(weight * log pi(action)) + c mean((value - target)^2) - d mean(entropy)``,
    where weights and targets are constants.
    """

    def __init__(self, outputs: Tensor, actions: Tensor) -> None:
        """``outputs`` [R, A + 1] are logits and value, ``actions`` [R] those that were taken."""
        self._logs = outputs[:, :-1].log_softmax(-1)
        self._chances = self._logs.exp()
        self._entropy = -(self._chances * self._logs).sum(-1, keepdim=True)
        self._actions = actions.unsqueeze(1)
        self.chosen = self._logs.gather(1, self._actions).squeeze(1)
        """[R] log pi(action)"""
        self.values = outputs[:, -1]
        """[R]"""

    def gradient(self, weights: Tensor, targets: Tensor, value: float, entropy: float) -> Tensor:
        """Return the loss's gradient at the outputs [R, A + 1]; ``weights``, ``targets`` are [R].

        ``value`` and ``entropy`` are the coefficients c and d.
        """
        pull = weights.unsqueeze(1)
        at_logits = self._chances * (pull + entropy * (self._logs + self._entropy))
        at_logits.scatter_add_(1, self._actions, -pull)
        at_value = (2.0 * value) * (self.values - targets)
        return torch.cat([at_logits, at_value.unsqueeze(1)], dim=1).div_(len(targets))

    def losses(self, weights: Tensor, targets: Tensor) -> dict[str, float]:
        """Return the three means, for the log."""
        return {
            "loss_policy": -(weights * self.chosen).mean().item(),
            "loss_value": (self.values - targets).square().mean().item(),
            "entropy": self._entropy.mean().item(),
        }
