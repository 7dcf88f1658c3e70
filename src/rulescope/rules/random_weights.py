"""Random weights of a Disco rule, as before a discovery."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rulescope.core import seeds
from rulescope.rules.disco_format import DiscoSizes, shapes

GATE, HEADS = "lstm/linear", tuple(f"lstm/linear_{i}" for i in range(1, 5))
GATE_STD, HEAD_STD = 1.0, 0.3
"""Deviations of the layer that reads the recurrent state, and of the output layers; other layers
have the inverse root of their inputs."""


def fresh(sizes: DiscoSizes, seed: int) -> dict[str, NDArray[np.float32]]:
    """Draw a rule of these ``sizes``: truncated normals, all biases zero."""
    return {name: _draw(name, shape, seed) for name, shape in shapes(sizes).items()}


def _draw(name: str, shape: tuple[int, ...], seed: int) -> NDArray[np.float32]:
    layer, _, kind = name.rpartition("/")
    if kind == "b":
        return np.zeros(shape, np.float32)
    std = HEAD_STD if layer in HEADS else GATE_STD if layer == GATE else 1 / math.sqrt(shape[-2])
    stream = seeds.stream(seed, "rule", name)
    return seeds.truncated_normal(stream, shape, std).astype(np.float32)
