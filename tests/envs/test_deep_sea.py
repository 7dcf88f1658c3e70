"""DeepSea: the dynamics by hand, every path, the goal events, and the references."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from envs.tabular_worlds import deep_sea_tables, rate
from rulescope.envs.deep_sea import DeepSeaEnv, right_actions
from rulescope.envs.references import (
    deep_sea_references,
    sample_references,
    uniform,
)
from rulescope.envs.world_config import DeepSea

LEFT, RIGHT = 0, 1
DEPTHS = (2, 4, 6, 8, 10, 12, 14, 16)


def every_path(depth: int) -> NDArray[np.int64]:
    """All 2 ** depth sequences of actions [depth, paths]."""
    return np.array(list(product([LEFT, RIGHT], repeat=depth))).T


def test_a_dive_by_hand() -> None:
    env = DeepSeaEnv(DeepSea(depth=3), lanes=4)
    first = env.reset(0)
    assert first.shape == (4, 3, 3)
    assert np.argwhere(first[0]).tolist() == [[0, 0]]
    paths = np.array([[RIGHT] * 3, [LEFT, RIGHT, RIGHT], [RIGHT, LEFT, RIGHT], [LEFT] * 3]).T
    steps = [env.step(actions) for actions in paths]
    assert np.argwhere(steps[1].observation).tolist() == [
        [0, 2, 2],
        [1, 2, 1],
        [2, 2, 0],
        [3, 2, 0],
    ]
    cost = 0.01 / 3
    paid = np.array([step.payoff for step in steps])
    expected = [[-cost, 0, -cost, 0], [-cost, -cost, 0, 0], [1 - cost, 1 - cost, -cost, 0]]
    np.testing.assert_allclose(paid, expected, atol=1e-15)
    assert [step.ended.tolist() for step in steps] == [[False] * 4, [False] * 4, [True] * 4]
    last = steps[-1]
    assert last.goal is not None
    assert last.goal.tolist() == [True, True, False, False]
    np.testing.assert_array_equal(last.observation, first)


@pytest.mark.parametrize(
    "config", [DeepSea(depth=4), DeepSea(depth=8), DeepSea(depth=8, mapping=5)]
)
def test_every_path_enumerated(config: DeepSea) -> None:
    depth = config.depth
    paths = every_path(depth)
    env = DeepSeaEnv(config, lanes=paths.shape[1])
    env.reset(0)
    steps = [env.step(actions) for actions in paths]
    goals = np.array([step.goal for step in steps])
    returns = np.array([step.payoff for step in steps]).sum(axis=0)
    exact = deep_sea_references(config)
    assert not goals[:-1].any()
    assert goals[-1].mean() == 2.0 ** -(depth - 1)
    assert returns.mean() == pytest.approx(exact.random_return, abs=1e-12)
    assert returns.max() == pytest.approx(exact.oracle_return, abs=1e-12)
    np.testing.assert_array_equal(goals[-1], returns > 0.5)


@pytest.mark.parametrize("depth", DEPTHS)
def test_references_are_exact(depth: int) -> None:
    config = DeepSea(depth=depth)
    found, tables = deep_sea_references(config), deep_sea_tables(config)
    assert found.random_return == pytest.approx(2.0 ** -(depth - 1) - 0.005, abs=1e-15)
    assert found.oracle_return == pytest.approx(0.99 + 0.01 / depth, abs=1e-15)
    assert rate(tables, noise=1.0) == pytest.approx(found.random_rate, abs=1e-12)
    assert rate(tables) == pytest.approx(found.oracle_rate, abs=1e-12)


@pytest.mark.parametrize(("depth", "published"), [(8, 0.8278), (10, 0.7865)])
def test_noisy_dives_to_the_right_earn_what_is_known(depth: int, published: float) -> None:
    right = np.ones(depth * depth, np.int64)
    found = depth * rate(deep_sea_tables(DeepSea(depth=depth)), noise=0.05, policy=right)
    assert found == pytest.approx(0.975 ** (depth - 1) - 0.00975, abs=1e-12)
    assert found == pytest.approx(published, abs=5e-5)


def dives(moves: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Which of the dives [depth, episodes] of right (1) and left (0) end in the last column."""
    column = np.zeros(moves.shape[1], np.int8)
    for move in moves:
        column = np.clip(column + 2 * move - 1, 0, len(moves) - 1)
    reached: NDArray[np.bool_] = column == len(moves) - 1
    return reached


def test_the_fast_simulation_is_this_world() -> None:
    paths = every_path(6)
    env = DeepSeaEnv(DeepSea(depth=6), lanes=paths.shape[1])
    env.reset(0)
    goal = [env.step(actions).goal for actions in paths][-1]
    np.testing.assert_array_equal(dives(paths.astype(np.int8)), goal)


@pytest.mark.parametrize(("depth", "known"), [(12, 0.9972), (14, 0.7689), (16, 0.3066)])
def test_how_often_random_play_finds_the_goal(depth: int, known: float) -> None:
    """In a campaign of 12,000 episodes, of which there are 60."""
    campaigns, episodes = 60, 12_000
    expected = 1 - (1 - 2.0 ** -(depth - 1)) ** episodes
    assert expected == pytest.approx(known, abs=5e-5)
    generator = np.random.default_rng(depth)
    found = 0
    for _ in range(campaigns):
        moves = generator.integers(2, size=(depth, episodes), dtype=np.int8)
        found += bool(dives(moves).any())
    error = (expected * (1 - expected) / campaigns) ** 0.5
    assert abs(found / campaigns - expected) < 4 * error + 1 / campaigns


def test_sampled_episodes_agree() -> None:
    env = DeepSeaEnv(DeepSea(depth=4), lanes=64)
    found = sample_references(env, uniform(2), episodes=6000, seed=0)
    assert abs(found.mean_return - env.references.random_return) < 4 * found.error


def test_a_mapping_belongs_to_the_world() -> None:
    config = DeepSea(depth=8, mapping=1)
    right = right_actions(config)
    assert set(right.ravel()) == {0, 1}
    np.testing.assert_array_equal(right, right_actions(DeepSea(depth=8, mapping=1)))
    assert (right != right_actions(DeepSea(depth=8, mapping=2))).any()
    assert (right_actions(DeepSea(depth=8)) == RIGHT).all()
    for seed in (0, 1):
        env = DeepSeaEnv(config, lanes=3)
        board = env.reset(seed)
        for _ in range(8):
            row, column = np.argwhere(board[0])[0]
            step = env.step(np.full(3, right[row, column]))
            board = step.observation
        assert step.goal is not None
        assert step.goal.all()


def test_a_deep_sea_must_be_started() -> None:
    env = DeepSeaEnv(DeepSea(), lanes=2)
    with pytest.raises(RuntimeError, match="call reset or load first"):
        env.step(np.array([0, 1]))
    with pytest.raises(RuntimeError, match="call reset or load first"):
        env.save()
    env.load({"row": np.array(3), "columns": np.array([0, 3])})
    assert np.argwhere(env.step(np.array([0, 1])).observation).tolist() == [[0, 4, 0], [1, 4, 4]]
