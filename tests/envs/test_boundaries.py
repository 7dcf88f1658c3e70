"""Wrappers change what the learner observes and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from envs.env_samples import SMALL_WORLDS, assert_same_arrays, play
from rulescope.core.errors import SpecError
from rulescope.envs import make
from rulescope.envs.boundaries import Masked, Scaled, Synthetic
from rulescope.envs.catch import CatchEnv
from rulescope.envs.environment import Step
from rulescope.envs.world_config import Boundary, Catch

EPISODIC = Boundary()
MASKED = Boundary(terminals="masked")


def synthetic(interval: int) -> Boundary:
    return Boundary(terminals="synthetic", interval=interval)


def flagged(steps: list[Step]) -> list[int]:
    """The steps, counted from 1, at which an end was reported to every lane."""
    assert all(step.terminal.all() == step.terminal.any() for step in steps)
    return [index for index, step in enumerate(steps, 1) if step.terminal.all()]


@pytest.mark.parametrize("boundary", [EPISODIC, MASKED, synthetic(7), synthetic(29)])
@pytest.mark.parametrize("scale", [1.0, 0.001, 1000.0])
@pytest.mark.parametrize("world", SMALL_WORLDS)
def test_what_happens_is_never_changed(world: str, scale: float, boundary: Boundary) -> None:
    config = SMALL_WORLDS[world]
    env, plain = make(config, boundary, scale, lanes=2), make(config, EPISODIC, 1.0, lanes=2)
    assert env.references == plain.references
    assert (env.lanes, env.actions, env.goals) == (2, plain.actions, plain.goals)
    assert env.observation_shape == plain.observation_shape
    for observed, true in zip(play(env, 35), play(plain, 35), strict=True):
        assert_same_arrays(observed, true, but=("reward", "terminal"))
        np.testing.assert_array_equal(observed.reward, (true.payoff * scale).astype(np.float32))
        assert observed.reward.dtype == np.float32


def test_masked_never_reports_an_end() -> None:
    steps = play(make(Catch(), MASKED, 1.0, lanes=2), 50)
    assert flagged(steps) == []
    assert [index for index, step in enumerate(steps, 1) if step.ended.any()] == [*range(7, 51, 7)]


def test_synthetic_seven_equals_episodic_on_the_small_board() -> None:
    observed = flagged(play(make(Catch(), synthetic(7), 1.0, lanes=2), 200))
    assert observed == flagged(play(make(Catch(), EPISODIC, 1.0, lanes=2), 200))
    assert observed == [*range(7, 201, 7)]


def test_synthetic_29_fires_from_the_29th_step_on() -> None:
    steps = play(make(Catch(), synthetic(29), 1.0, lanes=2), 120)
    assert flagged(steps) == [29, 58, 87, 116]


def test_the_synthetic_count_starts_anew_only_at_reset() -> None:
    env = make(Catch(), synthetic(10), 1.0, lanes=1)
    assert flagged(play(env, 15)) == [10]
    assert flagged(play(env, 25)) == [10, 20]


def test_the_synthetic_count_is_saved() -> None:
    env, other = (make(Catch(), synthetic(29), 2.0, lanes=2) for _ in range(2))
    play(env, 40)
    other.load(env.save())
    steps = [other.step(np.array([1, 1])) for _ in range(30)]
    assert flagged(steps) == [18]


def test_a_state_without_the_count_is_refused() -> None:
    plain = CatchEnv(Catch(), lanes=1)
    plain.reset(0)
    with pytest.raises(ValueError, match="synthetic"):
        Synthetic(CatchEnv(Catch(), lanes=1), 7).load(plain.save())


def test_refused_actions_do_not_count() -> None:
    env = make(Catch(), synthetic(3), 1.0, lanes=1)
    env.reset(0)
    with pytest.raises(ValueError, match="actions must be"):
        env.step(np.array([3]))
    assert [bool(env.step(np.array([1])).terminal[0]) for _ in range(3)] == [False, False, True]


def test_scaled_rounds_once() -> None:
    env = Scaled(CatchEnv(Catch(dense=True), lanes=4), 0.1)
    for step in play(env, 30):
        np.testing.assert_array_equal(step.reward, np.float32(step.payoff * 0.1))


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan")])
def test_impossible_scales_are_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="scale must be positive and finite"):
        make(Catch(), EPISODIC, scale, lanes=1)


def test_impossible_intervals_are_refused() -> None:
    with pytest.raises(ValueError, match="interval must be at least 1"):
        Synthetic(CatchEnv(Catch(), lanes=1), 0)
    with pytest.raises(SpecError, match=r"boundary\.interval"):
        make(Catch(), Boundary(terminals="synthetic"), 1.0, lanes=1)


def test_make_wraps_no_more_than_necessary() -> None:
    assert type(make(Catch(), EPISODIC, 1.0, lanes=1)) is CatchEnv
    assert type(make(Catch(), EPISODIC, 2.0, lanes=1)) is Scaled
    masked = make(Catch(), MASKED, 2.0, lanes=1)
    assert isinstance(masked, Masked)
    assert type(masked.env) is Scaled
