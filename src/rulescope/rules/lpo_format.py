"""Format of LPO rule files: the two matrices of a drift network.

Weights are ``[inputs, outputs]``. The eight inputs are functions of the probability ratio, and the
same times the advantage; their order and sign is an option of the learner, not of the file.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope.core import seeds
from rulescope.core.arrays import Arrays
from rulescope.rules.array_format import Shape, find_fault
from rulescope.rules.lpg_format import TRUNCATED

PREFIX = "lpo/"
"""Of every key."""
INPUTS = 8


class LpoSizes(NamedTuple):
    """The one free size; the default is that of the public implementations."""

    hidden: int = 128


def shapes(sizes: LpoSizes | None = None) -> dict[str, Shape]:
    """Return the two keys and their shapes for a rule of the given sizes."""
    (hidden,) = sizes or LpoSizes()
    return {f"{PREFIX}hidden/w": (INPUTS, hidden), f"{PREFIX}out/w": (hidden, 1)}


def sizes_of(arrays: Arrays) -> LpoSizes:
    """Return the sizes of a rule that has both keys."""
    return LpoSizes(arrays[f"{PREFIX}out/w"].shape[0])


def fault(arrays: Arrays) -> str | None:
    """Return why ``arrays`` are not an LPO rule, naming the array, or None if they are."""
    return find_fault(arrays, "LPO", LpoSizes(), shapes, sizes_of)


def draw(sizes: LpoSizes, seed: int) -> dict[str, NDArray[np.float32]]:
    """Draw a rule as the public implementations initialise one.

    Truncated normals whose variance is the inverse of the number of inputs. (The values are not
    the same.)
    """
    return {
        name: seeds.truncated_normal(
            seeds.stream(seed, "rule", name), shape, 1.0 / (TRUNCATED * math.sqrt(shape[0]))
        ).astype(np.float32)
        for name, shape in shapes(sizes).items()
    }
