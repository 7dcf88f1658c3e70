"""Distributions of initial parameters; each array is drawn from a random stream of its name."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray


def truncated_normal(rng: Generator, shape: tuple[int, ...], std: float) -> NDArray[np.float64]:
    """Return ``std`` times a standard normal truncated to [-2, 2] (variance is not corrected)."""
    draw = rng.standard_normal(shape)
    while (outside := np.abs(draw) > 2.0).any():
        draw[outside] = rng.standard_normal(int(outside.sum()))
    return draw * std


def normal(rng: Generator, shape: tuple[int, ...], std: float) -> NDArray[np.float64]:
    """Return normal draws with this standard deviation."""
    return rng.standard_normal(shape) * std


def orthogonal(rng: Generator, shape: tuple[int, int], gain: float) -> NDArray[np.float64]:
    """Return random orthonormal rows or columns (whichever are fewer), times ``gain``."""
    tall = rng.standard_normal((max(shape), min(shape)))
    basis, triangle = np.linalg.qr(tall)
    basis *= np.sign(np.diag(triangle))  # without which some directions would be more likely
    return gain * (basis if shape[0] >= shape[1] else basis.T)


def uniform(rng: Generator, shape: tuple[int, ...], fan_in: int) -> NDArray[np.float64]:
    """Return draws uniform on +-1/sqrt(fan_in), PyTorch's default for weights and biases."""
    bound = 1.0 / math.sqrt(fan_in)
    return rng.uniform(-bound, bound, shape)
