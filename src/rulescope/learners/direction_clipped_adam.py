"""Adam on one flat vector, with the direction (not the gradient) clipped element by element."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

FIRST_DECAY = 0.9
SECOND_DECAY = 0.999
EPSILON = 1e-8
MAX_DIRECTION = 1.0


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
