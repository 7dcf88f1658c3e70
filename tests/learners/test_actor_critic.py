"""Advantages by a plain loop, and the closed-form gradient by autograd."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rulescope.learners.actor_critic import Decisions, gae
from rulescope.learners.learner import Rollout


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
