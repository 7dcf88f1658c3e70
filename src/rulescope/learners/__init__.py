"""Learners by specification; torch is imported only when one is built."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rulescope.errors import SpecError
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
    from rulescope.rules import disco_format
    from rulescope.rules.loading import load

    rule = load(config.rule, weights)
    if set(rule.arrays) != set(disco_format.shapes()):
        raise SpecError(
            f"learner.rule: {config.rule!r} is not a Disco rule; valid: disco103, random:SEED"
        )
    return DiscoLearner(config, rule, observation_shape, actions, steps, seed, device)
