"""What is logged about a Disco update; measuring reads, and never changes, the learner."""

from __future__ import annotations

import torch
from torch import Tensor

from rulescope.learners.disco.closed_form import Groups
from rulescope.learners.disco.interface import ValueInterface, effective_bins
from rulescope.learners.disco.update import LearnerState, Step

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
    batch, outputs, targets = step.batch, step.outputs, step.targets
    rows, actions = outputs.logits.shape
    pairs = batch.pairs(actions)
    equal = torch.full_like(batch.rewards, 1.0 / batch.rewards.numel())
    continuing = equal * (1.0 - batch.terminals)
    by_row, by_pair = Groups(batch.index[:-1], rows), Groups(pairs, rows * actions)
    next_logits = outputs.logits[batch.index[1:]]
    aim = interface.project(batch.taken(step.estimate.q) + step.estimate.td)
    log_q = outputs.q.log_softmax(-1).flatten(0, 1)
    value = aim.low_weight * log_q[pairs, aim.low] + (1 - aim.low_weight) * log_q[pairs, aim.high]
    policy = step.probabilities.logits
    entropy = -(policy * outputs.logits.log_softmax(-1)).sum(-1)
    visits = batch.index.flatten().bincount(minlength=rows).to(step.gradient)
    mean_q = visits @ step.probabilities.q.mean(1) / visits.sum()
    return {
        "loss_policy": mean_kl(targets.policy, outputs.logits, by_row, equal),
        "loss_y": mean_kl(targets.y, outputs.y, by_row, equal),
        "loss_z": mean_kl(targets.z, outputs.z.flatten(0, 1), by_pair, equal),
        "loss_aux": mean_kl(next_logits, outputs.aux.flatten(0, 1), by_pair, continuing),
        "loss_value": -value.mean().item(),
        "entropy": entropy[batch.index[:-1]].mean().item(),
        "td_magnitude": step.estimate.td.abs().mean().item(),
        "advantage_std": step.estimate.advantage.std(correction=0).item(),
        "gradient_norm": step.gradient.norm().item(),
        "effective_bins": effective_bins(mean_q),
        "hidden_norm": state.recurrent.hidden.norm().item(),
        "cell_norm": state.recurrent.cell.norm().item(),
        "distinct_rows": float(rows),
    }


def mean_kl(target: Tensor, logits: Tensor, groups: Groups, share: Tensor) -> float:
    """Return the mean of KL(target || the group's logits) with weights ``share`` [T, B].

    ``target`` [T, B, K] and ``logits`` [groups, K] are logits. The sum splits into the targets' own
    part and one part per group, so nothing but the targets is as large as the batch.
    """
    log_target = target.log_softmax(-1)
    probabilities = log_target.exp()
    own = ((probabilities * log_target).sum(-1) * share).sum()
    return (own - (groups.sum(probabilities, share) * logits.log_softmax(-1)).sum()).item()
