"""Value estimation: Retrace targets, advantages, and the two moving averages that scale them.

The online policy weighs every expectation, also those of target-network values. Nothing here is
ever differentiated.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rulescope.learners.disco.batch import Batch

VARIANCE_EPSILON = 1e-12
STD_EPSILON = 1e-6


class Averages(NamedTuple):
    """The two moving averages, each [3]: first moment, second moment, product of decays."""

    advantage: Tensor
    td: Tensor

    @classmethod
    def fresh(cls, like: Tensor) -> Averages:
        """Return the initial averages: (0, 0, 1)."""
        return cls(*(like.new_tensor([0.0, 0.0, 1.0]) for _ in range(2)))


def update_average(average: Tensor, values: Tensor, decay: float) -> Tensor:
    """Move ``average`` [3] towards the moments of ``values``, which may have any shape."""
    moments = torch.stack([values.mean(), values.square().mean(), torch.zeros_like(average[0])])
    return decay * average + (1.0 - decay) * moments


def normalise(values: Tensor, average: Tensor, centre: bool) -> Tensor:
    """Divide ``values`` by the (bias-corrected) standard deviation; subtract the mean if asked."""
    correction = 1.0 / (1.0 - average[2])
    mean = average[0] * correction
    variance = (average[1] * correction - mean.square()).clamp_min(0.0)
    scale = (variance + VARIANCE_EPSILON).sqrt() + STD_EPSILON
    return (values - mean) / scale if centre else values / scale


class Estimate(NamedTuple):
    """Value estimates of a batch; R rows are distinct observations."""

    value: Tensor
    """[R] online value"""
    target_value: Tensor
    """[R] target-network value (online policy)"""
    q: Tensor
    """[R, A] online action values"""
    target_q: Tensor
    """[R, A] target-network action values"""
    q_target: Tensor
    """[T, B] Retrace target of the action taken"""
    advantage: Tensor
    """[T, B] q_target minus target value"""
    normalised_advantage: Tensor
    """[T, B]"""
    q_advantage: Tensor
    """[R, A] target action value minus target value"""
    normalised_q_advantage: Tensor
    """[R, A]"""
    td: Tensor
    """[T, B] q_target minus the online value of the action taken"""


def retrace(
    rewards: Tensor,
    discounts: Tensor,
    next_value: Tensor,
    q_taken: Tensor,
    traces: Tensor,
    convention: str = "next",
) -> Tensor:
    """Return Retrace targets [T, B], recursing backwards from the bootstrap at the end.

    ``next_value`` is the value after each transition, ``q_taken`` and ``traces`` belong to the
    action of each transition. The correction at t uses index t + 1, or, in the ``skip``
    convention, min(t + 2, T - 1). Written as target[t] = base[t] + slope[t] * target[t + 1].
    """
    last = len(rewards) - 1

    def later(values: Tensor) -> Tensor:
        beyond = values[1:] if convention == "next" else torch.cat([values[2:], values[-1:]])
        return beyond[:last]

    slope = discounts[:-1] * later(traces)
    base = rewards + discounts * next_value
    base[:-1] -= slope * later(q_taken)
    targets = [base[-1]]
    for constant, factor in zip(
        reversed(base[:-1].unbind()), reversed(slope.unbind()), strict=True
    ):
        targets.append(torch.addcmul(constant, factor, targets[-1]))
    return torch.stack(targets[::-1])


def estimate(
    batch: Batch,
    log_policy: Tensor,
    q: Tensor,
    target_q: Tensor,
    averages: Averages,
    *,
    discount: float,
    trace: float,
    decay: float,
    convention: str = "next",
) -> tuple[Estimate, Averages]:
    """Estimate values on ``batch`` and update both averages (which are then used at once).

    ``log_policy``, ``q`` and ``target_q`` are [R, A]: the online log-policy and the scalar action
    values of the online and target networks on the distinct rows.
    """
    policy = log_policy.exp()
    value = (policy * q).sum(-1)
    target_value = (policy * target_q).sum(-1)
    log_behaviour = batch.behaviour.log_softmax(-1)
    log_taken = log_behaviour.gather(-1, batch.actions.unsqueeze(-1)).squeeze(-1)
    ratio = (batch.taken(log_policy) - log_taken).exp()
    stepwise = target_value[batch.index]
    targets = retrace(
        batch.rewards,
        discount * (1.0 - batch.terminals),
        stepwise[1:],
        batch.taken(target_q),
        trace * ratio.clamp_max(1.0),
        convention,
    )
    advantage = targets - stepwise[:-1]
    q_advantage = target_q - target_value.unsqueeze(-1)
    td = targets - batch.taken(q)
    moved = Averages(
        advantage=update_average(averages.advantage, advantage, decay),
        td=update_average(averages.td, td, decay),
    )
    found = Estimate(
        value=value,
        target_value=target_value,
        q=q,
        target_q=target_q,
        q_target=targets,
        advantage=advantage,
        normalised_advantage=normalise(advantage, moved.advantage, centre=True),
        q_advantage=q_advantage,
        normalised_q_advantage=normalise(q_advantage, moved.advantage, centre=True),
        td=td,
    )
    return found, moved
