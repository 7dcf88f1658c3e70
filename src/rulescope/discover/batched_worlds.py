"""The small training worlds for many candidates at once, on common random numbers.

An environment of :mod:`rulescope.envs` loops over its lanes in Python, each with a random stream of
its own. The worlds here hold their state in arrays [C, E, B] for C candidates with E agents of B
lanes each, and are given their random numbers: one array [E, B, 2] per step, the same for every
candidate. So two candidates in the same state that act alike see the same transition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope import envs
from rulescope.core.errors import SpecError
from rulescope.discover.discovery_spec import World
from rulescope.envs.deep_sea import COST, right_actions
from rulescope.envs.environment import clip_columns, drift_columns
from rulescope.envs.world_config import Boundary, Catch, DeepSea, EnvironmentSpec, Tracking

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Shape = tuple[int, int, int]


class BatchedWorld(ABC):
    """One kind of world; all state arrays are [C, E, B]."""

    actions: int
    observation_shape: tuple[int, int]

    @abstractmethod
    def reset(self, draws: Floats) -> None:
        """Start every lane; ``draws`` [E, B, 2] are uniform in [0, 1)."""

    @abstractmethod
    def step(self, actions: Integers, draws: Floats) -> tuple[Floats, bool]:
        """Return the payoffs [C, E, B] of ``actions`` [C, E, B], and whether episodes ended."""

    @abstractmethod
    def lit(self) -> tuple[Integers | int, ...]:
        """Return the rows and columns of the two cells that are 1: row, column, row, column."""


class BatchedCatch(BatchedWorld):
    """As :class:`rulescope.envs.catch.CatchEnv`; the first draw is the drift's, the second a
    column's."""

    actions = 3

    def __init__(self, config: Catch, shape: Shape) -> None:
        self.config, self.observation_shape = config, (config.rows, config.columns)
        self.row = 0
        self.balls = np.zeros(shape, np.int64)
        self.paddles = np.zeros(shape, np.int64)

    def reset(self, draws: Floats) -> None:
        """Put every ball on row 0 in a drawn column, and the paddles in the middle."""
        columns = self.config.columns
        self.row = 0
        self.balls[:] = (draws[..., 1] * columns).astype(np.int64)
        self.paddles[:] = columns // 2

    def step(self, actions: Integers, draws: Floats) -> tuple[Floats, bool]:
        """Move paddles and balls; start the next episodes after the last row."""
        config, wall = self.config, self.config.columns - 1
        self.paddles = clip_columns(self.paddles + actions - 1, wall)
        self.row += 1
        if config.drift > 0.0:
            self.balls = drift_columns(self.balls, draws[..., 0], config.drift, wall)
        distance = np.abs(self.paddles - self.balls)
        payoffs = -distance / wall if config.dense else np.zeros(distance.shape)
        landed = self.row == config.rows - 1
        if landed:
            payoffs = payoffs + np.where(distance == 0, 1.0, -1.0)
            self.reset(draws)
        return payoffs, landed

    def lit(self) -> tuple[Integers | int, ...]:
        """Return the cells of balls and paddles."""
        return self.row, self.balls, self.config.rows - 1, self.paddles


class BatchedTracking(BatchedWorld):
    """As :class:`rulescope.envs.tracking.TrackingEnv`."""

    actions = 3

    def __init__(self, config: Tracking, shape: Shape) -> None:
        self.config, self.observation_shape = config, (2, config.columns)
        self.targets = np.zeros(shape, np.int64)
        self.cursors = np.zeros(shape, np.int64)

    def reset(self, draws: Floats) -> None:
        """Put every target in a drawn column, and the cursors in the middle."""
        self.targets[:] = (draws[..., 1] * self.config.columns).astype(np.int64)
        self.cursors[:] = self.config.columns // 2

    def step(self, actions: Integers, draws: Floats) -> tuple[Floats, bool]:
        """Move cursors and targets."""
        wall = self.config.columns - 1
        self.cursors = clip_columns(self.cursors + actions - 1, wall)
        self.targets = drift_columns(self.targets, draws[..., 0], self.config.drift, wall)
        return (self.cursors == self.targets).astype(np.float64), False

    def lit(self) -> tuple[Integers | int, ...]:
        """Return the cells of targets and cursors."""
        return 0, self.targets, 1, self.cursors


class BatchedDeepSea(BatchedWorld):
    """As :class:`rulescope.envs.deep_sea.DeepSeaEnv`; it needs no draws."""

    actions = 2

    def __init__(self, config: DeepSea, shape: Shape) -> None:
        self.config, self.observation_shape = config, (config.depth, config.depth)
        self._right = right_actions(config)
        self.row = 0
        self.columns = np.zeros(shape, np.int64)

    def reset(self, draws: Floats) -> None:
        """Put every diver in row 0, column 0."""
        del draws
        self.row = 0
        self.columns = np.zeros_like(self.columns)

    def step(self, actions: Integers, draws: Floats) -> tuple[Floats, bool]:
        """Move every diver down and to one side."""
        depth = self.config.depth
        right = actions == self._right[self.row, self.columns]
        self.columns = clip_columns(self.columns + 2 * right - 1, depth - 1)
        self.row += 1
        payoffs = np.where(right, -COST / depth, 0.0)
        over = self.row == depth
        if over:
            payoffs = payoffs + (self.columns == depth - 1)
            self.reset(draws)
        return payoffs, over

    def lit(self) -> tuple[Integers | int, ...]:
        """Return the diver's cell, twice."""
        return self.row, self.columns, self.row, self.columns


def make_batched(environment: EnvironmentSpec, shape: Shape, source: str = "") -> BatchedWorld:
    """Return the batched world of ``environment``, or raise :class:`SpecError`."""
    if isinstance(environment, Catch):
        return BatchedCatch(environment, shape)
    if isinstance(environment, Tracking):
        return BatchedTracking(environment, shape)
    if isinstance(environment, DeepSea):
        return BatchedDeepSea(environment, shape)
    kind = environment.__struct_config__.tag
    raise SpecError(f"{source}kind: {kind!r} has no batched form; use catch, tracking or deep-sea")


class BatchedStep(NamedTuple):
    """One interaction of every lane; all arrays are [C, E, B, ...]."""

    observation: NDArray[np.float32]
    """[C, E, B, cells]: the next one, flattened."""
    reward: NDArray[np.float32]
    """As the agent observes it: scaled."""
    terminal: NDArray[np.float32]
    """As the agent observes it: 1.0 where an episode ended, unless masked."""
    payoff: NDArray[np.float64]
    """The reward of the world."""


class BatchedWorldMix:
    """The worlds of C candidates, each with E agents of B lanes: those of the first world first.

    As in :class:`~rulescope.discover.experience.WorldMix`, boards are shown in the corner of the
    largest one, and surplus actions wrap around.
    """

    def __init__(self, worlds: Sequence[World], candidates: int, lanes: int) -> None:
        self.shape: Shape = (candidates, sum(world.agents for world in worlds), lanes)
        self._boundaries = [world.boundary for world in worlds]
        self.worlds = [
            make_batched(world.environment, (candidates, world.agents, lanes)) for world in worlds
        ]
        ends = np.cumsum([world.agents for world in worlds])
        self._agents = [
            slice(int(end) - world.agents, int(end))
            for end, world in zip(ends, worlds, strict=True)
        ]
        self.actions = max(world.actions for world in self.worlds)
        sides = zip(*(world.observation_shape for world in self.worlds), strict=True)
        self.observation_shape = tuple(max(side) for side in sides)
        self.references = [
            envs.make(world.environment, Boundary(), 1.0, 1).references for world in worlds
        ]
        self.scales = np.ones((self.shape[1], 1), np.float32)
        """[E, 1] multiplier of each agent's rewards"""
        self._age = 0
        self._board = np.arange(int(np.prod(self.shape))).reshape(self.shape)

    def reset(self, draws: Floats) -> NDArray[np.float32]:
        """Start every lane; return the first observations [C, E, B, cells]."""
        self._age = 0
        for world, own in zip(self.worlds, self._agents, strict=True):
            world.reset(draws[own])
        return self._observe()

    def step(self, actions: Integers, draws: Floats) -> BatchedStep:
        """Advance every lane by one of ``actions`` [C, E, B], with ``draws`` [E, B, 2]."""
        payoffs = np.empty(self.shape)
        terminals = np.zeros(self.shape, np.float32)
        self._age += 1
        for world, own, boundary in zip(self.worlds, self._agents, self._boundaries, strict=True):
            payoffs[:, own], ended = world.step(actions[:, own] % world.actions, draws[own])
            terminals[:, own] = self._observed_end(boundary, ended)
        rewards = payoffs.astype(np.float32) * self.scales
        return BatchedStep(self._observe(), rewards, terminals, payoffs)

    def _observed_end(self, boundary: Boundary, ended: bool) -> bool:
        if boundary.terminals == "masked":
            return False
        if boundary.terminals == "synthetic":
            return self._age % (boundary.interval or self._age + 1) == 0
        return ended

    def _observe(self) -> NDArray[np.float32]:
        height, width = self.observation_shape
        boards = np.zeros(self._board.size * height * width, np.float32)
        for world, own in zip(self.worlds, self._agents, strict=True):
            row, column, second_row, second_column = world.lit()
            first = self._board[:, own] * (height * width)
            boards[first + (row * width + column)] = 1.0
            boards[first + (second_row * width + second_column)] = 1.0
        return boards.reshape(*self.shape, height * width)

    def scores(self, rates: Floats) -> NDArray[np.float64]:
        """Return the scores [C, W] for mean payoffs ``rates`` [C, E]: 0 is random, 1 is optimal."""
        return np.stack(
            [
                (rates[:, own].mean(1) - reference.random_rate)
                / (reference.oracle_rate - reference.random_rate)
                for reference, own in zip(self.references, self._agents, strict=True)
            ],
            axis=1,
        )
