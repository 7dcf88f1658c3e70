"""Format of LPG rule files: 12 arrays, whose shapes follow from four sizes.

The rule embeds the predictions y of a step and of the next one as one number each, and reads both,
the reward, the flag of an episode's end and the probability of the action in a GRU that runs
backwards over a rollout. Weights are ``[inputs, outputs]``; the three gates of the GRU stand side
by side in the order reset, update, candidate. A temporally-aware rule (TA-LPG) has two more inputs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope.core import seeds
from rulescope.core.arrays import Arrays
from rulescope.rules.array_format import Shape, find_fault

PREFIX = "lpg/"
"""Of every key."""
STEP_INPUTS, LIFETIME_INPUTS = 5, 2
"""Inputs of each step, and what a temporally-aware rule reads besides."""


class LpgSizes(NamedTuple):
    """The free sizes of an LPG rule; the defaults are those of its public implementation."""

    predictions: int = 8
    """Width m of y, the prediction whose meaning the rule defines."""
    embedding: int = 16
    """Hidden units of the network that embeds y."""
    hidden: int = 256
    """Units of the GRU."""
    inputs: int = STEP_INPUTS
    """Inputs of the GRU: 5, or 7 in a temporally-aware rule."""

    @property
    def aware(self) -> bool:
        """Whether the rule reads the step and the length of the lifetime."""
        return self.inputs == STEP_INPUTS + LIFETIME_INPUTS


def shapes(sizes: LpgSizes | None = None) -> dict[str, Shape]:
    """Return the 12 keys and their shapes for a rule of the given sizes."""
    m, width, hidden, inputs = sizes or LpgSizes()
    layers: dict[str, Shape] = {
        "embedding.0/w": (m, width),
        "embedding.0/b": (width,),
        "embedding.1/w": (width, 1),
        "embedding.1/b": (1,),
        "gru/input/w": (inputs, 3 * hidden),
        "gru/input/b": (3 * hidden,),
        "gru/state/w": (hidden, 3 * hidden),
        "gru/state/b": (hidden,),  # of the candidate alone
        "policy/w": (hidden, 1),
        "policy/b": (1,),
        "y/w": (hidden, m),
        "y/b": (m,),
    }
    return {f"{PREFIX}{key}": shape for key, shape in sorted(layers.items())}


def sizes_of(arrays: Arrays) -> LpgSizes:
    """Return the sizes of a rule that has all keys."""
    return LpgSizes(
        predictions=arrays[f"{PREFIX}y/b"].shape[0],
        embedding=arrays[f"{PREFIX}embedding.0/b"].shape[0],
        hidden=arrays[f"{PREFIX}gru/state/b"].shape[0],
        inputs=arrays[f"{PREFIX}gru/input/w"].shape[0],
    )


def fault(arrays: Arrays) -> str | None:
    """Return why ``arrays`` are not an LPG rule, naming the array, or None if they are."""
    problem = find_fault(arrays, "LPG", LpgSizes(), shapes, sizes_of)
    if problem is None:
        sizes = sizes_of(arrays)
        if sizes.inputs != STEP_INPUTS and not sizes.aware:
            return (
                f"array '{PREFIX}gru/input/w' has {sizes.inputs} inputs; LPG has {STEP_INPUTS}, "
                f"TA-LPG {STEP_INPUTS + LIFETIME_INPUTS}"
            )
        if sizes.predictions < 2:
            return f"array '{PREFIX}y/b' has one prediction; there must be at least two"
    return problem


def draw(sizes: LpgSizes, seed: int) -> dict[str, NDArray[np.float32]]:
    """Draw a rule of these ``sizes`` as its public implementation initialises one.

    Truncated normals whose variance is the inverse of the number of inputs, orthogonal matrices on
    the state of the GRU, one for each gate; all biases are zero. (The values are not the same.)
    """
    return {name: _draw(name, shape, seed) for name, shape in shapes(sizes).items()}


def _draw(name: str, shape: Shape, seed: int) -> NDArray[np.float32]:
    if name.endswith("/b"):
        return np.zeros(shape, np.float32)
    stream, (inputs, outputs) = seeds.stream(seed, "rule", name), shape
    if name == f"{PREFIX}gru/state/w":
        gates = [seeds.orthogonal(stream, (inputs, outputs // 3), 1.0) for _ in range(3)]
        return np.concatenate(gates, axis=1).astype(np.float32)
    return seeds.truncated_normal(stream, shape, 1.0 / (TRUNCATED * math.sqrt(inputs))).astype(
        np.float32
    )


TRUNCATED = 0.87962566103423978
"""Standard deviation of a standard normal that is truncated to [-2, 2]."""
