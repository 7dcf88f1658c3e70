"""The rule network: reads a batch and the learner's outputs, and emits the targets to learn from.

Two recurrent networks share the weights file. The *trajectory* LSTM runs backwards over each stored
trajectory; the *lifetime* LSTM takes one step per learner update, and its state (h, c) is the
learning history this project is about: it gates every target the rule emits.

Everything that depends on one observation only is computed on distinct rows and gathered. All of it
is differentiable in the weights and, where the rule lets gradients flow, in the learner's outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.interface import sign_log
from rulescope.learners.disco.value import Estimate

Weights = Mapping[str, Tensor]

OUTER = "lstm"
LIFETIME = "lstm/~/meta_lstm/~unroll"


class RuleState(NamedTuple):
    """The lifetime LSTM's state: the recurrent carrier."""

    hidden: Tensor
    """[H]"""
    cell: Tensor
    """[H]"""


class Predictions(NamedTuple):
    """Softmaxed outputs of one network (online or target) on R distinct rows."""

    policy: Tensor
    """[R, A]"""
    y: Tensor
    """[R, P]"""
    z: Tensor
    """[R, A, P]"""


class Targets(NamedTuple):
    """What the rule tells the agent to move towards."""

    policy: Tensor
    """[T, B, A] logits"""
    y: Tensor
    """[T, B, P] logits"""
    z: Tensor
    """[T, B, P] logits, for the action taken"""
    y_probabilities: Tensor
    """[T, B, P] softmax of ``y``"""


class Trace(NamedTuple):
    """Intermediate quantities, for numerical checks and mechanism studies."""

    features: Tensor
    """[T, B, 27] what the trajectory LSTM reads"""
    action_embedding: Tensor
    """[T, B, A, 2]"""
    trajectory: Tensor
    """[T, B, 256] what it says"""
    gated: Tensor
    """[T, B, 256] after the lifetime state's gate"""
    emission: Tensor
    """[T, B, 1] the part of the output that is fed back to the lifetime network"""
    lifetime_features: Tensor
    """[T, B, 27]"""
    lifetime_action_embedding: Tensor
    """[T, B, A, 2]"""


class Gates:
    """An LSTM cell; stored gate order i, g, f, o, with one added to the forget gate.

    The columns are put in the order i, f, o, g so that one sigmoid serves three gates.
    """

    def __init__(self, weights: Weights, name: str) -> None:
        admit, candidate, forget, emit = weights[f"{name}/w"].chunk(4, dim=1)
        joined = torch.cat([admit, forget, emit, candidate], dim=1)
        self.units = admit.shape[1]
        inputs = joined.shape[0] - self.units
        self.input = joined[:inputs].contiguous()
        self.recurrent = joined[inputs:].contiguous()
        admit, candidate, forget, emit = weights[f"{name}/b"].chunk(4)
        self.bias = torch.cat([admit, forget + 1.0, emit, candidate])

    def project(self, x: Tensor) -> Tensor:
        """Return the input's part of all gates, [N, 4 units]: no recurrence, so done at once."""
        return torch.addmm(self.bias, x, self.input)

    def step(self, projected: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """Advance one step from (hidden, cell) [N, units]; return the new pair."""
        gates = torch.addmm(projected, hidden, self.recurrent)
        admit, forget, emit = gates[:, : 3 * self.units].sigmoid().chunk(3, dim=1)
        cell = forget * cell + admit * gates[:, 3 * self.units :].tanh()
        return emit * cell.tanh(), cell


class Encoders:
    """One sub-network's own encoders: of y, of z, and of the per-action features."""

    def __init__(self, weights: Weights, prefix: str) -> None:
        self._y = [weights[f"{prefix}/mlp/~/linear_{i}/{part}"] for i in (0, 1) for part in "wb"]
        self._z = [weights[f"{prefix}/mlp_1/~/linear_{i}/{part}"] for i in (0, 1) for part in "wb"]
        self._blocks = [
            (weights[f"{prefix}/sequential/{conv}/w"][0], weights[f"{prefix}/sequential/{conv}/b"])
            for conv in ("conv1_d", "conv1_d_1")
        ]

    def y(self, probabilities: Tensor) -> Tensor:
        """Encode distributions [..., P] by one number each: [...]."""
        return _two_layer(self._y, probabilities)

    def z(self, probabilities: Tensor) -> Tensor:
        """Encode distributions [..., P] by one number each: [...]."""
        return _two_layer(self._z, probabilities)

    def actions(self, channels: Tensor) -> Tensor:
        """Embed per-action channels [T, B, A, 9]: [T, B, A, 2]."""
        for weight, bias in self._blocks:
            channels = action_block(channels, weight, bias)
        return channels


def _two_layer(layers: list[Tensor], x: Tensor) -> Tensor:
    first, first_bias, second, second_bias = layers
    hidden = torch.addmm(first_bias, x.reshape(-1, x.shape[-1]), first).relu()
    return torch.addmm(second_bias, hidden, second).view(x.shape[:-1])


def action_block(channels: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Map [..., A, C] by one linear layer of each action's channels and their mean; then ReLU."""
    width = channels.shape[-1]
    own = channels @ weight[:width] + bias
    shared = channels.mean(-2, keepdim=True) @ weight[width:]
    return (own + shared).relu()


class MetaNetwork:
    """A Disco-family rule with fixed ``weights``; all sizes are read off the arrays."""

    def __init__(self, weights: Weights, sign_log_variant: str = "log1p") -> None:
        self.outer = Encoders(weights, OUTER)
        self.lifetime = Encoders(weights, LIFETIME)
        self._trajectory = Gates(weights, f"{OUTER}/lstm/linear")
        self._history = Gates(weights, f"{LIFETIME}/lstm/linear")
        self._heads = {
            name: (weights[f"{OUTER}/{key}/w"], weights[f"{OUTER}/{key}/b"])
            for name, key in (
                ("gate", "linear"),
                ("emission", "linear_1"),
                ("y", "linear_2"),
                ("z", "linear_3"),
                ("policy", "linear_4"),
            )
        }
        self._policy_block = (
            weights[f"{OUTER}/sequential_1/conv1_d/w"][0],
            weights[f"{OUTER}/sequential_1/conv1_d/b"],
        )
        self._summary = (
            weights[f"{LIFETIME}/mlp_2/~/linear_0/w"],
            weights[f"{LIFETIME}/mlp_2/~/linear_0/b"],
        )
        self._sign_log = sign_log_variant
        self.predictions = self._heads["y"][0].shape[1]
        self.units = self._history.units
        self.dtype, self.device = self._history.bias.dtype, self._history.bias.device

    def fresh(self) -> RuleState:
        """Return the state of a learner without history."""
        zeros = self._heads["gate"][0].new_zeros(self.units)
        return RuleState(zeros, zeros.clone())

    def __call__(
        self,
        batch: Batch,
        online: Predictions,
        target: Predictions,
        estimate: Estimate,
        state: RuleState,
    ) -> tuple[Targets, RuleState, Trace]:
        """Emit targets for ``batch`` from the *old* state, and take one step of the state."""
        features, actions = self._features(self.outer, batch, online, target, estimate)
        trajectory = self._unroll(features, batch.terminals)
        weight, bias = self._heads["gate"]
        gated = trajectory * (state.hidden @ weight + bias)
        emission, y, z = (self._head(name, gated) for name in ("emission", "y", "z"))
        policy = self._policy_target(gated, actions)
        targets = Targets(policy, y, z, y.softmax(-1))

        life, life_actions = self._features(self.lifetime, batch, online, target, estimate)
        seen = torch.cat(
            [life, emission, self.lifetime.y(targets.y_probabilities).unsqueeze(-1)], dim=-1
        )
        weight, bias = self._summary
        # The layer is linear, so the mean over the batch is taken before it.
        summary = seen.mean((0, 1)) @ weight + bias
        hidden, cell = self._history.step(
            self._history.project(summary.unsqueeze(0)),
            state.hidden.unsqueeze(0),
            state.cell.unsqueeze(0),
        )
        trace = Trace(features, actions, trajectory, gated, emission, life, life_actions)
        return targets, RuleState(hidden[0], cell[0]), trace

    def _head(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self._heads[name]
        return torch.addmm(bias, x.flatten(0, 1), weight).view(*x.shape[:2], -1)

    def _features(
        self,
        encoders: Encoders,
        batch: Batch,
        online: Predictions,
        target: Predictions,
        estimate: Estimate,
    ) -> tuple[Tensor, Tensor]:
        """Return the step features [T, B, 27] and the action embedding [T, B, A, 2]."""
        policy = online.policy.detach()
        online_z, target_z = encoders.z(online.z), encoders.z(target.z)
        behaviour = batch.behaviour.softmax(-1)
        chosen = torch.zeros_like(behaviour).scatter_(-1, batch.actions.unsqueeze(-1), 1.0)

        per_action = torch.stack(
            [
                policy,
                target.policy.detach(),
                online_z,
                target_z,
                self._log(estimate.target_q),
                self._log(estimate.q_advantage),
                estimate.normalised_q_advantage,
            ],
            dim=-1,
        )[batch.index[:-1]]
        channels = torch.cat(
            [
                per_action[..., :1],
                behaviour.unsqueeze(-1),
                per_action[..., 1:],
                chosen.unsqueeze(-1),
            ],
            dim=-1,
        )
        embedding = encoders.actions(channels)

        per_row = torch.stack(
            [
                self._log(estimate.value),
                encoders.y(online.y),
                encoders.y(target.y),
                (online_z * policy).sum(-1),
                online_z.amax(-1),
                (target_z * policy).sum(-1),
                target_z.amax(-1),
            ],
            dim=-1,
        )[batch.index]
        now, then = per_row[:-1].unbind(-1), per_row[1:].unbind(-1)
        taken = (channels * chosen.unsqueeze(-1)).sum(-2).unbind(-1)
        pi_taken, mu_taken, target_pi_taken, z_taken, target_z_taken = taken[:5]
        embedding_taken = (embedding * chosen.unsqueeze(-1)).sum(-2)

        steps = torch.stack(
            [
                pi_taken,
                mu_taken,
                self._log(batch.rewards),
                1.0 - batch.terminals,
                *(now[0], then[0]),
                self._log(estimate.advantage),
                estimate.normalised_advantage,
                target_pi_taken,
                *(now[1], then[1]),
                *(now[2], then[2]),
                z_taken,
                *(now[3], then[3]),
                *(now[4], then[4]),
                target_z_taken,
                *(now[5], then[5]),
                *(now[6], then[6]),
            ],
            dim=-1,
        )
        return torch.cat([steps, embedding.mean(-2), embedding_taken], dim=-1), embedding

    def _log(self, x: Tensor) -> Tensor:
        return sign_log(x, self._sign_log)

    def _unroll(self, features: Tensor, terminals: Tensor) -> Tensor:
        """Run the trajectory LSTM backwards over ``features`` [T, B, F]; return [T, B, units].

        A terminal transition starts from a clean state: nothing of the next episode reaches it.
        """
        length, width = terminals.shape
        gates = self._trajectory
        projected = gates.project(features.flatten(0, 1)).view(length, width, -1)
        continues = (1.0 - terminals).unsqueeze(-1)
        hidden = cell = features.new_zeros(width, gates.units)
        outputs: list[Tensor] = [hidden] * length
        for t in range(length - 1, -1, -1):
            keep = continues[t]
            hidden, cell = gates.step(projected[t], hidden * keep, cell * keep)
            outputs[t] = hidden
        return torch.stack(outputs)

    def _policy_target(self, gated: Tensor, embedding: Tensor) -> Tensor:
        """Return policy-target logits [T, B, A] from the gated output and the action embedding.

        The block reads each action's channels [gated, embedding] and their mean over actions.
        ``gated`` is the same for every action, hence equal to its own mean: one product does both.
        """
        weight, bias = self._policy_block
        units, width = gated.shape[-1], weight.shape[0] // 2
        both = weight[:units] + weight[width : width + units]
        common = torch.addmm(bias, gated.flatten(0, 1), both).view(*gated.shape[:2], 1, -1)
        own = embedding @ weight[units:width]
        shared = embedding.mean(-2, keepdim=True) @ weight[width + units :]
        weight, bias = self._heads["policy"]
        return ((common + own + shared).relu() @ weight).squeeze(-1) + bias
