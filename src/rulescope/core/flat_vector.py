"""One flat parameter vector with named views, and linear layers on such views.

Adam, clipping and target averaging become a few passes over one array, a checkpoint of the
parameters is that array, and the agent itself stays a pure function of the views.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

Parameters = Mapping[str, Tensor]
"""Arrays of a network by name."""


class Layout:
    """The place of each named array in the flat vector."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.shapes = dict(shapes)
        self._sizes = [math.prod(shape) for shape in self.shapes.values()]

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(self._sizes)

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Return the named arrays inside ``flat`` [size], sharing its memory (and its graph)."""
        pieces = torch.split(flat, self._sizes)
        return {
            name: piece.view(shape)
            for (name, shape), piece in zip(self.shapes.items(), pieces, strict=True)
        }

    def flatten(self, arrays: Mapping[str, Tensor]) -> Tensor:
        """Return the flat vector [size] of the named ``arrays``."""
        return torch.cat([arrays[name].reshape(-1) for name in self.shapes])


def linear(params: Parameters, name: str, rows: Tensor) -> Tensor:
    """Apply the linear layer called ``name`` to ``rows`` [R, inputs]; return [R, outputs]."""
    return torch.addmm(params[f"{name}.b"], rows, params[f"{name}.w"])


def write_linear(name: str, inputs: Tensor, at_output: Tensor, into: Parameters) -> None:
    """Write the gradients of a linear layer's weights and biases to ``into``.

    ``inputs`` are [R, inputs], ``at_output`` is the gradient at its output [R, outputs].
    """
    torch.mm(inputs.T, at_output, out=into[f"{name}.w"])
    torch.sum(at_output, 0, out=into[f"{name}.b"])
