"""An actor-critic that remembers how large rewards are, and learns in that unit."""

from __future__ import annotations

import torch
from torch import Tensor

from rulescope.learners.update_rule import Seen, State, UpdateRule


class Sized(UpdateRule):
    """A2C on rewards in units of the largest one of a rollout, on average: its only memory."""

    LEARNING_RATE = 1e-3

    def start(self) -> State:
        """Return a size of zero, which means that none is known."""
        return {"size": torch.zeros(())}

    def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        """Return the loss in units of the size so far, and the size after this rollout."""
        size, now = state["size"], seen.rewards.abs().max()
        unit = torch.where(size > 0, size, 1.0)
        advantages, returns = seen.advantages(seen.rewards / unit)
        policy = -(advantages * seen.chosen()).mean()
        value = (seen.values[:-1] - returns).square().mean()
        loss = policy + 0.5 * value - 0.01 * seen.entropy().mean()
        return loss, {"size": torch.where(size > 0, size.lerp(now, 0.01), now)}
