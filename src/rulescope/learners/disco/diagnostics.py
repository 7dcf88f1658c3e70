"""Logged metrics of a Disco update; measuring never changes the learner."""

from __future__ import annotations

import torch
from torch import Tensor

from rulescope.learners.disco.losses import Groups
from rulescope.learners.disco.update import LearnerState, Step
from rulescope.learners.disco.value_interface import ValueInterface, effective_bins

METRICS = (
    "loss_policy",
    "loss_y",
    "loss_z",
    "loss_aux",
    "loss_value",
    "entropy",
    "td_magnitude",
    "advantage_std",
    "gradient_norm",
    "effective_bins",
    "hidden_norm",
    "cell_norm",
    "distinct_rows",
)


@torch.no_grad()
def measurements(step: Step, state: LearnerState, interface: ValueInterface) -> dict[str, float]:
    """Return the numbers named in ``METRICS`` for one update; ``state`` is the one after it.

    Losses are means over all transitions, unweighted and unmasked.
    """
    batch, agent, targets = step.batch, step.probabilities, step.targets
    rows, actions = agent.logits.shape
    pairs = batch.pairs
    equal = torch.full_like(batch.rewards, 1.0 / batch.rewards.numel())
    continuing = equal * (1.0 - batch.terminals)
    by_row, by_pair = Groups(batch.index[:-1], rows), Groups(pairs, rows * actions)
    next_policy = agent.logits[batch.index[1:]]
    aim = interface.project(batch.taken(step.estimate.q) + step.estimate.td)
    log_q = _log(agent.q).flatten(0, 1)
    low, high = (log_q[pairs, atom] for atom in (aim.low, aim.high))
    value = aim.low_weight * low + (1 - aim.low_weight) * high
    entropy = -(agent.logits * _log(agent.logits)).sum(-1)
    visits = batch.index.flatten().bincount(minlength=rows).to(step.gradient)
    mean_q = visits @ agent.q.mean(1) / visits.sum()
    return {
        "loss_policy": mean_kl(targets.policy.softmax(-1), agent.logits, by_row, equal),
        "loss_y": mean_kl(targets.y, agent.y, by_row, equal),
        "loss_z": mean_kl(targets.z, agent.z.flatten(0, 1), by_pair, equal),
        "loss_aux": mean_kl(next_policy, agent.aux.flatten(0, 1), by_pair, continuing),
        "loss_value": -value.mean().item(),
        "entropy": entropy[batch.index[:-1]].mean().item(),
        "td_magnitude": step.estimate.td.abs().mean().item(),
        "advantage_std": step.estimate.advantage.std(correction=0).item(),
        "gradient_norm": step.gradient.norm().item(),
        "effective_bins": effective_bins(mean_q),
        **recurrent_norms(state),
        "distinct_rows": float(rows),
    }


def recurrent_norms(state: LearnerState) -> dict[str, float]:
    """Return the norms of the rule's recurrent state."""
    return {
        "hidden_norm": state.recurrent.hidden.norm().item(),
        "cell_norm": state.recurrent.cell.norm().item(),
    }


def mean_kl(target: Tensor, probabilities: Tensor, groups: Groups, share: Tensor) -> float:
    """Return the mean of KL(target || the group's probabilities) with weights ``share`` [T, B].

    ``target`` is [T, B, K], ``probabilities`` [groups, K]. The sum splits into the targets' own
    part and one part per group, so nothing but the targets is as large as the batch.
    """
    own = ((target * _log(target)).sum(-1) * share).sum()
    return (own - (groups.sum(target, share) * _log(probabilities)).sum()).item()


def _log(probabilities: Tensor) -> Tensor:
    """Return the logarithm, finite where a probability has underflown to zero."""
    return probabilities.clamp_min(torch.finfo(probabilities.dtype).tiny).log()
