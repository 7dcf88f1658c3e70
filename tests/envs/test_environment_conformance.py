"""The conformance test passes what keeps the contract and names the clause that is broken."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from envs.env_samples import CHANGING_WORLDS, MINATAR, SMALL_WORLDS
from rulescope.core import seeds
from rulescope.envs import check_env, make
from rulescope.envs.catch import CatchEnv
from rulescope.envs.environment import Actions, Array, Environment, References, State, Step
from rulescope.envs.world_config import WORLDS, Boundary, Catch, Change, MinAtar

BOUNDARIES = [
    Boundary(),
    Boundary(terminals="masked"),
    Boundary(terminals="synthetic", interval=7),
    Boundary(terminals="synthetic", interval=29),
]


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("world", ["catch", "catch-dense", "tracking", "deep-sea"])
def test_every_boundary_conforms(world: str, boundary: Boundary) -> None:
    check_env(lambda: make(SMALL_WORLDS[world], boundary, scale=10.0, lanes=2), steps=60)


@pytest.mark.parametrize("world", SMALL_WORLDS)
def test_every_world_conforms(world: str) -> None:
    check_env(lambda: make(SMALL_WORLDS[world], BOUNDARIES[0], scale=1.0, lanes=2), steps=150)


@pytest.mark.parametrize(
    ("world", "change"),
    [
        (world, change)
        for world, change in CHANGING_WORLDS
        if world in ("catch", "catch-stream", "deep-sea", "breakout")
    ],
)
def test_every_change_conforms(world: str, change: Change) -> None:
    """The worlds change in the middle of the test, after 20 steps."""
    make_env = partial(make, SMALL_WORLDS[world], BOUNDARIES[0], 1.0, 2, change, 10)
    check_env(make_env, steps=40)


def test_every_named_world_is_tested() -> None:
    kinds = {type(config) for config in WORLDS.values()}
    games = {MinAtar} if MINATAR is None else set()
    assert kinds - games <= {type(config) for config in SMALL_WORLDS.values()}


@pytest.mark.parametrize("lanes", [1, 2, 5])
def test_any_number_of_lanes_conforms(lanes: int) -> None:
    check_env(lambda: CatchEnv(Catch(drift=0.2, dense=True), lanes), seed=3, steps=200)


class Coin(Environment):
    """Guess the next bit: a world without episodes, whose only reference is a rate."""

    def __init__(self) -> None:
        self.lanes, self.actions, self.observation_shape = 3, 2, (1,)
        self.references = References(float("nan"), float("nan"), 0.5, 1.0)
        self._streams: list[np.random.Generator] = []

    def reset(self, seed: int) -> Array:
        self._streams = [seeds.stream(seed, "env", lane) for lane in range(self.lanes)]
        return self._flip()

    def step(self, actions: Actions) -> Step:
        whole = actions.shape == (self.lanes,) and actions.dtype.kind == "i"
        if not whole or actions.min() < 0 or actions.max() > 1:
            raise ValueError("actions must be [3] integers of 0 and 1")
        bits = self._flip()
        payoff = (bits[:, 0] == actions).astype(np.float64)
        never = np.zeros(self.lanes, np.bool_)
        return Step(bits, payoff.astype(np.float32), never, payoff, never.copy())

    def save(self) -> State:
        return {"streams": np.stack([seeds.pack(stream) for stream in self._streams])}

    def load(self, state: State) -> None:
        words: Any = state["streams"]
        self._streams = [seeds.unpack(row) for row in words]

    def _flip(self) -> Array:
        return np.array([[stream.integers(2)] for stream in self._streams], np.float32)


class Unrandom(CatchEnv):
    """A deterministic world: the ball always falls in column 0."""

    def _start_episodes(self) -> None:
        super()._start_episodes()
        self._balls = [0] * self.lanes


@pytest.mark.parametrize("world", [Coin, lambda: Unrandom(Catch(), 2)])
def test_endless_and_deterministic_worlds_conform(world: Callable[[], Environment]) -> None:
    check_env(world, steps=100)


class Broken(CatchEnv):
    """Catch, to be broken in one way by each class below."""

    def __init__(self) -> None:
        super().__init__(Catch(), lanes=2)


class OneAction(Broken):
    def __init__(self) -> None:
        super().__init__()
        self.actions = 1


class ListShape(Broken):
    def __init__(self) -> None:
        super().__init__()
        self.observation_shape = [8, 8]  # type: ignore[assignment]


class OracleBelowRandom(Broken):
    def __init__(self) -> None:
        super().__init__()
        self.references = References(1.0, -0.75, 1 / 7, -0.75 / 7)


class OnlyRandom(Broken):
    def __init__(self) -> None:
        super().__init__()
        self.references = References(-0.75, float("nan"), -0.75 / 7, float("nan"))


class DoubleReward(Broken):
    def step(self, actions: Actions) -> Step:
        step = super().step(actions)
        return step._replace(reward=step.payoff.copy())  # type: ignore[arg-type]


class OneFlagTooMany(Broken):
    def step(self, actions: Actions) -> Step:
        return super().step(actions)._replace(ended=np.zeros(3, np.bool_))


class Infinite(Broken):
    def step(self, actions: Actions) -> Step:
        return super().step(actions)._replace(payoff=np.full(2, np.inf))


class UnpromisedGoal(Broken):
    def step(self, actions: Actions) -> Step:
        return super().step(actions)._replace(goal=np.zeros(2, np.bool_))


class PromisedGoal(Broken):
    goals = True


class GoalOfAnotherType(Broken):
    goals = True

    def step(self, actions: Actions) -> Step:
        return super().step(actions)._replace(goal=np.zeros(2))  # type: ignore[arg-type]


class PlainTuple(Broken):
    def step(self, actions: Actions) -> Step:
        return tuple(super().step(actions))  # type: ignore[return-value]


class FlatStart(Broken):
    def reset(self, seed: int) -> Array:
        return super().reset(seed).reshape(2, 64)


class Unseeded(Broken):
    def reset(self, seed: int) -> Array:
        return super().reset(seed + int(np.random.default_rng().integers(1000)))


class ResetGoesOn(Broken):
    def reset(self, seed: int) -> Array:
        if not self._streams:
            return super().reset(seed)
        self._start_episodes()
        return self._boards()


class OneBuffer(Broken):
    buffer = np.zeros((2, 8, 8), np.float32)

    def step(self, actions: Actions) -> Step:
        step = super().step(actions)
        self.buffer[...] = step.observation
        return step._replace(observation=self.buffer)


class ReadsWhatItGave(Broken):
    def reset(self, seed: int) -> Array:
        self.given = super().reset(seed)
        return self.given

    def step(self, actions: Actions) -> Step:
        step = super().step(actions)._replace(reward=self.given[:, 0, 0].copy())
        self.given = step.observation
        return step

    def save(self) -> State:
        return {**super().save(), "given": self.given.copy()}

    def load(self, state: State) -> None:
        inner: dict[str, Any] = dict(state)
        self.given = inner.pop("given")
        super().load(inner)


class ChangesActions(Broken):
    def step(self, actions: Actions) -> Step:
        step = super().step(actions)
        actions[:] = 0
        return step


class ShowsTheEnd(Broken):
    """Returns a board with the ball on the last row where the next start should be."""

    def step(self, actions: Actions) -> Step:
        step = super().step(actions)
        if step.ended.all():
            return step._replace(observation=np.roll(step.observation, -1, axis=1))
        return step


class StopsAtTheEnd(Broken):
    over = False

    def step(self, actions: Actions) -> Step:
        if self.over:
            raise RuntimeError("call reset")
        step = super().step(actions)
        self.over = bool(step.ended.any())
        return step


class ForgetsItsStreams(Broken):
    def load(self, state: State) -> None:
        self.reset(0)
        super().load({**state, "streams": super().save()["streams"]})


class LiveState(Broken):
    def __init__(self) -> None:
        super().__init__()
        self.count = np.zeros(1)

    def step(self, actions: Actions) -> Step:
        step = super().step(actions)
        self.count += 1
        return step

    def save(self) -> State:
        return {**super().save(), "count": self.count}

    def load(self, state: State) -> None:
        super().load({name: array for name, array in state.items() if name != "count"})


class PickledState(Broken):
    def save(self) -> State:
        return {**super().save(), "self": np.array([object()])}


class LoadsOnlyAfterReset(Broken):
    def load(self, state: State) -> None:
        if not self._streams:
            raise RuntimeError("reset me first")
        super().load(state)


class Clips(Broken):
    def step(self, actions: Actions) -> Step:
        return super().step(np.clip(actions, 0, 2))


class Wraps(Broken):
    """Takes -1 for the last action, as an index into a list would."""

    def step(self, actions: Actions) -> Step:
        return super().step(np.where(actions == -1, 2, actions))


class WrongError(Broken):
    def step(self, actions: Actions) -> Step:
        try:
            return super().step(actions)
        except ValueError as fault:
            raise IndexError("no such action") from fault


class MovesBeforeItRefuses(Broken):
    def step(self, actions: Actions) -> Step:
        self._row += 1
        return super().step(actions)

    def _checked(self, actions: Actions) -> list[int]:
        moves = super()._checked(actions)
        self._row -= 1
        return moves


class IgnoresTheSeed(Broken):
    def reset(self, seed: int) -> Array:
        del seed
        return super().reset(0)


class SharedStream(Broken):
    def reset(self, seed: int) -> Array:
        self._streams = [seeds.stream(seed, "env", 0) for _ in range(self.lanes)]
        self._start_episodes()
        return self._boards()


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (OneAction, "[attributes] actions is 1"),
        (ListShape, "[attributes] observation_shape is [8, 8]"),
        (OracleBelowRandom, "[references] oracle return -0.75 is not above random 1.0"),
        (OnlyRandom, "[references] neither return nor rate is finite"),
        (
            DoubleReward,
            "[arrays] reward must be an array [2] of float32, is an array [2] of float64",
        ),
        (OneFlagTooMany, "[arrays] ended must be an array [2] of bool, is an array [3] of bool"),
        (Infinite, "[arrays] payoff is not finite"),
        (UnpromisedGoal, "[arrays] goals is False, but goal is array([False, False])"),
        (PromisedGoal, "[arrays] goals is True, but goal is None"),
        (GoalOfAnotherType, "[arrays] goal must be an array [2] of bool, is an array [2] of float"),
        (PlainTuple, "[arrays] step returned <class 'tuple'>"),
        (FlatStart, "[arrays] the first observation must be an array [2, 8, 8] of float32"),
        (Unseeded, "[determinism] a second environment differs in observation"),
        (ResetGoesOn, "[restart] a used environment after reset differs"),
        (OneBuffer, "[ownership] an array was changed after it had been returned"),
        (ReadsWhatItGave, "[ownership] an env whose returned arrays were overwritten differs"),
        (ChangesActions, "[ownership] step 1 changed the actions"),
        (ShowsTheEnd, "[auto-reset] none of"),
        (StopsAtTheEnd, "[auto-reset] the step after an ended one raised"),
        (ForgetsItsStreams, "[checkpoint] after load, the environment differs"),
        (LiveState, "[checkpoint] the saved 'count' was changed by later steps"),
        (PickledState, "[checkpoint] state 'self' must be a numeric array"),
        (LoadsOnlyAfterReset, "[checkpoint] a fresh environment cannot load"),
        (
            Clips,
            "[refusal] an action of 3 (actions are 0 .. 2) must raise ValueError, was accepted",
        ),
        (Wraps, "[refusal] an action of -1 must raise ValueError, was accepted"),
        (WrongError, "[refusal] an action of 3 (actions are 0 .. 2) must raise ValueError, raised"),
        (MovesBeforeItRefuses, "[refusal] after refused actions, the environment"),
        (IgnoresTheSeed, "[streams] lanes differ, but the seed is ignored"),
        (SharedStream, "[streams] all lanes share one random stream"),
    ],
)
def test_a_broken_environment_is_named(broken: type[Broken], message: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(message)):
        check_env(broken, steps=120)


def test_the_unbroken_base_of_the_broken_ones_conforms() -> None:
    check_env(Broken, steps=120)
