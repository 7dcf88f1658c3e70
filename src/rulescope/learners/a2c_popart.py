"""A2C-PopArt: the value is learned in units of the returns' running mean and deviation.

The head outputs (value - mean) / scale. When the running moments change, the head's weights and
bias are rescaled so that the values do not change (preserving outputs precisely); the torso and the
policy are not affected. Everything else is A2C.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rulescope.core.arrays import Arrays
from rulescope.learners.a2c import METRICS, ActorCritic, Decisions, gae, rows, split_values
from rulescope.learners.baseline_config import A2CPopArt
from rulescope.learners.learner import Carrier, Rollout


class Moments(NamedTuple):
    """The running first and second moment of the returns."""

    mean: float
    square: float

    def toward(self, returns: NDArray[np.float64], step: float) -> Moments:
        """Return the moments moved by the fraction ``step`` toward those of ``returns``."""
        mean, square = float(returns.mean()), float(np.square(returns).mean())
        return Moments(
            self.mean + step * (mean - self.mean), self.square + step * (square - self.square)
        )

    def scale(self, floor: float) -> float:
        """Return the deviation, at least ``floor``."""
        return max(math.sqrt(max(self.square - self.mean**2, 0.0)), floor)


class PopArtLearner(ActorCritic):
    """A2C with a normalised value; the carrier ``averages`` holds the two running moments."""

    metrics = (*METRICS, "value_mean", "value_scale", "floor_margin")

    def __init__(
        self,
        config: A2CPopArt,
        observation_shape: tuple[int, ...],
        actions: int,
        seed: int,
        device: str = "cpu",
    ) -> None:
        super().__init__(config, observation_shape, actions, seed, device)
        self.config = config
        self.averages = Moments(0.0, 1.0)
        self.carriers = {"averages": Carrier(self._get, self._set), **self.carriers}

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        """Estimate returns, update the moments, rescale the head, and update once."""
        config = self.config
        evaluation = self.evaluate(self.tensor(rows(rollout)))
        outputs = evaluation.output_array.astype(np.float64)
        scale = self.averages.scale(config.floor)
        estimated = outputs[:, -1] * scale + self.averages.mean
        values, final = split_values(rollout, estimated)
        advantages = gae(rollout, values, config.discount, config.trace, final)
        returns = advantages + values[:-1]

        self.move(returns)
        mean, scale = self.averages.mean, self.averages.scale(config.floor)
        # The same values in the new units; the gradient also uses the rescaled head.
        outputs[:, -1] = (estimated - mean) / scale
        units = scale if config.advantages == "normalised" else 1.0
        weights = advantages.ravel() / units
        targets = (returns.ravel() - mean) / scale
        decisions = Decisions(outputs[: len(weights)], rollout.actions.ravel())
        metrics = self.descend(evaluation, decisions, weights, targets, measure)
        if not measure:
            return {}
        return {
            **metrics,
            "advantage_std": float(advantages.std()),
            "value_mean": mean,
            "value_scale": scale,
            "floor_margin": scale - config.floor,
        }

    def move(self, returns: NDArray[np.float64]) -> None:
        """Move the moments toward ``returns`` and rescale the head so that values do not change."""
        before, after = self.averages, self.averages.toward(returns, self.config.step)
        old, new = before.scale(self.config.floor), after.scale(self.config.floor)
        weights, bias = self.views["head.w"][:, -1], self.views["head.b"][-1:]
        with torch.no_grad():
            weights.mul_(old / new)
            bias.mul_(old / new).add_((before.mean - after.mean) / new)
        self.averages = after

    def _get(self) -> dict[str, NDArray[Any]]:
        return {name: np.array(value) for name, value in self.averages._asdict().items()}

    def _set(self, content: Arrays) -> None:
        self.averages = Moments(float(content["mean"]), float(content["square"]))
