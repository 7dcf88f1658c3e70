"""Evaluation of fixed policies: the reward of a learner that acts and does not learn.

The learner is left unchanged. Worlds are new, and action noise is drawn from separate streams
that depend on the run's seed alone: runs of one seed are compared in the same episodes with the
same noise, whatever was done to their learners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope import envs
from rulescope.core import seeds
from rulescope.core.arrays import Arrays
from rulescope.envs.world_config import Boundary, EnvironmentSpec
from rulescope.learners.learner import Learner
from rulescope.run_spec import Evaluation, RunSpec

Act = Callable[[NDArray[np.float32]], NDArray[np.int64]]
"""Maps observations [N, *shape] to actions [N]."""


class Earnings(NamedTuple):
    """Rewards of each lane."""

    reward: NDArray[np.float64]
    """[lanes]: the sum of all rewards, those of an unfinished episode too."""
    episodes: NDArray[np.int64]
    """[lanes]: number of completed episodes."""


def evaluate_policies(
    spec: RunSpec, plan: Evaluation, learner: Learner, initial: Learner
) -> dict[str, Arrays]:
    """Return the rewards of the policies in ``plan``, by ``evaluation.POLICY``.

    Both learners are left unchanged.
    """
    found: dict[str, Arrays] = {}
    for policy in plan.policies:
        if policy == "random":
            earned = _play_plan(spec, plan, _uniform_policy(spec, plan))
        else:
            player = learner if policy == "terminal" else initial
            with evaluation_streams(player, spec.seed):
                earned = _play_plan(spec, plan, partial(_choose, player), player.begin_episodes)
        found[f"evaluation.{policy}"] = earned._asdict()
    return found


def _choose(player: Learner, observation: NDArray[np.float32]) -> NDArray[np.int64]:
    return player.act(observation).actions


@contextmanager
def evaluation_streams(learner: Learner, seed: int) -> Iterator[None]:
    """Give ``learner`` the random streams of an evaluation; restore its whole state at the end."""
    before = learner.save()
    for name in learner.streams:
        learner.streams[name] = _stream(seed, name)
    try:
        yield
    finally:
        learner.load(before)


def play(
    act: Act,
    environment: EnvironmentSpec,
    lanes: int,
    steps: int,
    world_seed: int,
    begin_episodes: Callable[[NDArray[np.bool_]], None] | None = None,
) -> Earnings:
    """Return the rewards of ``act`` in ``steps`` steps of ``lanes`` new worlds.

    ``begin_episodes`` is called with the lanes in which the next observation begins an episode.
    """
    begin = begin_episodes or (lambda _: None)
    world = envs.make(environment, Boundary(), 1.0, lanes)
    observation = world.reset(world_seed)
    reward, episodes = np.zeros(lanes), np.zeros(lanes, np.int64)
    begin(np.ones(lanes, np.bool_))
    for _ in range(steps):
        step = world.step(act(observation))
        begin(step.terminal)
        observation = step.observation
        reward += step.payoff
        episodes += step.ended
    return Earnings(reward, episodes)


def _play_plan(
    spec: RunSpec,
    plan: Evaluation,
    act: Act,
    begin_episodes: Callable[[NDArray[np.bool_]], None] | None = None,
) -> Earnings:
    world_seed = int(_stream(spec.seed, "world").integers(2**32))
    return play(
        act, spec.environment, plan.lanes, plan.steps, world_seed, begin_episodes=begin_episodes
    )


def _uniform_policy(spec: RunSpec, plan: Evaluation) -> Act:
    """Return a policy with equal logits and the Gumbel noise of a learner's logits."""
    noise = _stream(spec.seed, "action")
    actions = envs.make(spec.environment, Boundary(), 1.0, plan.lanes).actions
    return lambda observation: noise.gumbel(size=(len(observation), actions)).argmax(axis=1)


def _stream(seed: int, name: str) -> np.random.Generator:
    return seeds.stream(seed, "evaluation", name)
