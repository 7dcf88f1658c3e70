from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from learners.baseline_cases import (
    LITTLE,
    SMALL,
    boundary_life,
    catch_score,
    factory,
    in_channels,
)
from rulescope.learners.a2c import A2CLearner, Decisions, gae
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


class Case(NamedTuple):
    rollout: Rollout
    values: NDArray[np.float64]


def case(seed: int, steps: int = 7, lanes: int = 3) -> Case:
    rng = np.random.default_rng(seed)
    shape = (steps, lanes)
    rollout = Rollout(
        observations=np.zeros((steps + 1, lanes, 2), np.float32),
        actions=np.zeros(shape, np.int64),
        rewards=rng.standard_normal(shape).astype(np.float32),
        terminals=rng.random(shape) < 0.3,
        began=np.zeros(lanes, np.bool_),
        behaviour={},
    )
    return Case(rollout, rng.standard_normal((steps + 1, lanes)))


def by_definition(one: Case, discount: float, trace: float) -> NDArray[np.float64]:
    """Sum (discount * trace)^k delta[t + k] up to the episode's end or the rollout's."""
    rewards, terminals = one.rollout.rewards, one.rollout.terminals
    advantages = np.zeros(rewards.shape)
    for t, lane in np.ndindex(*rewards.shape):
        for k in range(t, len(rewards)):
            ends = terminals[k, lane]
            follows = 0.0 if ends else discount * one.values[k + 1, lane]
            surprise = rewards[k, lane] + follows - one.values[k, lane]
            advantages[t, lane] += (discount * trace) ** (k - t) * surprise
            if ends:
                break
    return advantages


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_gae_is_the_plain_sum(seed: int, discount: float, trace: float) -> None:
    one = case(seed)
    found = gae(one.rollout, one.values, discount, trace)
    np.testing.assert_allclose(found, by_definition(one, discount, trace), rtol=1e-9, atol=1e-12)


def test_the_last_value_is_the_bootstrap_unless_the_episode_ended() -> None:
    one = case(0)
    one.rollout.terminals[-1] = [True, False, False]
    moved = one.values.copy()
    moved[-1] += 1.0
    change = gae(one.rollout, moved, 0.9, 0.5) - gae(one.rollout, one.values, 0.9, 0.5)
    np.testing.assert_allclose(change[-1], [0.0, 0.9, 0.9])


def test_gradient_is_that_of_the_loss() -> None:
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(9, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    actions = torch.randint(4, (9,), generator=generator)
    weights, targets = torch.randn(2, 9, generator=generator, dtype=torch.float64)
    logs = outputs[:, :-1].log_softmax(-1)
    chosen = logs.gather(1, actions.unsqueeze(1)).squeeze(1)
    parts = {
        "loss_policy": -(weights * chosen).mean(),
        "loss_value": (outputs[:, -1] - targets).square().mean(),
        "entropy": -(logs.exp() * logs).sum(-1).mean(),
    }
    loss = parts["loss_policy"] + 0.5 * parts["loss_value"] - 0.3 * parts["entropy"]
    (expected,) = torch.autograd.grad(loss, outputs)

    decisions = Decisions(outputs.detach().numpy(), actions.numpy())
    found = decisions.gradient(weights.numpy(), targets.numpy(), value=0.5, entropy=0.3)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-12, atol=1e-12)
    losses = decisions.losses(weights.numpy(), targets.numpy())
    assert losses.keys() == parts.keys()
    for name, value in parts.items():
        np.testing.assert_allclose(losses[name], value.item())
