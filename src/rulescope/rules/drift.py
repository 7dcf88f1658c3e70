"""The drift functions of DPO and LPO, terms that keep a policy near the one that acted.

Both rules minimise ``-mean(r A - drift)``, where r is the probability ratio of the policy to the
one that acted and A the normalised advantage. The arrays here are [B], one for each transition;
gradients flow through the log-ratio.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from rulescope.rules.lpo_format import PREFIX

Features = Literal["log-first", "ratio-first"]
"""Order and sign of what LPO's network reads. ``log-first``: log r, its square, 1 - r, its square.
``ratio-first``: r - 1, its square, log r, its square. Then the same times the advantage."""

ALPHA, BETA = 2.0, 0.6
"""Of :func:`dpo_drift`, as published."""
CLIP = 0.2
"""Range of the ratio around one in :func:`clip_drift`."""
OFFSET = 1e-4
"""What is subtracted from LPO's network, so that the drift is zero near the policy that acted."""
EPSILON = 1e-8
"""Added to the standard deviation of the advantages."""


def normalise(advantages: Tensor) -> Tensor:
    """Return ``advantages`` shifted and scaled to mean 0 and (biased) standard deviation 1."""
    centred = advantages - advantages.mean()
    return centred / (advantages.std(correction=0) + EPSILON)


def drift_loss(log_ratio: Tensor, advantages: Tensor, drift: Tensor) -> Tensor:
    """Return the policy's loss: minus the mean of the surrogate less its drift."""
    return -(log_ratio.exp() * advantages - drift).mean()


def dpo_drift(
    log_ratio: Tensor, advantages: Tensor, alpha: float = ALPHA, beta: float = BETA
) -> Tensor:
    """Return DPO's drift: zero for moves against the sign of the advantage, and for small ones."""
    gained = (log_ratio.exp() - 1.0) * advantages
    lost = log_ratio * advantages
    return torch.where(
        advantages >= 0.0,
        (gained - alpha * (gained / alpha).tanh()).relu(),
        (lost - beta * (lost / beta).tanh()).relu(),
    )


def clip_drift(log_ratio: Tensor, advantages: Tensor, clip: float = CLIP) -> Tensor:
    """Return the drift that makes the surrogate PPO's clipped one."""
    ratio = log_ratio.exp()
    return ((ratio - ratio.clamp(1.0 - clip, 1.0 + clip)) * advantages).relu()


def lpo_features(log_ratio: Tensor, advantages: Tensor, features: Features) -> Tensor:
    """Return what LPO's network reads of each transition, [B, 8]."""
    if features == "log-first":
        first, second = log_ratio, 1.0 - log_ratio.exp()
    else:
        first, second = log_ratio.exp() - 1.0, log_ratio
    plain = torch.stack([first, first.square(), second, second.square()], -1)
    return torch.cat([plain, plain * advantages.unsqueeze(-1)], -1)


def lpo_network(weights: Mapping[str, Tensor], features: Tensor) -> Tensor:
    """Return the output [B] of LPO's network for ``features`` [B, 8]."""
    hidden = (features @ weights[f"{PREFIX}hidden/w"]).tanh()
    return (hidden @ weights[f"{PREFIX}out/w"]).squeeze(-1)


def lpo_drift(
    weights: Mapping[str, Tensor],
    log_ratio: Tensor,
    advantages: Tensor,
    features: Features = "log-first",
    clip: float | None = CLIP,
) -> Tensor:
    """Return LPO's drift; ``clip`` is that of the :func:`clip_drift` it starts from, or None."""
    learned = lpo_network(weights, lpo_features(log_ratio, advantages, features)) - OFFSET
    if clip is None:
        return learned.relu()
    return (clip_drift(log_ratio, advantages, clip) + learned).relu()
