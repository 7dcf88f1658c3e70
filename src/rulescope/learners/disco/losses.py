"""The losses by their definition, and their gradient at the agent's outputs in closed form.

The definition (:class:`Losses`) is dense in time and differentiable: meta-training differentiates
it, and the closed form is tested against it. Training uses the closed form, on distinct rows. Every
term is a KL divergence or a cross-entropy, so at the logits its gradient is
``softmax(logits) - target``. Transitions that share a row (or a row and an action) share the first
part; their targets are summed. One backward pass through the agent on distinct rows remains: no
graph through the rule, and no log-softmax over every stored step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rulescope.learners.disco.agent_backward import OutputGradients
from rulescope.learners.disco.agent_network import Outputs
from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.rule_network import Targets
from rulescope.learners.disco.value_interface import TwoHot, ValueInterface
from rulescope.learners.disco_config import Coefficients

MASK_EPSILON = 1e-8


class Losses(NamedTuple):
    """Each term at every transition, [T, B], unweighted and unmasked."""

    policy: Tensor
    y: Tensor
    z: Tensor
    aux: Tensor
    value: Tensor
    entropy: Tensor
    """Of the policy; a bonus."""


def kl(target: Tensor, logits: Tensor) -> Tensor:
    """Return KL(softmax(target) || softmax(logits)) over the last axis."""
    log_target = target.log_softmax(-1)
    return (log_target.exp() * (log_target - logits.log_softmax(-1))).sum(-1)


def losses(
    outputs: Outputs, batch: Batch, targets: Targets, td: Tensor, interface: ValueInterface
) -> Losses:
    """Compare the agent's ``outputs`` on the distinct rows with the rule's ``targets``.

    ``td`` [T, B] (target minus online action value) is held fixed.
    """
    y_target, z_target = targets.logits
    now = batch.index[:-1]
    pairs = batch.pairs
    logits = outputs.logits[now]
    aux = outputs.aux.flatten(0, 1)[pairs]
    q = outputs.q.flatten(0, 1)[pairs]
    next_policy = outputs.logits[batch.index[1:]].detach()
    aim = interface.project(interface.readout(q.detach().softmax(-1)) + td)
    weights = aim.dense(q.shape[-1])
    log_policy = logits.log_softmax(-1)
    return Losses(
        policy=kl(targets.policy, logits),
        y=kl(y_target, outputs.y[now]),
        z=kl(z_target, outputs.z.flatten(0, 1)[pairs]),
        aux=kl(next_policy, aux) * (1.0 - batch.terminals),
        value=-(weights * q.log_softmax(-1)).sum(-1),
        entropy=-(log_policy.exp() * log_policy).sum(-1),
    )


def total(terms: Losses, mask: Tensor, coefficients: Coefficients) -> Tensor:
    """Return the scalar loss: the weighted sum of ``terms``, averaged where ``mask`` is 1."""
    c = coefficients
    each = (
        c.policy * terms.policy
        + c.y * terms.y
        + c.z * terms.z
        + c.aux * terms.aux
        + c.value * terms.value
        - c.entropy * terms.entropy
    )
    return (each * share(mask)).sum()


def share(mask: Tensor) -> Tensor:
    """Return each transition's weight [T, B] in the mean over unmasked transitions."""
    return mask / (mask.sum() + MASK_EPSILON)


class Groups:
    """Transitions grouped by what they share; adds up weighted targets within each group."""

    def __init__(self, group: Tensor, count: int) -> None:
        """Group transitions by ``group`` [T, B], numbers from 0 to ``count`` - 1."""
        self._group, self._count = group.flatten(), count
        numbers = self._group.cpu().numpy()
        sizes = np.bincount(numbers, minlength=count)
        self._order, self._starts = (
            torch.from_numpy(indices).to(group.device)
            for indices in (numbers.argsort(kind="stable"), sizes.cumsum() - sizes)
        )

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
) -> OutputGradients:
    """Return dL/d(outputs) on the distinct rows, and on the distinct pairs of row and action.

    ``probabilities`` are the softmaxes of the agent's outputs, ``aim`` [T, B] the projected value
    targets, and ``share`` [T, B] each transition's weight in the mean.
    """
    c = coefficients
    by_row = Groups(batch.index[:-1], len(probabilities.logits))
    taken, pair = torch.unique(batch.pairs, return_inverse=True)
    by_pair = Groups(pair, len(taken))
    # The auxiliary target of a terminal transition does not exist: its weight is zero.
    continuing = share * (1.0 - batch.terminals)
    next_policy = probabilities.logits[batch.index[1:]]
    z, aux, q = (
        head.flatten(0, 1)[taken] for head in (probabilities.z, probabilities.aux, probabilities.q)
    )
    logits = _pull(probabilities.logits, by_row, targets.policy.softmax(-1), share, c.policy)
    if c.entropy:
        logits += c.entropy * _push(probabilities.logits, by_row.weight(share))
    return OutputGradients(
        logits=logits,
        y=_pull(probabilities.y, by_row, targets.y, share, c.y),
        taken=taken,
        z=_pull(z, by_pair, targets.z, share, c.z),
        aux=_pull(aux, by_pair, next_policy, continuing, c.aux),
        q=_pull_two_hot(q, by_pair.weight(share), pair, aim, share, c.value),
    )


def _pull(
    probabilities: Tensor, groups: Groups, targets: Tensor, share: Tensor, coefficient: float
) -> Tensor:
    """Return coefficient x (weight x softmax - summed targets), each group one row [count, K]."""
    if coefficient == 0.0:
        return torch.zeros_like(probabilities)
    share = share * coefficient
    own = groups.weight(share).unsqueeze(1) * probabilities
    return own.sub_(groups.sum(targets, share))


def _push(policy: Tensor, weight: Tensor) -> Tensor:
    """Return the gradient [R, A] of minus the entropy of ``policy``, times ``weight`` [R]."""
    log_policy = policy.clamp_min(torch.finfo(policy.dtype).tiny).log()  # 0 log 0 is 0
    mean = (policy * log_policy).sum(-1, keepdim=True)
    return weight.unsqueeze(1) * policy * (log_policy - mean)


def _pull_two_hot(
    probabilities: Tensor,
    weight: Tensor,
    group: Tensor,
    aim: TwoHot,
    share: Tensor,
    coefficient: float,
) -> Tensor:
    """As :func:`_pull` for targets on two atoms, which are scattered instead of summed."""
    pull = (coefficient * weight).unsqueeze(1) * probabilities
    mass = coefficient * share
    start = group * probabilities.shape[1]
    flat = pull.view(-1)
    flat.scatter_add_(0, (start + aim.low).flatten(), -(mass * aim.low_weight).flatten())
    flat.scatter_add_(0, (start + aim.high).flatten(), -(mass * (1.0 - aim.low_weight)).flatten())
    return pull
