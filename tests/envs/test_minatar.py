"""MinAtar as a world: the package's own games, our streams, states that can be kept."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from envs.env_samples import MINATAR, actions_for, assert_same_arrays
from rulescope.core import arrays, seeds
from rulescope.core.errors import SpecError
from rulescope.envs import make
from rulescope.envs.environment import Environment
from rulescope.envs.minatar import STATE, MinAtarEnv
from rulescope.envs.references import sample_references, uniform
from rulescope.envs.world_config import WORLDS, ActionFlip, Boundary, MinAtar

installed = pytest.mark.skipif(MINATAR is None, reason="needs the extra 'minatar'")

BREAKOUT, FREEWAY = MinAtar(game="breakout"), MinAtar(game="freeway")


def plain(config: MinAtar, lanes: int = 2) -> Environment:
    return make(config, Boundary(), 1.0, lanes)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "minatar", None)
    with pytest.raises(SpecError, match=r"extra 'minatar': pip install 'rulescope\[minatar\]'"):
        MinAtarEnv(BREAKOUT, lanes=1)


@installed
@pytest.mark.parametrize(
    ("config", "actions", "channels"),
    [
        (BREAKOUT, 6, 4),
        (FREEWAY, 6, 7),
        (WORLDS["gymnax-breakout"], 3, 4),
        (WORLDS["gymnax-freeway"], 3, 7),
    ],
)
def test_boards_have_channels_first(config: MinAtar, actions: int, channels: int) -> None:
    env = plain(config)
    boards = env.reset(0)
    assert env.actions == actions
    assert env.observation_shape == (channels, 10, 10)
    assert boards.shape == (2, channels, 10, 10)
    assert boards.dtype == np.float32
    assert set(np.unique(boards)) == {0.0, 1.0}
    assert np.isnan(env.references).all()
    assert np.argwhere(boards[0, 0]).tolist() == [[9, 4]]
    if config.game == "breakout":
        np.testing.assert_array_equal(boards[0, 3, 1:4], np.ones((3, 10)))


@installed
@pytest.mark.parametrize("config", [BREAKOUT, FREEWAY], ids=["breakout", "freeway"])
def test_each_lane_plays_the_game_of_the_package(config: MinAtar) -> None:
    """Stickiness included, with the package's own loop and the stream of the lane beside it."""
    game: Any = import_module("minatar").Environment(config.game, sticky_action_prob=0.1)
    lane, seed, steps = 1, 7, 300
    env = plain(config, lanes=2)
    boards = env.reset(seed)
    random = np.random.RandomState(seeds.stream(seed, "env", lane).bit_generator)
    game.random = game.env.random = random
    game.reset()
    ends = 0
    for actions in actions_for(env, steps):
        np.testing.assert_array_equal(boards[lane], game.state().transpose(2, 0, 1))
        step = env.step(actions)
        boards = step.observation
        reward, over = game.act(actions[lane])
        assert step.payoff[lane] == reward
        assert bool(step.ended[lane]) == over
        if over:
            ends += 1
            game.reset()
    assert (ends > 5) == (config.game == "breakout")


@installed
@pytest.mark.parametrize("config", [BREAKOUT, FREEWAY], ids=["breakout", "freeway"])
def test_games_continue_from_a_file(config: MinAtar) -> None:
    """In the middle of an episode, after and before payoffs, through arrays without pickle."""
    env, other = plain(config), plain(config)
    env.reset(3)
    actions = actions_for(env, 800, seed=3)
    if config.game == "freeway":
        actions[:] = 2  # otherwise no lane would ever reach the other side
    paid = [env.step(row).payoff for row in actions[:400]]
    other.load(arrays.unpack(arrays.pack(env.save())))
    for row in actions[400:]:
        step = env.step(row)
        assert_same_arrays(step, other.step(row))
        paid.append(step.payoff)
    assert np.any(paid[:400])
    assert np.any(paid[400:])
    assert arrays.pack(env.save()) == arrays.pack(other.save())


@installed
def test_an_unknown_game_state_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STATE, "breakout", {"ball_x": ()})
    with pytest.raises(SpecError, match=r"version 1\.0\.15"):
        MinAtarEnv(BREAKOUT, lanes=1)


@installed
def test_the_limit_ends_an_episode() -> None:
    env = plain(MinAtar(game="breakout", sticky=0.0, actions="minimal", limit=4))
    env.reset(0)
    ends = [env.step(np.zeros(2, np.int64)).ended.tolist() for _ in range(12)]
    assert ends == [[index % 4 == 0] * 2 for index in range(1, 13)]


@installed
@pytest.mark.parametrize(("config", "length"), [(FREEWAY, 2501), (WORLDS["gymnax-freeway"], 2500)])
def test_how_long_freeway_lasts(config: MinAtar, length: int) -> None:
    env = plain(config, lanes=1)
    env.reset(0)
    ends = [bool(env.step(np.zeros(1, np.int64)).ended[0]) for _ in range(length)]
    assert ends == [False] * (length - 1) + [True]


@installed
def test_an_action_flip_swaps_the_opposite_moves() -> None:
    minimal = [MinAtar(game=game, actions="minimal") for game in ("breakout", "freeway")]
    assert plain(BREAKOUT).flipped() == (0, 3, 2, 1, 4, 5)
    assert plain(FREEWAY).flipped() == (0, 1, 4, 3, 2, 5)
    assert [plain(config).flipped() for config in minimal] == [(0, 2, 1)] * 2


@installed
def test_a_flipped_breakout_moves_the_other_way() -> None:
    config = MinAtar(game="breakout", sticky=0.0)
    env = make(config, Boundary(), 1.0, 1, ActionFlip(at=1), steps=2)
    env.reset(0)
    paddles = []
    for action in (1, 1, 1, 3):
        boards = env.step(np.array([action])).observation
        paddles.append(int(boards[0, 0, 9].argmax()))
    assert paddles == [3, 2, 3, 2]


@installed
def test_stickiness_repeats_what_was_executed() -> None:
    """Always sticky, nothing but the first "nothing" is ever executed, and the paddle stays."""
    env = plain(MinAtar(game="breakout", sticky=1.0))
    env.reset(0)
    for _ in range(30):
        boards = env.step(np.array([1, 3])).observation
        assert boards[:, 0, 9].argmax(axis=1).tolist() == [4, 4]
    env.load({**env.save(), "executed": np.array([1, 3])})
    boards = env.step(np.array([0, 0])).observation
    assert boards[:, 0, 9].argmax(axis=1).tolist() == [3, 5]


@installed
@pytest.mark.parametrize(
    ("config", "known"),
    [(BREAKOUT, 0.0459), (MinAtar(game="breakout", actions="minimal"), 0.0384)],
)
def test_random_play_earns_the_known_rate(config: MinAtar, known: float) -> None:
    env = plain(config, lanes=8)
    found = sample_references(env, uniform(env.actions), 10**9, seed=0, step_cap=2000)
    # The error of a ratio whose episodes last about eleven steps; both rates were sampled.
    error = found.error * found.episodes / (2000 * env.lanes)
    assert abs(found.rate - known) < 4 * error
