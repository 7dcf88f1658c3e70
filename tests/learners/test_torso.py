"""The written-out derivative is that of autograd, and patches are a convolution."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from learners.baseline_cases import LITTLE, LITTLE_CHANNEL
from rulescope.core.errors import SpecError
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.learners.torso import Evaluation, Network

CASES = [(LITTLE, (5, 4)), (LITTLE_CHANNEL, (3, 5, 4))]


def rows(shape: tuple[int, ...], count: int = 6) -> Tensor:
    values = np.random.default_rng(0).standard_normal((count, *shape))
    return torch.tensor(values, dtype=torch.float64)


def plainly(network: Network, flat: Tensor, x: Tensor) -> Tensor:
    """The network as PyTorch's own layers would compute it."""
    params = network.layout.views(flat)
    if network.convolves:
        kernel = params["torso.0.w"].T.reshape(-1, x.shape[1], 3, 3)
        maps = functional.conv2d(x, kernel, params["torso.0.b"]).relu()
        hidden = maps.permute(0, 2, 3, 1).flatten(1)
    else:
        hidden = (x.flatten(1) @ params["torso.0.w"] + params["torso.0.b"]).relu()
    hidden = (hidden @ params["torso.1.w"] + params["torso.1.b"]).relu()
    return hidden @ params["head.w"] + params["head.b"]


@pytest.mark.parametrize(("sizes", "shape"), CASES)
def test_outputs_and_gradient_are_those_of_autograd(
    sizes: NetworkSizes, shape: tuple[int, ...]
) -> None:
    network = Network(shape, 4, sizes)
    flat = network.initial(seed=3).double().requires_grad_()
    x = rows(shape)
    pull = rows((4,))
    expected = plainly(network, flat, x)
    (gradient,) = torch.autograd.grad((expected * pull).sum(), flat)

    found = torch.full_like(gradient, math.nan)
    evaluation = Evaluation(network, network.layout.views(flat.detach()), x)
    evaluation.gradient_(pull, network.layout.views(found))
    torch.testing.assert_close(evaluation.outputs, expected.detach(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found, gradient, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("sizes", "shape"), CASES)
def test_fresh_parameters_are_drawn_as_by_pytorch(
    sizes: NetworkSizes, shape: tuple[int, ...]
) -> None:
    network = Network(shape, 4, sizes)
    params = network.layout.views(network.initial(seed=0))
    for layer in ("torso.0", "torso.1", "head"):
        bound = 1.0 / math.sqrt(len(params[f"{layer}.w"]))
        largest = params[f"{layer}.w"].abs().max().item()
        assert 0.8 * bound < largest <= bound
        assert params[f"{layer}.b"].abs().max().item() <= bound
    assert not torch.equal(network.initial(seed=0), network.initial(seed=1))


def test_published_sizes() -> None:
    assert Network((8, 8), 4, NetworkSizes()).layout.shapes == {
        "torso.0.w": (64, 512),
        "torso.0.b": (512,),
        "torso.1.w": (512, 512),
        "torso.1.b": (512,),
        "head.w": (512, 4),
        "head.b": (4,),
    }
    channel = Network((4, 10, 10), 7, NetworkSizes(torso="channel"))
    assert channel.layout.shapes["torso.0.w"] == (4 * 9, 16)
    assert channel.layout.shapes["torso.1.w"] == (16 * 64, 512)


def test_channels_need_a_world_with_channels() -> None:
    with pytest.raises(SpecError, match=r"learner\.agent\.torso"):
        Network((8, 8), 4, LITTLE_CHANNEL)
