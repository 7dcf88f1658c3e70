"""Changes of the world within a lifetime: from a given step on, one of its mappings differs.

Before that step the world is bit-identical to the unchanged one; after it, only the named mapping
differs. Unlike a boundary, a change affects the world itself: ``payoff`` changes with the reward.
The references stay those of the unchanged world, so that scores before and after are comparable.
"""

from __future__ import annotations

import numpy as np

from rulescope.core.errors import SpecError
from rulescope.envs.boundaries import CountingWrapper
from rulescope.envs.environment import (
    Actions,
    Array,
    ColumnWorld,
    Environment,
    Step,
    checked_actions,
)
from rulescope.envs.world_config import (
    ActionFlip,
    Change,
    EnvironmentSpec,
    ObservationFlip,
    RewardMove,
    RewardSign,
    change_problem,
    reward_columns,
)


class ChangingWorld(CountingWrapper):
    """A world that changes after ``after`` steps of every lane; subclasses define the change."""

    COUNTER = "change.steps"
    MEANING = "a changing world"

    def __init__(self, env: Environment, after: int) -> None:
        super().__init__(env)
        if after < 0:
            raise ValueError(f"the steps before a change must be at least 0, not {after}")
        self.after = after

    @property
    def changed(self) -> bool:
        """Whether the next step takes place in the changed world."""
        return self._steps >= self.after

    def reset(self, seed: int) -> Array:
        """Start the world and the count anew."""
        self._count(0)
        first = super().reset(seed)
        return self.convert_observation(first) if self.changed else first

    def step(self, actions: Actions) -> Step:
        """Advance the world, changed from step ``after`` on."""
        if not self.changed:
            step = self.env.step(actions)
        else:
            step = self.convert_step(self.env.step(self.convert_actions(actions)))
        self._count(self._steps + 1)
        return step

    def convert_actions(self, actions: Actions) -> Actions:
        """Return the actions [N] that the world executes for ``actions`` after the change."""
        return actions

    def convert_observation(self, observation: Array) -> Array:
        """Return the observation [N, *shape] of the changed world."""
        return observation

    def convert_step(self, step: Step) -> Step:
        """Return ``step`` of the changed world."""
        seen = self.convert_observation(step.observation)
        final = None if step.final is None else self.convert_observation(step.final)
        return step._replace(observation=seen, final=final)


class FlippedActions(ChangingWorld):
    """Replaces each action by its opposite."""

    def convert_actions(self, actions: Actions) -> Actions:
        """Replace each action; they are checked first, because -1 would be a valid index."""
        chosen = checked_actions(actions, self.lanes, self.actions)
        return np.array(self.env.flipped())[chosen]


class FlippedObservation(ChangingWorld):
    """Reverses the columns, which are the last axis of the observation.

    The observation of the last step before the change is not reversed.
    """

    def convert_observation(self, observation: Array) -> Array:
        """Reverse the columns into a new array."""
        return observation[..., ::-1].copy()


class FlippedReward(ChangingWorld):
    """Negates the reward."""

    def convert_step(self, step: Step) -> Step:
        """Replace reward and payoff; subtracted from zero, so that 0.0 does not become -0.0."""
        return step._replace(reward=np.float32(0.0) - step.reward, payoff=0.0 - step.payoff)


class MovedReward(ChangingWorld):
    """Pays in the column ``columns[ball]`` instead of the column of the ball or target."""

    def __init__(self, env: Environment, after: int, columns: list[int]) -> None:
        if not isinstance(env, ColumnWorld) or sorted(columns) != list(range(env.columns)):
            raise ValueError("a reward move needs a world of columns and a permutation of them")
        self.world = env
        self.columns = columns
        super().__init__(env, after)
        self._count(0)

    def _count(self, steps: int) -> None:
        """Set the count and the paying columns of the world, which has no clock of its own."""
        super()._count(steps)
        self.world.rewarded = self.columns if self.changed else list(range(self.world.columns))


def apply_change(
    env: Environment, environment: EnvironmentSpec, change: Change, steps: int
) -> ChangingWorld:
    """Return ``env`` with ``change``; an iteration has ``steps`` steps."""
    problem = change_problem(environment, change)
    if problem is not None:
        raise SpecError(f"change.{problem}")
    after = change.at * steps
    match change:
        case ActionFlip():
            return FlippedActions(env, after)
        case ObservationFlip():
            return FlippedObservation(env, after)
        case RewardSign():
            return FlippedReward(env, after)
        case RewardMove():
            assert isinstance(env, ColumnWorld)
            return MovedReward(env, after, reward_columns(change, env.columns))
