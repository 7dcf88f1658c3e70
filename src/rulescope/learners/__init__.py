"""Learners by specification; torch is imported only when one is built."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rulescope.errors import SpecError
from rulescope.learners.baselines import A2C, DQN, PPO, A2CPopArt, RandomPolicy
from rulescope.learners.disco.config import Disco
from rulescope.learners.variants import LearnerSpec

if TYPE_CHECKING:
    from rulescope.learners.base import Learner


def make(
    config: LearnerSpec,
    observation_shape: tuple[int, ...],
    actions: int,
    steps: int,
    seed: int,
    *,
    device: str = "cpu",
    weights: Path | None = None,
    interactions: int | None = None,
) -> Learner:
    """Build a fresh learner for rollouts of ``steps`` interactions a lane.

    ``weights`` says where its rule is, if not in the usual places. ``interactions`` is the length
    of the lifetime over all lanes, which a learner with a schedule (DQN) must know.
    """
    match config:
        case Disco():
            return _disco(config, observation_shape, actions, steps, seed, device, weights)
        case A2C():
            from rulescope.learners.a2c import A2CLearner

            return A2CLearner(config, observation_shape, actions, seed, device)
        case PPO():
            from rulescope.learners.ppo import PPOLearner

            return PPOLearner(config, observation_shape, actions, seed, device)
        case A2CPopArt():
            from rulescope.learners.popart import PopArtLearner

            return PopArtLearner(config, observation_shape, actions, seed, device)
        case RandomPolicy():
            from rulescope.learners.uniform import UniformLearner

            return UniformLearner(actions, seed)
        case DQN():
            from rulescope.learners.dqn import DQNLearner

            if interactions is None:
                raise ValueError("a DQN learner must be told the lifetime's interactions")
            return DQNLearner(config, observation_shape, actions, seed, interactions, device)


def _disco(
    config: Disco,
    observation_shape: tuple[int, ...],
    actions: int,
    steps: int,
    seed: int,
    device: str,
    weights: Path | None,
) -> Learner:
    from rulescope.learners.disco.learner import DiscoLearner
    from rulescope.rules import disco_format
    from rulescope.rules.loading import load

    rule = load(config.rule, weights)
    if set(rule.arrays) != set(disco_format.shapes()):
        raise SpecError(
            f"learner.rule: {config.rule!r} is not a Disco rule; valid: disco103, random:SEED"
        )
    return DiscoLearner(config, rule, observation_shape, actions, steps, seed, device)
