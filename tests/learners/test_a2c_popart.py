from __future__ import annotations

import numpy as np
import pytest
import torch

from learners.baseline_cases import LITTLE, SMALL, catch_score, factory, in_channels
from rulescope.learners.a2c_popart import Moments, PopArtLearner
from rulescope.learners.baseline_config import VARIANTS, A2CPopArt, NetworkSizes
from rulescope.learners.learner import Rollout
from rulescope.learners.learner_conformance import check_learner

pytestmark = pytest.mark.usefixtures("deterministic")


def test_conforms() -> None:
    check_learner(factory(SMALL["a2c-popart"]), (4, 4), 3, steps=7)


def test_conforms_with_channels() -> None:
    config = in_channels(A2CPopArt(advantages="normalised"))
    check_learner(factory(config, (2, 5, 4)), (2, 5, 4), 3, steps=7, lanes=3, rollouts=3)


def test_carriers_are_those_of_the_configuration() -> None:
    assert set(factory(A2CPopArt(agent=LITTLE))().carriers) == set(A2CPopArt.CARRIERS)


def test_published_settings() -> None:
    config = VARIANTS["a2c-popart"]
    assert isinstance(config, A2CPopArt)
    assert (config.step, config.floor, config.learning_rate) == (0.01, 1e-4, 7e-4)


def values(learner: PopArtLearner, rows: torch.Tensor) -> torch.Tensor:
    outputs = learner.network.outputs(learner.views, rows)[:, -1].double()
    return outputs * learner.averages.scale(learner.config.floor) + learner.averages.mean


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_moving_the_moments_preserves_values_and_policy(scale: float) -> None:
    learner = PopArtLearner(A2CPopArt(agent=LITTLE, step=0.5), (3, 3), 3, seed=0)
    rng = np.random.default_rng(0)
    rows = torch.tensor(rng.standard_normal((20, 3, 3)), dtype=torch.float32)
    for _ in range(30):
        before, policy = values(learner, rows), learner.network.outputs(learner.views, rows)
        returns = scale * (2.0 + rng.standard_normal((7, 2)))
        learner.move(returns)
        unit = learner.averages.scale(learner.config.floor)
        torch.testing.assert_close(values(learner, rows), before, rtol=1e-5, atol=1e-5 * unit)
        after = learner.network.outputs(learner.views, rows)
        assert torch.equal(after[:, :-1], policy[:, :-1])
    assert learner.averages.mean == pytest.approx(2.0 * scale, rel=0.3)
    assert learner.averages.scale(1e-9) == pytest.approx(scale, rel=0.6)


def test_moments_move_by_the_step() -> None:
    moved = Moments(0.0, 1.0).toward(np.array([[1.0, 3.0]]), step=0.01)
    assert moved == pytest.approx((0.02, 0.99 + 0.05))


def test_the_scale_never_falls_below_the_floor() -> None:
    assert Moments(2.0, 4.0).scale(1e-4) == 1e-4
    assert Moments(2.0, 4.0 - 1e-9).scale(1e-4) == 1e-4  # rounding may make a variance negative
    learner = PopArtLearner(A2CPopArt(agent=LITTLE, step=1.0), (3, 3), 3, seed=0)
    learner.move(np.zeros((4, 2)))
    assert learner.averages.scale(learner.config.floor) == 1e-4
    assert bool(learner.params.isfinite().all())


def test_the_update_goes_through_the_rescaled_head() -> None:
    learner = PopArtLearner(A2CPopArt(agent=LITTLE, learning_rate=0.01), (3, 3), 3, seed=2)
    rng = np.random.default_rng(1)
    rollout = Rollout(
        observations=rng.standard_normal((5, 2, 3, 3)).astype(np.float32),
        actions=rng.integers(3, size=(4, 2)),
        rewards=50.0 * rng.standard_normal((4, 2)).astype(np.float32),
        terminals=np.ones((4, 2), np.bool_),  # so that the return is the reward
        began=np.zeros(2, np.bool_),
        behaviour={},
    )
    rows = torch.tensor(rollout.observations[:-1]).flatten(0, 1)
    raw = values(learner, rows)
    twin = PopArtLearner(learner.config, (3, 3), 3, seed=2)
    twin.move(rollout.rewards.astype(np.float64))
    flat = torch.nn.Parameter(twin.params.clone())
    params = twin.network.layout.views(flat)
    hidden = rows.flatten(1)
    for layer in ("torso.0", "torso.1"):
        hidden = (hidden @ params[f"{layer}.w"] + params[f"{layer}.b"]).relu()
    outputs = hidden @ params["head.w"] + params["head.b"]
    rewards = torch.tensor(rollout.rewards).flatten()
    mean, scale = twin.averages.mean, twin.averages.scale(1e-4)
    logs = outputs[:, :-1].log_softmax(-1)
    chosen = logs.gather(1, torch.tensor(rollout.actions).view(-1, 1)).squeeze(1)
    loss = -(chosen * (rewards - raw.float())).mean() + 0.01 * (logs.exp() * logs).sum(-1).mean()
    loss = loss + 0.5 * (outputs[:, -1] - (rewards - mean) / scale).square().mean()
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_([flat], 0.5)
    torch.optim.Adam([flat], lr=0.01).step()

    metrics = learner.learn(rollout, measure=True)
    torch.testing.assert_close(learner.params, flat.detach(), rtol=1e-4, atol=1e-5)
    assert metrics["value_scale"] == pytest.approx(scale)
    assert metrics["floor_margin"] == pytest.approx(scale - 1e-4)


def test_learns_catch() -> None:
    config = A2CPopArt(agent=NetworkSizes(hidden=(64, 64)), learning_rate=3e-3)
    assert catch_score(config, iterations=300) > 0.8
