"""The loss that three of the examples have in common."""

from __future__ import annotations

from torch import Tensor

from rulescope.learners.update_rule import Seen


def actor_critic_loss(seen: Seen, rewards: Tensor) -> Tensor:
    """Return the loss of A2C for ``rewards`` [S, N], a scalar."""
    advantages, returns = seen.advantages(rewards)
    policy = -(advantages * seen.chosen()).mean()
    value = (seen.values[:-1] - returns).square().mean()
    return policy + 0.5 * value - 0.01 * seen.entropy().mean()
