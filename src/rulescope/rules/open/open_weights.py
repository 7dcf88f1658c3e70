"""Layout of the weight vector of an OPEN rule: a GRU cell and a small network on top of it.

The order is alphabetical at every level, a bias before its kernel (or scale). Kernels are
``[inputs, outputs]``. The length of the vector determines the size.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from rulescope.core.errors import WeightsError
from rulescope.core.flat_vector import Layout

FEATURES = 19
"""Features of each parameter."""
OUTPUTS = 3
"""Outputs for each parameter: a magnitude, an exponent, and a scale of noise."""


class Size(NamedTuple):
    """The widths of a rule."""

    carry: int
    """G: width of the GRU state of each parameter."""
    hidden: int
    """H: width of the two hidden layers."""


SMALL, LARGE = Size(8, 16), Size(16, 32)


def shapes(size: Size) -> dict[str, tuple[int, ...]]:
    """Return the arrays of a rule by name, in the order in which the vector holds them."""
    carry, hidden = size
    return {
        "gru.hn.bias": (carry,),
        "gru.hn.kernel": (carry, carry),
        "gru.hr.kernel": (carry, carry),
        "gru.hz.kernel": (carry, carry),
        "gru.in.bias": (carry,),
        "gru.in.kernel": (FEATURES, carry),
        "gru.ir.bias": (carry,),
        "gru.ir.kernel": (FEATURES, carry),
        "gru.iz.bias": (carry,),
        "gru.iz.kernel": (FEATURES, carry),
        "dense.a.bias": (hidden,),
        "dense.a.kernel": (carry, hidden),
        "norm.a.bias": (hidden,),
        "norm.a.scale": (hidden,),
        "dense.b.bias": (hidden,),
        "dense.b.kernel": (hidden, hidden),
        "norm.b.bias": (hidden,),
        "norm.b.scale": (hidden,),
        "dense.c.bias": (OUTPUTS,),
        "dense.c.kernel": (hidden, OUTPUTS),
    }


def length(size: Size) -> int:
    """Return the number of weights of a rule of this size.

    >>> length(SMALL), length(LARGE)
    (1211, 3571)
    """
    return Layout(shapes(size)).size


def size_of(vector: Tensor) -> Size:
    """Return the size of the rule whose weights are ``vector`` [length]."""
    for size in (SMALL, LARGE):
        if vector.shape == (length(size),):
            return size
    raise WeightsError(
        f"an OPEN rule is a vector of {length(SMALL)} or {length(LARGE)} numbers, "
        f"this one has shape {tuple(vector.shape)}"
    )


def unpacked(vector: Tensor) -> dict[str, Tensor]:
    """Return the arrays inside ``vector`` [length] by name, sharing its memory."""
    return Layout(shapes(size_of(vector))).views(vector)
