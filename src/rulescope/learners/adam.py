"""Adam on one flat vector: with the gradient clipped by norm, or the direction clipped by element.

The baselines and OPEN use :class:`Adam`, whose moments are a carrier. Disco uses
:func:`clipped_adam`, through which a meta-gradient can flow.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core.arrays import Arrays
from rulescope.core.errors import DivergedError
from rulescope.learners.learner import Carrier

FIRST_DECAY = 0.9
SECOND_DECAY = 0.999
EPSILON = 1e-8
MAX_DIRECTION = 1.0
"""Of :func:`clipped_adam`."""


class Adam:
    """``torch.optim.Adam``, by default with its default settings."""

    def __init__(
        self,
        params: Tensor,
        learning_rate: float,
        max_norm: float,
        *,
        decays: tuple[float, float] = (FIRST_DECAY, SECOND_DECAY),
        epsilon: float = EPSILON,
    ) -> None:
        """``params`` [size] are changed in place."""
        self._params = params
        self._learning_rate = learning_rate
        self._max_norm = max_norm
        self._decays = decays
        self._epsilon = epsilon
        self.first = torch.zeros_like(params)
        """[size]"""
        self.second = torch.zeros_like(params)
        """[size]"""
        self._updates = torch.zeros((), device=params.device)

    def step_(self, gradient: Tensor) -> float:
        """Clip ``gradient`` [size] in place, like ``torch.nn.utils.clip_grad_norm_``; update.

        Return the norm before clipping.
        """
        norm = math.sqrt(float(torch.dot(gradient, gradient)))
        if not math.isfinite(norm):
            raise DivergedError("the learner's gradient is no longer finite")
        if norm > self._max_norm:
            gradient.mul_(self._max_norm / (norm + 1e-6))
        self.descend_(gradient, self._learning_rate)
        return norm

    def descend_(self, gradient: Tensor, learning_rate: float) -> None:
        """Make one update with the unclipped ``gradient`` [size]."""
        self._updates += 1
        # The first moment of a weight without gradient decays to denormal numbers, which take the
        # processor several times as long; they are flushed to zero.
        torch.set_flush_denormal(True)
        # The kernel of ``torch.optim.adam.adam(fused=True)``, without its Python overhead.
        torch._fused_adam_(
            [self._params],
            [gradient],
            [self.first],
            [self.second],
            [],
            [self._updates],
            lr=learning_rate,
            beta1=self._decays[0],
            beta2=self._decays[1],
            weight_decay=0.0,
            eps=self._epsilon,
            amsgrad=False,
            maximize=False,
        )
        torch.set_flush_denormal(False)

    @property
    def carrier(self) -> Carrier:
        """The moments and the number of updates."""
        return Carrier(self._get, self._set)

    def _get(self) -> dict[str, NDArray[Any]]:
        return {
            "first": array(self.first),
            "second": array(self.second),
            "updates": np.array(int(self._updates), dtype=np.int64),
        }

    def _set(self, content: Arrays) -> None:
        write(content["first"], self.first)
        write(content["second"], self.second)
        self._updates.fill_(float(content["updates"]))


def flat_carrier(flat: Tensor) -> Carrier:
    """Return the carrier of one flat vector [size], which is written in place."""
    return Carrier(lambda: {"flat": array(flat)}, lambda content: write(content["flat"], flat))


def array(tensor: Tensor) -> NDArray[Any]:
    """Return a copy as a NumPy array."""
    return np.array(tensor.cpu().numpy())


def write(values: NDArray[Any], into: Tensor) -> None:
    """Copy ``values`` into the tensor ``into``."""
    into.copy_(to_tensor(values, into.device))


def to_tensor(values: NDArray[Any], device: torch.device) -> Tensor:
    """Return a copy of ``values`` as a tensor on ``device``.

    (This copies small arrays several times as fast as ``torch.tensor`` does.)
    """
    return torch.from_numpy(np.array(values)).to(device)


class Moments(NamedTuple):
    """The optimiser's moments."""

    first: Tensor
    """[size]"""
    second: Tensor
    """[size]"""
    updates: int | Tensor
    """Number of updates (a tensor where learners of different ages are updated together)."""

    @classmethod
    def fresh(cls, params: Tensor) -> Moments:
        """Return the initial moments."""
        return cls(torch.zeros_like(params), torch.zeros_like(params), 0)


def clipped_adam(
    params: Tensor, gradient: Tensor, moments: Moments, learning_rate: float
) -> tuple[Tensor, Moments]:
    """Return new parameters and moments: the definition, differentiable in the gradient.

    The denominator is detached, so that a meta-gradient flows through the first moment alone.
    """
    count = moments.updates + 1
    first = FIRST_DECAY * moments.first + (1.0 - FIRST_DECAY) * gradient
    second = SECOND_DECAY * moments.second + (1.0 - SECOND_DECAY) * gradient.square()
    scale = (second / (1.0 - SECOND_DECAY**count)).detach().sqrt() + EPSILON
    direction = (first / (1.0 - FIRST_DECAY**count) / scale).clamp(-MAX_DIRECTION, MAX_DIRECTION)
    return params - learning_rate * direction, Moments(first, second, count)


def clipped_adam_(
    params: Tensor, gradient: Tensor, moments: Moments, learning_rate: float
) -> Moments:
    """Compute :func:`clipped_adam` in place, in few passes over memory; return the new moments.

    With a and b the two bias corrections, the direction (m / a) / (sqrt(v / b) + epsilon) is
    k m / (sqrt(v) + epsilon sqrt(b)) for k = sqrt(b) / a; k is merged into clip and step.
    """
    count = int(moments.updates) + 1
    root = math.sqrt(1.0 - SECOND_DECAY**count)
    factor = root / (1.0 - FIRST_DECAY**count)
    moments.first.lerp_(gradient, 1.0 - FIRST_DECAY)
    moments.second.mul_(SECOND_DECAY).addcmul_(gradient, gradient, value=1.0 - SECOND_DECAY)
    direction = moments.second.sqrt().add_(EPSILON * root)
    torch.div(moments.first, direction, out=direction)
    bound = MAX_DIRECTION / factor
    params.add_(direction.clamp_(-bound, bound), alpha=-learning_rate * factor)
    return moments._replace(updates=count)
