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
    """Transitions grouped by what they share; adds up weighted targets within each group."""

    def __init__(self, group: Tensor, count: int) -> None:
        """Group transitions by ``group`` [T, B], numbers from 0 to ``count`` - 1."""
        self._group, self._count = group.flatten(), count
        self._order = self._group.argsort(stable=True)
        sizes = self._group.bincount(minlength=count)
        self._starts = sizes.cumsum(0) - sizes

    def weight(self, share: Tensor) -> Tensor:
        """Return the total weight [count] of each group for the weights ``share`` [T, B]."""
        return share.new_zeros(self._count).index_add_(0, self._group, share.flatten())

    def sum(self, targets: Tensor, share: Tensor) -> Tensor:
        """Return the sums [count, K] of ``targets`` [T, B, K] with weights ``share`` [T, B]."""
        return functional.embedding_bag(
            self._order,
            targets.flatten(0, 1),
            self._starts,
            mode="sum",
            per_sample_weights=share.flatten()[self._order],
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
    by_row = Groups(batch.index[:-1], rows)
    pairs = batch.pairs(actions)
    by_pair = Groups(pairs, rows * actions)
    # The auxiliary target of a terminal transition does not exist: its weight is zero.
    continuing = share * (1.0 - batch.terminals)

    policy = targets.policy.softmax(-1)
    gradient = _pull(probabilities.logits, by_row, policy, share, c.policy)
    if c.entropy:
        gradient += c.entropy * _push(probabilities.logits, by_row.weight(share))
    return Outputs(
        logits=gradient,
        y=_pull(probabilities.y, by_row, targets.y_probabilities, share, c.y),
        z=_pull(probabilities.z, by_pair, targets.z_probabilities, share, c.z),
        aux=_pull(
            probabilities.aux, by_pair, probabilities.logits[batch.index[1:]], continuing, c.aux
        ),
        q=_pull_two_hot(probabilities.q, by_pair.weight(share), pairs, aim, share, c.value),
    )


def _pull(
    probabilities: Tensor, groups: Groups, targets: Tensor, share: Tensor, coefficient: float
) -> Tensor:
    """Return coefficient x (weight x softmax - summed targets), in the shape of the softmax."""
    if coefficient == 0.0:
        return torch.zeros_like(probabilities)
    share = share * coefficient
    own = groups.weight(share).unsqueeze(1) * probabilities.reshape(-1, probabilities.shape[-1])
    return own.sub_(groups.sum(targets, share)).view(probabilities.shape)


def _push(policy: Tensor, weight: Tensor) -> Tensor:
    """Return the gradient [R, A] of minus the entropy of ``policy``, times ``weight`` [R]."""
    log_policy = policy.log()
    mean = (policy * log_policy).sum(-1, keepdim=True)
    return weight.unsqueeze(1) * policy * (log_policy - mean)


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
