"""The rule network: reads a batch and the learner's outputs, and emits the targets to learn from.

Two recurrent networks share the weights file. The *trajectory* LSTM runs backwards over each stored
trajectory; the *lifetime* LSTM takes one step per learner update, and its state (h, c) is the
learning history this project is about: it gates every target the rule emits.

Everything that depends on one observation only is computed on distinct rows and gathered. All of it
is differentiable in the weights and, where the rule lets gradients flow, in the learner's outputs.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.features import (
    LIFETIME,
    OUTER,
    Predictions,
    Reader,
    Reading,
    Weights,
)
from rulescope.learners.disco.value_estimates import Estimate
from rulescope.learners.disco.value_interface import sign_log, softmax


class RuleState(NamedTuple):
    """The lifetime LSTM's state: the recurrent carrier."""

    hidden: Tensor
    """[H]"""
    cell: Tensor
    """[H]"""


class Targets(NamedTuple):
    """The targets that the rule sets for the agent."""

    policy: Tensor
    """[T, B, A] logits"""
    y: Tensor
    """[T, B, P] probabilities"""
    z: Tensor
    """[T, B, P] probabilities, for the action taken"""
    y_logits: Tensor | None
    """[T, B, P], or None where no gradient is wanted and the softmax has taken their place"""
    z_logits: Tensor | None

    @property
    def logits(self) -> tuple[Tensor, Tensor]:
        """The logits of the y and z targets, where a gradient was wanted."""
        if self.y_logits is None or self.z_logits is None:
            raise ValueError("the targets were computed without gradients, their logits are gone")
        return self.y_logits, self.z_logits


class Trace(NamedTuple):
    """Intermediate quantities, for numerical checks and mechanism studies."""

    outer: Reading
    lifetime: Reading
    trajectory: Tensor
    """[T, B, 256] what the trajectory LSTM says"""
    gated: Tensor
    """[T, B, 256] after the lifetime state's gate"""
    emission: Tensor
    """[T, B, 1] the part of the output that is fed back to the lifetime network"""


class Gates:
    """An LSTM cell; stored gate order i, g, f, o, with one added to the forget gate.

    The columns are put in the order i, f, o, g, and those of g doubled, because then one sigmoid
    serves all four gates: tanh(x) = 2 sigmoid(2 x) - 1, and torch's sigmoid is far faster.
    """

    def __init__(self, weights: Weights, name: str) -> None:
        self.bias = self._ordered(weights[f"{name}/b"], forget_bias=1.0)
        self.units = self.bias.shape[0] // 4
        weight = self._ordered(weights[f"{name}/w"], forget_bias=0.0)  # [inputs + units, 4 units]
        self._inputs, self._recurrent = weight[: -self.units], weight[-self.units :]

    @staticmethod
    def _ordered(stored: Tensor, forget_bias: float) -> Tensor:
        admit, candidate, forget, emit = stored.chunk(4, dim=-1)
        return torch.cat([admit, forget + forget_bias, emit, 2.0 * candidate], dim=-1)

    def project(self, x: Tensor) -> Tensor:
        """Return the input's part of all gates [N, 4 units]: no recurrence, so done at once."""
        return torch.addmm(self.bias, x, self._inputs)

    def first(self, projected: Tensor) -> tuple[Tensor, Tensor]:
        """Take the first step, from an empty state; return (hidden, cell) [N, units]."""
        admit, _, emit, candidate = projected.sigmoid().chunk(4, dim=1)
        return self._emit(emit, torch.addcmul(-admit, admit, candidate, value=2.0))

    def step(self, projected: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """Take a step from the state (hidden, cell) [N, units]; return the new one."""
        if torch.is_grad_enabled():
            gates = torch.addmm(projected, hidden, self._recurrent).sigmoid()
        else:
            gates = projected.addmm_(hidden, self._recurrent).sigmoid_()  # it is not used again
        admit, forget, emit, candidate = gates.chunk(4, dim=1)
        kept = torch.addcmul(-admit, forget, cell)
        return self._emit(emit, torch.addcmul(kept, admit, candidate, value=2.0))

    @staticmethod
    def _emit(emit: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        return torch.addcmul(-emit, emit, (2.0 * cell).sigmoid_(), value=2.0), cell


class MetaNetwork:
    """A Disco rule with fixed ``weights``; all sizes are read off the arrays."""

    def __init__(
        self, weights: Weights, sign_log_variant: str = "log1p", *, dense: bool = False
    ) -> None:
        """``dense`` runs the trajectory LSTM through all steps of all trajectories.

        That is slower than episode by episode, but the same operations whatever the terminals are,
        so it can be mapped over a population (``torch.vmap``).
        """
        self._unroll = self._through_time if dense else self._by_episode
        self._read = Reader(weights, partial(sign_log, variant=sign_log_variant))
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
        self.predictions = self._heads["y"][0].shape[1]
        self.units, self.trajectory_units = self._history.units, self._trajectory.units
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
        outer, lifetime = self._read(batch, online, target, estimate)
        trajectory = self._unroll(outer.steps, batch.terminals)
        weight, bias = self._heads["gate"]
        gated = trajectory * (state.hidden @ weight + bias)
        emission, y, z = (self._head(name, gated) for name in ("emission", "y", "z"))
        policy = self._policy_target(gated, outer.actions)
        kept = (y, z) if torch.is_grad_enabled() else (None, None)
        targets = Targets(policy, softmax(y), softmax(z), *kept)

        fed_back = self._read.y.lifetime(targets.y)
        seen = torch.cat([lifetime.steps, emission, fed_back], dim=-1)
        weight, bias = self._summary
        # The layer is linear, so the mean over the batch is taken before it.
        summary = seen.mean((0, 1)) @ weight + bias
        hidden, cell = self._history.step(
            self._history.project(summary.unsqueeze(0)),
            state.hidden.unsqueeze(0),
            state.cell.unsqueeze(0),
        )
        trace = Trace(outer, lifetime, trajectory, gated, emission)
        return targets, RuleState(hidden[0], cell[0]), trace

    def _head(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self._heads[name]
        return torch.addmm(bias, x.flatten(0, 1), weight).view(*x.shape[:2], -1)

    def _by_episode(self, features: Tensor, terminals: Tensor) -> Tensor:
        """Run the trajectory LSTM backwards over ``features`` [T, B, F]; return [T, B, units].

        A terminal transition starts from a clean state: nothing of the next episode reaches it. So
        the episodes inside the trajectories are independent, and run side by side.
        """
        order, sizes = backward_order(terminals)
        first, *rest = self._trajectory.project(features.flatten(0, 1)[order]).split_with_sizes(
            sizes
        )
        hidden, cell = self._trajectory.first(first)
        outputs = [hidden]
        for x in rest:
            hidden, cell = self._trajectory.step(x, hidden[: len(x)], cell[: len(x)])
            outputs.append(hidden)
        return torch.cat(outputs)[order.argsort()].view(*terminals.shape, -1)

    def _through_time(self, features: Tensor, terminals: Tensor) -> Tensor:
        """Do the same step by step, emptying the state where an episode ends."""
        projected = self._trajectory.project(features.flatten(0, 1))
        *earlier, last = projected.view(*terminals.shape, -1).unbind()
        hidden, cell = self._trajectory.first(last)
        outputs = [hidden]
        for x, goes_on in zip(
            reversed(earlier), reversed((1.0 - terminals[:-1]).unsqueeze(-1).unbind()), strict=True
        ):
            hidden, cell = self._trajectory.step(x, hidden * goes_on, cell * goes_on)
            outputs.append(hidden)
        return torch.stack(outputs[::-1])

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


def backward_order(terminals: Tensor) -> tuple[Tensor, list[int]]:
    """Order the transitions of ``terminals`` [T, B] for a backward recursion over all episodes.

    Returns the flat positions [T * B] of all last transitions, then of all second-to-last ones, and
    so on, and how many there are of each. Longer episodes come first within each group, so that
    the predecessors of a group of n are the first n of the group before.
    """
    length, width = terminals.shape
    time = np.arange(length)[:, None]
    ends = np.where(terminals.cpu().numpy() > 0, time, length - 1)
    end = np.minimum.accumulate(ends[::-1])[::-1]  # the last transition of each one's episode
    depth = (end - time).ravel()
    episode = (end * width + np.arange(width)).ravel()
    extent = np.bincount(episode)[episode]
    # One sort by depth, then by falling length, then by episode.
    key = (depth * (length + 1) + (length - extent)) * (length * width) + episode
    order = torch.from_numpy(key.argsort()).to(terminals.device)
    return order, np.bincount(depth).tolist()
