"""Echo: name the light that is on."""

from __future__ import annotations

import numpy as np

from rulescope.core import seeds
from rulescope.envs.environment import (
    Actions,
    Array,
    Environment,
    References,
    State,
    Step,
    checked_actions,
)

LIGHTS, STEPS = 4, 8


class Echo(Environment):
    """One of four lights is on; naming it pays 1. An episode has eight steps.

    Chance names the right one in every fourth step, so both references are exact.
    """

    actions = LIGHTS
    observation_shape = (LIGHTS,)
    references = References(
        random_return=STEPS / LIGHTS,
        oracle_return=float(STEPS),
        random_rate=1 / LIGHTS,
        oracle_rate=1.0,
    )

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.time = 0
        self.lights = np.zeros(lanes, np.int64)
        self.streams = [seeds.stream(0, "env", lane) for lane in range(lanes)]

    def reset(self, seed: int) -> Array:
        """Start every lane anew from ``seed``: each has a stream of its own."""
        self.time = 0
        self.streams = [seeds.stream(seed, "env", lane) for lane in range(self.lanes)]
        return self._next()

    def step(self, actions: Actions) -> Step:
        """Pay lanes that named the light, and show the next one."""
        named = checked_actions(actions, self.lanes, self.actions)
        payoff = (np.array(named) == self.lights).astype(np.float64)
        self.time = (self.time + 1) % STEPS
        ended = np.full(self.lanes, self.time == 0)
        return Step(self._next(), payoff.astype(np.float32), ended.copy(), payoff, ended)

    def save(self) -> State:
        """Return everything that the future depends on."""
        streams = np.stack([seeds.pack(stream) for stream in self.streams])
        return {"time": np.array(self.time), "lights": self.lights.copy(), "streams": streams}

    def load(self, state: State) -> None:
        """Continue from what :meth:`save` returned."""
        self.time = int(np.asarray(state["time"]))
        self.lights = np.array(state["lights"], np.int64)
        self.streams = [seeds.unpack(np.asarray(words, np.uint64)) for words in state["streams"]]

    def _next(self) -> Array:
        self.lights = np.array([stream.integers(LIGHTS) for stream in self.streams])
        shown: Array = np.eye(LIGHTS, dtype=np.float32)[self.lights]
        return shown
