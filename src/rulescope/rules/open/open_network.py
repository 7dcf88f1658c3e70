"""The rule's own network: one GRU cell, then two normalised layers, for all parameters at once.

Every scalar parameter of the agent is a column: features are [19, n], the carry is [G, n]. So
sums over features are matrix products, and everything else is contiguous in memory.

A rule is one vector, whose length determines its size. The order of the arrays in it is
alphabetical at every level, a bias before its kernel (or scale); kernels are ``[inputs, outputs]``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core import arrays
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


NORM_EPSILON = 1e-6
BLOCK = 8192
"""Columns computed at a time, so that intermediate results stay in the processor's cache."""


class Matrices(NamedTuple):
    """The rule's weights: matrices [outputs, inputs] and columns [outputs, 1]."""

    from_features: Tensor
    """[3 G, 19]: reset gate, update gate, candidate."""
    from_features_bias: Tensor
    """[3 G, 1]"""
    from_carry: Tensor
    """[3 G, G]"""
    candidate_bias: Tensor
    """[G, 1]: added to the carry's part of the candidate, before the reset gate."""
    first: Tensor
    """[H, G], centred: see :func:`_centred`."""
    first_bias: Tensor
    first_scale: Tensor
    first_shift: Tensor
    second: Tensor
    """[H, H], centred."""
    second_bias: Tensor
    second_scale: Tensor
    second_shift: Tensor
    last: Tensor
    """[3, H]"""
    last_bias: Tensor


def matrices(vector: Tensor) -> Matrices:
    """Return the weights in ``vector`` [length] as matrices."""
    part = unpacked(vector)
    column = {name: value[:, None] for name, value in part.items() if value.ndim == 1}
    return Matrices(
        torch.cat([part[f"gru.{gate}.kernel"].T for gate in ("ir", "iz", "in")]),
        torch.cat([column[f"gru.{gate}.bias"] for gate in ("ir", "iz", "in")]),
        torch.cat([part[f"gru.{gate}.kernel"].T for gate in ("hr", "hz", "hn")]),
        column["gru.hn.bias"],
        _centred(part["dense.a.kernel"].T),
        _centred(column["dense.a.bias"]),
        column["norm.a.scale"],
        column["norm.a.bias"],
        _centred(part["dense.b.kernel"].T),
        _centred(column["dense.b.bias"]),
        column["norm.b.scale"],
        column["norm.b.bias"],
        part["dense.c.kernel"].T.contiguous(),
        column["dense.c.bias"],
    )


def _centred(weight: Tensor) -> Tensor:
    """Return ``weight`` [outputs, ...] without its mean over the outputs.

    The normalisation subtracts the mean of a layer's outputs, which equals centring its weights.
    """
    return (weight - weight.mean(dim=0)).contiguous()


class RuleNetwork:
    """The rule network with fixed weights, applied to columns."""

    def __init__(self, vector: NDArray[np.float32], device: torch.device) -> None:
        self._vector = torch.tensor(vector, device=device)
        self.size = size_of(self._vector)
        self._matrices = matrices(self._vector)

    def __call__(self, features: Tensor, carry: Tensor) -> Tensor:
        """Return the rule's outputs [3, n]; ``carry`` [G, n] is updated in place.

        ``features`` are [19, n].
        """
        outputs = features.new_empty(len(self._matrices.last), features.shape[1])
        for start in range(0, features.shape[1], BLOCK):
            some = slice(start, start + BLOCK)
            self._update_carry_(features[:, some], carry[:, some])
            outputs[:, some] = self._outputs(carry[:, some])
        return outputs

    def _update_carry_(self, features: Tensor, carry: Tensor) -> None:
        """Make one step of the GRU, in place."""
        m, width = self._matrices, self.size.carry
        from_features = torch.addmm(m.from_features_bias, m.from_features, features)
        from_carry = m.from_carry @ carry
        gates = from_features[: 2 * width].add_(from_carry[: 2 * width]).sigmoid_()
        reset, update = gates[:width], gates[width:]
        candidate = from_carry[2 * width :].add_(m.candidate_bias).mul_(reset)
        candidate.add_(from_features[2 * width :]).mul_(2.0).sigmoid_().mul_(2.0).sub_(1.0)
        carry.sub_(candidate).mul_(update).add_(candidate)  # (1 - z) n + z h

    def _outputs(self, carry: Tensor) -> Tensor:
        m = self._matrices
        first = _normalised_(torch.addmm(m.first_bias, m.first, carry))
        first = first.mul_(m.first_scale).add_(m.first_shift).relu_()
        second = _normalised_(torch.addmm(m.second_bias, m.second, first))
        second = second.mul_(m.second_scale).add_(m.second_shift).relu_()
        return torch.addmm(m.last_bias, m.last, second)

    def digest(self) -> str:
        """Return the digest of the weights in memory now (see :class:`RuleWeights`)."""
        held = {name: value.cpu().numpy() for name, value in self._matrices._asdict().items()}
        made = matrices(self._vector)._asdict()
        if all(np.array_equal(held[name], made[name].cpu().numpy()) for name in held):
            return arrays.digest({"weights": self._vector.cpu().numpy()})
        return arrays.digest(held)


def _normalised_(columns: Tensor) -> Tensor:
    """Scale every column of ``columns`` [H, n], whose mean is zero, to variance one, in place."""
    # (The mean of a product is thirty times as fast here as torch's norms and variances.)
    variance = (columns * columns).mean(dim=0)
    return columns.mul_(variance.add_(NORM_EPSILON).rsqrt_())
