"""Tracking and CatchStream: the dynamics by hand, the references by dynamic programming."""

from __future__ import annotations

import numpy as np
import pytest

from envs.tabular_worlds import catch_stream_tables, rate, tracking_tables
from rulescope.envs.catch import CatchEnv
from rulescope.envs.catch_stream import CatchStreamEnv
from rulescope.envs.references import (
    catch_stream_references,
    chase,
    sample_references,
    tracking_references,
    uniform,
)
from rulescope.envs.tracking import TrackingEnv
from rulescope.envs.world_config import Catch, CatchStream, Tracking

STAY = 1


def tracking(targets: list[int], cursors: list[int], drift: float = 0.0) -> TrackingEnv:
    env = TrackingEnv(Tracking(drift=drift), lanes=len(targets))
    env.reset(0)
    env.load({**env.save(), "targets": np.array(targets), "cursors": np.array(cursors)})
    return env


def test_tracking_starts_in_the_middle_with_a_target_anywhere() -> None:
    boards = TrackingEnv(Tracking(), lanes=64).reset(1)
    assert boards.shape == (64, 2, 8)
    assert (boards.sum(axis=2) == 1).all()
    assert (boards[:, 1].argmax(axis=1) == 4).all()
    assert set(boards[:, 0].argmax(axis=1)) == set(range(8))


def test_the_cursor_moves_within_the_walls_and_pays_on_the_target() -> None:
    env = tracking([0, 7, 3, 3], [1, 6, 3, 4])
    first = env.step(np.array([0, 2, 1, 2]))
    assert first.payoff.tolist() == [1.0, 1.0, 1.0, 0.0]
    assert first.observation[:, 1].argmax(axis=1).tolist() == [0, 7, 3, 5]
    second = env.step(np.array([0, 2, 0, 0]))
    assert second.observation[:, 1].argmax(axis=1).tolist() == [0, 7, 2, 4]
    assert second.payoff.tolist() == [1.0, 1.0, 0.0, 0.0]
    assert not second.ended.any()
    assert not second.terminal.any()


def test_the_target_moves_after_the_cursor_and_is_clipped() -> None:
    """The payoff is for the board that is shown; at a wall half of the moves stay."""
    lanes = 4000
    env = tracking([0] * lanes, [0] * lanes, drift=0.5)
    step = env.step(np.full(lanes, STAY))
    target = step.observation[:, 0].argmax(axis=1)
    assert set(target) == {0, 1}
    np.testing.assert_array_equal(step.payoff, target == 0)
    assert abs(step.payoff.mean() - 0.75) < 4 * (0.75 * 0.25 / lanes) ** 0.5


def test_tracking_references_are_exact() -> None:
    found = tracking_references(Tracking())
    assert found.random_rate == 1 / 8
    assert found.oracle_rate == pytest.approx(59 / 80, abs=1e-15)
    assert np.isnan(found.random_return)
    assert np.isnan(found.oracle_return)


@pytest.mark.parametrize(
    "config",
    [Tracking(), Tracking(columns=2, drift=0.5), Tracking(columns=5, drift=0.1)],
)
def test_dynamic_programming_agrees_on_tracking(config: Tracking) -> None:
    exact, tables = tracking_references(config), tracking_tables(config)
    assert rate(tables, noise=1.0) == pytest.approx(exact.random_rate, abs=1e-12)
    assert rate(tables) == pytest.approx(exact.oracle_rate, abs=1e-12)


def test_what_noisy_play_earns_in_tracking_is_what_was_published() -> None:
    tables, exact = tracking_tables(Tracking()), tracking_references(Tracking())
    assert exact.rate_score(rate(tables, noise=0.05)) == pytest.approx(0.9632, abs=5e-5)
    assert exact.rate_score(rate(tables, noise=0.2515)) == pytest.approx(0.8036, abs=5e-5)


@pytest.mark.parametrize(
    "env", [TrackingEnv(Tracking(), lanes=64), CatchStreamEnv(CatchStream(), lanes=64)]
)
def test_sampled_rates_agree(env: TrackingEnv | CatchStreamEnv) -> None:
    """The error is estimated for payoffs that are correlated over about 20 steps."""
    steps = 1400
    error = (20 / (64 * steps)) ** 0.5
    random = sample_references(env, uniform(3), 1, seed=0, step_cap=steps)
    oracle = sample_references(env, chase, 1, seed=1, step_cap=steps)
    assert random.episodes == oracle.episodes == 0
    assert abs(random.rate - env.references.random_rate) < error
    assert abs(oracle.rate - env.references.oracle_rate) < error


def stream(rows: int, columns: int, balls: list[int], paddles: list[int]) -> CatchStreamEnv:
    env = CatchStreamEnv(CatchStream(rows=rows, columns=columns, drift=0.0), lanes=len(balls))
    env.reset(0)
    env.load({**env.save(), "balls": np.array(balls), "paddles": np.array(paddles)})
    return env


def test_the_ball_bounces_and_pays_at_every_contact() -> None:
    env = stream(8, 8, [4, 3], [4, 4])
    steps = [env.step(np.array([STAY, STAY])) for _ in range(42)]
    paid = [index for index, step in enumerate(steps, 1) if step.payoff.any()]
    assert paid == [7, 21, 35]
    assert all(steps[index - 1].payoff.tolist() == [1.0, -1.0] for index in paid)
    rows = [step.observation[0, :, 4].argmax() for step in steps]
    assert rows[:15] == [1, 2, 3, 4, 5, 6, 7, 6, 5, 4, 3, 2, 1, 0, 1]


def test_nothing_ends_and_the_paddle_is_never_put_back() -> None:
    """The structural check of the assay; masked Catch is what it must not be."""
    env = CatchStreamEnv(CatchStream(drift=0.0), lanes=2)
    rows, paddles, ends = _followed(env)
    assert ends == 0
    assert set(paddles) == {2}
    assert set(np.abs(np.diff(rows)).tolist()) == {1}
    _, paddles, ends = _followed(CatchEnv(Catch(), lanes=2))
    assert ends == 2 * ((200 + 2) // 7)
    assert 4 in paddles


def _followed(env: CatchEnv | CatchStreamEnv) -> tuple[list[int], list[int], int]:
    """Go two to the left, then stay for 200 steps; ball rows and paddles of lane 0, and ends."""
    env.reset(0)
    steps = [env.step(np.full(2, 0)) for _ in range(2)]
    rows, paddles = [], []
    for _ in range(200):
        steps.append(env.step(np.full(2, STAY)))
        state = env.save()
        rows.append(int(np.asarray(state["row"], np.int64)))
        paddles.append(int(np.asarray(state["paddles"], np.int64)[0]))
        board = steps[-1].observation[0]
        assert board[rows[-1]].any()
        assert board[-1, paddles[-1]] == 1.0
    assert all(not step.terminal.any() for step in steps) or isinstance(env, CatchEnv)
    return rows, paddles, int(sum(step.ended.sum() for step in steps))


def test_the_contact_step_drifts_too() -> None:
    """Under the ball, .8 + .2 * (2/8) * (1/2) of the contacts are catches."""
    env = CatchStreamEnv(CatchStream(), lanes=2000)
    boards = env.reset(0)
    generator = np.random.default_rng(0)
    for _ in range(21):
        step = env.step(chase(boards, generator))
        boards = step.observation
    assert abs((step.payoff == 1.0).mean() - 0.825) < 4 * (0.825 * 0.175 / 2000) ** 0.5


def test_catch_stream_references_are_exact() -> None:
    found = catch_stream_references(CatchStream())
    assert found.random_rate == pytest.approx(-0.75 / 14, abs=1e-15)
    assert found.oracle_rate == pytest.approx(13 / 280, abs=1e-15)
    assert np.isnan(found.random_return)
    still = catch_stream_references(CatchStream(drift=0.0))
    assert still.oracle_rate == pytest.approx(1 / 14, abs=1e-15)


@pytest.mark.parametrize(
    "config",
    [
        CatchStream(),
        CatchStream(rows=2, columns=5, drift=0.5),
        CatchStream(rows=4, columns=3, drift=0.1),
    ],
)
def test_dynamic_programming_agrees_on_catch_stream(config: CatchStream) -> None:
    exact, tables = catch_stream_references(config), catch_stream_tables(config)
    assert rate(tables, noise=1.0) == pytest.approx(exact.random_rate, abs=1e-12)
    assert rate(tables) == pytest.approx(exact.oracle_rate, abs=1e-12)


def test_states_of_another_world_are_refused() -> None:
    env = TrackingEnv(Tracking(), lanes=2)
    env.reset(0)
    with pytest.raises(ValueError, match="not a state of this CatchStream"):
        CatchStreamEnv(CatchStream(), lanes=2).load(env.save())
    with pytest.raises(ValueError, match="not a state of this Tracking"):
        TrackingEnv(Tracking(), lanes=3).load(env.save())


@pytest.mark.parametrize("env", [TrackingEnv(Tracking(), 1), CatchStreamEnv(CatchStream(), 1)])
def test_streams_must_be_started(env: TrackingEnv | CatchStreamEnv) -> None:
    with pytest.raises(RuntimeError, match="call reset or load first"):
        env.save()
