"""Any Gymnasium environment with discrete actions as a world."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rulescope import seeds
from rulescope.envs.base import Actions, Array, References, State, Step
from rulescope.envs.config import Gymnasium
from rulescope.envs.world import World
from rulescope.errors import RecordError, SpecError


class GymnasiumEnv(World):
    """``lanes`` environments of one Gymnasium id.

    Observations from a box keep their shape, all others become a vector as
    ``gymnasium.spaces.flatten`` makes it (one-hot for a discrete space); numbers are made float32
    and not scaled. Termination and truncation both end the episode, and are told as terminal.

    Every episode starts with a reset to a seed of its own, drawn from the stream of the lane.
    Gymnasium has no way to save an environment, so a saved state is that seed and the actions
    since, and loading it plays them again. That is exact for an environment in which nothing but
    the seed decides what an episode is; one that is found not to be so is refused. The longer an
    episode lasts, the longer it takes.
    """

    def __init__(self, config: Gymnasium, lanes: int) -> None:
        super().__init__(lanes)
        self.config = config
        gymnasium = _package()
        try:
            self._envs = [gymnasium.make(config.id) for _ in range(lanes)]
        except (gymnasium.error.Error, ImportError) as fault:
            raise SpecError(f"environment.id: {config.id!r} cannot be made ({fault})") from None
        self._spaces = gymnasium.spaces
        actions, self._seen = self._envs[0].action_space, self._envs[0].observation_space
        if not isinstance(actions, self._spaces.Discrete):
            raise SpecError(f"environment.id: {config.id!r} has no discrete actions but {actions}")
        self.actions = int(actions.n)
        self._first_action = int(actions.start)
        boxed = isinstance(self._seen, self._spaces.Box) and len(self._seen.shape) > 0
        self._whole = boxed and not config.flat
        if not self._whole and not self._seen.is_np_flattenable:
            raise SpecError(f"environment.id: {config.id!r} shows {self._seen}, not a fixed array")
        size = self._seen.shape if self._whole else self._spaces.flatdim(self._seen)
        self.observation_shape = tuple(int(n) for n in np.atleast_1d(size))
        self.references = _references(config)
        self._current = np.zeros((lanes, *self.observation_shape), np.float32)
        self._seeds = [0] * lanes
        self._actions: list[list[int]] = [[] for _ in range(lanes)]

    def reset(self, seed: int) -> Array:
        """Start every lane anew from ``seed`` and return the first observation [N, *shape]."""
        self._seed(seed)
        for lane in range(self.lanes):
            self._start_episode(lane)
        return self._current.copy()

    def step(self, actions: Actions) -> Step:
        """Choose an action [N] of 0 .. ``actions`` - 1, wherever Gymnasium starts to count."""
        payoff = np.zeros(self.lanes)
        ended = np.zeros(self.lanes, np.bool_)
        for lane, action in enumerate(self._checked(actions)):
            payoff[lane], ended[lane] = self._act(lane, action)
            if ended[lane]:
                self._start_episode(lane)
        reward = payoff.astype(np.float32)
        return Step(self._current.copy(), reward, ended.copy(), payoff, ended)

    def save(self) -> State:
        """Return how the running episodes came about, and what they show.

        ``seeds`` [N], the ``lengths`` [N] so far, ``actions`` [N, longest] filled up with -1, the
        packed ``streams`` [N, 6] and the ``observation`` [N, *shape] to check a replay by.
        """
        streams = self._packed()
        lengths = [len(actions) for actions in self._actions]
        played = np.full((self.lanes, max(lengths)), -1, np.int64)
        for row, actions in zip(played, self._actions, strict=True):
            row[: len(actions)] = actions
        return {
            "streams": streams,
            "seeds": np.array(self._seeds),
            "lengths": np.array(lengths),
            "actions": played,
            "observation": self._current.copy(),
        }

    def load(self, state: State) -> None:
        """Play the saved episodes again, up to where they stood."""
        lanes = (self.lanes,)
        longest = state["actions"].shape[1:] if "actions" in state else ()
        arrays = self._verified(
            state,
            {
                "streams": (self.lanes, 6),
                "seeds": lanes,
                "lengths": lanes,
                "actions": lanes + longest,
                "observation": (self.lanes, *self.observation_shape),
            },
        )
        self._streams = [seeds.unpack(words) for words in arrays["streams"]]
        for lane in range(self.lanes):
            self._begin(lane, int(arrays["seeds"][lane]))
            for action in arrays["actions"][lane, : int(arrays["lengths"][lane])].tolist():
                self._act(lane, action)
        if self._current.tobytes() != np.asarray(arrays["observation"], np.float32).tobytes():
            raise RecordError(
                f"{self.config.id!r} cannot be continued: played again from the same seed, an "
                "episode went otherwise"
            )

    def _start_episode(self, lane: int) -> None:
        self._begin(lane, int(self._streams[lane].integers(2**31)))

    def _begin(self, lane: int, seed: int) -> None:
        self._seeds[lane], self._actions[lane] = seed, []
        observation, _ = self._envs[lane].reset(seed=seed)
        self._current[lane] = self._array(observation)

    def _act(self, lane: int, action: int) -> tuple[float, bool]:
        """Make one step of one lane and return its payoff and whether the episode is over."""
        self._actions[lane].append(action)
        observation, reward, terminated, truncated, _ = self._envs[lane].step(
            action + self._first_action
        )
        self._current[lane] = self._array(observation)
        return float(reward), bool(terminated or truncated)

    def _array(self, observation: Any) -> NDArray[Any]:
        if self._whole:
            return np.asarray(observation)
        return np.asarray(self._spaces.flatten(self._seen, observation))


def _references(config: Gymnasium) -> References:
    """Return what is given, which must be pairs of which the oracle has more."""
    units = {
        "return": (config.random_return, config.oracle_return),
        "rate": (config.random_rate, config.oracle_rate),
    }
    known: list[float] = []
    for unit, (random, oracle) in units.items():
        if (random is None) != (oracle is None):
            raise SpecError(f"environment.random_{unit}: needs environment.oracle_{unit} beside it")
        if random is None or oracle is None:
            known += [math.nan, math.nan]
        elif not random < oracle:
            raise SpecError(f"environment.oracle_{unit}: {oracle} is not above random ({random})")
        else:
            known += [random, oracle]
    return References(*known)


def _package() -> Any:
    try:
        return import_module("gymnasium")
    except ModuleNotFoundError as fault:
        if fault.name != "gymnasium":
            raise
        raise SpecError("Gymnasium worlds need its package: pip install gymnasium") from None
