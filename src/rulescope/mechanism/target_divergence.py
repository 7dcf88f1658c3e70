"""How far apart two sets of targets are that were emitted for the same transitions.

Pure functions of arrays; distributions lie along the last axis, and what is returned is a mean over
all others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def softmax(logits: Floats) -> Floats:
    """Return the probabilities that ``logits`` [..., K] stand for."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def mean_kl(one: Floats, other: Floats) -> float:
    """Return the mean of KL(one || other) in nats, over distributions [..., K].

    What has underflown to zero counts as the least number that single precision can hold.
    """
    least = float(np.finfo(np.float32).tiny)
    ratio = np.log(np.maximum(one, least)) - np.log(np.maximum(other, least))
    # Rounding can leave the divergence of two equal distributions just below zero.
    return max(float((one * ratio).sum(axis=-1).mean()), 0.0)


def mean_total_variation(one: Floats, other: Floats) -> float:
    """Return the mean share of probability that is elsewhere in ``other``: 0 alike, 1 disjoint."""
    return float(0.5 * np.abs(one - other).sum(axis=-1).mean())


def cosine(one: Floats, other: Floats) -> float:
    """Return the cosine of the angle between two vectors; NaN if either is zero."""
    sizes = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(np.vdot(one, other)) / sizes if sizes > 0 else float("nan")
