"""The dynamics of Catch, by hand."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from rulescope.envs.catch import CatchEnv
from rulescope.envs.environment import Step
from rulescope.envs.world_config import Catch


def placed(config: Catch, balls: list[int]) -> CatchEnv:
    """An environment at the start of an episode, with the balls where we want them."""
    env = CatchEnv(config, lanes=len(balls))
    env.reset(0)
    env.load({**env.save(), "balls": np.array(balls)})
    return env


def play(env: CatchEnv, *moves: list[int]) -> list[Step]:
    return [env.step(np.array(actions)) for actions in moves]


def cells(board: np.ndarray) -> set[tuple[int, int]]:
    return {(int(row), int(column)) for row, column in np.argwhere(board)}


def test_the_first_board_shows_the_ball_above_and_the_paddle_in_the_middle() -> None:
    boards = CatchEnv(Catch(), lanes=64).reset(3)
    assert boards.shape == (64, 8, 8)
    assert boards.dtype == np.float32
    assert set(np.unique(boards)) == {0.0, 1.0}
    assert (boards[:, 7].argmax(axis=1) == 4).all()
    assert (boards.sum(axis=(1, 2)) == 2).all()
    assert set(boards[:, 0].argmax(axis=1)) == set(range(8))


def test_paddle_moves_and_ball_falls() -> None:
    env = placed(Catch(), [0, 6])
    first, second = play(env, [0, 2], [1, 2])
    assert cells(first.observation[0]) == {(1, 0), (7, 3)}
    assert cells(first.observation[1]) == {(1, 6), (7, 5)}
    assert cells(second.observation[0]) == {(2, 0), (7, 3)}
    assert cells(second.observation[1]) == {(2, 6), (7, 6)}


def test_paddle_stops_at_the_walls() -> None:
    env = placed(Catch(), [5, 5])
    *_, last = play(env, *[[0, 2]] * 6)
    assert last.observation[:, 7].argmax(axis=1).tolist() == [0, 7]


def test_a_catch_pays_and_a_miss_costs_on_the_seventh_step_only() -> None:
    steps = play(placed(Catch(), [4, 3]), *[[1, 1]] * 7)
    assert [step.payoff.tolist() for step in steps] == [[0.0, 0.0]] * 6 + [[1.0, -1.0]]
    assert [step.reward.tolist() for step in steps] == [[0.0, 0.0]] * 6 + [[1.0, -1.0]]
    assert [step.ended.tolist() for step in steps] == [[False] * 2] * 6 + [[True] * 2]
    assert [step.terminal.tolist() for step in steps] == [[False] * 2] * 6 + [[True] * 2]


def test_the_step_that_ends_an_episode_shows_the_next_one() -> None:
    env = placed(Catch(), [0, 7])
    *_, last = play(env, *[[0, 2]] * 7)
    assert (last.observation[:, 0].sum(axis=1) == 1).all()
    assert (last.observation[:, 7].argmax(axis=1) == 4).all()


@pytest.mark.parametrize(("rows", "columns"), [(8, 8), (16, 16), (24, 24), (2, 2), (3, 9)])
def test_every_episode_lasts_rows_minus_one_steps(rows: int, columns: int) -> None:
    env = CatchEnv(Catch(rows=rows, columns=columns), lanes=2)
    assert env.reset(0).shape == (2, rows, columns)
    ends = [bool(step.ended.all()) for step in play(env, *[[0, 2]] * 50)]
    assert [index for index, end in enumerate(ends, 1) if end] == list(
        range(rows - 1, 51, rows - 1)
    )


def test_two_rows_make_an_episode_of_one_step() -> None:
    step = play(placed(Catch(rows=2, columns=3), [1]), [1])[0]
    assert step.payoff.tolist() == [1.0]
    assert step.ended.tolist() == [True]


def test_dense_pays_the_distance_after_the_move_at_every_step() -> None:
    env = placed(Catch(dense=True), [2])
    payoffs = [float(step.payoff[0]) for step in play(env, *[[0]] * 7)]
    # The paddle goes 4 -> 3, 2, 1, 0, 0, 0, 0 while the ball stays in column 2.
    assert payoffs == pytest.approx([-1 / 7, 0, -1 / 7, -2 / 7, -2 / 7, -2 / 7, -2 / 7 - 1])
    assert str(payoffs[1]) == "0.0"


def test_dense_catch_pays_one_where_paddle_and_ball_meet() -> None:
    steps = play(placed(Catch(dense=True), [4]), *[[1]] * 7)
    assert [float(step.payoff[0]) for step in steps] == [0.0] * 6 + [1.0]


def test_drift_moves_the_ball_by_one_with_equal_odds_on_every_row() -> None:
    env = CatchEnv(Catch(columns=64, drift=0.2), lanes=4)
    boards = [env.reset(1)] + [env.step(np.ones(4, np.int64)).observation for _ in range(7 * 300)]
    columns = np.array([board[:, :-1].sum(axis=1).argmax(axis=1) for board in boards])
    in_episode = np.array([index % 7 != 6 for index in range(len(columns) - 1)])
    moves = np.diff(columns, axis=0)[in_episode].ravel()
    inside = (columns[:-1][in_episode].ravel() > 0) & (columns[:-1][in_episode].ravel() < 63)
    count = inside.sum()
    for move, share in ((-1, 0.1), (0, 0.8), (1, 0.1)):
        error = (share * (1 - share) / count) ** 0.5
        assert abs((moves[inside] == move).mean() - share) < 4 * error
    assert set(moves) == {-1, 0, 1}


def test_drift_applies_to_the_landing_step_and_stops_at_the_walls() -> None:
    env = placed(Catch(rows=2, columns=2, drift=1.0), [0] * 200)
    payoff = play(env, [0] * 200)[0].payoff
    # The paddle stands in column 0; half of the balls try to leave through the wall and stay.
    assert 60 < (payoff == 1.0).sum() < 140


def test_a_lane_does_not_depend_on_the_number_of_lanes() -> None:
    config = Catch(drift=0.3, dense=True)
    one, three = CatchEnv(config, lanes=1), CatchEnv(config, lanes=3)
    np.testing.assert_array_equal(one.reset(5)[0], three.reset(5)[0])
    for move in [0, 2, 2, 1, 0] * 10:
        alone, among = one.step(np.array([move])), three.step(np.array([move, 1, 2]))
        for name in ("observation", "reward", "terminal", "payoff", "ended"):
            np.testing.assert_array_equal(getattr(alone, name)[0], getattr(among, name)[0])


def test_save_and_load_continue_in_a_new_environment() -> None:
    config = Catch(drift=0.3)
    env, other = CatchEnv(config, lanes=2), CatchEnv(config, lanes=2)
    env.reset(0)
    play(env, *[[0, 2]] * 10)
    other.load(env.save())
    for one, two in zip(play(env, *[[2, 1]] * 30), play(other, *[[2, 1]] * 30), strict=True):
        np.testing.assert_array_equal(one.observation, two.observation)
        np.testing.assert_array_equal(one.payoff, two.payoff)


def test_a_state_of_another_number_of_lanes_is_refused() -> None:
    env = CatchEnv(Catch(), lanes=2)
    env.reset(0)
    with pytest.raises(ValueError, match="not a state of this Catch"):
        CatchEnv(Catch(), lanes=3).load(env.save())


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (np.array([0, 3]), "got [0, 3]"),
        (np.array([-1, 0]), "got [-1, 0]"),
        (np.array([0, 1, 2]), "must be an array [2]"),
        (np.array([[0, 1]]), "must be an array [2]"),
        (np.array(1), "must be an array [2]"),
        (np.array([0.0, 1.0]), "must be integers, got dtype float64"),
        (np.array([True, False]), "must be integers, got dtype bool"),
    ],
)
def test_impossible_actions_are_refused(actions: np.ndarray, message: str) -> None:
    env = CatchEnv(Catch(), lanes=2)
    env.reset(0)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is checked below
        env.step(actions)
    assert message in str(caught.value)


def test_smaller_integer_types_are_accepted() -> None:
    env = placed(Catch(), [4])
    env.step(np.array([2], np.uint8))
    assert env.save()["paddles"].tolist() == [5]


def test_an_environment_that_was_not_reset_raises() -> None:
    env = CatchEnv(Catch(), lanes=1)
    with pytest.raises(RuntimeError, match="call reset or load first"):
        env.step(np.array([1]))
    with pytest.raises(RuntimeError, match="call reset or load first"):
        env.save()


def test_no_lanes_are_refused() -> None:
    with pytest.raises(ValueError, match="lanes must be at least 1"):
        CatchEnv(Catch(), lanes=0)


def test_environments_do_not_import_torch() -> None:
    program = "import sys, rulescope.envs; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
