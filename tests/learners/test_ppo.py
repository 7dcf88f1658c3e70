from __future__ import annotations

import numpy as np
import pytest
import torch

from learners.baseline_cases import LITTLE, SMALL, catch_score, factory, in_channels
from rulescope.learners.baseline_config import PPO, VARIANTS, NetworkSizes
from rulescope.learners.learner import Rollout
from rulescope.learners.learner_conformance import check_learner
from rulescope.learners.ppo import Minibatch, PPOLearner, clipped_policy_weights, normalised

pytestmark = pytest.mark.usefixtures("deterministic")


def test_conforms() -> None:
    check_learner(factory(SMALL["ppo"]), (4, 4), 3, steps=7)


def test_conforms_with_channels_and_minibatches_of_one() -> None:
    config = in_channels(PPO(minibatches=50))
    check_learner(factory(config, (2, 5, 4)), (2, 5, 4), 3, steps=7, lanes=1, rollouts=3)


def test_carriers_are_those_of_the_configuration() -> None:
    assert set(factory(PPO(agent=LITTLE))().carriers) == set(PPO.CARRIERS)


def test_published_settings() -> None:
    config = VARIANTS["ppo"]
    assert isinstance(config, PPO)
    assert (config.learning_rate, config.clip) == (3e-4, 0.2)
    assert (config.epochs, config.minibatches) == (4, 4)
    assert (config.discount, config.trace, config.max_norm) == (0.997, 0.95, 0.5)
    assert (config.value_coefficient, config.entropy_coefficient) == (0.5, 0.01)


def test_weights_are_the_gradient_of_the_clipped_objective() -> None:
    log_ratio = torch.linspace(-0.5, 0.5, 21, dtype=torch.float64).repeat(3)
    log_ratio.requires_grad_()
    advantages = torch.tensor([-1.5, 0.0, 2.0], dtype=torch.float64).repeat_interleave(21)
    ratio = log_ratio.exp()
    objective = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
    (expected,) = torch.autograd.grad(objective.sum(), log_ratio)
    found = clipped_policy_weights(log_ratio.detach().numpy(), advantages.numpy(), clip=0.2)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-12, atol=1e-12)
    assert ((found == 0) & (advantages.numpy() != 0)).sum() > 5


def test_advantages_are_normalised_as_by_torch() -> None:
    advantages = torch.tensor([3.0, -1.0, 0.5, 7.0], dtype=torch.float64)
    expected = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    np.testing.assert_allclose(normalised(advantages.numpy()), expected.numpy(), rtol=1e-12)


class Watched(PPOLearner):
    """Remembers its minibatches."""

    def _update(self, batch: Minibatch, measure: bool) -> dict[str, float]:
        self.seen = [*getattr(self, "seen", []), batch]
        return super()._update(batch, measure)


def test_every_epoch_uses_every_transition_once() -> None:
    learner = Watched(PPO(agent=LITTLE), (1,), 3, seed=0)
    steps, lanes = 29, 2
    number = np.arange((steps + 1) * lanes, dtype=np.float32).reshape(steps + 1, lanes, 1)
    choices = [learner.act(row) for row in number[:-1]]
    rollout = Rollout(
        observations=number,
        actions=np.stack([choice.actions for choice in choices]),
        rewards=np.ones((steps, lanes), np.float32),
        terminals=np.zeros((steps, lanes), np.bool_),
        began=np.zeros(lanes, np.bool_),
        behaviour={"logits": np.stack([choice.behaviour["logits"] for choice in choices])},
    )
    learner.learn(rollout, measure=False)
    assert [len(batch.rows) for batch in learner.seen] == [15, 15, 14, 14] * 4
    epochs = [
        torch.cat([batch.rows for batch in learner.seen[k : k + 4]]).flatten().tolist()
        for k in range(0, 16, 4)
    ]
    assert all(sorted(epoch) == list(range(58)) for epoch in epochs)
    assert epochs[0] != epochs[1]
    taken = rollout.actions.flatten()
    for batch in learner.seen:
        assert batch.actions.tolist() == taken[batch.rows.flatten().long().numpy()].tolist()


def test_learns_catch() -> None:
    config = PPO(agent=NetworkSizes(hidden=(64, 64)), learning_rate=1e-3)
    assert catch_score(config, iterations=120) > 0.8
