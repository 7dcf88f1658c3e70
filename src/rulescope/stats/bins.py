"""Effective number of bins of a categorical head."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from rulescope.stats.array_checks import DataError

_LEAST = 1e-12


def effective_bins(logits: ArrayLike) -> float:
    """Return the exponential of the entropy of the mean distribution over ``logits [..., bins]``.

    All leading axes are rows. Probabilities are computed in float32, as the learner computes
    them, and averaged in float64. Logits that are not finite give NaN.
    """
    with np.errstate(over="ignore"):  # overflow of float32 gives NaN below
        rows = np.asarray(logits, dtype=np.float32)
    if rows.ndim == 0 or rows.size == 0:
        raise DataError(f"logits must be rows of bins, not an array of shape {rows.shape}")
    rows = rows.reshape(-1, rows.shape[-1])
    if not np.isfinite(rows).all():
        return math.nan
    weights = np.exp(rows - rows.max(axis=-1, keepdims=True))
    probabilities = weights / weights.sum(axis=-1, keepdims=True)
    mean = probabilities.mean(axis=0, dtype=np.float64)
    mean /= mean.sum()
    return float(np.exp(-np.sum(mean * np.log(np.maximum(mean, _LEAST)))))
