from __future__ import annotations

import numpy as np
import pytest
import torch

from learners.baseline_cases import (
    LITTLE,
    SMALL,
    boundary_life,
    catch_score,
    factory,
    in_channels,
)
from rulescope.learners.a2c import A2CLearner
from rulescope.learners.baseline_config import A2C, VARIANTS, NetworkSizes
from rulescope.learners.learner import Rollout
from rulescope.learners.learner_conformance import check_learner

pytestmark = pytest.mark.usefixtures("deterministic")


def test_conforms() -> None:
    check_learner(factory(SMALL["a2c"]), (4, 4), 3, steps=7)


def test_conforms_with_channels() -> None:
    config = in_channels(SMALL["a2c"])
    check_learner(factory(config, (2, 5, 4)), (2, 5, 4), 3, steps=7, lanes=3, rollouts=3)


def test_carriers_are_those_of_the_configuration() -> None:
    assert set(factory(A2C(agent=LITTLE))().carriers) == set(A2C.CARRIERS)


def test_published_settings() -> None:
    config = VARIANTS["a2c"]
    assert isinstance(config, A2C)
    assert (config.learning_rate, config.discount, config.trace) == (7e-4, 0.997, 0.95)
    assert (config.value_coefficient, config.entropy_coefficient, config.max_norm) == (
        0.5,
        0.01,
        0.5,
    )


def test_one_update_is_that_of_autograd_and_torch_adam() -> None:
    rng = np.random.default_rng(0)
    learner = A2CLearner(A2C(agent=LITTLE, learning_rate=0.01), (3, 3), 3, seed=5)
    steps, lanes = 4, 2
    rollout = Rollout(
        observations=rng.standard_normal((steps + 1, lanes, 3, 3)).astype(np.float32),
        actions=rng.integers(3, size=(steps, lanes)),
        rewards=rng.standard_normal((steps, lanes)).astype(np.float32),
        terminals=np.array([[0, 1], [0, 0], [1, 0], [0, 1]], np.bool_),
        began=np.zeros(lanes, np.bool_),
        behaviour={},
    )
    flat = torch.nn.Parameter(learner.params.clone())
    params = learner.network.layout.views(flat)
    hidden = torch.tensor(rollout.observations).flatten(0, 1).flatten(1)
    for layer in ("torso.0", "torso.1"):
        hidden = (hidden @ params[f"{layer}.w"] + params[f"{layer}.b"]).relu()
    outputs = (hidden @ params["head.w"] + params["head.b"]).view(steps + 1, lanes, 4)
    values = outputs[..., -1]
    onward = 0.997 * (1.0 - torch.tensor(rollout.terminals).float())
    with torch.no_grad():
        delta = torch.tensor(rollout.rewards) + onward * values[1:] - values[:-1]
        advantages = [torch.zeros(lanes)]
        for t in reversed(range(steps)):
            advantages.insert(0, delta[t] + 0.95 * onward[t] * advantages[0])
        advantage = torch.stack(advantages[:-1])
        returns = advantage + values[:-1]
    logs = outputs[:-1, :, :-1].log_softmax(-1)
    chosen = logs.gather(2, torch.tensor(rollout.actions).unsqueeze(2)).squeeze(2)
    loss = -(chosen * advantage).mean() + 0.5 * (values[:-1] - returns).square().mean()
    loss = loss + 0.01 * (logs.exp() * logs).sum(-1).mean()
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_([flat], 0.5)
    torch.optim.Adam([flat], lr=0.01).step()

    learner.learn(rollout, measure=False)
    torch.testing.assert_close(learner.params, flat.detach(), rtol=1e-4, atol=1e-5)


def test_synthetic_terminals_in_step_with_the_episodes_change_nothing() -> None:
    """Episodes of 8x8 Catch last 7 steps, so reporting an end every 7 steps is true."""
    truth, synthetic = (
        boundary_life(A2C(agent=LITTLE), boundary) for boundary in ("episodic", "7")
    )
    for name, array in truth.items():
        np.testing.assert_array_equal(array, synthetic[name], err_msg=name)


def test_the_transition_before_the_bootstrap_is_trained_on() -> None:
    """A flag on the last of 29 transitions takes the bootstrap away (Disco does not see it)."""
    masked, cut = (boundary_life(A2C(agent=LITTLE), boundary) for boundary in ("masked", "29"))
    assert not np.array_equal(masked["params/flat"], cut["params/flat"])


def test_learns_catch() -> None:
    config = A2C(agent=NetworkSizes(hidden=(64, 64)), learning_rate=3e-3)
    assert catch_score(config, iterations=300) > 0.8
