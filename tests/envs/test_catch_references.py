"""The references of Catch against known constants, an enumeration, and sampled episodes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from rulescope.envs import make
from rulescope.envs.catch import CatchEnv
from rulescope.envs.environment import Environment
from rulescope.envs.references import (
    PUBLISHED_DENSE_RANDOM,
    Policy,
    catch_oracle,
    catch_references,
    sample_references,
    uniform,
)
from rulescope.envs.world_config import WORLDS, Boundary, Catch


def enumerated(config: Catch, best: bool) -> Fraction:
    """The expected return in exact fractions, by following every action and every drift."""
    wall, drift = config.columns - 1, Fraction(config.drift)

    def clip(column: int) -> int:
        return min(max(column, 0), wall)

    def arrival(row: int, ball: int, paddle: int) -> Fraction:
        pay = -Fraction(abs(ball - paddle), wall) if config.dense else Fraction(0)
        if row == config.rows - 1:
            return pay + (1 if ball == paddle else -1)
        return pay + value(row, ball, paddle)

    def after(row: int, ball: int, paddle: int) -> Fraction:
        stay = (1 - drift) * arrival(row + 1, ball, paddle)
        if not drift:
            return stay
        sides = [arrival(row + 1, clip(ball + side), paddle) for side in (-1, 1)]
        return stay + drift / 2 * sum(sides)

    def value(row: int, ball: int, paddle: int) -> Fraction:
        options = [after(row, ball, clip(paddle + move)) for move in (-1, 0, 1)]
        return max(options) if best else sum(options, Fraction(0)) / 3

    starts = [value(0, ball, config.columns // 2) for ball in range(config.columns)]
    return sum(starts, Fraction(0)) / config.columns


@pytest.mark.parametrize(
    ("name", "random"),
    [("catch", -0.75), ("catch-long", -0.875), ("catch-big", 2 / 24 - 1)],
)
def test_plain_worlds_are_exact(name: str, random: float) -> None:
    config = WORLDS[name]
    assert isinstance(config, Catch)
    found = catch_references(config)
    assert found.random_return == random
    assert found.oracle_return == 1.0
    assert found.random_rate == pytest.approx(random / (config.rows - 1), abs=1e-15)
    assert found.oracle_rate == pytest.approx(1 / (config.rows - 1), abs=1e-15)


def test_dense_catch_is_exact_when_asked() -> None:
    found = catch_references(Catch(dense=True, references="exact"))
    assert found.random_return == pytest.approx(-3.0491051, abs=1e-6)
    assert found.oracle_return == pytest.approx(0.75, abs=1e-12)
    assert found.random_rate == found.random_return / 7
    assert found.oracle_rate == pytest.approx(0.75 / 7, abs=1e-12)


def test_dense_catch_uses_the_published_constant_by_default() -> None:
    found = catch_references(Catch(dense=True))
    assert found.random_return == PUBLISHED_DENSE_RANDOM == -3.04774
    assert found.random_rate == -3.04774 / 7
    assert found.oracle_return == pytest.approx(0.75, abs=1e-12)


@pytest.mark.parametrize(
    "config",
    [
        Catch(),
        Catch(dense=True, rows=9),
        Catch(dense=True, columns=9),
        Catch(dense=True, drift=0.5),
    ],
)
def test_the_published_constant_is_for_one_board_only(config: Catch) -> None:
    exact = Catch(
        rows=config.rows,
        columns=config.columns,
        dense=config.dense,
        drift=config.drift,
        references="exact",
    )
    assert catch_references(config) == catch_references(exact)


@pytest.mark.parametrize(
    "config",
    [
        Catch(dense=True, references="exact"),
        Catch(),
        Catch(rows=4, columns=4, dense=True),
        Catch(rows=4, columns=5, dense=True, drift=0.25),
        Catch(rows=4, columns=4, drift=0.2),
        Catch(rows=5, columns=3, drift=1.0),
        Catch(rows=3, columns=9),
        Catch(rows=2, columns=2, dense=True, drift=0.5),
    ],
)
def test_dynamic_programming_equals_enumeration(config: Catch) -> None:
    found = catch_references(config)
    assert found.random_return == pytest.approx(float(enumerated(config, best=False)), abs=1e-12)
    assert found.oracle_return == pytest.approx(float(enumerated(config, best=True)), abs=1e-12)


def test_drift_leaves_a_known_ceiling() -> None:
    """A paddle under the ball catches it with .8 + .2 * (2/8) * (1/2) on an 8x8 board."""
    found = catch_references(Catch(drift=0.2))
    assert found.random_return == -0.75
    assert found.oracle_return == pytest.approx(2 * 0.825 - 1, abs=1e-12)


def test_references_are_computed_once() -> None:
    config = Catch(rows=11, columns=11, dense=True)
    assert catch_references(config) is catch_references(Catch(rows=11, columns=11, dense=True))


@pytest.mark.parametrize(
    "config",
    [
        Catch(),
        Catch(dense=True, references="exact"),
        Catch(drift=0.2),
        Catch(drift=1.0),
        Catch(rows=6, columns=9, dense=True, drift=0.4),
    ],
)
def test_sampled_episodes_agree(config: Catch) -> None:
    env = CatchEnv(config, lanes=64)
    exact = catch_references(config)
    random = sample_references(env, uniform(3), episodes=4000, seed=0)
    oracle = sample_references(env, catch_oracle(config), episodes=2000, seed=1)
    assert random.episodes >= 4000
    assert abs(random.mean_return - exact.random_return) <= 4 * random.error
    assert abs(oracle.mean_return - exact.oracle_return) <= 4 * oracle.error + 1e-12
    steps = config.rows - 1
    assert random.rate == pytest.approx(random.mean_return / steps, abs=1e-9)


def test_the_sampler_reads_the_world_and_not_what_the_learner_observes() -> None:
    def sampled(env: Environment, policy: Policy) -> tuple[float, ...]:
        return sample_references(env, policy, episodes=64, seed=0)

    wrapped = make(Catch(), Boundary(terminals="masked"), scale=100.0, lanes=4)
    assert sampled(wrapped, uniform(3)) == sampled(CatchEnv(Catch(), lanes=4), uniform(3))


def test_the_sampler_stops_at_its_cap() -> None:
    found = sample_references(CatchEnv(Catch(), lanes=2), uniform(3), 10, seed=0, step_cap=6)
    assert found.episodes == 0
    assert np.isnan(found.mean_return)
    assert np.isnan(found.error)
    assert found.rate == 0.0
