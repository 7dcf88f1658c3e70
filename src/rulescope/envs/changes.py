"""Changes within a lifetime: from one step on, one mapping of the world is another.

Until then the changed world is the unchanged one to the bit; after it, nothing but the named
mapping differs. Unlike a boundary, a change is of the world itself: ``payoff`` changes with the
reward. The references stay those from before, so that scores on both sides can be compared.
"""

from __future__ import annotations

import numpy as np

from rulescope.core.errors import SpecError
from rulescope.envs.boundaries import Counting
from rulescope.envs.environment import Actions, Array, Environment, Step, checked_actions
from rulescope.envs.seeded_world import ColumnWorld
from rulescope.spec.world_config import (
    ActionFlip,
    Change,
    EnvironmentSpec,
    ObservationFlip,
    RewardMove,
    RewardSign,
    misfit,
    reward_columns,
)


class Changing(Counting):
    """A world that changes after ``after`` steps of every lane; subclasses say what changes."""

    COUNTER = "change.steps"
    MEANING = "a changing world"

    def __init__(self, env: Environment, after: int) -> None:
        super().__init__(env)
        if after < 0:
            raise ValueError(f"the steps before a change must be at least 0, not {after}")
        self.after = after

    @property
    def changed(self) -> bool:
        """Whether the next step is made in the changed world."""
        return self._steps >= self.after

    def reset(self, seed: int) -> Array:
        """Start the world and the count anew."""
        self._count(0)
        first = super().reset(seed)
        return self.shown(first) if self.changed else first

    def step(self, actions: Actions) -> Step:
        """Advance the world, in its changed form if it is time."""
        if not self.changed:
            step = self.env.step(actions)
        else:
            step = self.told(self.env.step(self.meant(actions)))
        self._count(self._steps + 1)
        return step

    def meant(self, actions: Actions) -> Actions:
        """Return the actions [N] that the changed world takes ``actions`` for."""
        return actions

    def shown(self, observation: Array) -> Array:
        """Return the observation [N, *shape] as the changed world shows it."""
        return observation

    def told(self, step: Step) -> Step:
        """Return ``step`` as it is in the changed world."""
        return step._replace(observation=self.shown(step.observation))


class FlippedActions(Changing):
    """Takes each action for the one opposite to it."""

    def meant(self, actions: Actions) -> Actions:
        """Replace each action, after a check: an index of -1 would find one that is not meant."""
        chosen = checked_actions(actions, self.lanes, self.actions)
        return np.array(self.env.flipped())[chosen]


class FlippedObservation(Changing):
    """Shows the columns, which are the last axis of the observation, in reverse order.

    The observation that came with the last step before the change was shown as it was.
    """

    def shown(self, observation: Array) -> Array:
        """Reverse the columns, into an array of its own."""
        return observation[..., ::-1].copy()


class FlippedReward(Changing):
    """Pays the opposite."""

    def told(self, step: Step) -> Step:
        """Replace reward and payoff; subtracted from zero, so that nothing is not made -0.0."""
        return step._replace(reward=np.float32(0.0) - step.reward, payoff=0.0 - step.payoff)


class MovedReward(Changing):
    """Pays in another column than that of the ball or target: in ``columns[ball]``."""

    def __init__(self, env: Environment, after: int, columns: list[int]) -> None:
        if not isinstance(env, ColumnWorld) or sorted(columns) != list(range(env.columns)):
            raise ValueError("a reward move needs a world of columns and a permutation of them")
        self.world = env
        self.columns = columns
        super().__init__(env, after)
        self._count(0)

    def _count(self, steps: int) -> None:
        """Count, and tell the world where it pays: it does not know about time itself."""
        super()._count(steps)
        self.world.rewarded = self.columns if self.changed else list(range(self.world.columns))


def changing(
    env: Environment, environment: EnvironmentSpec, change: Change, steps: int
) -> Changing:
    """Return the world ``env`` of ``environment`` with a ``change``, at ``steps`` an iteration."""
    problem = misfit(environment, change)
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
