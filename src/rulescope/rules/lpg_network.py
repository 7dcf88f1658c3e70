"""The network of LPG, which reads a rollout backwards, and the loss that its outputs define.

Time comes first here: arrays are [S, N, ...]. The state of the GRU is zero after the last step of
every rollout, and where an episode ends, so nothing in it outlives a rollout.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from rulescope.rules.lpg_format import PREFIX

EPSILON = 1e-8
"""Added to the probabilities of actions, and inside both logarithms of the divergence."""


class LpgOutput(NamedTuple):
    """What the rule asks of the agent."""

    policy: Tensor
    """[S, N]: the weight of log pi(action) in the loss, which is minimised: an advantage that the
    rule likes has a negative weight."""
    y: Tensor
    """[S, N, m]: the target of y, probabilities"""


def lpg_forward(
    weights: Mapping[str, Tensor],
    rewards: Tensor,
    terminals: Tensor,
    chosen: Tensor,
    y: Tensor,
    lifetime: tuple[float, float] | None = None,
) -> LpgOutput:
    """Return the rule's outputs for a rollout.

    ``rewards``, ``terminals`` (0 or 1) and ``chosen``, the probability of each action, are [S, N];
    ``y`` are the agent's predictions [S + 1, N, m] as probabilities. A temporally-aware rule also
    reads the two numbers ``lifetime``.
    """
    own = {name.removeprefix(PREFIX): array for name, array in weights.items()}
    embedded = _linear(own, "embedding.1", _linear(own, "embedding.0", y).relu()).squeeze(-1)
    following = embedded[1:] * (1.0 - terminals)  # the next observation is of another episode
    inputs = [rewards, terminals, chosen, embedded[:-1], following]
    if lifetime is not None:
        inputs += [torch.full_like(rewards, number) for number in lifetime]
    hidden = _gru_backwards(own, torch.stack(inputs, -1), terminals).relu()
    policy = _linear(own, "policy", hidden).squeeze(-1)
    return LpgOutput(policy, _linear(own, "y", hidden).softmax(-1))


def _linear(weights: Mapping[str, Tensor], name: str, inputs: Tensor) -> Tensor:
    return functional.linear(inputs, weights[f"{name}/w"].T, weights[f"{name}/b"])


def _gru_backwards(weights: Mapping[str, Tensor], inputs: Tensor, terminals: Tensor) -> Tensor:
    """Return the states [S, N, H] for ``inputs`` [S, N, I], the last step first."""
    from_inputs = _linear(weights, "gru/input", inputs)  # [S, N, 3H]
    on_state, bias = weights["gru/state/w"], weights["gru/state/b"]
    state = inputs.new_zeros(inputs.shape[1], len(on_state))
    states = []
    for step in reversed(range(len(inputs))):
        state = state * (1.0 - terminals[step]).unsqueeze(-1)  # before the cell reads the step
        reset, update, candidate = from_inputs[step].chunk(3, -1)
        on_reset, on_update, on_candidate = (state @ on_state).chunk(3, -1)
        reset, update = (reset + on_reset).sigmoid(), (update + on_update).sigmoid()
        candidate = (candidate + reset * (on_candidate + bias)).tanh()
        state = (1.0 - update) * candidate + update * state
        states.append(state)
    return torch.stack(states[::-1])


def divergence(y: Tensor, target: Tensor) -> Tensor:
    """Return the divergence [S, N] of the probabilities ``y`` [S, N, m] from ``target``."""
    return (y * ((y + EPSILON).log() - (target + EPSILON).log())).sum(-1)


def lpg_loss(
    weights: Mapping[str, Tensor],
    rewards: Tensor,
    terminals: Tensor,
    chosen: Tensor,
    y: Tensor,
    y_coefficient: float = 0.5,
    lifetime: tuple[float, float] | None = None,
) -> Tensor:
    """Return the agent's loss; gradients flow through ``chosen`` and ``y``, not through the rule.

    The arguments are those of :func:`lpg_forward`, which sees ``chosen`` plus ``EPSILON``.
    """
    chosen = chosen + EPSILON
    target = lpg_forward(weights, rewards, terminals, chosen.detach(), y.detach(), lifetime)
    actor = (chosen.log() * target.policy.detach()).mean()
    return actor + y_coefficient * divergence(y[:-1], target.y.detach()).mean()
