"""LPG and LPO for C candidates at once: the networks of :mod:`rulescope.rules`, batched.

A rule here is a pure function from the agents' outputs and a rollout to the gradient at those
outputs. All weights have the candidates' axis C first, everything of the agents [C, E, ...] for E
agents of each candidate; a vector of weights is [C, 1, units]. The losses' gradients at the few
outputs are in closed form.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from rulescope.rules.drift import CLIP, OFFSET
from rulescope.rules.lpg_network import EPSILON


class Rollout(NamedTuple):
    """S interactions of B lanes for the E agents of C candidates."""

    observations: Tensor
    """[C, E, S + 1, B, cells]"""
    actions: Tensor
    """[C, E, S, B] int64"""
    rewards: Tensor
    """[C, E, S, B] as the agent observes them"""
    terminals: Tensor
    """[C, E, S, B] as the agent observes them"""


class LpgInputs(NamedTuple):
    """What an LPG rule reads; time comes first."""

    rewards: Tensor
    """[S, C, L] for the L = E * B lanes of a candidate"""
    terminals: Tensor
    """[S, C, L]"""
    chosen: Tensor
    """[S, C, L] probability of the action taken"""
    predictions: Tensor
    """[S + 1, C, L, m] probabilities: the categorical prediction y of every observation"""


class LpgOutputs(NamedTuple):
    """What the agents of an LPG rule compute."""

    probabilities: Tensor
    """[C, E, S, B, A] of the policy"""
    predictions: Tensor
    """[C, E, S + 1, B, m] probabilities of the categories of y"""


class LpgTargets(NamedTuple):
    """What an LPG rule returns."""

    policy: Tensor
    """[S, C, L] the factor of log pi(action) in the minimised loss: a negative advantage's sign"""
    logits: Tensor
    """[S, C, L, m] of the target of the prediction"""


def lpg_targets(weights: dict[str, Tensor], inputs: LpgInputs) -> LpgTargets:
    """Return the targets of C rules with ``weights`` [C, ...]: a GRU in reverse time.

    Its state is zeroed where an episode ended, before that step is read.
    """
    steps, candidates, lanes = inputs.rewards.shape
    embedded = _dense(weights, "embedding.0", inputs.predictions).relu()
    values = _dense(weights, "embedding.1", embedded).squeeze(-1)  # [S + 1, C, L]
    alive = 1.0 - inputs.terminals
    features = torch.stack(
        [inputs.rewards, inputs.terminals, inputs.chosen, values[:-1], values[1:] * alive], -1
    )
    projected = _dense(weights, "gru/input", features)  # [S, C, L, 3H]
    recurrent, bias = weights["gru/state/w"], weights["gru/state/b"]
    units = recurrent.shape[1]
    state = projected.new_zeros(candidates, lanes, units)
    states = []
    for t in reversed(range(steps)):
        state = state * alive[t].unsqueeze(-1)
        hidden = torch.bmm(state, recurrent)
        gates = torch.sigmoid(projected[t, ..., : 2 * units] + hidden[..., : 2 * units])
        reset, keep = gates[..., :units], gates[..., units:]
        new = torch.tanh(projected[t, ..., 2 * units :] + reset * (hidden[..., 2 * units :] + bias))
        state = torch.lerp(new, state, keep)
        states.append(state)
    outputs = torch.stack(states[::-1]).relu()
    return LpgTargets(
        policy=_dense(weights, "policy", outputs).squeeze(-1),
        logits=_dense(weights, "y", outputs),
    )


def lpg_outputs(outputs: Tensor, actions: int) -> LpgOutputs:
    """Return policies and predictions for the agents' ``outputs`` [C, E, S + 1, B, A + m]."""
    return LpgOutputs(
        probabilities=outputs[:, :, :-1, :, :actions].softmax(-1),
        predictions=outputs[..., actions:].softmax(-1),
    )


def lpg_inputs(outputs: LpgOutputs, rollout: Rollout) -> LpgInputs:
    """Return what the rules read."""
    chosen = outputs.probabilities.gather(-1, rollout.actions.unsqueeze(-1)).squeeze(-1)
    return LpgInputs(
        rewards=_time_first(rollout.rewards),
        terminals=_time_first(rollout.terminals),
        chosen=_time_first(chosen + EPSILON),
        predictions=_time_first(outputs.predictions),
    )


def lpg_gradient(
    outputs: LpgOutputs, rollout: Rollout, targets: LpgTargets, weight: float
) -> Tensor:
    """Return the gradient of the agents' loss at their outputs [C, E, S + 1, B, A + m].

    The loss is mean(log pi(action) * policy target) + ``weight`` * mean KL(y || its target).
    """
    candidates, agents, steps, lanes = rollout.actions.shape
    policies, predictions = outputs
    actions = policies.shape[-1]

    def agents_first(x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:2], agents, lanes, *x.shape[3:]).movedim(0, 2)

    width = actions + predictions.shape[-1]
    gradient = policies.new_zeros(candidates, agents, steps + 1, lanes, width)
    taken = functional.one_hot(rollout.actions, actions)
    factor = agents_first(targets.policy).unsqueeze(-1) / (steps * lanes)
    gradient[:, :, :-1, :, :actions] = factor * (taken - policies)
    y = predictions[:, :, :-1]
    logs = (y + EPSILON).log() - (agents_first(targets.logits.softmax(-1)) + EPSILON).log()
    divergence = (y * logs).sum(-1, keepdim=True)
    gradient[:, :, :-1, :, actions:] = y * (logs - divergence) * (weight / (steps * lanes))
    return gradient


def lpo_drift_slope(weights: dict[str, Tensor], log_ratio: Tensor, advantage: Tensor) -> Tensor:
    """Return the slope [C, R] of the drift of C LPO rules in the log-ratio.

    ``log_ratio`` and ``advantage`` are [C, R]. The drift is ReLU(PPO's + network - 1e-4).
    """
    ratio = log_ratio.exp()
    rest = 1.0 - ratio
    base = torch.stack([log_ratio, log_ratio.square(), rest, rest.square()], -1)
    slope = torch.stack([torch.ones_like(ratio), 2.0 * log_ratio, -ratio, -2.0 * rest * ratio], -1)
    gain = advantage.unsqueeze(-1)
    hidden = torch.bmm(torch.cat([base, base * gain], -1), weights["hidden/w"]).tanh()
    moved = torch.bmm(torch.cat([slope, slope * gain], -1), weights["hidden/w"])
    network = torch.bmm(hidden, weights["out/w"]).squeeze(-1)
    network_slope = torch.bmm((1.0 - hidden.square()) * moved, weights["out/w"]).squeeze(-1)
    outside = (ratio - ratio.clamp(1.0 - CLIP, 1.0 + CLIP)) * advantage
    total = outside.relu() + network - OFFSET
    clipped_slope = torch.where(outside > 0, ratio * advantage, 0.0)
    return torch.where(total > 0, clipped_slope + network_slope, 0.0)


def _dense(weights: dict[str, Tensor], name: str, inputs: Tensor) -> Tensor:
    """Apply the layer called ``name`` of C rules to ``inputs`` [S, C, L, width]."""
    # One product per candidate, not one per candidate and step.
    steps, candidates, lanes = inputs.shape[:3]
    rows = inputs.transpose(0, 1).reshape(candidates, steps * lanes, -1)
    outputs = torch.baddbmm(weights[f"{name}/b"], rows, weights[f"{name}/w"])
    return outputs.view(candidates, steps, lanes, -1).transpose(0, 1)


def _time_first(x: Tensor) -> Tensor:
    """Return ``x`` [C, E, S, B, ...] as [S, C, E * B, ...]."""
    return x.movedim(2, 0).flatten(2, 3)


def advantages(
    rewards: Tensor, terminals: Tensor, values: Tensor, discount: float, trace: float
) -> Tensor:
    """Return generalised advantages [N, S, B] for ``values`` [N, S + 1, B]."""
    continuation = discount * (1.0 - terminals)
    errors = rewards + continuation * values[:, 1:] - values[:, :-1]
    found = torch.empty_like(errors)
    running = torch.zeros_like(errors[:, 0])
    for t in reversed(range(errors.shape[1])):
        running = errors[:, t] + trace * continuation[:, t] * running
        found[:, t] = running
    return found
