"""The value interface: between scalar returns and categorical logits over a fixed support.

``readout`` takes the expectation over the atoms first and inverts the transform afterwards;
``project`` spreads a scalar over its two neighbouring atoms. Two arithmetics are known for each of
them. They agree on paper and differ in float32 near zero, which decides what a learner can see of
very small rewards.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rulescope.learners.disco_config import Conventions, Interface

EPSILON = 1e-3


def sign_log(x: Tensor, variant: str = "log1p") -> Tensor:
    """Compress magnitudes: sign(x) log(1 + |x|)."""
    magnitude = x.abs()
    return x.sign() * (magnitude.log1p() if variant == "log1p" else (magnitude + 1.0).log())


def softmax(logits: Tensor) -> Tensor:
    """Return the softmax over the last axis, in place of the logits where no gradient is wanted.

    Predictions and their targets are 600 wide; written elsewhere, they would leave the cache.
    """
    if torch.is_grad_enabled():
        return logits.softmax(-1)
    return torch.softmax(logits, -1, out=logits)


def hyperbolic(x: Tensor) -> Tensor:
    """Signed hyperbolic transform: sign(x) (sqrt(|x| + 1) - 1) + x / 1000."""
    return x.sign() * ((x.abs() + 1.0).sqrt() - 1.0) + EPSILON * x


def hyperbolic_inverse(y: Tensor, variant: str = "plain") -> Tensor:
    """Inverse of :func:`hyperbolic`; the order of operations decides the float32 rounding.

    ``plain`` rounds as the compiled reference does: divisions by a constant are products with its
    reciprocal, and a product that is added to something is rounded only once.
    """
    if variant == "clamped":
        root = (1.0 + 4.0 * EPSILON * (EPSILON + 1.0 + y.abs())).sqrt()
        base = (root - 1.0) / (2.0 * EPSILON)
        return y.sign() * (base * base - 1.0).clamp_min(0.0)
    factor = 0.5 * float(y.new_tensor(EPSILON).reciprocal())  # 499.99997 in float32
    inner = _fused(y.abs() + (EPSILON + 1.0), float(y.new_tensor(4.0 * EPSILON)), 1.0)
    base = _fused(inner.sqrt(), factor, -0.5 / EPSILON)
    return y.sign() * _fused(base, base.double(), -1.0)


def _fused(a: Tensor, b: Tensor | float, c: float) -> Tensor:
    """Return a * b + c with a single rounding to the precision of ``a``."""
    return (a.double() * b + c).to(a.dtype)


class TwoHot(NamedTuple):
    """Weights on two neighbouring atoms; where both are the same atom, the weights add."""

    low: Tensor
    """int64 atom index"""
    high: Tensor
    """int64 atom index"""
    low_weight: Tensor
    """The upper atom's weight is one minus this."""

    def dense(self, bins: int) -> Tensor:
        """Return the full weight vectors [..., bins].

        A value that is not finite has no atom. Its weights are not finite either, wherever they go;
        one broken agent of a population must not stop the others.
        """
        low, high = (atom.clamp(0, bins - 1).unsqueeze(-1) for atom in (self.low, self.high))
        weights = self.low_weight.new_zeros((*self.low.shape, bins))
        weights.scatter_add_(-1, low, self.low_weight.unsqueeze(-1))
        return weights.scatter_add_(-1, high, (1.0 - self.low_weight).unsqueeze(-1))


class ValueInterface:
    """Readout and projection for one support, transform and arithmetic."""

    def __init__(
        self, interface: Interface, conventions: Conventions, device: torch.device
    ) -> None:
        self.config = interface
        self._inverse = conventions.inverse
        self._two_hot = conventions.two_hot
        bound, bins = interface.bound, interface.bins
        self._support = torch.linspace(-bound, bound, bins, dtype=torch.float64, device=device)

    def transform(self, values: Tensor) -> Tensor:
        """Map scalar returns to the coordinate of the support."""
        return values if self.config.transform == "linear" else hyperbolic(values)

    def inverse(self, coordinates: Tensor) -> Tensor:
        """Map support coordinates back to scalar returns."""
        if self.config.transform == "linear":
            return coordinates
        return hyperbolic_inverse(coordinates, self._inverse)

    def readout(self, probabilities: Tensor) -> Tensor:
        """Return the scalar value [...] of categorical ``probabilities`` [..., bins].

        The inverse magnifies rounding, so the sum is not taken as a matrix product (pairwise sums
        are more exact) and a float32 softmax's own total is divided out.
        """
        support = self._support.to(probabilities.dtype)
        return self.inverse((probabilities * support).sum(-1) / probabilities.sum(-1))

    def project(self, values: Tensor) -> TwoHot:
        """Spread scalar ``values`` [...] over their neighbouring atoms (clipped to the support)."""
        return self.project_coordinates(self.transform(values))

    def project_coordinates(self, coordinates: Tensor) -> TwoHot:
        """As :meth:`project`, for values already in the coordinate of the support."""
        bound, last = self.config.bound, self.config.bins - 1
        clipped = coordinates.clamp(-bound, bound)
        position = self.position(clipped)
        low = position.floor()
        if self._two_hot == "exact":
            high = (low + 1.0).clamp_max(last)
            return TwoHot(low.long(), high.long(), 1.0 - (position - low))
        high = position.ceil().clamp_max(last)
        below, above = (atom * (1.0 / last) * (2.0 * bound) - bound for atom in (low, high))
        weight = (above - clipped) / (above - below + 1e-5)
        return TwoHot(low.long(), high.long(), weight)

    def position(self, coordinates: Tensor) -> Tensor:
        """Return where ``coordinates`` lie among the atoms, which are 0, 1, ..., bins - 1."""
        bound, last = self.config.bound, self.config.bins - 1
        if self._two_hot == "exact":
            return (coordinates + bound) / (2.0 * bound) * last
        # Compiled, the reference multiplies by reciprocals; a value on an atom feels the rounding.
        return (coordinates + bound) * (1.0 / (2.0 * bound)) * last


def effective_bins(mean_probabilities: Tensor) -> float:
    """Return exp(entropy) of a mean categorical distribution [bins]: how many atoms are in use."""
    p = mean_probabilities / mean_probabilities.sum()
    return float((-(p * p.clamp_min(1e-12).log()).sum()).exp())
