"""A2C: after each rollout, one step on all of its transitions.

The loss is ``-mean(A log pi(a)) + 0.5 mean((v - R)^2) - 0.01 mean(H)`` with generalised advantages
A (not normalised) and returns R = A + v. Policy and value share the torso, so at large rewards the
value's part of the clipped gradient leaves nothing to the policy, and at small ones the entropy
does: that A2C has a scale of its own is the point of the comparison.
"""

from __future__ import annotations

from rulescope.learners.actor_critic import METRICS, ActorCritic, Decisions, gae, rows
from rulescope.learners.learner import Rollout
from rulescope.spec.baseline_config import A2C


class A2CLearner(ActorCritic):
    """Advantage actor-critic; it carries its parameters and the optimiser's moments."""

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
        """Make one update from all S x N transitions; the last observations are the bootstrap."""
        config = self.config
        evaluation = self.evaluate(self.tensor(rows(rollout)))
        values = evaluation.said[:, -1].reshape(rollout.observations.shape[:2])
        advantages = gae(rollout, values, config.discount, config.trace)
        weights, returns = advantages.ravel(), (advantages + values[:-1]).ravel()
        decisions = Decisions(evaluation.said[: len(weights)], rollout.actions.ravel())
        metrics = self.descend(evaluation, decisions, weights, returns, measure)
        return {**metrics, "advantage_std": float(advantages.std())} if measure else {}
