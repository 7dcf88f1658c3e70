"""The gradient of the loss at the agent's outputs, in closed form, on distinct rows.

Every term is a KL divergence or a cross-entropy, so at the logits its gradient is
``softmax(logits) - target``. Transitions that share a row (or a row and an action) share the first
part; their targets are summed. One backward pass through the agent on distinct rows remains: no
graph through the rule, and no log-softmax over every stored step.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from rulescope.agents.network import Outputs
from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.config import Coefficients
from rulescope.learners.disco.interface import TwoHot
from rulescope.learners.disco.meta_net import Targets


class Groups:
    """Transitions grouped by what they share; sums weighted targets within each group."""

    def __init__(self, group: Tensor, share: Tensor, count: int) -> None:
        """Group transitions by ``group`` [T, B] of 0 .. count - 1 with weights ``share`` [T, B]."""
        flat = group.flatten()
        self._order = flat.argsort(stable=True)
        sizes = flat.bincount(minlength=count)
        self._starts = sizes.cumsum(0) - sizes
        self._share = share.flatten()[self._order]
        self.weight = share.new_zeros(count).index_add_(0, flat, share.flatten())
        """[count] total weight of each group."""

    def sum(self, targets: Tensor) -> Tensor:
        """Return the weighted sums [count, K] of ``targets`` [T, B, K]."""
        return functional.embedding_bag(
            self._order,
            targets.flatten(0, 1),
            self._starts,
            mode="sum",
            per_sample_weights=self._share,
        )


def output_gradients(
    probabilities: Outputs,
    batch: Batch,
    targets: Targets,
    aim: TwoHot,
    share: Tensor,
    coefficients: Coefficients,
) -> Outputs:
    """Return dL/d(outputs) on the distinct rows.

    ``probabilities`` are the softmaxes of the agent's outputs, ``aim`` [T, B] the projected value
    targets, and ``share`` [T, B] each transition's weight in the mean.
    """
    c = coefficients
    rows, actions = probabilities.logits.shape
    by_row = Groups(batch.index[:-1], share, rows)
    pairs = batch.pairs(actions)
    by_pair = Groups(pairs, share, rows * actions)
    # The auxiliary target of a terminal transition does not exist: its weight is zero.
    by_step = Groups(pairs, share * (1.0 - batch.terminals), rows * actions)

    policy = by_row.weight.unsqueeze(1) * probabilities.logits
    gradient = c.policy * (policy - by_row.sum(targets.policy.softmax(-1)))
    if c.entropy:
        log_policy = probabilities.logits.log()
        entropy = (probabilities.logits * log_policy).sum(-1, keepdim=True)
        gradient = gradient + c.entropy * policy * (log_policy - entropy)

    return Outputs(
        logits=gradient,
        y=_pull(probabilities.y, by_row, targets.y_probabilities, c.y),
        z=_pull(probabilities.z, by_pair, targets.z.softmax(-1) if c.z else targets.z, c.z),
        aux=_pull(probabilities.aux, by_step, probabilities.logits[batch.index[1:]], c.aux),
        q=_pull_two_hot(probabilities.q, by_pair.weight, pairs, aim, share, c.value),
    )


def _pull(probabilities: Tensor, groups: Groups, targets: Tensor, coefficient: float) -> Tensor:
    """Return coefficient x (weight x softmax - summed targets), in the shape of the softmax."""
    if coefficient == 0.0:
        return torch.zeros_like(probabilities)
    width = probabilities.shape[-1]
    pull = groups.weight.unsqueeze(1) * probabilities.reshape(-1, width) - groups.sum(targets)
    return (pull * coefficient if coefficient != 1.0 else pull).view(probabilities.shape)


def _pull_two_hot(
    probabilities: Tensor,
    weight: Tensor,
    pairs: Tensor,
    aim: TwoHot,
    share: Tensor,
    coefficient: float,
) -> Tensor:
    """As :func:`_pull` for targets on two atoms, which are scattered instead of summed."""
    bins = probabilities.shape[-1]
    pull = (coefficient * weight).unsqueeze(1) * probabilities.reshape(-1, bins)
    mass = coefficient * share
    start = pairs * bins
    flat = pull.view(-1)
    flat.scatter_add_(0, (start + aim.low).flatten(), -(mass * aim.low_weight).flatten())
    flat.scatter_add_(0, (start + aim.high).flatten(), -(mass * (1.0 - aim.low_weight)).flatten())
    return pull.view(probabilities.shape)
