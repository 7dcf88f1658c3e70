"""A rollout together with the outputs of a network of one's own."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rulescope.learners.learner import Rollout
from rulescope.learners.update_rule import Seen


def see(rollout: Rollout, logits: Tensor, values: Tensor) -> Seen:
    """Return what an ``UpdateRule`` sees, for S interactions of N lanes.

    ``logits`` are [S, N, A], ``values`` [S + 1, N]; the rest is moved to their device.
    """

    def move(array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.array(array)).to(logits.device)

    return Seen(
        logits=logits,
        values=values,
        actions=move(rollout.actions),
        rewards=move(rollout.rewards),
        terminals=move(rollout.terminals.astype(np.float32)),
    )
