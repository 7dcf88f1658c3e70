"""The rule ``sized`` of examples/plugin with its loss in JAX."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import torch
from torch import Tensor

from rulescope.kit import JaxLoss, JaxSeen
from rulescope.learners.update_rule import Seen, State, UpdateRule


def sized_loss(seen: JaxSeen, state: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the loss in units of the size so far, and the size after this rollout."""
    size, now = state["size"], jnp.abs(seen.rewards).max()
    unit = jnp.where(size > 0, size, 1.0)
    advantages, returns = seen.advantages(seen.rewards / unit)
    policy = -(advantages * seen.chosen()).mean()
    value = jnp.square(seen.values[:-1] - returns).mean()
    loss = policy + 0.5 * value - 0.01 * seen.entropy().mean()
    return loss, {"size": jnp.where(size > 0, size + 0.01 * (now - size), now)}


class SizedInJax(UpdateRule):
    """A2C on rewards in units of the largest one of a rollout, on average: its only memory."""

    LEARNING_RATE = 1e-3
    LOSS = JaxLoss(sized_loss)

    def start(self) -> State:
        """Return a size of zero, which means that none is known."""
        return {"size": torch.zeros(())}

    def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        """Return the loss, with its gradient from JAX, and the new state."""
        return self.LOSS(seen, state)
