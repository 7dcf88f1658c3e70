"""Value estimation against its equations, written out slowly."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from learners.disco.cases import Shape, made_up_batch
from rulescope.learners.disco.batch import Batch, loss_mask
from rulescope.learners.disco.value_estimates import (
    Averages,
    Estimate,
    estimate,
    normalise,
    retrace,
    update_average,
)

Array = NDArray[np.float64]
DISCOUNT, TRACE, DECAY = 0.9, 0.8, 0.95


def slow_retrace(
    rewards: Array, discounts: Array, next_value: Array, q: Array, traces: Array, ahead: int
) -> Array:
    """The recursion as it is printed; ``ahead`` says whose trace and action value are used."""
    length, width = rewards.shape
    last = length - 1
    targets = np.zeros_like(rewards)
    for b in range(width):
        targets[last, b] = rewards[last, b] + discounts[last, b] * next_value[last, b]
        for t in range(last - 1, -1, -1):
            k = min(t + ahead, last)
            correction = traces[k, b] * (targets[t + 1, b] - q[k, b])
            targets[t, b] = rewards[t, b] + discounts[t, b] * (next_value[t, b] + correction)
    return targets


@pytest.mark.parametrize(("convention", "ahead"), [("next", 1), ("skip", 2)])
@settings(max_examples=25, deadline=None)
@given(length=st.integers(1, 9), width=st.integers(1, 4), seed=st.integers(0, 10**6))
def test_retrace_is_the_printed_recursion(
    convention: str, ahead: int, length: int, width: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rewards, next_value, q = rng.standard_normal((3, length, width))
    traces = 0.95 * rng.random((length, width))
    discounts = np.where(rng.random((length, width)) > 0.3, 0.997, 0.0)
    expected = slow_retrace(rewards, discounts, next_value, q, traces, ahead)
    found = retrace(
        torch.tensor(rewards),
        torch.tensor(discounts),
        torch.tensor(next_value),
        torch.tensor(q),
        torch.tensor(traces),
        convention,
    )
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)


def test_retrace_with_full_traces_and_exact_values_is_the_return() -> None:
    rewards = torch.tensor([[1.0], [2.0], [4.0]], dtype=torch.float64)
    discounts = torch.tensor([[0.5], [0.5], [0.0]], dtype=torch.float64)
    nothing = torch.zeros_like(rewards)
    targets = retrace(rewards, discounts, nothing, nothing, torch.ones_like(rewards))
    assert targets.flatten().tolist() == [1.0 + 0.5 * (2.0 + 0.5 * 4.0), 4.0, 4.0]


def test_retrace_does_not_change_its_inputs() -> None:
    rewards, discounts, values, q, traces = torch.linspace(0.1, 0.9, 40).view(5, 4, 2)
    parts = (rewards, discounts, values, q, traces)
    before = [part.clone() for part in parts]
    retrace(rewards, discounts, values, q, traces)
    assert all(torch.equal(one, two) for one, two in zip(parts, before, strict=True))


def test_average_moves_by_hand() -> None:
    values = torch.tensor([[1.0, 3.0], [5.0, -1.0]], dtype=torch.float64)
    start = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
    once = update_average(start, values, 0.9)
    assert once.tolist() == pytest.approx([0.2, 0.9, 0.9])
    twice = update_average(once, values + 1.0, 0.9)
    assert twice.tolist() == pytest.approx([0.18 + 0.3, 0.81 + 1.4, 0.81])


def test_normalisation_by_hand() -> None:
    average = torch.tensor([0.2, 0.9, 0.9], dtype=torch.float64)  # mean 2, second moment 9
    values = torch.tensor([2.0, 4.0], dtype=torch.float64)
    spread = np.sqrt(5.0 + 1e-12) + 1e-6
    centred = normalise(values, average, centre=True).tolist()
    assert centred == pytest.approx([0.0, 2.0 / spread], abs=1e-12)
    assert normalise(values, average, centre=False).tolist() == pytest.approx(
        [2.0 / spread, 4.0 / spread]
    )


def test_first_update_normalises_a_constant_to_zero_without_fault() -> None:
    start = Averages.fresh(torch.zeros(1, dtype=torch.float64)).advantage
    values = torch.full((3, 2), 7.0, dtype=torch.float64)
    moved = update_average(start, values, 0.99)
    assert normalise(values, moved, centre=True).abs().max() < 1e-6


def test_variance_is_never_negative() -> None:
    """Rounding can make the second moment less than the squared mean."""
    average = torch.tensor([1.0, 1.0 - 1e-9, 0.0], dtype=torch.float64)
    assert normalise(average, average, centre=True).isfinite().all()


def estimated(batch: Batch, actions: int = 3, averages: Averages | None = None) -> Estimate:
    found, _ = estimated_and_moved(batch, actions, averages)
    return found


def estimated_and_moved(
    batch: Batch, actions: int = 3, averages: Averages | None = None
) -> tuple[Estimate, Averages]:
    rows = len(batch.rows)
    rng = np.random.default_rng(77)
    logits, q, target_q = torch.tensor(rng.standard_normal((3, rows, actions)))
    start = averages or Averages.fresh(batch.rewards)
    return estimate(
        batch,
        logits.log_softmax(-1),
        q,
        target_q,
        start,
        discount=DISCOUNT,
        trace=TRACE,
        decay=DECAY,
    )


def slow_estimate(batch: Batch, actions: int = 3) -> dict[str, Array]:
    """The equations for every step of every trajectory, one at a time."""
    rng = np.random.default_rng(77)
    logits, q, target_q = rng.standard_normal((3, len(batch.rows), actions))
    pi = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    index, taken = batch.index.numpy(), batch.actions.numpy()
    behaviour = np.exp(batch.behaviour.numpy())
    mu = behaviour / behaviour.sum(-1, keepdims=True)
    length, width = taken.shape
    ratio, v, q_taken, online = np.zeros((4, length, width))
    after = np.zeros((length, width))
    for t in range(length):
        for b in range(width):
            row, action = index[t, b], taken[t, b]
            ratio[t, b] = pi[row, action] / mu[t, b, action]
            v[t, b] = (pi[row] * target_q[row]).sum()
            q_taken[t, b], online[t, b] = target_q[row, action], q[row, action]
            following = index[t + 1, b]
            after[t, b] = (pi[following] * target_q[following]).sum()
    discounts = DISCOUNT * (1.0 - batch.terminals.numpy())
    traces = TRACE * np.minimum(ratio, 1.0)
    targets = slow_retrace(batch.rewards.numpy(), discounts, after, q_taken, traces, ahead=1)
    return {"q_target": targets, "advantage": targets - v, "td": targets - online}


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), terminal=st.sampled_from([0.0, 0.3, 1.0]))
def test_estimate_is_its_equations(seed: int, terminal: float) -> None:
    batch = made_up_batch(Shape(terminal=terminal, seed=seed))
    found = estimated(batch)
    for name, expected in slow_estimate(batch).items():
        value: Tensor = getattr(found, name)
        np.testing.assert_allclose(value.numpy(), expected, rtol=1e-11, atol=1e-12)


def test_averages_are_updated_first_and_then_used() -> None:
    batch = made_up_batch(Shape(seed=3))
    found, moved = estimated_and_moved(batch)
    start = Averages.fresh(batch.rewards)
    for name, values in (("advantage", found.advantage), ("td", found.td)):
        expected = update_average(getattr(start, name), values, DECAY)
        assert torch.equal(getattr(moved, name), expected)
    again = normalise(found.advantage, moved.advantage, centre=True)
    assert torch.equal(found.normalised_advantage, again)
    rows = normalise(found.q_advantage, moved.advantage, centre=True)
    assert torch.equal(found.normalised_q_advantage, rows)


def changed(batch: Batch, **parts: Tensor) -> Batch:
    """Return the batch with some of its tensors replaced."""
    names = ("rows", "index", "actions", "rewards", "terminals", "behaviour", "began")
    return Batch(**{name: parts.get(name, getattr(batch, name)) for name in names})


def test_nothing_after_a_terminal_reaches_what_came_before() -> None:
    batch = made_up_batch(Shape(transitions=6, width=1, terminal=0.0))
    batch.terminals[2] = 1.0
    rewards = batch.rewards.clone()
    rewards[3:] += 1000.0
    before, after = estimated(batch), estimated(changed(batch, rewards=rewards))
    assert torch.equal(before.q_target[:3], after.q_target[:3])
    assert not torch.equal(before.q_target[3:], after.q_target[3:])
    assert before.q_target[2].item() == batch.rewards[2].item()


@pytest.mark.parametrize(
    ("convention", "expected"),
    [
        ("none", [[1, 1], [1, 1], [1, 1], [1, 1]]),
        ("in-trajectory", [[1, 1], [1, 0], [0, 0], [1, 1]]),
        ("stored-flag", [[0, 1], [1, 0], [0, 0], [1, 1]]),
    ],
)
def test_loss_masks_by_hand(convention: str, expected: list[list[int]]) -> None:
    batch = made_up_batch(Shape(transitions=4, width=2, terminal=0.0))
    batch.terminals[:] = torch.tensor([[0, 1], [1, 1], [0, 0], [1, 1]])
    batch.began[:] = torch.tensor([1, 0])
    assert loss_mask(batch, convention).long().tolist() == expected
