"""Return-based scaling (Schaul et al., 2021): an actor-critic with TD errors in units of sigma."""

from __future__ import annotations

import torch
from torch import Tensor

from rulescope.core.structs import Decay, Fraction, Frozen
from rulescope.learners.update_rule import Seen, State, UpdateRule


class ReturnScaled(UpdateRule):
    """A2C whose TD errors are divided by ``sigma``; its history is the statistics behind it."""

    class Options(Frozen, frozen=True):
        """What a run can set, as in ``--option floor=0``."""

        floor: Fraction = 0.01
        discount: Decay = 0.997

    LEARNING_RATE = 7e-4

    def start(self) -> State:
        """Return zeros, which mean that nothing was seen.

        ``sums``: interactions, rewards and their squares, discounts and their squares, ended
        episodes and the squares of their returns. ``unfinished``: return so far of each lane.
        """
        lanes = torch.zeros(self.setup.lanes, dtype=torch.float64)
        return {"sums": torch.zeros(7, dtype=torch.float64), "unfinished": lanes}

    def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        """Return the loss of A2C with advantages and value errors in units of sigma."""
        after = self.push(seen, state)
        advantages, _ = seen.advantages(seen.rewards, self.setup.options.discount)
        advantages = advantages / self.sigma(after["sums"])
        values = seen.state_values()
        policy = -(advantages * seen.chosen()).mean()
        value = (values - (values.detach() + advantages)).square().mean()
        return policy + 0.5 * value - 0.01 * seen.entropy().mean(), after

    def push(self, seen: Seen, state: State) -> State:
        """Return the statistics with those of one rollout added."""
        sums, unfinished = state["sums"].clone(), state["unfinished"].clone()
        rewards, ends = seen.rewards.double(), seen.terminals.bool()
        discounts = self.setup.options.discount * (1.0 - seen.terminals.double())
        both = (rewards, rewards**2, discounts, discounts**2)
        sums[:5] += torch.stack([sums.new_tensor(rewards.numel()), *(one.sum() for one in both)])
        for reward, end in zip(rewards, ends, strict=True):
            unfinished += reward
            sums[5] += end.sum()
            sums[6] += (unfinished[end] ** 2).sum()
            unfinished[end] = 0.0
        return {"sums": sums, "unfinished": unfinished}

    def sigma(self, sums: Tensor) -> float:
        """Return the scale of TD errors; 1 as long as it would be 0."""
        steps, reward, reward2, discount, discount2, episodes, returns2 = sums.tolist()
        of_rewards = max(reward2 / steps - (reward / steps) ** 2, 0.0)
        of_discounts = max(discount2 / steps - (discount / steps) ** 2, 0.0)
        variance = of_rewards + of_discounts * returns2 / max(episodes, 1.0)
        return float(max(variance**0.5, self.setup.options.floor)) or 1.0
