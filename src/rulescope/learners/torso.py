"""The baselines' network and its derivative: two ReLU layers and linear heads, on a flat vector.

    observation [R, *shape] -> inputs [R * P, K] -> torso.0 -> torso.1 -> head [R, outputs]

Further heads beside it, by name, are for learners whose gradients autograd computes.

On a grid, P is 1 and K the size of the board. A 3x3 convolution is a linear layer on patches: each
of its P places has K = 9 * channels inputs, so one implementation serves both. The backward pass is
explicit because autograd would double the time of networks and batches this small; no parameter
requires a graph.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core import seeds
from rulescope.core.errors import SpecError
from rulescope.core.flat_vector import Layout, Parameters, linear, write_linear
from rulescope.learners.baseline_config import NetworkSizes

SIDE = 3
"""Height and width of the convolution's patches."""


class HiddenLayer(NamedTuple):
    """The weights of one hidden layer, as views of the parameters.

    A convolution's units are its channels, each at all of its places.
    """

    incoming: Tensor
    """[inputs, units]"""
    bias: Tensor
    """[units]"""
    outgoing: Tensor
    """[places, units, outputs]: the weights of the next layer on each unit at each place."""

    @property
    def units(self) -> int:
        """The number of units."""
        return len(self.bias)


class Network:
    """Shapes and functions of the network; parameters are passed in, never stored."""

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        outputs: int,
        sizes: NetworkSizes,
        heads: Mapping[str, int] | None = None,
    ) -> None:
        """``heads`` are the outputs of each further head, by name."""
        self.heads = tuple(heads or ())
        self.convolves = sizes.torso == "channel"
        first, width = sizes.hidden
        if self.convolves:
            if len(observation_shape) != 3 or min(observation_shape[1:]) < SIDE:
                raise SpecError(
                    "learner.agent.torso: 'channel' needs observations [channels, height, width] "
                    f"of at least 3x3, this world gives {list(observation_shape)}; use 'grid'"
                )
            planes, height, breadth = observation_shape
            inputs, first = planes * SIDE * SIDE, sizes.channels
            places = (height - SIDE + 1) * (breadth - SIDE + 1)
        else:
            inputs, places = math.prod(observation_shape), 1
        self.layout = Layout(
            {
                "torso.0.w": (inputs, first),
                "torso.0.b": (first,),
                "torso.1.w": (places * first, width),
                "torso.1.b": (width,),
                "head.w": (width, outputs),
                "head.b": (outputs,),
            }
            | {
                f"head.{name}.{part}": shape
                for name, size in (heads or {}).items()
                for part, shape in (("w", (width, size)), ("b", (size,)))
            }
        )

    def initial(self, seed: int) -> Tensor:
        """Draw initial parameters [size] float32: PyTorch's default for linear layers."""
        shapes = self.layout.shapes

        def draw(name: str) -> Tensor:
            inputs = shapes[f"{name[:-2]}.w"][0]
            rng = seeds.stream(seed, "agent", name)
            return torch.tensor(seeds.uniform(rng, shapes[name], inputs)).float()

        return self.layout.flatten({name: draw(name) for name in shapes})

    def inputs(self, rows: Tensor) -> Tensor:
        """Return the inputs [R * P, K] of the first layer for ``rows`` [R, *shape]."""
        if not self.convolves:
            return rows.flatten(1)
        patches = rows.unfold(2, SIDE, 1).unfold(3, SIDE, 1)  # [R, C, H', W', 3, 3]
        return patches.permute(0, 2, 3, 1, 4, 5).reshape(-1, rows.shape[1] * SIDE * SIDE)

    def hidden_layers(self, params: Parameters) -> tuple[HiddenLayer, HiddenLayer]:
        """Return views of the two hidden layers of ``params``."""
        first, second = params["torso.0.b"], params["torso.1.b"]
        onward = params["torso.1.w"].view(-1, len(first), len(second))
        heads = params["head.w"].unsqueeze(0)
        return (
            HiddenLayer(params["torso.0.w"], first, onward),
            HiddenLayer(params["torso.1.w"], second, heads),
        )

    def outputs(self, params: Parameters, rows: Tensor) -> Tensor:
        """Return the heads [R, outputs] for ``rows`` [R, *shape]."""
        return Evaluation(self, params, rows).outputs


class Evaluation:
    """The network on ``rows`` [R, *shape], with the activations that its derivative needs."""

    def __init__(self, network: Network, params: Parameters, rows: Tensor) -> None:
        self._params, self._heads = params, network.heads
        self._inputs = network.inputs(rows)
        self._first = linear(params, "torso.0", self._inputs).relu_()
        self._second = linear(params, "torso.1", self._first.view(len(rows), -1)).relu_()
        self.outputs = linear(params, "head", self._second)
        """[R, outputs]"""

    def further_heads(self) -> dict[str, Tensor]:
        """Return the outputs [R, size] of each further head, by name."""
        return {name: linear(self._params, f"head.{name}", self._second) for name in self._heads}

    @property
    def layers(self) -> tuple[Tensor, Tensor, Tensor]:
        """Outputs of each layer of a grid torso, after its ReLU if any: [R, units] each."""
        return self._first, self._second, self.outputs

    def hidden(self, rows: int) -> tuple[Tensor, Tensor]:
        """Return activations [rows, places, units] of both hidden layers for the first ``rows``."""
        count, (units, width) = len(self._second), (self._first.shape[1], self._second.shape[1])
        first = self._first.view(count, -1, units)
        return first[:rows], self._second.view(count, 1, width)[:rows]

    @property
    def output_array(self) -> NDArray[np.float32]:
        """The outputs [R, outputs] as a NumPy array, which shares their memory on the CPU."""
        output_array: NDArray[np.float32] = self.outputs.cpu().numpy()
        return output_array

    def gradient_(self, at_outputs: Tensor, into: Parameters) -> None:
        """Write the gradient of every parameter to ``into``, from that at the outputs."""
        # A product with few columns is slow; with few rows, then copied, it is fast.
        into["head.w"].copy_((at_outputs.T @ self._second).T)
        torch.sum(at_outputs, 0, out=into["head.b"])
        at_second = at_outputs @ self._params["head.w"].T
        # The sign of a ReLU's output, 0 or 1, is its derivative.
        at_second.mul_(self._second.sign())
        wide = self._first.view(len(self._second), -1)
        write_linear("torso.1", wide, at_second, into)
        at_first = (at_second @ self._params["torso.1.w"].T).view_as(self._first)
        at_first.mul_(self._first.sign())
        write_linear("torso.0", self._inputs, at_first, into)
