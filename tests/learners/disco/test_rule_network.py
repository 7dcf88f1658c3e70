"""The rule network: order of its backward recursion, and its two LSTMs step by step."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from learners.disco.cases import Shape, lived_in, made_up_batch, network, small_update
from learners.small import RULE
from rulescope.learners.disco.features import LIFETIME, OUTER
from rulescope.learners.disco.rule_network import Trace, backward_order
from rulescope.learners.disco.update import DiscoUpdate
from rulescope.numerics.golden import load_rule_weights

Array = NDArray[np.float64]
FLAGS = arrays.arrays(np.bool_, st.tuples(st.integers(1, 9), st.integers(1, 5)))


def episodes(terminals: NDArray[np.bool_]) -> list[list[tuple[int, int]]]:
    """Return the transitions (t, b) of every episode inside the trajectories."""
    found = []
    for b in range(terminals.shape[1]):
        current: list[tuple[int, int]] = []
        for t in range(len(terminals)):
            current.append((t, b))
            if terminals[t, b] or t == len(terminals) - 1:
                found.append(current)
                current = []
    return found


@settings(max_examples=80, deadline=None)
@given(terminals=FLAGS)
def test_backward_order_runs_all_episodes_side_by_side(terminals: NDArray[np.bool_]) -> None:
    order, sizes = backward_order(torch.tensor(terminals, dtype=torch.float64))
    length, width = terminals.shape
    positions = [divmod(flat, width) for flat in order.tolist()]
    assert sorted(positions) == [(t, b) for t in range(length) for b in range(width)]

    every = episodes(terminals)
    longest = max(map(len, every))
    assert sizes == [sum(len(one) > depth for one in every) for depth in range(longest)]

    groups = [positions[sum(sizes[:k]) : sum(sizes[: k + 1])] for k in range(len(sizes))]
    assert set(groups[0]) == {one[-1] for one in every}
    for later, earlier in pairwise(groups):
        # The predecessor in time of the n-th of a group is the n-th of the next, shorter one.
        assert earlier == [(t - 1, b) for t, b in later[: len(earlier)]]


def test_backward_order_without_and_with_only_terminals() -> None:
    order, sizes = backward_order(torch.zeros(3, 2))
    assert (order.tolist(), sizes) == ([4, 5, 2, 3, 0, 1], [2, 2, 2])
    order, sizes = backward_order(torch.ones(3, 2))
    assert (sorted(order.tolist()), sizes) == ([0, 1, 2, 3, 4, 5], [6])


def sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def literal_cell(
    weight: Array, bias: Array, x: Array, hidden: Array, cell: Array
) -> tuple[Array, Array]:
    """One LSTM step as it is specified: gates i, g, f, o, and one added to f."""
    gates = np.concatenate([x, hidden], axis=-1) @ weight + bias
    i, g, f, o = np.split(gates, 4, axis=-1)
    cell = sigmoid(f + 1.0) * cell + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


def weights64(rule: str) -> dict[str, Array]:
    return {name: w.numpy() for name, w in load_rule_weights(rule, torch.float64).items()}


def traced(update: DiscoUpdate, shape: Shape) -> tuple[Trace, Array, Array, Array]:
    """Return the trace of one update, its terminals, and the rule's new state."""
    batch = made_up_batch(shape)
    state, step = update.fast_(lived_in(update), batch)
    hidden, cell = (part.numpy() for part in state.recurrent)
    return step.trace, batch.terminals.numpy(), hidden, cell


@pytest.mark.parametrize("terminal", [0.0, 0.3, 1.0])
def test_trajectory_lstm_is_a_backward_loop_with_resets(rule: str, terminal: float) -> None:
    trace, terminals, _, _ = traced(small_update(rule), Shape(terminal=terminal))
    weights = weights64(rule)
    weight, bias = weights[f"{OUTER}/lstm/linear/w"], weights[f"{OUTER}/lstm/linear/b"]
    features, found = trace.outer.steps.numpy(), trace.trajectory.numpy()
    length, width, units = found.shape
    hidden, cell = np.zeros((2, width, units))
    for t in reversed(range(length)):
        keep = 1.0 - terminals[t][:, None]
        hidden, cell = literal_cell(weight, bias, features[t], hidden * keep, cell * keep)
        np.testing.assert_allclose(found[t], hidden, rtol=0, atol=1e-13)


def test_gate_reads_the_lifetime_state_of_before_the_update(rule: str) -> None:
    update = small_update(rule)
    trace, _, _, _ = traced(update, Shape())
    weights = weights64(rule)
    hidden = lived_in(update).recurrent.hidden.numpy()
    gate = hidden @ weights[f"{OUTER}/linear/w"] + weights[f"{OUTER}/linear/b"]
    expected = trace.trajectory.numpy() * gate
    np.testing.assert_allclose(trace.gated.numpy(), expected, rtol=0, atol=1e-12)


def test_lifetime_lstm_takes_one_literal_step(rule: str) -> None:
    update = small_update(rule)
    batch = made_up_batch(Shape())
    before = lived_in(update).recurrent
    state, step = update.fast_(lived_in(update), batch)
    weights = weights64(rule)

    def layer(name: str, x: Array) -> Array:
        result: Array = x @ weights[f"{LIFETIME}/{name}/w"] + weights[f"{LIFETIME}/{name}/b"]
        return result

    emitted = step.targets.y.numpy()
    encoded = layer("mlp/~/linear_1", np.maximum(layer("mlp/~/linear_0", emitted), 0.0))
    seen = np.concatenate(
        [step.trace.lifetime.steps.numpy(), step.trace.emission.numpy(), encoded], axis=-1
    )
    summary = layer("mlp_2/~/linear_0", seen).mean((0, 1))
    hidden, cell = literal_cell(
        weights[f"{LIFETIME}/lstm/linear/w"],
        weights[f"{LIFETIME}/lstm/linear/b"],
        summary,
        before.hidden.numpy(),
        before.cell.numpy(),
    )
    np.testing.assert_allclose(state.recurrent.hidden.numpy(), hidden, rtol=0, atol=1e-13)
    np.testing.assert_allclose(state.recurrent.cell.numpy(), cell, rtol=0, atol=1e-13)


def test_policy_target_is_the_specified_block(rule: str) -> None:
    """The code uses that the gated output is its own mean over actions; here it is repeated."""
    update = small_update(rule, actions=6)
    _, step = update.fast_(lived_in(update), made_up_batch(Shape(), actions=6))
    weights = weights64(rule)
    gated, embedding = step.trace.gated.numpy(), step.trace.outer.actions.numpy()
    repeated = np.repeat(gated[:, :, None, :], 6, axis=2)
    own = np.concatenate([repeated, embedding], axis=-1)
    pooled = np.broadcast_to(own.mean(2, keepdims=True), own.shape)
    block = f"{OUTER}/sequential_1/conv1_d"
    hidden = np.concatenate([own, pooled], -1) @ weights[f"{block}/w"][0] + weights[f"{block}/b"]
    head = f"{OUTER}/linear_4"
    logits = np.maximum(hidden, 0.0) @ weights[f"{head}/w"] + weights[f"{head}/b"]
    np.testing.assert_allclose(step.targets.policy.numpy(), logits[..., 0], rtol=0, atol=1e-12)


def test_nothing_of_a_later_episode_reaches_an_earlier_one() -> None:
    update = small_update(RULE)
    batch = made_up_batch(Shape(transitions=6, width=2, terminal=0.0))
    batch.terminals[2] = 1.0
    _, before = update.fast_(lived_in(update), batch)
    batch.actions[4] = (batch.actions[4] + 1) % 3
    _, after = update.fast_(lived_in(update), batch)
    same = (before.trace.trajectory - after.trace.trajectory).abs().amax((1, 2)) == 0
    # The normalised advantages of all steps feel the change, through the moving average alone.
    features = (before.trace.outer.steps - after.trace.outer.steps).abs().amax((0, 1))
    assert not same[3:5].any()
    assert features[7] > 0
    apart = before.trace.trajectory[:3] - after.trace.trajectory[:3]
    assert apart.abs().max() < 0.1 * (before.trace.trajectory - after.trace.trajectory).abs().max()


def test_fresh_state_is_zero_and_of_the_rules_size() -> None:
    hidden, cell = network(RULE).fresh()
    assert hidden.shape == cell.shape == (128,)
    assert not hidden.any()
    assert not cell.any()
    assert hidden.data_ptr() != cell.data_ptr()


def test_features_of_one_transition_by_hand(rule: str) -> None:
    """The nine features that need no encoder, for a batch of a single transition."""
    update = small_update(rule)
    batch = made_up_batch(Shape(transitions=1, width=1, rows=2, terminal=0.0))
    batch.index[:] = torch.tensor([[0], [1]])
    _, step = update.fast_(lived_in(update), batch)
    action = int(batch.actions[0, 0])
    found = step.trace.outer.steps[0, 0].tolist()
    values = step.estimate

    def compress(x: float) -> float:
        return math.copysign(math.log1p(abs(x)), x)

    expected = [
        step.probabilities.logits[0, action].item(),
        batch.behaviour.softmax(-1)[0, 0, action].item(),
        compress(batch.rewards.item()),
        1.0,
        compress(values.value[0].item()),
        compress(values.value[1].item()),
        compress(values.advantage.item()),
        values.normalised_advantage.item(),
    ]
    assert found[:8] == pytest.approx(expected, rel=1e-12)
    assert len(found) == 27
    assert torch.equal(step.trace.outer.steps[..., :9], step.trace.lifetime.steps[..., :9])
