"""A2C: one optimiser step on all transitions of each rollout.

The loss is ``-mean(A log pi(a)) + 0.5 mean((v - R)^2) - 0.01 mean(H)`` with generalised advantages
A (not normalised) and returns R = A + v. Policy and value share the torso, so the value dominates
the clipped gradient at large rewards, and the entropy at small ones: A2C depends on the reward
scale, which is the point of the comparison.
"""

from __future__ import annotations

from rulescope.learners.actor_critic import METRICS, ActorCritic, Decisions, gae, rows
from rulescope.learners.baseline_config import A2C
from rulescope.learners.learner import Rollout


class A2CLearner(ActorCritic):
    """Advantage actor-critic; its carriers are the parameters and the optimiser's moments."""

    metrics = METRICS

    def __init__(
        self,
        config: A2C,
        observation_shape: tuple[int, ...],
        actions: int,
        seed: int,
        device: str = "cpu",
    ) -> None:
        super().__init__(config, observation_shape, actions, seed, device)
        self.config = config

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        """Update once from all S x N transitions; the last observations are the bootstrap."""
        config = self.config
        evaluation = self.evaluate(self.tensor(rows(rollout)))
        values = evaluation.output_array[:, -1].reshape(rollout.observations.shape[:2])
        advantages = gae(rollout, values, config.discount, config.trace)
        weights, returns = advantages.ravel(), (advantages + values[:-1]).ravel()
        decisions = Decisions(evaluation.output_array[: len(weights)], rollout.actions.ravel())
        metrics = self.descend(evaluation, decisions, weights, returns, measure)
        return {**metrics, "advantage_std": float(advantages.std())} if measure else {}
