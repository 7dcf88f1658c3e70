"""A lifetime with a full replay, whose iterations are timed and whose batches are recorded.

The cost of an update grows with the number of distinct observations in its batch, and so with the
content of the replay. So the replay is filled before the first measurement, by a random policy,
which visits most of a world: the update is timed at its slowest.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.matmul_limit import update_products
from rulescope import envs, learners
from rulescope.core import seeds
from rulescope.core.arrays import Arrays
from rulescope.core.errors import SpecError
from rulescope.envs.boundaries import Wrapper
from rulescope.envs.environment import Actions, Environment, Step
from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.disco_learner import DiscoLearner
from rulescope.learners.disco.update import LearnerState
from rulescope.learners.disco.update import Step as UpdateStep
from rulescope.learners.disco_config import Disco
from rulescope.learners.learner import Rollout
from rulescope.lifetime import Lifetime
from rulescope.run_spec import RunSpec

FILLING_LANES = 64


class MoreActions(Wrapper):
    """A world with more actions: action a acts as a modulo the world's own number of actions."""

    def __init__(self, env: Environment, actions: int) -> None:
        super().__init__(env)
        self.actions = actions

    def step(self, actions: Actions) -> Step:
        """Advance the wrapped world by one of its own actions in each lane."""
        if actions.min() < 0 or actions.max() >= self.actions:
            raise ValueError(f"actions must be 0 .. {self.actions - 1}, got {actions}")
        return self.env.step(actions % self.env.actions)

    def convert_step(self, step: Step) -> Step:
        """Return ``step`` unchanged."""
        return step


def make_world(spec: RunSpec, lanes: int, actions: int | None = None) -> Environment:
    """Return the world of ``spec``, with another number of ``actions`` if one is given."""
    env = envs.make(spec.environment, spec.boundary, spec.scale, lanes, spec.change, spec.steps)
    return env if actions in (None, env.actions) else MoreActions(env, actions)


def disco_config(spec: RunSpec) -> Disco:
    """Return the learner of ``spec``, which must be Disco."""
    if not isinstance(spec.learner, Disco):
        raise SpecError(f"learner: {type(spec.learner).__name__} is not measured here, only Disco")
    return spec.learner


class Iteration(NamedTuple):
    """The seconds of one iteration."""

    total: float
    learning: float
    """The part inside the learner's ``learn``: storing, sampling and the update."""


class TimedLifetime:
    """A lifetime of ``spec`` with a full replay, advanced one timed iteration at a time."""

    def __init__(self, spec: RunSpec, actions: int | None = None) -> None:
        self.lifetime = Lifetime(spec)
        if actions is not None:
            self._set_actions(actions)
        learner = self.lifetime.learner
        assert isinstance(learner, DiscoLearner)
        self.learner = learner
        self.batches: list[Batch] = []
        """Of the updates since the last :meth:`clear_batches`."""
        self._learning = 0.0
        filler = make_world(spec, FILLING_LANES, actions)
        learner.carriers["replay"].set(random_replay(filler, learner, spec.steps))
        self._instrument()

    def _set_actions(self, actions: int) -> None:
        """Replace world and learner by those with another number of actions."""
        lifetime, spec = self.lifetime, self.lifetime.spec
        lifetime.world = MoreActions(lifetime.world, actions)
        shape = lifetime.world.observation_shape
        lifetime.learner = learners.make(spec.learner, shape, actions, spec.steps, spec.seed)

    def _instrument(self) -> None:
        """Time ``learn``, and record the batch of every update."""
        learn, update = self.learner.learn, self.learner.update.fast_

        def timed_learn(rollout: Rollout, measure: bool) -> dict[str, float]:
            start = time.perf_counter()
            metrics = learn(rollout, measure)
            self._learning = time.perf_counter() - start
            return metrics

        def recorded_update(state: LearnerState, batch: Batch) -> tuple[LearnerState, UpdateStep]:
            self.batches.append(batch)
            return update(state, batch)

        self.learner.learn = timed_learn  # type: ignore[method-assign]
        self.learner.update.fast_ = recorded_update  # type: ignore[method-assign]

    def iterate(self) -> Iteration:
        """Make one iteration; every one includes an update."""
        start = time.perf_counter()
        self.lifetime.advance()
        return Iteration(time.perf_counter() - start, self._learning)

    def clear_batches(self) -> None:
        """Remove the recorded batches."""
        self.batches.clear()

    def products(self) -> list[int]:
        """Return the multiply-adds that the update on each of the :attr:`batches` needs."""
        return [update_products(self.learner, batch) for batch in self.batches]


def random_replay(env: Environment, learner: DiscoLearner, steps: int) -> Arrays:
    """Return a full replay of random behaviour in the format of the carrier ``replay``.

    Every lane has several rollouts, because the position of a trajectory relative to its episodes
    differs between rollouts.
    """
    length, capacity = learner.transitions, learner.replay.capacity
    rng = seeds.stream(0, "bench", "replay")
    observations, columns = [], []
    observation, began = env.reset(seed=0), np.zeros(env.lanes, np.bool_)
    for _ in range(-(-capacity // env.lanes)):
        actions = rng.integers(env.actions, size=(steps, env.lanes))
        taken = [env.step(row) for row in actions]
        visited = np.stack([observation, *(step.observation for step in taken)])
        observations.append(visited[: length + 1].swapaxes(0, 1))
        columns.append(
            {
                "actions": actions[:length].T,
                "rewards": np.stack([step.reward for step in taken[:length]], axis=1),
                "terminals": np.stack([step.terminal for step in taken[:length]], axis=1),
                "behaviour": np.zeros((env.lanes, length, env.actions), np.float32),
                "began": began,
            }
        )
        observation, began = taken[-1].observation, taken[-1].terminal
    rows = np.concatenate(observations)[:capacity].reshape(-1, *env.observation_shape)
    content: dict[str, NDArray[Any]] = {
        name: np.concatenate([part[name] for part in columns])[:capacity] for name in columns[0]
    }
    index = np.arange(len(rows)).reshape(capacity, length + 1)
    return content | {"rows": rows, "index": index}
