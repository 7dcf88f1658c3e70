"""How fresh parameters are drawn; each array has a random stream of its own name."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray


def truncated_normal(rng: Generator, shape: tuple[int, ...], std: float) -> NDArray[np.float64]:
    """Standard normal cut to [-2, 2], times ``std``; the variance lost by cutting stays lost."""
    draw = rng.standard_normal(shape)
    while (outside := np.abs(draw) > 2.0).any():
        draw[outside] = rng.standard_normal(int(outside.sum()))
    return draw * std


def normal(rng: Generator, shape: tuple[int, ...], std: float) -> NDArray[np.float64]:
    """Normal with this standard deviation."""
    return rng.standard_normal(shape) * std


def orthogonal(rng: Generator, shape: tuple[int, int], gain: float) -> NDArray[np.float64]:
    """Orthonormal rows or columns (whichever are fewer) in a random direction, times ``gain``."""
    tall = rng.standard_normal((max(shape), min(shape)))
    basis, triangle = np.linalg.qr(tall)
    basis *= np.sign(np.diag(triangle))  # without which some directions would be more likely
    return gain * (basis if shape[0] >= shape[1] else basis.T)


def uniform(rng: Generator, shape: tuple[int, ...], fan_in: int) -> NDArray[np.float64]:
    """Uniform on +-1/sqrt(fan_in), PyTorch's default for weights and biases alike."""
    bound = 1.0 / math.sqrt(fan_in)
    return rng.uniform(-bound, bound, shape)
