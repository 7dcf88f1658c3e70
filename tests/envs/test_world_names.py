"""Worlds by the names that are typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rulescope.core import plugin_source
from rulescope.core.errors import RecordError, SpecError
from rulescope.envs import check_env, gymnasium_adapter, make
from rulescope.envs.gymnasium_adapter import GymnasiumEnv
from rulescope.envs.world_config import WORLDS, Argument, Boundary, Gymnasium, WorldWrapper
from rulescope.envs.world_names import find_world, name_world, parse_gymnasium
from rulescope.learners.baseline_config import A2C, NetworkSizes
from rulescope.lifetime import Lifetime
from rulescope.run_spec import RunSpec

gymnasium: Any = pytest.importorskip("gymnasium")

LAKE = "gymnasium:FrozenLake-v1?is_slippery=false&map_name=8x8"
LIMITED = "gymnasium:CartPole-v1+TimeLimit?max_episode_steps=7"


@pytest.mark.parametrize("name", [*WORLDS, "gymnasium:CartPole-v1", LAKE, LIMITED])
def test_every_world_is_found_again_by_its_own_name(name: str) -> None:
    if name.startswith(("minatar", "gymnax")):
        pytest.importorskip("minatar")
    world = find_world(name)
    assert name_world(world) == name
    assert find_world(name_world(world)) == world


def test_arguments_wrappers_and_part_are_read() -> None:
    assert parse_gymnasium(
        "gymnasium:a/B-v0?y=x%2Cy&x=1.5+my.wrappers:Half?n=[1,2]+FlattenObservation#image"
    ) == Gymnasium(
        id="a/B-v0",
        arguments=(Argument(name="x", value=1.5), Argument(name="y", value="x,y")),
        wrappers=(
            WorldWrapper(name="my.wrappers:Half", arguments=(Argument(name="n", value=(1, 2)),)),
            WorldWrapper(name="FlattenObservation"),
        ),
        observation="image",
    )


def test_the_order_of_arguments_makes_no_other_run() -> None:
    other = "gymnasium:FrozenLake-v1?map_name=8x8&is_slippery=False"
    assert find_world(other) == find_world(LAKE)


def test_arguments_reach_the_world() -> None:
    assert make(find_world(LAKE), Boundary(), 1.0, 1).observation_shape == (64,)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cathc", r"--env: no 'cathc'; nearest: 'catch'; .*, or gymnasium:ID"),
        ("gymnasium:CartPol-v1", "--env: 'CartPol-v1' .* not registered; nearest: 'CartPole-v1'"),
        ("gymnasium:", "lacks an id; try gymnasium:CartPole-v1"),
        ("gymnasium:CartPole-v1#", "lacks a part"),
        ("gymnasium:CartPole-v1?gravity", "'gravity' in .* is no argument; write gravity=VALUE"),
        ("gymnasium:CartPole-v1?gravty=9", "'CartPole-v1' cannot be made with gravty"),
        ("gymnasium:CartPole-v1+TimLimit", r"--env: no wrapper 'TimLimit' .*'TimeLimit'"),
        ("gymnasium:CartPole-v1+TimeLimit?mx=7", r"'TimeLimit' cannot be made with mx"),
        ("gymnasium:CartPole-v1+TimeLimit?a=1&a=2", "--env: of 'TimeLimit', a name is given twice"),
        ("gymnasium:CartPole-v1+nowhere:Half", r"--env: 'nowhere:Half' cannot be imported"),
        ("gymnasium:CartPole-v1+a b", r"wrappers\[0\]\.name: expected"),
        ("gymnasium:FrozenLake-v1?is_slippery=no", "is_slippery=no is neither true nor false"),
        ("gymnasium:CartPole-v1?sutton_barto_reward=maybe", "=maybe is neither true nor false"),
        (
            "gymnasium:CartPole-v1+TimeAwareObservation?flatten=no",
            "--env: .* flatten=no is neither",
        ),
        ("gymnasium:FrozenLake-v1?map_name=9x9", "cannot be made with map_name .KeyError: '9x9'"),
        (
            "gymnasium:CartPole-v1+FrameStackObservation?stack_size=a",
            "cannot be made with stack",
        ),
        ("gymnasium:Pendulum-v1", "has no discrete actions, .* DiscretizeAction"),
        ("gymnasium:CartPole-v1#image", "--env: 'CartPole-v1' shows no dictionary but Box"),
    ],
)
def test_what_cannot_be_used_is_named(name: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        find_world(name)


def test_a_wrapper_is_part_of_the_id_and_conforms() -> None:
    plain, limited = find_world("gymnasium:CartPole-v1"), find_world(LIMITED)
    assert RunSpec(environment=plain).id != RunSpec(environment=limited).id
    check_env(lambda: make(limited, Boundary(), 1.0, 2), steps=60)
    discrete = find_world("gymnasium:Pendulum-v1+DiscretizeAction?bins=3")
    assert make(discrete, Boundary(), 1.0, 1).actions == 3


WRAPPERS = """
import gymnasium

class Scaled(gymnasium.RewardWrapper):
    def reward(self, reward):
        return FACTOR * reward

class Growing(gymnasium.RewardWrapper):
    seen = 0
    def reward(self, reward):
        self.seen += 1
        return reward * self.seen
"""


@pytest.fixture
def wrappers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module ``some_wrappers`` that can be imported."""
    import sys

    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "some_wrappers", raising=False)
    path = tmp_path / "some_wrappers.py"
    path.write_text(WRAPPERS.replace("FACTOR", "2"))
    return path


def test_the_code_of_a_wrapper_is_part_of_the_id(wrappers: Path) -> None:
    name = "gymnasium:CartPole-v1+some_wrappers:Scaled"
    first = find_world(name)
    env = make(first, Boundary(), 1.0, 1)
    env.reset(0)
    assert env.step(np.array([0])).payoff[0] == 2.0
    assert "some_wrappers" in gymnasium_adapter.origin(first).modules  # type: ignore[arg-type]
    wrappers.write_text(WRAPPERS.replace("FACTOR", "3"))
    plugin_source.digest.cache_clear()
    plugin_source.package_digest.cache_clear()
    gymnasium_adapter._origin.cache_clear()
    assert find_world(name) != first


@pytest.mark.usefixtures("wrappers")
def test_rewards_that_depend_on_earlier_episodes_cannot_be_resumed() -> None:
    config = Gymnasium(id="CartPole-v1", wrappers=(WorldWrapper(name="some_wrappers:Growing"),))
    env = GymnasiumEnv(config, 1)
    env.reset(0)
    for _ in range(15):
        env.step(np.array([1]))
    state = env.save()
    with pytest.raises(RecordError, match="cannot be resumed"):
        GymnasiumEnv(config, 1).load(state)


def test_a_wrapped_world_resumes_to_the_bit() -> None:
    learner = A2C(agent=NetworkSizes(hidden=(4, 4)))
    spec = RunSpec(learner=learner, environment=find_world(LIMITED), iterations=4, log_every=1)
    whole, half, rest = (Lifetime(spec) for _ in range(3))
    whole.run()
    half.run(until=2)
    rest.load(half.save())
    rest.run()
    assert all((whole.log()[name] == rest.log()[name]).all() for name in ("reward_rate", "steps"))


def test_a_dictionary_names_how_a_part_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    spaces = gymnasium.spaces

    class Parts(gymnasium.Env):  # type: ignore[misc]
        observation_space = spaces.Dict(
            {"direction": spaces.Discrete(4), "image": spaces.Box(0, 1, (2, 2), np.float32)}
        )
        action_space = spaces.Discrete(2)

        def reset(self, **_: Any) -> Any:
            return {"direction": 0, "image": np.zeros((2, 2), np.float32)}, {}

        def step(self, _: Any) -> Any:
            return self.reset()[0], 0.0, False, False, {}

    # A text in a dictionary is no array, so that the whole cannot be shown.
    Parts.observation_space.spaces["mission"] = spaces.Sequence(spaces.Discrete(2))
    monkeypatch.setattr(gymnasium_adapter, "known_source", lambda _: "0" * 64)
    gymnasium.register("rulescope/Parts-v1", Parts, disable_env_checker=True)
    try:
        with pytest.raises(SpecError, match=r"--tasks: .*\(in --env and --tasks: #image at the"):
            find_world("gymnasium:rulescope/Parts-v1", "--tasks")
        world = find_world("gymnasium:rulescope/Parts-v1#image")
        assert isinstance(world, Gymnasium)
        assert world.observation == "image"
    finally:
        del gymnasium.registry["rulescope/Parts-v1"]
