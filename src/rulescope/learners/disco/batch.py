"""A learner's batch of trajectories, with every distinct observation held once.

The agent is a function of a single observation, so a batch is ``rows`` of distinct observations and
an ``index`` that says which row each step looked at. On small worlds most of a batch repeats
itself: 8x8 Catch needs about 290 rows for 1,856 stored steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Batch:
    """B trajectories of T transitions over R distinct observations; time comes first."""

    rows: Tensor
    """[R, *observation_shape]"""
    index: Tensor
    """[T + 1, B] int64: the row of each step."""
    actions: Tensor
    """[T, B] int64"""
    rewards: Tensor
    """[T, B]: the reward that ``actions[t]`` caused."""
    terminals: Tensor
    """[T, B], 1.0 where ``actions[t]`` ended an episode."""
    behaviour: Tensor
    """[T, B, A] logits the actions were drawn from."""
    began: Tensor
    """[B], 1.0 where the first observation of the trajectory followed a terminal."""

    def taken(self, per_action: Tensor) -> Tensor:
        """Pick from ``per_action`` [R, A] the entry of each step's row and action: [T, B]."""
        return per_action.flatten()[self.pairs]

    @property
    def pairs(self) -> Tensor:
        """The flat (row, action) index [T, B] of every transition."""
        return self.index[:-1] * self.behaviour.shape[-1] + self.actions


def loss_mask(batch: Batch, convention: str) -> Tensor:
    """Return the weights [T, B] of the transitions in the loss: 1.0, or 0.0 where masked.

    A transition is masked when it is the first of an episode. ``in-trajectory`` uses episode
    starts only from inside the stored trajectory; ``stored-flag`` also looks at its first slot.
    """
    if convention == "none":
        return torch.ones_like(batch.rewards)
    first = torch.zeros_like(batch.began) if convention == "in-trajectory" else batch.began
    return 1.0 - torch.cat([first.unsqueeze(0), batch.terminals[:-1]])
