"""PPO around a learned optimiser: OPEN, or Adam in its place.

Policy and value are separate networks on the flattened observation, whose hidden layers have the
same initial weights. There are several passes over each rollout in minibatches; each minibatch is
one optimiser step for both networks together. Gradients are explicit (see :mod:`.torso`); the
optimiser needs no graph either.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core import seeds
from rulescope.core.arrays import Arrays
from rulescope.core.errors import DivergedError
from rulescope.learners.a2c import Decisions, gae, log_softmax
from rulescope.learners.adam import Adam, array, flat_carrier, to_tensor, write
from rulescope.learners.learner import Carrier, Choice, Learner, Rollout
from rulescope.learners.open_config import Open, OpenAdam
from rulescope.learners.ppo import clipped_policy_weights
from rulescope.learners.torso import Evaluation, Network
from rulescope.rules.open import open_step as rule_step
from rulescope.rules.open.open_step import Leaf, clip_, proportions
from rulescope.rules.rule_weights import OPEN_KEY, RuleWeights

METRICS = (
    "loss_policy",
    "loss_value",
    "entropy",
    "advantage_std",
    "gradient_norm_policy",
    "gradient_norm_value",
    "clip_fraction",
)
HIDDEN_GAIN, POLICY_GAIN, VALUE_GAIN = math.sqrt(2.0), 0.01, 1.0
"""Gains of the orthogonal initial weights."""

Column = NDArray[np.float64]


class Samples(NamedTuple):
    """R transitions of a rollout, time first."""

    rows: NDArray[np.float32]
    """[R, K] flattened observations"""
    actions: NDArray[np.int64]
    """[R]"""
    before: Column
    """[R] log pi(action) at the time of acting"""
    values: Column
    """[R] the value at the time of acting"""
    advantages: Column
    """[R]"""
    returns: Column
    """[R]"""

    def select(self, piece: NDArray[np.int64]) -> Samples:
        """Return the samples with these indices."""
        return Samples(
            self.rows[piece],
            self.actions[piece],
            self.before[piece],
            self.values[piece],
            self.advantages[piece],
            self.returns[piece],
        )


class OpenLearner(Learner):
    """Acts by sampling from its policy and learns with the optimiser of ``config``."""

    metrics = METRICS

    def __init__(
        self,
        config: Open | OpenAdam,
        rule: RuleWeights | None,
        observation_shape: tuple[int, ...],
        actions: int,
        seed: int,
        iterations: int,
        device: str = "cpu",
    ) -> None:
        """``iterations`` is the length of the lifetime."""
        self.config, self.rule = config, rule
        self.device = torch.device(device)
        inputs = (math.prod(observation_shape),)
        self.policy = Network(inputs, actions, config.agent)
        self.value = Network(inputs, 1, config.agent)
        self.params = initial_parameters(self.policy, self.value, seed).to(self.device)
        self.gradient = torch.zeros_like(self.params)
        self._split = self.policy.layout.size
        self._policy, self._value = self._views(self.params)
        self._into_policy, self._into_value = self._views(self.gradient)
        self.streams = {name: seeds.stream(seed, name) for name in ("action", "minibatch")}
        self.steps = 0
        self.after_step = []
        self._optimiser: _OpenOptimiser | _AdamOptimiser
        if isinstance(config, Open):
            assert rule is not None
            self._optimiser = _OpenOptimiser(self, config, rule, config.horizon or iterations)
            self.streams["noise"] = seeds.stream(seed, "noise")
        else:
            self._optimiser = _AdamOptimiser(self, config, iterations)
        self.carriers = {
            **self._optimiser.carriers,
            "schedule": Carrier(self._get_schedule, self._set_schedule),
            "params": flat_carrier(self.params),
        }

    def act(self, observation: NDArray[np.float32]) -> Choice:
        """Sample from the policy: the largest of logits plus Gumbel noise."""
        measured = to_tensor(flattened(observation), self.device)
        logits = Evaluation(self.policy, self._policy, measured).output_array
        noise = self.streams["action"].gumbel(size=logits.shape)
        actions = (logits + noise).argmax(axis=1)
        taken = log_softmax(logits)[np.arange(len(actions)), actions]
        return Choice(actions, {"log_chance": taken.astype(np.float32)})

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        """Make ``epochs`` times ``minibatches`` steps; the metrics are means over them."""
        samples = self._samples(rollout)
        measured = []
        for _ in range(self.config.epochs):
            order = self.streams["minibatch"].permutation(len(samples.actions))
            for piece in np.array_split(order, self.config.minibatches):
                measured.append(self._update(samples.select(piece), measure))
        if not measure:
            return {}
        means = {name: float(np.mean([one[name] for one in measured])) for name in measured[0]}
        return {**means, "advantage_std": float(samples.advantages.std())}

    def _samples(self, rollout: Rollout) -> Samples:
        shape = rollout.observations.shape
        rows = flattened(rollout.observations.reshape(-1, *shape[2:]))
        outputs = Evaluation(self.value, self._value, to_tensor(rows, self.device)).output_array
        values = outputs.reshape(shape[:2]).astype(np.float64)
        advantages = gae(rollout, values, self.config.discount, self.config.trace)
        return Samples(
            rows[: rollout.actions.size],
            rollout.actions.ravel(),
            rollout.behaviour["log_chance"].ravel().astype(np.float64),
            values[:-1].ravel(),
            advantages.ravel(),
            (advantages + values[:-1]).ravel(),
        )

    def _update(self, batch: Samples, measure: bool) -> dict[str, float]:
        """Make one optimiser step; return its metrics if ``measure``."""
        config, rows = self.config, to_tensor(batch.rows, self.device)
        policy = Evaluation(self.policy, self._policy, rows)
        value = Evaluation(self.value, self._value, rows)
        decisions = Decisions(
            np.concatenate([policy.output_array, value.output_array], axis=1), batch.actions
        )
        advantages = normalised(batch.advantages)
        change = decisions.chosen - batch.before
        weights = clipped_policy_weights(change, advantages, config.clip)
        values = decisions.values.astype(np.float64)
        targets = clipped_targets(values, batch.values, batch.returns, config.clip)
        at_outputs = decisions.gradient(
            weights, targets, config.value_coefficient / 2.0, config.entropy_coefficient
        ).astype(np.float32)
        policy.gradient_(to_tensor(at_outputs[:, :-1], self.device), self._into_policy)
        value.gradient_(to_tensor(at_outputs[:, -1:], self.device), self._into_value)
        norms = [clip_(part, config.max_norm) for part in self._parts(self.gradient)]
        if not all(map(math.isfinite, norms)):
            raise DivergedError("the learner's gradient is no longer finite")
        self._optimiser.step_([*policy.layers, *value.layers])
        self.steps += 1
        for action in self.after_step:
            action()
        if not measure:
            return {}
        errors = value_errors(values, batch.values, batch.returns, config.clip)
        return {
            "loss_policy": policy_loss(change, advantages, config.clip),
            "loss_value": 0.5 * float(np.max(np.square(errors), axis=0).mean()),
            "entropy": decisions.losses(weights, targets)["entropy"],
            "gradient_norm_policy": norms[0],
            "gradient_norm_value": norms[1],
            "clip_fraction": float(((weights == 0) & (advantages != 0)).mean()),
        }

    def rule_digest(self) -> str | None:
        """Return the digest of the rule weights as they are in memory now."""
        optimiser = self._optimiser
        return optimiser.rule.network.digest() if isinstance(optimiser, _OpenOptimiser) else None

    def _parts(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """Split ``flat`` [parameters, ...] into the parts of the policy and of the value."""
        return flat[: self._split], flat[self._split :]

    def _views(self, flat: Tensor) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        policy, value = self._parts(flat)
        return self.policy.layout.views(policy), self.value.layout.views(value)

    def _get_schedule(self) -> dict[str, NDArray[Any]]:
        return {"steps": np.array(self.steps, dtype=np.int64)}

    def _set_schedule(self, content: Arrays) -> None:
        self.steps = int(content["steps"])


class _OpenOptimiser:
    """OPEN on a learner's parameters."""

    def __init__(self, learner: OpenLearner, config: Open, rule: RuleWeights, horizon: int) -> None:
        self._learner, self._config, self._horizon = learner, config, horizon
        self.rule = rule_step.Open(
            rule.arrays[OPEN_KEY],
            [*leaves(learner.policy), *leaves(learner.value, first=3)],
            explorers=learner.policy.layout.size,
            device=learner.device,
        )
        self.carriers = {
            "recurrent": self._carrier(self.rule.carry),
            "moments": self._carrier(self.rule.momenta),
        }

    def step_(self, layers: list[Tensor]) -> None:
        """Make one step; ``layers`` are the outputs [R, units] of both networks' layers."""
        learner, config = self._learner, self._config
        drawn = learner.streams["noise"].standard_normal(self.rule.explorers, dtype=np.float32)
        training, epoch = proportions(
            learner.steps, self._horizon, config.epochs, config.minibatches
        )
        learner.params -= self.rule.update(
            learner.params,
            learner.gradient,
            [layer.abs().mean(dim=0) for layer in layers],
            training,
            epoch,
            to_tensor(drawn, learner.device),
        )

    def _carrier(self, state: Tensor) -> Carrier:
        """Return the carrier of ``state`` [k, parameters]: for each network [parameters, k]."""
        policy, value = (part.T for part in self._learner._parts(state.T))

        def get() -> dict[str, NDArray[Any]]:
            return {"actor": array(policy.T.contiguous()), "critic": array(value.T.contiguous())}

        def put(content: Arrays) -> None:
            write(content["actor"].T, policy)
            write(content["critic"].T, value)

        return Carrier(get, put)


class _AdamOptimiser:
    """Adam on a learner's parameters."""

    def __init__(self, learner: OpenLearner, config: OpenAdam, horizon: int) -> None:
        self._learner, self._config, self._horizon = learner, config, horizon
        self._adam = Adam(
            learner.params,
            config.learning_rate,
            math.inf,
            decays=config.decays,
            epsilon=config.epsilon,
        )
        self.carriers = {"moments": self._adam.carrier}

    def step_(self, layers: list[Tensor]) -> None:  # noqa: ARG002
        """Make one step."""
        config = self._config
        done = self._learner.steps // (config.epochs * config.minibatches)
        left = 1.0 - done / self._horizon if config.anneal else 1.0
        self._adam.descend_(self._learner.gradient, config.learning_rate * left)


def initial_parameters(policy: Network, value: Network, seed: int) -> Tensor:
    """Draw the initial parameters of both networks as one vector [size] float32.

    Weights are orthogonal and biases zero; the value's hidden layers are copies of the policy's.
    """
    drawn: list[Tensor] = []
    for network, gain in ((policy, POLICY_GAIN), (value, VALUE_GAIN)):
        for name, shape in network.layout.shapes.items():
            hidden = name.startswith("torso")
            owner = "policy" if hidden or network is policy else "value"
            rng = seeds.stream(seed, "agent", owner, name)
            if len(shape) == 1:
                made = np.zeros(shape)
            else:
                scale = HIDDEN_GAIN if hidden else gain
                made = seeds.orthogonal(rng, (shape[0], shape[1]), scale)
            drawn.append(torch.tensor(made).float().reshape(-1))
    return torch.cat(drawn)


def leaves(network: Network, first: int = 0) -> list[Leaf]:
    """Return the tensors of ``network`` in the order of its vector; layers count from ``first``."""
    shapes = network.layout.shapes
    names = list(dict.fromkeys(name.rpartition(".")[0] for name in shapes))
    found = []
    for name, shape in shapes.items():
        layer = names.index(name.rpartition(".")[0])
        found.append(Leaf(shape, len(shape) - 1, first + layer, layer / (len(names) - 1)))
    return found


def flattened(observations: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return ``observations`` [R, *shape] as [R, K]; for boards with channels, channels last."""
    if observations.ndim == 4:
        observations = observations.transpose(0, 2, 3, 1)
    return observations.reshape(len(observations), -1)


def normalised(advantages: Column) -> Column:
    """Return ``advantages`` [R] shifted and scaled to mean 0 and deviation 1 (over N)."""
    scaled: Column = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    return scaled


def policy_loss(log_ratio: Column, advantages: Column, clip: float) -> float:
    """Return PPO's loss of R decisions; the arguments are [R]."""
    ratio = np.exp(log_ratio)
    bounded = np.clip(ratio, 1.0 - clip, 1.0 + clip)
    return -float(np.minimum(ratio * advantages, bounded * advantages).mean())


def value_errors(values: Column, before: Column, returns: Column, clip: float) -> Column:
    """Return the errors [2, R] of ``values`` [R] and of values clipped around ``before``."""
    near = before + np.clip(values - before, -clip, clip)
    return np.stack([values - returns, near - returns])


def clipped_targets(values: Column, before: Column, returns: Column, clip: float) -> Column:
    """Return the targets [R] whose squared error has the gradient of the clipped value loss.

    The loss is the larger of the two squared errors of :func:`value_errors`. Where that is the
    second and the value is outside the interval, it is flat: there the value is its own target.
    """
    own, near = np.square(value_errors(values, before, returns, clip))
    flat = (near > own) & (np.abs(values - before) > clip)
    return np.where(flat, values, returns)
