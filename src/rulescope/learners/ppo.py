"""PPO: after each rollout, several passes over its transitions in minibatches.

A transition whose probability has already moved by more than the clip in the direction of its
advantage adds nothing to the policy's gradient; every other one adds its advantage times the ratio
of probabilities. The advantages are estimated once, before the first pass, and normalised within
each minibatch. The value's error is not clipped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope import seeds
from rulescope.learners.actor_critic import METRICS, ActorCritic, Decisions, gae
from rulescope.learners.base import Rollout
from rulescope.learners.baselines import PPO


class Minibatch(NamedTuple):
    """R transitions of a rollout."""

    rows: Tensor
    """[R, *shape] observations"""
    actions: Tensor
    """[R]"""
    before: Tensor
    """[R] log pi(action) as it was when acting"""
    advantages: Tensor
    """[R]"""
    returns: Tensor
    """[R]"""


class PPOLearner(ActorCritic):
    """Proximal policy optimisation; it carries its parameters and the optimiser's moments."""

    metrics = (*METRICS, "clip_fraction")

    def __init__(
        self,
        config: PPO,
        observation_shape: tuple[int, ...],
        actions: int,
        seed: int,
        device: str = "cpu",
    ) -> None:
        super().__init__(config, observation_shape, actions, seed, device)
        self.config = config
        self.streams["minibatch"] = seeds.stream(seed, "minibatch")

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        """Make ``epochs`` times ``minibatches`` updates; the metrics are means over them."""
        config = self.config
        rows = self.tensor(rollout.observations).flatten(0, 1)
        values: NDArray[np.float32] = self.evaluate(rows).outputs[:, -1].cpu().numpy()
        values = values.reshape(rollout.observations.shape[:2])
        advantages = gae(rollout, values, config.discount, config.trace)
        actions = self.tensor(rollout.actions).flatten()
        logits = self.tensor(rollout.behaviour["logits"]).flatten(0, 1)
        whole = Minibatch(
            rows[: len(actions)],
            actions,
            logits.log_softmax(-1).gather(1, actions.unsqueeze(1)).squeeze(1),
            self.tensor(advantages).flatten(),
            self.tensor(advantages + values[:-1]).flatten(),
        )
        parts = min(config.minibatches, len(actions))
        seen: list[dict[str, float]] = []
        for _ in range(config.epochs):
            order = self.tensor(self.streams["minibatch"].permutation(len(actions)))
            shuffled = (column[order].tensor_split(parts) for column in whole)
            for minibatch in zip(*shuffled, strict=True):
                metrics = self._update(Minibatch(*minibatch), measure)
                seen += [metrics] if measure else []
        if not measure:
            return {}
        means = {name: float(np.mean([one[name] for one in seen])) for name in seen[0]}
        return {**means, "advantage_std": float(advantages.std())}

    def _update(self, batch: Minibatch, measure: bool) -> dict[str, float]:
        """Make one step of the optimiser; return its metrics if asked to."""
        config, advantages = self.config, batch.advantages
        if config.normalise_advantages and len(advantages) > 1:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        evaluation = self.evaluate(batch.rows)
        decisions = Decisions(evaluation.outputs, batch.actions)
        weights = clipped_weights(decisions.chosen - batch.before, advantages, config.clip)
        at_outputs = decisions.gradient(
            weights, batch.returns, config.value_coefficient, config.entropy_coefficient
        )
        norm = self.descend(evaluation, at_outputs)
        if not measure:
            return {}
        clipped = (weights == 0) & (advantages != 0)
        return {
            **decisions.losses(weights, batch.returns),
            "gradient_norm": norm,
            "clip_fraction": clipped.float().mean().item(),
        }


def clipped_weights(log_ratio: Tensor, advantages: Tensor, clip: float) -> Tensor:
    """Return minus the gradient [R] of PPO's loss at log pi(action).

    The loss is ``-min(ratio * A, clamp(ratio, 1 - clip, 1 + clip) * A)``: flat where the ratio has
    left the interval on the side that its advantage favours, and ``-ratio * A`` elsewhere.
    """
    ratio = log_ratio.exp()
    gain = ratio * advantages
    flat = ratio.clamp(1.0 - clip, 1.0 + clip) * advantages < gain
    return torch.where(flat, 0.0, gain)
