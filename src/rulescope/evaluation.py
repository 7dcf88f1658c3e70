"""A frozen policy at play: what a learner earns when it acts and no longer learns.

Nothing is written back. The worlds are new ones and the noise of actions is drawn from streams of
their own, which follow from the run's seed alone: runs of one seed are compared on the same games
with the same luck, whatever was done to their learners.
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
from rulescope.learners.learner import Learner
from rulescope.spec.run_spec import Evaluation, RunSpec
from rulescope.spec.world_config import Boundary, EnvironmentSpec

Act = Callable[[NDArray[np.float32]], NDArray[np.int64]]
"""Chooses actions [N] on observations [N, *shape]."""


class Earnings(NamedTuple):
    """What each lane earned."""

    reward: NDArray[np.float64]
    """[lanes]: the sum of all rewards, those of an unfinished episode too."""
    episodes: NDArray[np.int64]
    """[lanes]: how many have ended."""


def evaluated(
    spec: RunSpec, plan: Evaluation, learner: Learner, newborn: Learner
) -> dict[str, Arrays]:
    """Return the earnings of the policies that ``plan`` names, by ``evaluation.POLICY``.

    Both learners are left as they are.
    """
    found: dict[str, Arrays] = {}
    for policy in plan.policies:
        if policy == "random":
            earned = _played(spec, plan, _indifferent(spec, plan))
        else:
            player = learner if policy == "terminal" else newborn
            with borrowed(player, spec.seed):
                earned = _played(spec, plan, partial(_chosen, player))
        found[f"evaluation.{policy}"] = earned._asdict()
    return found


def _chosen(player: Learner, seen: NDArray[np.float32]) -> NDArray[np.int64]:
    return player.act(seen).actions


@contextmanager
def borrowed(learner: Learner, seed: int) -> Iterator[None]:
    """Let ``learner`` act with the luck of an evaluation; then put everything back."""
    before = learner.save()
    for name in learner.streams:
        learner.streams[name] = _stream(seed, name)
    try:
        yield
    finally:
        learner.load(before)


def play(
    act: Act, environment: EnvironmentSpec, lanes: int, steps: int, world_seed: int
) -> Earnings:
    """Let ``act`` choose for ``steps`` steps of ``lanes`` new worlds."""
    world = envs.make(environment, Boundary(), 1.0, lanes)
    seen = world.reset(world_seed)
    reward, episodes = np.zeros(lanes), np.zeros(lanes, np.int64)
    for _ in range(steps):
        step = world.step(act(seen))
        seen = step.observation
        reward += step.payoff
        episodes += step.ended
    return Earnings(reward, episodes)


def _played(spec: RunSpec, plan: Evaluation, act: Act) -> Earnings:
    world_seed = int(_stream(spec.seed, "world").integers(2**32))
    return play(act, spec.environment, plan.lanes, plan.steps, world_seed)


def _indifferent(spec: RunSpec, plan: Evaluation) -> Act:
    """Return a policy with equal logits, under the noise that a learner's logits get."""
    noise = _stream(spec.seed, "action")
    actions = envs.make(spec.environment, Boundary(), 1.0, plan.lanes).actions
    return lambda seen: noise.gumbel(size=(len(seen), actions)).argmax(axis=1)


def _stream(seed: int, name: str) -> np.random.Generator:
    return seeds.stream(seed, "evaluation", name)
