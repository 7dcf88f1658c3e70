"""Named learners, and the few things that can be said of any learner from its configuration."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from rulescope.spec.baseline_config import A2C, DQN, PPO, A2CPopArt, RandomPolicy
from rulescope.spec.baseline_config import VARIANTS as BASELINES
from rulescope.spec.disco_config import VARIANTS as DISCO
from rulescope.spec.disco_config import Disco
from rulescope.spec.open_config import VARIANTS as OPEN
from rulescope.spec.open_config import Open, OpenAdam
from rulescope.spec.plugin_config import Plugin
from rulescope.spec.world_config import EnvironmentSpec, MinAtar

LearnerSpec = Disco | A2C | PPO | A2CPopArt | DQN | RandomPolicy | Open | OpenAdam | Plugin

VARIANTS: dict[str, LearnerSpec] = {**DISCO, **BASELINES, **OPEN}
"""Learners of the published assays, by the names of the command line."""

ADAM_RATES = {"breakout": 1e-2, "freeway": 1e-3}
"""Tuned learning rates of ``open-adam``."""


class Habits(NamedTuple):
    """The usual measures of a learner's lifetime."""

    lanes: int = 2
    steps: int = 29
    iterations: int = 2000
    log_every: int = 20


def habits(learner: LearnerSpec) -> Habits:
    """Return how ``learner`` usually lives."""
    return Habits(64, 128, 56, 1) if isinstance(learner, Open | OpenAdam) else Habits()


def suited(learner: LearnerSpec, environment: EnvironmentSpec) -> LearnerSpec:
    """Return ``learner`` made for the world, if it is MinAtar: a torso for its channels.

    OPEN and its Adam see a flat board. Where they have their default, they get the rule that was
    trained on the game, or the learning rate that was tuned for it.
    """
    if isinstance(learner, RandomPolicy) or not isinstance(environment, MinAtar):
        return learner
    if isinstance(learner, Open):
        own = learner.rule == Open().rule
        return replace(learner, rule=f"open-{environment.game}") if own else learner
    if isinstance(learner, OpenAdam):
        own = learner.learning_rate == OpenAdam().learning_rate
        return replace(learner, learning_rate=ADAM_RATES[environment.game]) if own else learner
    sizes = replace(learner.agent, torso="channel")
    return replace(learner, agent=sizes)


def stepwise(learner: LearnerSpec) -> bool:
    """Tell whether something can be done to ``learner`` after each step of its optimiser."""
    return isinstance(learner, Open | OpenAdam)


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
        case Open(agent=agent) | OpenAdam(agent=agent) if agent.torso == "channel":
            yield "agent.torso: the rule knows no convolutions; use 'grid'"
        case PPO() | Open() | OpenAdam() if (minibatches := learner.minibatches) > lanes * steps:
            yield f"minibatches: {minibatches} is more than an iteration has ({lanes * steps})"
        case Plugin(carriers=names) if len(set(names)) < len(names):
            yield f"carriers: {max(names, key=names.count)!r} is named twice"


def _stored(capacity: int) -> str:
    return f"learner.capacity ({capacity}), so learning would never start"
