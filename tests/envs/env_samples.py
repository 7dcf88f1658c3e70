"""Worlds and changes that several tests go through, and how they are played and compared."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import product

import numpy as np

from rulescope.envs.environment import Actions, Environment, Step
from rulescope.envs.world_config import (
    WORLDS,
    ActionFlip,
    Catch,
    CatchStream,
    Change,
    DeepSea,
    EnvironmentSpec,
    MinAtar,
    ObservationFlip,
    RewardMove,
    RewardSign,
    Tracking,
    change_problem,
)

MINATAR = find_spec("minatar")

SMALL_WORLDS: dict[str, EnvironmentSpec] = {
    "catch": Catch(),
    "catch-dense": Catch(dense=True),
    "catch-drift": Catch(rows=5, columns=6, drift=0.5),
    "catch-long": WORLDS["catch-long"],
    "catch-stream": CatchStream(),
    "catch-stream-still": CatchStream(rows=4, columns=5, drift=0.0),
    "tracking": Tracking(),
    "deep-sea": DeepSea(depth=4),
    "deep-sea-mapped": DeepSea(depth=5, mapping=3),
}
if MINATAR is not None:
    SMALL_WORLDS |= {
        "breakout": MinAtar(game="breakout"),
        "breakout-limited": MinAtar(game="breakout", sticky=0.0, actions="minimal", limit=7),
        "freeway": MinAtar(game="freeway", limit=40),
    }

CHANGES: tuple[Change, ...] = (
    ActionFlip(at=2),
    ObservationFlip(at=2),
    RewardSign(at=2),
    RewardMove(at=2),
    RewardMove(at=2, map="mirror"),
    RewardMove(at=2, map="shift:3"),
)

CHANGING_WORLDS = [
    (world, change)
    for world, change in product(SMALL_WORLDS, CHANGES)
    if change_problem(SMALL_WORLDS[world], change) is None
]
"""Every world with every change that can be made in it."""


def actions_for(env: Environment, steps: int, seed: int = 0) -> Actions:
    """Random actions [steps, N]."""
    return np.random.default_rng(seed).integers(env.actions, size=(steps, env.lanes))


def play(env: Environment, steps: int, seed: int = 0) -> list[Step]:
    env.reset(seed)
    return [env.step(actions) for actions in actions_for(env, steps, seed)]


def assert_same_arrays(one: Step, other: Step, but: tuple[str, ...] = ()) -> None:
    """To the bit, in every field that is not among ``but``."""
    for name in set(Step._fields) - set(but):
        left, right = getattr(one, name), getattr(other, name)
        assert (left is None) == (right is None)
        if left is not None:
            assert left.dtype == right.dtype
            assert left.tobytes() == right.tobytes(), name
