"""PPO: several passes over the transitions of each rollout, in minibatches.

A transition whose probability has moved by more than the clip in the direction of its advantage
adds nothing to the policy's gradient; every other one adds its advantage times the probability
ratio. The advantages are estimated once, before the first pass, and normalised within
each minibatch. The value's error is not clipped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core import seeds
from rulescope.learners.a2c import (
    METRICS,
    ActorCritic,
    Decisions,
    gae,
    log_softmax,
    rows,
    split_values,
)
from rulescope.learners.baseline_config import PPO
from rulescope.learners.learner import Rollout

Column = NDArray[np.float64]


class Minibatch(NamedTuple):
    """R transitions of a rollout."""

    rows: Tensor
    """[R, *shape] observations"""
    actions: NDArray[np.int64]
    """[R]"""
    before: Column
    """[R] log pi(action) at the time of acting"""
    advantages: Column
    """[R]"""
    returns: Column
    """[R]"""


class PPOLearner(ActorCritic):
    """Proximal policy optimisation; its carriers are parameters and optimiser moments."""

    metrics: tuple[str, ...] = (*METRICS, "clip_fraction")

    def __init__(
        self,
        config: PPO,
        observation_shape: tuple[int, ...],
        actions: int,
        seed: int,
        device: str = "cpu",
    ) -> None:
        super().__init__(config, observation_shape, actions, seed, device)
        self.config = config
        self.streams["minibatch"] = seeds.stream(seed, "minibatch")
        self._replace_units(config.replacement, seed)

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        """Make ``epochs`` times ``minibatches`` updates; the metrics are means over them."""
        config = self.config
        observed, actions = rows(rollout), rollout.actions.ravel()
        estimated = self.evaluate(self.tensor(observed)).output_array[:, -1]
        values, final = split_values(rollout, estimated)
        advantages = gae(rollout, values, config.discount, config.trace, final)
        logits = rollout.behaviour["logits"].reshape(len(actions), -1)
        columns = (
            actions,
            log_softmax(logits)[np.arange(len(actions)), actions],
            advantages.ravel(),
            (advantages + values[:-1]).ravel(),
        )
        measured = [
            self._update(minibatch, measure)
            for _ in range(config.epochs)
            for minibatch in self._minibatches(observed[: len(actions)], columns)
        ]
        if not measure:
            return {}
        means = {name: float(np.mean([one[name] for one in measured])) for name in measured[0]}
        return {**means, "advantage_std": float(advantages.std()), **self.carrier_metrics()}

    def _minibatches(
        self, observed: NDArray[np.float32], columns: tuple[NDArray[Any], ...]
    ) -> Iterator[Minibatch]:
        """Yield every transition once, in a new order; the minibatches differ by one at most."""
        order = self.streams["minibatch"].permutation(len(observed))
        parts = min(self.config.minibatches, len(observed))
        shuffled = self.tensor(observed[order]).tensor_split(parts)
        for measured, piece in zip(shuffled, np.array_split(order, parts), strict=True):
            yield Minibatch(measured, *(column[piece] for column in columns))

    def _update(self, batch: Minibatch, measure: bool) -> dict[str, float]:
        """Make one optimiser step; return its metrics if ``measure``."""
        config, advantages = self.config, batch.advantages
        if config.normalise_advantages and len(advantages) > 1:
            advantages = normalised(advantages)
        evaluation = self.evaluate(batch.rows)
        decisions = Decisions(evaluation.output_array, batch.actions)
        weights = clipped_policy_weights(decisions.chosen - batch.before, advantages, config.clip)
        metrics = self.descend(evaluation, decisions, weights, batch.returns, measure)
        if not measure:
            return {}
        clipped = (weights == 0) & (advantages != 0)
        return {**metrics, "clip_fraction": float(clipped.mean())}


def normalised(advantages: Column) -> Column:
    """Return ``advantages`` [R] shifted and scaled to mean 0 and (unbiased) deviation 1."""
    count = len(advantages)
    centred: Column = advantages - advantages.sum() / count
    deviation = math.sqrt(float(centred @ centred) / (count - 1))
    return centred / (deviation + 1e-8)


def clipped_policy_weights(log_ratio: Column, advantages: Column, clip: float) -> Column:
    """Return minus the gradient [R] of PPO's loss at log pi(action).

    The loss is ``-min(ratio * A, clamp(ratio, 1 - clip, 1 + clip) * A)``: flat where the ratio has
    left the interval in the direction of its advantage, and ``-ratio * A`` elsewhere.
    """
    ratio = np.exp(log_ratio)
    gain = ratio * advantages
    clamped = np.minimum(np.maximum(ratio, 1.0 - clip), 1.0 + clip)
    flat = clamped * advantages < gain
    return np.where(flat, 0.0, gain)
