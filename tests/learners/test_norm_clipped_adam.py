"""Adam and the clipping are PyTorch's own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from rulescope.core.errors import DivergedError
from rulescope.learners.norm_clipped_adam import Adam


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
