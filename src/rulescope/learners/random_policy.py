"""A uniformly random policy as a learner."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rulescope.core import seeds
from rulescope.learners.learner import Carrier, Choice, Learner, Rollout


class UniformLearner(Learner):
    """Uniformly random actions; it has no carriers, only a random stream."""

    metrics = ()

    def __init__(self, actions: int, seed: int) -> None:
        self.actions = actions
        self.streams = {"action": seeds.stream(seed, "action")}
        self.carriers: dict[str, Carrier] = {}

    def act(self, observation: NDArray[np.float32]) -> Choice:
        """Draw an action for each lane."""
        return Choice(self.streams["action"].integers(self.actions, size=len(observation)), {})

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:  # noqa: ARG002
        """Do nothing."""
        return {}
