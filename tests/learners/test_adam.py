"""Adam and the clipping are PyTorch's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import nn

from rulescope.core.errors import DivergedError
from rulescope.learners.adam import Adam, Moments, clipped_adam, clipped_adam_


@pytest.mark.parametrize("max_norm", [0.5, 1e6])
def test_equals_torch(max_norm: float) -> None:
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(50, generator=generator)
    ours, theirs = start.clone(), nn.Parameter(start.clone())
    mine, reference = Adam(ours, 7e-3, max_norm), torch.optim.Adam([theirs], lr=7e-3)
    for _ in range(20):
        gradient = torch.randn(50, generator=generator)
        theirs.grad = gradient.clone()
        expected = nn.utils.clip_grad_norm_([theirs], max_norm)
        reference.step()
        assert mine.step_(gradient.clone()) == pytest.approx(float(expected))
    torch.testing.assert_close(ours, theirs.detach(), rtol=1e-6, atol=1e-7)


def test_moments_are_a_carrier() -> None:
    params = torch.ones(3)
    adam = Adam(params, 0.1, 10.0)
    adam.step_(torch.ones(3))
    held = adam.carrier.get()
    assert held["updates"] == 1
    at = params.clone()
    adam.step_(torch.ones(3))
    after = params.clone()
    adam.carrier.set(held)
    params.copy_(at)
    adam.step_(torch.ones(3))
    assert torch.equal(params, after)


def test_moments_that_fade_away_end_at_zero() -> None:
    adam = Adam(torch.ones(2), 0.1, 10.0)
    adam.step_(torch.tensor([1.0, 0.0]))
    for _ in range(1000):
        adam.step_(torch.zeros(2))
    assert adam.first.tolist() == [0.0, 0.0]


def test_a_gradient_that_is_not_finite_is_reported() -> None:
    with pytest.raises(DivergedError):
        Adam(torch.ones(2), 0.1, 1.0).step_(torch.tensor([1.0, float("nan")]))


Array = NDArray[np.float64]


def literal(params: Array, gradients: list[Array], rate: float) -> Array:
    """Update ``params`` once for each gradient, element by element as it is printed."""
    first, second = np.zeros_like(params), np.zeros_like(params)
    for n, gradient in enumerate(gradients, start=1):
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        direction = (first / (1 - 0.9**n)) / (np.sqrt(second / (1 - 0.999**n)) + 1e-8)
        params = params - rate * np.clip(direction, -1.0, 1.0)
    return params


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    steps=st.integers(1, 30),
    scale=st.sampled_from([1e-9, 1e-4, 1.0, 1e4]),
)
def test_three_forms_agree(seed: int, steps: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    start = rng.standard_normal(7)
    gradients = [rng.standard_normal(7) * scale for _ in range(steps)]
    expected = literal(start, gradients, 0.01)

    defined = torch.tensor(start)
    in_place = defined.clone()
    moments, moments_ = Moments.fresh(defined), Moments.fresh(in_place)
    for gradient in gradients:
        defined, moments = clipped_adam(defined, torch.tensor(gradient), moments, 0.01)
        moments_ = clipped_adam_(in_place, torch.tensor(gradient), moments_, 0.01)
    np.testing.assert_allclose(defined.numpy(), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(in_place.numpy(), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(moments_.first.numpy(), moments.first.numpy(), rtol=1e-12)
    np.testing.assert_allclose(moments_.second.numpy(), moments.second.numpy(), rtol=1e-12)
    assert moments.updates == moments_.updates == steps


def one_step(gradient: float, first: float, second: float, updates: int = 1000) -> list[float]:
    """Return how far each form moves a parameter at zero, for learning rate 1."""
    g, m, v, zero = torch.tensor([[gradient], [first], [second], [0.0]], dtype=torch.float64)
    moved, _ = clipped_adam(zero, g, Moments(m, v, updates), 1.0)
    in_place = zero.clone()
    clipped_adam_(in_place, g, Moments(m.clone(), v.clone(), updates), 1.0)
    return [moved.item(), in_place.item()]


def test_the_direction_is_clipped() -> None:
    """A large first moment over a small second one would move far more than the rate."""
    assert one_step(0.0, 5.0, 1e-4) == pytest.approx([-1.0, -1.0], abs=1e-15)
    assert one_step(0.0, -5.0, 1e-4) == pytest.approx([1.0, 1.0], abs=1e-15)


def test_the_gradient_is_not_clipped() -> None:
    params = torch.zeros(1, dtype=torch.float64)
    gradient = torch.tensor([1000.0], dtype=torch.float64)
    _, moments = clipped_adam(params, gradient, Moments.fresh(params), 0.1)
    moments_ = clipped_adam_(params.clone(), gradient, Moments.fresh(params), 0.1)
    for found in (moments, moments_):
        assert found.first.item() == pytest.approx(100.0)
        assert found.second.item() == pytest.approx(1000.0)


def test_small_directions_are_left_alone() -> None:
    defined, in_place = one_step(0.0, 1.0, 100.0)
    expected = -(0.9 / (1 - 0.9**1001)) / np.sqrt(99.9 / (1 - 0.999**1001))
    assert [defined, in_place] == pytest.approx([expected, expected], rel=1e-9)


def test_zero_gradient_from_a_fresh_start_moves_nothing() -> None:
    params = torch.ones(3)
    clipped_adam_(params, torch.zeros(3), Moments.fresh(params), 1.0)
    assert params.tolist() == [1.0, 1.0, 1.0]


def test_in_place_form_keeps_its_memory() -> None:
    params = torch.ones(3)
    moments = Moments.fresh(params)
    after = clipped_adam_(params, torch.ones(3), moments, 0.1)
    assert after.first is moments.first
    assert after.second is moments.second
    assert (moments.updates, after.updates) == (0, 1)


def test_meta_gradient_flows_through_the_first_moment_alone() -> None:
    gradient = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    params = torch.zeros(1, dtype=torch.float64)
    second = torch.tensor([0.04], dtype=torch.float64)
    moments = Moments(torch.zeros_like(params), second, 1000)
    moved, _ = clipped_adam(params, gradient, moments, 1.0)
    (slope,) = torch.autograd.grad(moved, gradient)
    denominator = np.sqrt((0.999 * 0.04 + 0.001 * 0.09) / (1 - 0.999**1001)) + 1e-8
    assert slope.item() == pytest.approx(-0.1 / (1 - 0.9**1001) / denominator, rel=1e-9)
