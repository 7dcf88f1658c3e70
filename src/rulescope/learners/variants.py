"""Named learners, and the few things that can be said of any learner from its configuration."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from rulescope.envs.config import EnvironmentSpec, MinAtar
from rulescope.learners.baselines import A2C, DQN, PPO, A2CPopArt, RandomPolicy
from rulescope.learners.baselines import VARIANTS as BASELINES
from rulescope.learners.disco.config import VARIANTS as DISCO
from rulescope.learners.disco.config import Disco

LearnerSpec = Disco | A2C | PPO | A2CPopArt | DQN | RandomPolicy

VARIANTS: dict[str, LearnerSpec] = {**DISCO, **BASELINES}
"""Learners of the published assays, by the names of the command line."""


def suited(learner: LearnerSpec, environment: EnvironmentSpec) -> LearnerSpec:
    """Return ``learner`` with the torso for what the world shows: MinAtar has channels."""
    if isinstance(learner, RandomPolicy) or not isinstance(environment, MinAtar):
        return learner
    sizes = msgspec.structs.replace(learner.agent, torso="channel")
    return msgspec.structs.replace(learner, agent=sizes)


def first_update(learner: LearnerSpec, lanes: int, steps: int) -> int:
    """Return the iteration in which ``learner`` first updates its parameters."""
    match learner:
        case Disco(batch=batch):
            return math.ceil(batch / lanes)
        case DQN(start=start, train_every=every):
            stored = math.ceil(start / lanes)  # steps of the world; then the next due
            return math.ceil(math.ceil(stored / every) * every / steps)
        case _:
            return 1


def unfit(learner: LearnerSpec, lanes: int, steps: int) -> Iterator[str]:
    """Yield what is wrong with ``learner`` for rollouts of this size, the key first."""
    match learner:
        case Disco(batch=batch, capacity=capacity) if batch > capacity:
            yield f"batch: {batch} is more than {_stored(capacity)}"
        case DQN(start=start, capacity=capacity) if start > capacity:
            yield f"start: {start} is more than {_stored(capacity)}"
        case DQN(capacity=capacity) if lanes > capacity:
            yield f"capacity: {capacity} has no room for one transition of each lane ({lanes})"
        case PPO(minibatches=minibatches) if minibatches > lanes * steps:
            yield f"minibatches: {minibatches} is more than an iteration has ({lanes * steps})"


def _stored(capacity: int) -> str:
    return f"learner.capacity ({capacity}), so learning would never start"
