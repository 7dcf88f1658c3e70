"""Running statistics of rewards, discounts and returns: the scale of TD errors.

The scale is ``sigma``, with ``sigma^2 = Var[R] + Var[Gamma] E[G^2]``: the variance of a TD error
whose value estimates are right on average and nothing more (Schaul et al., 2021). R is the reward
of an interaction and Gamma the discount after it: 0 at the end of an episode. G is the return of
an episode; as in the public implementation of it, its undiscounted sum, known at its end. In a
stream without ends Gamma is constant, so only the variance of the rewards remains.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope.core.arrays import Arrays
from rulescope.learners.learner import Carrier, Rollout
from rulescope.learners.learner_base import ReturnScaling

RETURN_SCALE = "return_scale"
"""The log column of sigma."""


class Spread(NamedTuple):
    """Mean of the samples so far, and the sum of their squared distances from it (Welford)."""

    mean: float = 0.0
    distances: float = 0.0

    def joined(self, samples: NDArray[np.floating[Any]], count: float) -> Spread:
        """Return the spread of ``count`` earlier samples and of ``samples`` together."""
        more, mean = samples.size, float(samples.mean())
        apart, all_samples = mean - self.mean, count + more
        distances = float(np.square(samples - mean).sum())
        return Spread(
            self.mean + apart * more / all_samples,
            self.distances + distances + apart**2 * count * more / all_samples,
        )


class ReturnStatistics:
    """The statistics that a learner pushes every rollout into, before it uses ``sigma``.

    The carrier holds, in float64: ``steps`` and ``episodes``, the numbers of interactions and of
    ended episodes; ``reward`` and ``discount`` [2], mean and sum of squared distances;
    ``square_return``, the mean of G^2; ``largest``, the largest absolute reward; ``unfinished``
    [N], the sum of rewards of each lane's current episode ([0] before the first rollout). All zeros
    mean that nothing was seen.
    """

    def __init__(self, config: ReturnScaling, discount: float) -> None:
        self.config = config
        self.discount = discount
        self.steps = self.episodes = self.square_return = self.largest = 0.0
        self.rewards, self.discounts = Spread(), Spread()
        self.unfinished: NDArray[np.float64] = np.zeros(0)
        self.carrier = Carrier(self._get, self._set)

    def push(self, rollout: Rollout) -> None:
        """Add the interactions of ``rollout``, and the episodes that end in it."""
        rewards, ends = rollout.rewards.astype(np.float64), rollout.terminals
        self.rewards = self.rewards.joined(rewards, self.steps)
        self.discounts = self.discounts.joined(self.discount * (1.0 - ends), self.steps)
        self.steps += rewards.size
        self.largest = max(self.largest, float(np.abs(rewards).max()))
        if not self.unfinished.size:
            self.unfinished = np.zeros(rewards.shape[1])
        for reward, end in zip(rewards, ends, strict=True):
            self.unfinished += reward
            for total in self.unfinished[end]:
                self.episodes += 1.0
                self.square_return += (total**2 - self.square_return) / self.episodes
            self.unfinished[end] = 0.0

    @property
    def sigma(self) -> float:
        """The scale of TD errors, at least the floor; 1 as long as it would be 0."""
        seen = max(self.steps, 1.0)
        variance = self.rewards.distances / seen
        variance += self.discounts.distances / seen * self.square_return
        unit = self.largest if self.config.floor_unit == "reward" else 1.0
        return max(math.sqrt(variance), self.config.floor * unit) or 1.0

    def _get(self) -> dict[str, NDArray[Any]]:
        return {
            "steps": np.array(self.steps),
            "reward": np.array(self.rewards),
            "discount": np.array(self.discounts),
            "episodes": np.array(self.episodes),
            "square_return": np.array(self.square_return),
            "largest": np.array(self.largest),
            "unfinished": self.unfinished.copy(),
        }

    def _set(self, content: Arrays) -> None:
        self.steps, self.episodes = float(content["steps"]), float(content["episodes"])
        self.square_return, self.largest = (
            float(content["square_return"]),
            float(content["largest"]),
        )
        self.rewards = Spread(*(float(part) for part in content["reward"]))
        self.discounts = Spread(*(float(part) for part in content["discount"]))
        self.unfinished = np.array(content["unfinished"], np.float64)
