"""A rollout together with the outputs of a network of one's own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from rulescope.learners.learner import Rollout
from rulescope.learners.update_rule import Seen


def see(
    rollout: Rollout, logits: Tensor, values: Tensor, heads: Mapping[str, Tensor] | None = None
) -> Seen:
    """Return what an ``UpdateRule`` sees, for S interactions of N lanes.

    ``logits`` are [S, N, A], ``values`` [S + 1, N], ``heads`` [S + 1, N, size] by name; the rest is
    moved to their device. ``before`` comes from the stored behaviour ``logits``, if there is any,
    else from these logits.
    """

    def move(array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.array(array)).to(logits.device)

    stored = rollout.behaviour.get("logits")
    seen = Seen(
        logits=logits.detach() if stored is None else move(stored),
        values=values,
        actions=move(rollout.actions),
        rewards=move(rollout.rewards),
        terminals=move(rollout.terminals.astype(np.float32)),
        before=torch.zeros(()),
        observations=move(rollout.observations),
        heads=dict(heads or {}),
        prepared={},
    )
    return seen._replace(before=seen.chosen(), logits=logits)
