"""Learners by specification; torch is imported only when one is built."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rulescope.learners.disco.config import Disco

if TYPE_CHECKING:
    from rulescope.learners.base import Learner


def make(
    config: Disco,
    observation_shape: tuple[int, ...],
    actions: int,
    steps: int,
    seed: int,
    *,
    device: str = "cpu",
    weights: Path | None = None,
) -> Learner:
    """Build a fresh learner; ``weights`` says where its rule is, if not in the usual places."""
    from rulescope.learners.disco.learner import DiscoLearner
    from rulescope.rules.loading import load

    rule = load(config.rule, weights)
    return DiscoLearner(config, rule, observation_shape, actions, steps, seed, device)
