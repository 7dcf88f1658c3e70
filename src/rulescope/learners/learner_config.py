"""All learner configurations: their union, and the named ones of the command line."""

from __future__ import annotations

from rulescope.envs.world_config import EnvironmentSpec, MinAtar
from rulescope.learners.baseline_config import A2C, DQN, PPO, A2CPopArt, RandomPolicy
from rulescope.learners.baseline_config import VARIANTS as BASELINES
from rulescope.learners.disco_config import VARIANTS as DISCO
from rulescope.learners.disco_config import Disco
from rulescope.learners.open_config import VARIANTS as OPEN
from rulescope.learners.open_config import Open, OpenAdam
from rulescope.learners.plugin_config import Plugin

LearnerSpec = Disco | A2C | PPO | A2CPopArt | DQN | RandomPolicy | Open | OpenAdam | Plugin

VARIANTS: dict[str, LearnerSpec] = {**DISCO, **BASELINES, **OPEN}
"""Learners of the published assays, by the names of the command line."""


def adapt_to_world(learner: LearnerSpec, environment: EnvironmentSpec) -> LearnerSpec:
    """Return ``learner`` with the settings that it has in this world."""
    if isinstance(environment, MinAtar):
        return learner.for_minatar(environment.game)
    return learner
