"""Gymnasium environments as worlds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from envs.env_samples import actions_for, assert_same_arrays
from rulescope import arrays
from rulescope.envs import check_env, make
from rulescope.envs.base import References
from rulescope.envs.config import ActionFlip, Boundary, Gymnasium
from rulescope.envs.gymnasium_adapter import GymnasiumEnv
from rulescope.errors import RecordError, SpecError

gymnasium: Any = pytest.importorskip("gymnasium")
spaces = gymnasium.spaces


class Walk(gymnasium.Env):  # type: ignore[misc]
    """Go to one end of a line of five; a square image, and actions that are called 3, 4, 5."""

    observation_space = spaces.Box(0, 255, (3, 5), np.uint8)
    action_space = spaces.Discrete(3, start=3)
    place = 2

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.place = int(self.np_random.integers(1, 4))
        return self.image(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.place += int(action) - 4 + int(self.np_random.integers(-1, 2))
        self.place = min(max(self.place, 0), 4)
        return self.image(), float(self.place == 4), self.place in (0, 4), False, {}

    def image(self) -> Any:
        image = np.zeros((3, 5), np.uint8)
        image[:, self.place] = 255
        return image


class Unseeded(Walk):
    """A world whose episodes depend on all the episodes before."""

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        return super().reset()


class Steering(Walk):
    action_space = spaces.Box(-1.0, 1.0, (1,))


class Growing(Walk):
    observation_space = spaces.Sequence(spaces.Discrete(5))


class Pair(Walk):
    observation_space = spaces.Tuple((spaces.Discrete(5), spaces.Box(-1, 1, (2,), np.float32)))

    def image(self) -> Any:
        return self.place, np.zeros(2, np.float32)


class Number(Walk):
    observation_space = spaces.Box(0.0, 4.0, ())

    def image(self) -> Any:
        return np.array(self.place, np.float32)


OWN = {f"rulescope/{kind.__name__}-v0": kind for kind in (Walk, Unseeded, Steering, Growing, Pair)}
OWN["rulescope/Number-v0"] = Number


@pytest.fixture(autouse=True, scope="module")
def _registered() -> Iterator[None]:
    for name, kind in OWN.items():
        gymnasium.register(name, kind, disable_env_checker=True, max_episode_steps=20)
    yield
    for name in OWN:
        del gymnasium.registry[name]


def adapted(name: str, lanes: int = 2, **fields: Any) -> GymnasiumEnv:
    return GymnasiumEnv(Gymnasium(id=name, **fields), lanes)


@pytest.mark.parametrize(
    ("name", "flat", "shape", "actions"),
    [
        ("CartPole-v1", False, (4,), 2),
        ("FrozenLake-v1", False, (16,), 4),
        ("rulescope/Walk-v0", False, (3, 5), 3),
        ("rulescope/Walk-v0", True, (15,), 3),
        ("rulescope/Pair-v0", False, (7,), 3),
        ("rulescope/Number-v0", False, (1,), 3),
    ],
)
def test_discrete_worlds_conform(
    name: str, flat: bool, shape: tuple[int, ...], actions: int
) -> None:
    env = adapted(name, flat=flat)
    assert env.observation_shape == shape
    assert env.actions == actions
    check_env(lambda: adapted(name, flat=flat), steps=60)


def test_a_discrete_observation_is_one_hot() -> None:
    first = adapted("FrozenLake-v1").reset(0)
    np.testing.assert_array_equal(first, np.eye(16, dtype=np.float32)[[0, 0]])


def test_actions_start_wherever_gymnasium_starts() -> None:
    env = adapted("rulescope/Walk-v0", lanes=64)
    env.reset(0)
    moves: dict[int, list[float]] = {0: [], 2: []}
    for action, found in moves.items():
        for _ in range(20):
            step = env.step(np.full(64, action))
            found += step.payoff[step.ended].tolist()
    assert np.mean(moves[0]) < 0.2 < 0.8 < np.mean(moves[2])


def test_termination_and_truncation_both_end_an_episode() -> None:
    env = adapted("CartPole-v1", lanes=1)
    env.reset(0)
    fallen = [bool(env.step(np.array([1])).ended[0]) for _ in range(60)]
    assert sum(fallen) >= 5
    walk = adapted("rulescope/Walk-v0", lanes=200)
    walk.reset(0)
    steps = [walk.step(np.ones(200, np.int64)) for _ in range(20)]
    ends = np.array([step.ended for step in steps])
    longest = ~ends[:19].any(axis=0)
    assert longest.any()
    assert ends[19, longest].all()
    assert all((step.ended == step.terminal).all() for step in steps)


def test_an_episode_is_played_again_from_a_file() -> None:
    env, other = adapted("CartPole-v1"), adapted("CartPole-v1")
    env.reset(5)
    for actions in actions_for(env, 45):
        env.step(actions)
    other.load(arrays.unpack(arrays.pack(env.save())))
    for actions in actions_for(env, 60, seed=1):
        assert_same_arrays(env.step(actions), other.step(actions))


def test_the_state_is_as_long_as_the_running_episode() -> None:
    env = adapted("rulescope/Walk-v0")
    env.reset(0)
    for actions in actions_for(env, 500):
        env.step(actions)
        assert env.save()["actions"].shape[1] <= 20


def test_a_world_that_goes_its_own_way_cannot_be_continued() -> None:
    env = adapted("rulescope/Unseeded-v0", lanes=20)
    env.reset(0)
    for actions in actions_for(env, 10):
        env.step(actions)
    with pytest.raises(RecordError, match="'rulescope/Unseeded-v0' cannot be continued"):
        env.load(env.save())


def test_given_references_are_used() -> None:
    env = adapted("CartPole-v1", random_return=22.0, oracle_return=500.0)
    assert env.references[:2] == (22.0, 500.0)
    assert np.isnan(env.references[2:]).all()
    assert env.references.return_score(261.0) == 0.5
    rates = adapted("CartPole-v1", random_rate=0.0, oracle_rate=1.0).references
    assert rates[2:] == References(0, 0, 0.0, 1.0)[2:]


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("Nowhere-v0", {}, r"environment\.id: 'Nowhere-v0' cannot be made"),
        ("no_such_module:Nowhere-v0", {}, r"environment\.id: .* cannot be made"),
        ("rulescope/Steering-v0", {}, "has no discrete actions but Box"),
        ("rulescope/Growing-v0", {}, "not a fixed array"),
        ("CartPole-v1", {"random_return": 22.0}, r"needs environment\.oracle_return beside it"),
        ("CartPole-v1", {"random_rate": 2.0, "oracle_rate": 1.0}, r"1\.0 is not above random"),
    ],
)
def test_what_cannot_be_used_is_refused(name: str, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        adapted(name, **fields)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(SpecError, match="pip install gymnasium"):
        adapted("CartPole-v1")


def test_a_gymnasium_world_can_change() -> None:
    config = Gymnasium(id="CartPole-v1")
    env = make(config, Boundary(), 1.0, 2, ActionFlip(at=0))
    plain = adapted("CartPole-v1")
    np.testing.assert_array_equal(env.reset(0), plain.reset(0))
    assert_same_arrays(env.step(np.array([0, 1])), plain.step(np.array([1, 0])))
