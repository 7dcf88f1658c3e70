from __future__ import annotations

import numpy as np
import pytest

from rulescope import envs
from rulescope.core import seeds
from rulescope.core.errors import SpecError
from rulescope.discover.batched_worlds import BatchedWorldMix, make_batched
from rulescope.discover.discovery_spec import World
from rulescope.discover.experience import WorldMix
from rulescope.discover.recipes import TRAINING_WORLDS
from rulescope.envs.environment import Environment
from rulescope.envs.world_config import Boundary, Catch, DeepSea, EnvironmentSpec, MinAtar, Tracking

WORLDS: list[EnvironmentSpec] = [
    Catch(rows=5, columns=4),
    Catch(rows=4, columns=6, drift=0.4),
    Catch(rows=4, columns=5, dense=True, references="exact"),
    Tracking(columns=5),
    DeepSea(depth=4, mapping=3),
]
LANES = 3


def column_draws(env: Environment, columns: int) -> np.ndarray:
    """Return draws that select the columns in which balls or targets were put."""
    state = env.save()
    found = state.get("balls", state.get("targets"))
    return np.zeros(LANES) if found is None else (found.astype(float) + 0.5) / columns


def next_drifts(env: Environment) -> np.ndarray:
    """Return what every lane's stream will draw next, without drawing it."""
    streams = env.save().get("streams")
    if streams is None:
        return np.zeros(LANES)
    return np.array([seeds.unpack(words).random() for words in streams])


@pytest.mark.parametrize("config", WORLDS, ids=str)
def test_a_batched_world_makes_the_transitions_of_the_environment(config: EnvironmentSpec) -> None:
    env = envs.make(config, Boundary(), 1.0, LANES)
    mix = BatchedWorldMix([World(environment=config, agents=1)], 1, LANES)
    columns = env.observation_shape[1]
    rng = np.random.default_rng(0)
    expected = env.reset(5)
    draws = np.stack([np.zeros(LANES), column_draws(env, columns)], -1)
    assert np.array_equal(mix.reset(draws[None])[0, 0], expected.reshape(LANES, -1))
    ended = 0
    for _ in range(60):
        actions = rng.integers(env.actions, size=LANES)
        drifts = next_drifts(env)
        step = env.step(actions)
        # At an episode's end the environment has already put the next ball somewhere.
        draws = np.stack([drifts, column_draws(env, columns)], -1)
        found = mix.step(actions[None, None], draws[None])
        assert np.array_equal(found.observation[0, 0], step.observation.reshape(LANES, -1))
        assert np.allclose(found.payoff[0, 0], step.payoff, rtol=0, atol=1e-15)
        assert np.array_equal(found.terminal[0, 0], step.terminal)
        ended += int(step.ended.any())
    assert ended > 5 or isinstance(config, Tracking)


def test_boards_actions_and_references_are_those_of_the_meta_gradient_worlds() -> None:
    batched, other = BatchedWorldMix(TRAINING_WORLDS, 2, 1), WorldMix(TRAINING_WORLDS, 1)
    assert batched.observation_shape == other.observation_shape
    assert batched.actions == other.actions
    rates = np.linspace(-0.5, 0.5, batched.shape[1])
    assert np.allclose(batched.scores(np.stack([rates, -rates]))[0], other.scores(rates))


def test_candidates_that_act_alike_see_the_same_and_others_do_not() -> None:
    worlds = [World(environment=Tracking(columns=5), agents=2), World(agents=1)]
    mix = BatchedWorldMix(worlds, 3, 2)
    rng = np.random.default_rng(1)
    mix.reset(rng.random((3, 2, 2)))
    actions = np.repeat(rng.integers(3, size=(1, 3, 2)), 3, axis=0)
    actions[2] = 2 - actions[2]
    steps = [mix.step(actions, rng.random((3, 2, 2))) for _ in range(12)]
    assert all(np.array_equal(step.observation[0], step.observation[1]) for step in steps)
    assert any(not np.array_equal(step.observation[0], step.observation[2]) for step in steps)


def test_observed_ends_follow_the_boundary_and_rewards_the_scale() -> None:
    boundaries = (
        Boundary(),
        Boundary(terminals="masked"),
        Boundary(terminals="synthetic", interval=3),
    )
    worlds = [World(environment=DeepSea(depth=2), boundary=each, agents=1) for each in boundaries]
    mix = BatchedWorldMix(worlds, 1, 1)
    mix.scales = np.array([[1.0], [10.0], [0.1]], np.float32)
    mix.reset(np.zeros((3, 1, 2)))
    steps = [mix.step(np.ones((1, 3, 1), np.int64), np.zeros((3, 1, 2))) for _ in range(6)]
    ends = np.array([step.terminal[0, :, 0] for step in steps])
    assert ends.T.tolist() == [[0, 1, 0, 1, 0, 1], [0] * 6, [0, 0, 1, 0, 0, 1]]
    assert np.allclose(steps[1].payoff, 1.0 - 0.01 / 2)
    assert np.allclose(steps[1].reward[0, :, 0], [0.995, 9.95, 0.0995])


def test_a_world_without_a_batched_form_is_an_error_that_names_the_kind() -> None:
    with pytest.raises(SpecError, match=r"worlds\[0\].kind: 'minatar' has no batched form"):
        make_batched(MinAtar(game="breakout"), (1, 1, 1), "worlds[0].")
