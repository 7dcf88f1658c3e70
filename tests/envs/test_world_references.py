"""References of any world: exact, registered, stated, sampled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from rulescope.core.errors import SpecError
from rulescope.envs.world_config import WORLDS, Argument, Gymnasium, WorldWrapper
from rulescope.envs.world_names import find_world
from rulescope.envs.world_references import (
    EPISODES,
    WorldReferences,
    find_references,
    sample_random_play,
)

gymnasium: Any = pytest.importorskip("gymnasium")

POLE = "gymnasium:CartPole-v1"


def test_exact_references_are_those_of_the_world() -> None:
    known = find_references(WORLDS["catch"], "catch")
    assert (known.measure, known.random, known.best, known.kind) == ("return", -0.75, 1.0, "exact")
    assert known.error is None
    stream = find_references(WORLDS["tracking"], "tracking")
    assert (stream.measure, stream.random, stream.kind) == ("rate", 1 / 8, "exact")


def test_sampled_random_play_is_that_of_a_plain_loop() -> None:
    known = find_references(find_world(POLE), POLE)
    assert known.error is not None
    assert (known.measure, known.episodes, known.best, known.kind) == (
        "return",
        EPISODES,
        475.0,
        "threshold",
    )
    env, draws, returns = gymnasium.make("CartPole-v1"), np.random.default_rng(1), []
    for seed in range(300):
        env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            _, reward, ended, cut, _ = env.step(int(draws.integers(2)))
            total, over = total + reward, ended or cut
        returns.append(total)
    error = float(np.std(returns, ddof=1)) / math.sqrt(300)
    assert abs(known.random - np.mean(returns)) < 4 * math.hypot(error, known.error)
    assert known.error == pytest.approx(error * math.sqrt(300 / EPISODES), rel=0.4)


def test_a_sample_is_the_same_again() -> None:
    world = find_world(POLE)
    assert sample_random_play(world) == sample_random_play(world)


def test_a_world_without_episodes_is_sampled_over_independent_lanes() -> None:
    sampled = sample_random_play(WORLDS["tracking"])
    assert (sampled.measure, sampled.episodes, sampled.best) == ("rate", 0, None)
    assert sampled.error is not None
    assert abs(sampled.random - 1 / 8) < 4 * sampled.error


def test_a_world_with_episodes_is_never_scored_by_its_rate() -> None:
    entry = "gymnasium.envs.classic_control.pendulum:PendulumEnv"
    gymnasium.register("rulescope/Endless-v0", entry)
    try:
        endless = find_world("gymnasium:rulescope/Endless-v0+DiscretizeAction?bins=3")
        assert isinstance(endless, Gymnasium)
        assert find_references(endless, "endless").measure == "rate"
        for steps, message in ((25_000, "one alone ended in 40,000"), (1_500, None)):
            limit = Argument(name="max_episode_steps", value=steps)
            wrapper = WorldWrapper(name="TimeLimit", arguments=(limit,))
            long = replace(endless, wrappers=(*endless.wrappers, wrapper))
            if message is None:
                assert find_references(long, "long").measure == "return"
                continue
            with pytest.raises(SpecError, match=f"'long': its episodes are too long .*{message}"):
                find_references(long, "long")
    finally:
        del gymnasium.registry["rulescope/Endless-v0"]


@pytest.mark.parametrize(
    "name", [f"{POLE}?sutton_barto_reward=true", f"{POLE}+ClipReward?max_reward=1"]
)
def test_a_threshold_does_not_hold_for_other_rewards(name: str) -> None:
    assert find_references(find_world(name), name).kind == "none"


def test_a_stated_reference_replaces_all_but_an_exact_one() -> None:
    stated = find_references(find_world(POLE), POLE, 500.0)
    assert (stated.best, stated.kind) == (500.0, "stated")
    assert stated.score(500.0) == 1.0
    with pytest.raises(SpecError, match="--reference-best: 'catch' has an exact one already"):
        find_references(WORLDS["catch"], "catch", 1.0)
    with pytest.raises(
        SpecError, match=f"--reference-best: 3 is not above random play in '{POLE}'"
    ):
        find_references(find_world(POLE), POLE, 3.0)


def test_a_score_is_normalised_only_by_a_known_upper_reference() -> None:
    raw = WorldReferences(measure="return", random=-200.0, error=1.5, episodes=200)
    assert raw.score(-150.0) == 50.0
    assert not raw.normalised
    assert "no upper reference is known" in raw.words
    assert "sampled, standard error 1.5, 200 episodes" in raw.words
    shared = WorldReferences(
        measure="return", random=-200.0, error=1.5, episodes=200, best=-50.0, kind="stated"
    )
    values = np.array([-200.0, -125.0, -50.0])
    np.testing.assert_array_equal(shared.score(values), [0.0, 0.5, 1.0])
    assert "stated with --reference-best" in shared.words
    assert "in units of the score that error is 0.01" in shared.words


def test_references_given_in_a_specification_are_exact() -> None:
    world = Gymnasium(id="CartPole-v1", random_return=22.0, oracle_return=500.0)
    known = find_references(world, "mine")
    assert (known.random, known.best, known.kind) == (22.0, 500.0, "exact")
