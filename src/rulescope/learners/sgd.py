"""Plain gradient descent on one flat vector, with the gradient clipped by norm."""

from __future__ import annotations

import math

from torch import Tensor

from rulescope.core.errors import DivergedError


class Sgd:
    """``optax.clip_by_global_norm`` and a step; it has no state, so no carrier."""

    def __init__(self, params: Tensor, learning_rate: float, max_norm: float) -> None:
        """``params`` [size] are changed in place."""
        self._params, self._learning_rate, self._max_norm = params, learning_rate, max_norm

    def step_(self, gradient: Tensor) -> float:
        """Make one step along ``gradient`` [size]; return its norm before clipping."""
        norm = float(gradient.norm())
        if not math.isfinite(norm):
            raise DivergedError("the learner's gradient is no longer finite")
        scale = min(1.0, self._max_norm / norm) if norm > 0.0 else 1.0
        self._params.sub_(gradient, alpha=self._learning_rate * scale)
        return norm
