"""A2C: one optimiser step on all transitions of each rollout.

The loss is ``-mean(A log pi(a)) + 0.5 mean((v - R)^2) - 0.01 mean(H)`` with generalised advantages
A (not normalised) and returns R = A + v. Policy and value share the torso, so the value dominates
the clipped gradient at large rewards, and the entropy at small ones: A2C depends on the reward
scale, which is the point of the comparison.

:class:`ActorCritic`, the base of A2C, PPO and A2C-PopArt, runs its network in torch; losses at its
few outputs are computed in NumPy, in float64. On arrays this small the call dominates the cost of
an operation, and NumPy's calls are several times cheaper.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core import seeds
from rulescope.learners.adam import Adam, flat_carrier, to_tensor
from rulescope.learners.baseline_config import A2C, PPO, UNITS, A2CPopArt, NetworkSizes
from rulescope.learners.learner import Carrier, Choice, Learner, Rollout
from rulescope.learners.learner_base import UnitReplacement
from rulescope.learners.return_statistics import RETURN_SCALE, ReturnStatistics
from rulescope.learners.sgd import Sgd
from rulescope.learners.torso import Evaluation, Network
from rulescope.learners.unit_replacement import REPLACEMENT_METRICS, STREAM, Replacement

METRICS = ("loss_policy", "loss_value", "entropy", "advantage_std", "gradient_norm")


class ActorCritic(Learner):
    """Acts by sampling from its policy. The network's outputs are [logits of A actions, value]."""

    def __init__(
        self,
        config: A2C | PPO | A2CPopArt,
        observation_shape: tuple[int, ...],
        actions: int,
        seed: int,
        device: str = "cpu",
    ) -> None:
        self._coefficients = config.value_coefficient, config.entropy_coefficient
        self.device = torch.device(device)
        self.network = self.make_network(observation_shape, actions, config.agent)
        self.params = self.network.initial(seed).to(self.device)
        self.views = self.network.layout.views(self.params)
        self.gradient = torch.zeros_like(self.params)
        self._into = self.network.layout.views(self.gradient)
        adam = Adam(self.params, config.learning_rate, config.max_norm)
        self.optimiser: Adam | Sgd = adam
        self.streams = {"action": seeds.stream(seed, "action")}
        self.carriers: dict[str, Carrier] = {
            "moments": adam.carrier,
            "params": flat_carrier(self.params),
        }
        self.replacement: Replacement | None = None

    def _replace_units(self, config: UnitReplacement | None, seed: int) -> None:
        """Replace hidden units as ``config`` has it, after every step of the optimiser."""
        if config is None:
            return
        self.replacement = Replacement(config, self.network.hidden_layers(self.views))
        self.streams[STREAM] = seeds.stream(seed, STREAM)
        self.carriers = {UNITS: self.replacement.carrier, **self.carriers}
        self.metrics = (*self.metrics, *REPLACEMENT_METRICS)

    def carrier_metrics(self) -> dict[str, float]:
        """Return the ages and utilities of hidden units, if any are replaced."""
        return {} if self.replacement is None else self.replacement.metrics()

    def make_network(
        self, observation_shape: tuple[int, ...], actions: int, sizes: NetworkSizes
    ) -> Network:
        """Return the network, whose main outputs are the logits of ``actions`` and a value."""
        return Network(observation_shape, actions + 1, sizes)

    def act(self, observation: NDArray[np.float32]) -> Choice:
        """Sample from the policy: the largest of logits plus Gumbel noise."""
        logits = self.evaluate(self.tensor(observation)).output_array[:, :-1]
        noise = self.streams["action"].gumbel(size=logits.shape)
        return Choice((logits + noise).argmax(axis=1), {"logits": logits})

    def evaluate(self, rows: Tensor) -> Evaluation:
        """Return the network's evaluation on ``rows`` [R, *shape]."""
        return Evaluation(self.network, self.views, rows)

    def descend(
        self,
        evaluation: Evaluation,
        decisions: Decisions,
        weights: NDArray[np.float64],
        targets: NDArray[np.float64],
        measure: bool,
    ) -> dict[str, float]:
        """Make one optimiser step on R ``decisions``; return its metrics if ``measure``.

        ``weights`` and ``targets`` are [R]; further rows of ``evaluation`` have no loss.
        """
        whole = np.zeros(evaluation.outputs.shape, np.float32)
        whole[: len(weights)] = decisions.gradient(weights, targets, *self._coefficients)
        evaluation.gradient_(self.tensor(whole), self._into)
        norm = self.optimiser.step_(self.gradient)
        if self.replacement is not None:
            shown = evaluation.hidden(len(weights))
            self.replacement.step_(shown, self.streams[STREAM])
        return {**decisions.losses(weights, targets), "gradient_norm": norm} if measure else {}

    def tensor(self, array: NDArray[np.float32]) -> Tensor:
        """Return a copy on the learner's device."""
        return to_tensor(array, self.device)


def rows(rollout: Rollout) -> NDArray[np.float32]:
    """Return the observations of all lanes, time first, then those of cut-off episodes.

    [(S + 1) * N + K, *shape], with the K of ``rollout.final``, if it has any.
    """
    observations = rollout.observations
    flat = observations.reshape(-1, *observations.shape[2:])
    return flat if rollout.final is None else np.concatenate([flat, rollout.final])


def split_values(
    rollout: Rollout, values: NDArray[np.floating[Any]]
) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    """Return the values of :func:`rows` as those of the observations [S + 1, N] and [K]."""
    shape = rollout.observations.shape[:2]
    count = shape[0] * shape[1]
    return values[:count].reshape(shape), values[count:]


def gae(
    rollout: Rollout,
    values: NDArray[np.floating[Any]],
    discount: float,
    trace: float,
    final: NDArray[np.floating[Any]] | None = None,
) -> NDArray[np.float64]:
    """Return :func:`generalised_advantages` [S, N] of ``rollout`` for ``values`` [S + 1, N].

    ``final`` [K] are the values at which episodes were cut off. Such a value, discounted, is what
    the cut-off step still earns; the trace ends there as at any other terminal.
    """
    rewards = rollout.rewards
    if rollout.truncated is not None and final is not None:
        rewards = rewards.astype(np.float64)
        rewards[rollout.truncated] += discount * final.astype(np.float64)
    return generalised_advantages(rewards, rollout.terminals, values, discount, trace)


def generalised_advantages(
    rewards: NDArray[Any],
    terminals: NDArray[Any],
    values: NDArray[np.floating[Any]],
    discount: float,
    trace: float,
) -> NDArray[np.float64]:
    """Return advantage estimates [S, N] for ``values`` [S + 1, N].

    The value after the last step is the bootstrap. A terminal cuts both the next value (it belongs
    to another episode) and the trace.
    """
    estimates = values.astype(np.float64)
    continuation = discount * (1.0 - terminals)
    td_errors = rewards + continuation * estimates[1:] - estimates[:-1]
    advantages = np.empty_like(td_errors)
    running = np.zeros(td_errors.shape[1])
    for t in reversed(range(len(td_errors))):
        running = td_errors[t] + trace * continuation[t] * running
        advantages[t] = running
    return advantages


def log_softmax(logits: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return the log-softmax [R, A] of ``logits`` [R, A] over the last axis, in float64."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return shifted


class Decisions:
    """The network's outputs at R decisions; losses and their gradient in closed form.

    The loss is ``-mean(weight * log pi(action)) + c mean((value - target)^2) - d mean(entropy)``,
    where weights and targets are constants.
    """

    def __init__(self, outputs: NDArray[np.floating[Any]], actions: NDArray[np.int64]) -> None:
        """``outputs`` [R, A + 1] are logits and value, ``actions`` [R] the actions taken."""
        self._logs = log_softmax(outputs[:, :-1])
        self._probabilities = np.exp(self._logs)
        self._entropy = -(self._probabilities * self._logs).sum(axis=1, keepdims=True)
        self._taken = (np.arange(len(actions)), actions)
        self.chosen: NDArray[np.float64] = self._logs[self._taken]
        """[R] log pi(action)"""
        self.values = outputs[:, -1]
        """[R]"""

    def gradient(
        self,
        weights: NDArray[np.float64],
        targets: NDArray[np.float64],
        value: float,
        entropy: float,
    ) -> NDArray[np.float64]:
        """Return the loss's gradient at the outputs [R, A + 1]; ``weights``, ``targets`` are [R].

        ``value`` and ``entropy`` are the coefficients c and d.
        """
        rows, actions = self._probabilities.shape
        at_outputs = np.empty((rows, actions + 1))
        pull = weights[:, None] + entropy * (self._logs + self._entropy)
        np.multiply(self._probabilities, pull, out=at_outputs[:, :-1])
        at_outputs[self._taken] -= weights
        at_outputs[:, -1] = (2.0 * value) * (self.values - targets)
        at_outputs /= rows
        return at_outputs

    def losses(
        self, weights: NDArray[np.float64], targets: NDArray[np.float64]
    ) -> dict[str, float]:
        """Return the mean losses and entropy, for the log."""
        return {
            "loss_policy": -float((weights * self.chosen).mean()),
            "loss_value": float(np.square(self.values - targets).mean()),
            "entropy": float(self._entropy.mean()),
        }


class A2CLearner(ActorCritic):
    """Advantage actor-critic; its carriers are the parameters and the optimiser's moments.

    With return-based scaling also the statistics of rewards and returns, ``scaling``; with
    Continual Backprop also ages and utilities of hidden units, ``units``.
    """

    metrics: tuple[str, ...] = METRICS

    def __init__(
        self,
        config: A2C,
        observation_shape: tuple[int, ...],
        actions: int,
        seed: int,
        device: str = "cpu",
    ) -> None:
        super().__init__(config, observation_shape, actions, seed, device)
        self.config = config
        self.statistics: ReturnStatistics | None = None
        if config.scaling is not None:
            self.statistics = ReturnStatistics(config.scaling, config.discount)
            self.carriers = {"scaling": self.statistics.carrier, **self.carriers}
            self.metrics = (*METRICS, RETURN_SCALE)
        self._replace_units(config.replacement, seed)

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        """Update once from all S x N transitions; the last observations are the bootstrap."""
        config = self.config
        evaluation = self.evaluate(self.tensor(rows(rollout)))
        values, final = split_values(rollout, evaluation.output_array[:, -1])
        advantages = gae(rollout, values, config.discount, config.trace, final)
        if self.statistics is not None:
            # Advantages are linear in the TD errors, so dividing them divides each TD error.
            self.statistics.push(rollout)
            advantages /= self.statistics.sigma
        weights, returns = advantages.ravel(), (advantages + values[:-1]).ravel()
        decisions = Decisions(evaluation.output_array[: len(weights)], rollout.actions.ravel())
        metrics = self.descend(evaluation, decisions, weights, returns, measure)
        if not measure:
            return {}
        scale = {} if self.statistics is None else {RETURN_SCALE: self.statistics.sigma}
        spread = {"advantage_std": float(advantages.std())}
        return {**metrics, **spread, **scale, **self.carrier_metrics()}
