"""Inputs of the rule: 27 numbers per transition, for each of its two sub-networks.

The sub-networks (trajectory and lifetime) read the same quantities in the same order; only the
encoders that squeeze predictions and per-action features into a few numbers are their own. So
everything is gathered once, with the two encodings of each prediction side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.value_estimates import Estimate

Weights = Mapping[str, Tensor]

OUTER = "lstm"
LIFETIME = "lstm/~/meta_lstm/~unroll"
NETWORKS = (OUTER, LIFETIME)


class Predictions(NamedTuple):
    """Softmaxed outputs of one network (online or target) on R distinct rows."""

    policy: Tensor
    """[R, A]"""
    y: Tensor
    """[R, P]"""
    z: Tensor
    """[R, A, P]"""


class Reading(NamedTuple):
    """Inputs of one sub-network for a batch."""

    steps: Tensor
    """[T, B, 27]"""
    actions: Tensor
    """[T, B, A, 2] embedding of the per-action features"""


class PredictionEncoder:
    """Two networks' encoders of a distribution: each P -> hidden -> ReLU -> 1."""

    def __init__(self, weights: Weights, name: str) -> None:
        layers = [
            [weights[f"{net}/{name}/~/linear_{i}/{part}"] for net in NETWORKS]
            for i in (0, 1)
            for part in "wb"
        ]
        first, first_bias, second, second_bias = layers
        self._first = torch.cat(first, dim=1), torch.cat(first_bias)
        self._second = torch.stack([w[:, 0] for w in second]), torch.cat(second_bias)
        self._one = first[1], first_bias[1], second[1], second_bias[1]

    def __call__(self, probabilities: Tensor) -> Tensor:
        """Encode distributions [..., P] by one number for each network: [..., 2]."""
        weight, bias = self._first
        flat = probabilities.reshape(-1, probabilities.shape[-1])
        hidden = torch.addmm(bias, flat, weight).relu().view(len(flat), len(NETWORKS), -1)
        weight, bias = self._second
        return ((hidden * weight).sum(-1) + bias).view(*probabilities.shape[:-1], -1)

    def lifetime(self, probabilities: Tensor) -> Tensor:
        """Encode distributions [..., P] for the lifetime network alone: [..., 1]."""
        first, first_bias, second, second_bias = self._one
        flat = probabilities.reshape(-1, probabilities.shape[-1])
        hidden = torch.addmm(first_bias, flat, first).relu()
        return torch.addmm(second_bias, hidden, second).view(*probabilities.shape[:-1], 1)


class ActionEncoder:
    """One network's encoder of per-action features: two blocks, 9 -> 16 -> 2 channels."""

    def __init__(self, weights: Weights, net: str) -> None:
        self._blocks = [
            (*weights[f"{path}/w"][0].chunk(2), weights[f"{path}/b"])
            for path in (f"{net}/sequential/conv1_d", f"{net}/sequential/conv1_d_1")
        ]

    def __call__(self, channels: Tensor) -> Tensor:
        """Embed per-action channels [T, B, A, 9]: [T, B, A, 2]."""
        for weight, mean_weight, bias in self._blocks:
            own = channels @ weight + bias
            shared = channels.mean(-2, keepdim=True) @ mean_weight
            channels = (own + shared).relu()
        return channels


class Reader:
    """Turns a batch and what the networks say of it into the rule's inputs."""

    def __init__(self, weights: Weights, log: Callable[[Tensor], Tensor]) -> None:
        """``log`` compresses magnitudes (see :func:`interface.sign_log`)."""
        self.y = PredictionEncoder(weights, "mlp")
        self._z = PredictionEncoder(weights, "mlp_1")
        self._actions = [ActionEncoder(weights, net) for net in NETWORKS]
        self._log = log

    def __call__(
        self, batch: Batch, online: Predictions, target: Predictions, estimate: Estimate
    ) -> list[Reading]:
        """Return what the outer and what the lifetime network reads."""
        policy = online.policy.detach()
        online_z, target_z = self._z(online.z), self._z(target.z)  # [R, A, 2]
        per_action = torch.cat(
            [
                torch.stack(
                    [
                        policy,
                        target.policy.detach(),
                        self._log(estimate.target_q),
                        self._log(estimate.q_advantage),
                        estimate.normalised_q_advantage,
                    ],
                    dim=-1,
                ),
                online_z,
                target_z,
            ],
            dim=-1,
        )
        weight = policy.unsqueeze(-1)
        per_row = torch.cat(
            [
                self._log(estimate.value).unsqueeze(-1),
                self.y(online.y),
                self.y(target.y),
                (online_z * weight).sum(1),
                online_z.amax(1),
                (target_z * weight).sum(1),
                target_z.amax(1),
            ],
            dim=-1,
        )
        return self._assemble(batch, estimate, per_action, per_row)

    def _assemble(
        self, batch: Batch, estimate: Estimate, per_action: Tensor, per_row: Tensor
    ) -> list[Reading]:
        """Spread rows over steps and put everything into the order the rule was trained with."""
        behaviour = batch.behaviour.softmax(-1)
        chosen = batch.actions.unsqueeze(-1)
        onehot = functional.one_hot(batch.actions, behaviour.shape[-1]).to(behaviour.dtype)
        pi, target_pi, target_q, q_advantage, normalised, *z = per_action[batch.index[:-1]].unbind(
            -1
        )
        value, *paired = per_row[batch.index].unbind(-1)

        def taken(x: Tensor) -> Tensor:
            return x.gather(-1, chosen).squeeze(-1)

        common = [
            taken(pi),
            taken(behaviour),
            self._log(batch.rewards),
            1.0 - batch.terminals,
            *(value[:-1], value[1:]),
            self._log(estimate.advantage),
            estimate.normalised_advantage,
            taken(target_pi),
        ]
        readings = []
        for net, encode in enumerate(self._actions):
            online_z, target_z = z[net], z[2 + net]
            online_y, target_y, *averages = ((x[:-1], x[1:]) for x in paired[net :: len(NETWORKS)])
            channels = [pi, behaviour, target_pi, online_z, target_z]
            channels += [target_q, q_advantage, normalised, onehot]
            embedding = encode(torch.stack(channels, dim=-1))
            own = [*online_y, *target_y, taken(online_z), *averages[0], *averages[1]]
            own += [taken(target_z), *averages[2], *averages[3]]
            seen = embedding.unbind(-1)
            pooled = [x.mean(-1) for x in seen] + [taken(x) for x in seen]
            readings.append(Reading(torch.stack(common + own + pooled, dim=-1), embedding))
        return readings
