"""The agents of a generation: N networks of one shape, acting and learning side by side.

Their parameters are the rows of one array [N, size]; a layer of all of them is one batched matrix
product. The network is that of the simple learners, and so is its gradient
(:class:`rulescope.learners.torso.Evaluation`), with the axis N first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from rulescope.core.flat_vector import Layout, Parameters
from rulescope.learners.adam import Adam
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.learners.torso import Network


class Activations(NamedTuple):
    """The layers of N networks on R rows each."""

    inputs: Tensor
    """[N, R, cells]"""
    first: Tensor
    """[N, R, units] after its ReLU"""
    second: Tensor
    """[N, R, units] after its ReLU"""
    outputs: Tensor
    """[N, R, outputs]"""


class StackedAgents:
    """N networks with their optimisers."""

    def __init__(
        self, network: Network, initial: Tensor, learning_rate: float, max_norm: float | None
    ) -> None:
        """``initial`` [N, size] are the first parameters."""
        self.layout = network.layout
        self.params = initial.clone()
        self.broken = torch.zeros(len(initial), dtype=torch.bool)
        """[N] whether a gradient was not finite; such an agent no longer learns"""
        self._learning_rate, self._max_norm = learning_rate, max_norm
        self._views = stacked_views(self.layout, self.params)
        self._gradient = torch.zeros_like(self.params)
        self._into = stacked_views(self.layout, self._gradient)
        self._adam = Adam(self.params.view(-1), learning_rate, max_norm or math.inf)

    def forward(self, inputs: Tensor) -> Activations:
        """Return the layers on ``inputs`` [N, R, cells]."""
        views = self._views
        first = _linear(views, "torso.0", inputs).relu_()
        second = _linear(views, "torso.1", first).relu_()
        return Activations(inputs, first, second, _linear(views, "head", second))

    def descend(self, layers: Activations, at_outputs: Tensor) -> None:
        """Make one step of Adam for the gradient ``at_outputs`` [N, R, outputs]."""
        views = self._views
        self._write("head", layers.second, at_outputs)
        at_second = torch.bmm(at_outputs, views["head.w"].transpose(1, 2))
        at_second.mul_(layers.second.sign())
        self._write("torso.1", layers.first, at_second)
        at_first = torch.bmm(at_second, views["torso.1.w"].transpose(1, 2))
        at_first.mul_(layers.first.sign())
        self._write("torso.0", layers.inputs, at_first)
        norm = torch.linalg.vector_norm(self._gradient, dim=1)
        self.broken |= ~norm.isfinite()
        if bool(self.broken.any()):
            self._gradient[self.broken] = 0.0
        if self._max_norm is not None:
            factor = (self._max_norm / (norm + 1e-6)).clamp(max=1.0).nan_to_num(0.0)
            self._gradient.mul_(factor.unsqueeze(1))
        self._adam.descend_(self._gradient.view(-1), self._learning_rate)

    def _write(self, name: str, inputs: Tensor, at_output: Tensor) -> None:
        torch.bmm(inputs.transpose(1, 2), at_output, out=self._into[f"{name}.w"])
        torch.sum(at_output, 1, keepdim=True, out=self._into[f"{name}.b"])


def make_agents(
    cells: int, outputs: int, sizes: NetworkSizes, seeds: Sequence[int], copies: int
) -> tuple[Network, Tensor]:
    """Return the network, and parameters [copies * E, size]: those of E ``seeds`` in each copy."""
    network = Network((cells,), outputs, sizes)
    initial = torch.stack([network.initial(seed) for seed in seeds])
    return network, initial.repeat(copies, 1)


def stacked_views(layout: Layout, flat: Tensor) -> dict[str, Tensor]:
    """Return the named arrays [N, ...] inside ``flat`` [N, size]; vectors are [N, 1, units]."""
    pieces = torch.split(flat, [_size(shape) for shape in layout.shapes.values()], dim=1)
    return {
        name: piece.view(len(flat), *(shape if len(shape) > 1 else (1, *shape)))
        for (name, shape), piece in zip(layout.shapes.items(), pieces, strict=True)
    }


def _size(shape: tuple[int, ...]) -> int:
    return int(torch.Size(shape).numel())


def _linear(views: Parameters, name: str, inputs: Tensor) -> Tensor:
    return torch.baddbmm(views[f"{name}.b"], inputs, views[f"{name}.w"])
