"""Adam with its direction clipped element by element (not the gradient), on one flat vector."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

FIRST_DECAY = 0.9
SECOND_DECAY = 0.999
EPSILON = 1e-8
MAX_DIRECTION = 1.0
_CHUNK = 1 << 15
"""Elements updated at a time, so that one chunk of every array stays in the cache."""


class Moments(NamedTuple):
    """The optimiser's memory."""

    first: Tensor
    """[size]"""
    second: Tensor
    """[size]"""
    updates: int
    """Updates made so far."""

    @classmethod
    def fresh(cls, params: Tensor) -> Moments:
        """Return the memory of an optimiser that has seen nothing."""
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
    """Do the same in place, chunk by chunk; return the moments with their new count."""
    count = moments.updates + 1
    first_scale = 1.0 / (1.0 - FIRST_DECAY**count)
    second_scale = 1.0 / (1.0 - SECOND_DECAY**count)
    for p, g, first, second in zip(
        *(
            torch.split(array, _CHUNK)
            for array in (params, gradient, moments.first, moments.second)
        ),
        strict=True,
    ):
        first.mul_(FIRST_DECAY).add_(g, alpha=1.0 - FIRST_DECAY)
        second.mul_(SECOND_DECAY).addcmul_(g, g, value=1.0 - SECOND_DECAY)
        scale = (second * second_scale).sqrt_().add_(EPSILON)
        direction = (first * first_scale).div_(scale).clamp_(-MAX_DIRECTION, MAX_DIRECTION)
        p.sub_(direction, alpha=learning_rate)
    return moments._replace(updates=count)
