"""One flat parameter vector, with named views.

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
