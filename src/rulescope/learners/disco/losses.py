"""The losses by their definition: readable, dense in time, differentiable.

This form is what meta-training differentiates and what the fast path is tested against; training
itself uses :mod:`closed_form`.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from rulescope.learners.disco.agent_network import Outputs
from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.rule_network import Targets
from rulescope.learners.disco.value_interface import ValueInterface
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
