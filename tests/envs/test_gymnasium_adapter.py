"""Gymnasium environments as worlds."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from envs.env_samples import actions_for, assert_same_arrays
from rulescope import run_packages
from rulescope.cli.main import app
from rulescope.core import arrays, plugin_source
from rulescope.core.errors import ExitError, RecordError, SpecError, WorldError
from rulescope.engine.local_engine import run_all
from rulescope.envs import check_env, gymnasium_adapter, make
from rulescope.envs.environment import References
from rulescope.envs.gymnasium_adapter import GymnasiumEnv
from rulescope.envs.world_config import ActionFlip, Argument, Boundary, Gymnasium
from rulescope.learners.baseline_config import A2C, NetworkSizes
from rulescope.lifetime import Lifetime
from rulescope.records import Store
from rulescope.run_spec import RunSpec, canonical
from rulescope.runner import find_or_make

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


class Mission(spaces.Space):  # type: ignore[misc, name-defined]
    """A space of texts that says nothing of numbers, as MiniGrid has one."""


class Parts(Walk):
    """An image, a number and a text, as MiniGrid shows them."""

    observation_space = spaces.Dict(
        {"direction": spaces.Discrete(4), "image": Walk.observation_space, "mission": Mission()}
    )

    def __init__(self, end: int = 4) -> None:
        self.end = end

    def image(self) -> Any:
        return {"direction": 0, "image": super().image(), "mission": "go to the end"}


class Faulty(Walk):
    """Returns, from the second step on, what it is asked to return instead of a sound step."""

    returned: Callable[..., Any] = staticmethod(lambda *sound: sound)
    steps = 0

    def step(self, action: int) -> Any:
        self.steps += 1
        sound = super().step(action)
        return sound if self.steps < 2 else type(self).returned(*sound)


KINDS = (Walk, Unseeded, Steering, Growing, Pair, Number, Parts, Faulty)
OWN = {f"rulescope/{kind.__name__}-v0": kind for kind in KINDS}


@pytest.fixture(autouse=True, scope="module")
def _registered() -> Iterator[None]:
    for name, kind in OWN.items():
        limit = None if kind is Faulty else 20  # what limits episodes looks at steps itself
        gymnasium.register(name, kind, disable_env_checker=True, max_episode_steps=limit)
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


def test_a_world_that_ignores_the_seed_cannot_be_resumed() -> None:
    env = adapted("rulescope/Unseeded-v0", lanes=20)
    env.reset(0)
    for actions in actions_for(env, 10):
        env.step(actions)
    with pytest.raises(RecordError, match="'rulescope/Unseeded-v0' cannot be resumed"):
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
        ("rulescope/Steering-v0", {}, "has no discrete actions, but Box"),
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


def test_a_part_of_a_dictionary_is_observed_by_its_key() -> None:
    env = adapted("rulescope/Parts-v0", observation="image")
    assert env.observation_shape == (3, 5)
    check_env(lambda: adapted("rulescope/Parts-v0", observation="image"), steps=60)
    assert adapted("rulescope/Parts-v0", observation="direction").observation_shape == (4,)


@pytest.mark.parametrize(
    ("name", "observation", "message"),
    [
        (
            "rulescope/Parts-v0",
            None,
            r"'rulescope/Parts-v0' shows a dictionary of direction \(Discrete\), image \(Box\), "
            r"mission \(Mission\), not a fixed array; environment\.observation may be 'direction' "
            "or 'image'",
        ),
        ("rulescope/Parts-v0", "mission", "shows Mission, not a fixed array"),
        ("rulescope/Parts-v0", "imag", "no 'imag' in 'rulescope/Parts-v0'; nearest: 'image'"),
        ("rulescope/Walk-v0", "image", "shows no dictionary but Box"),
    ],
)
def test_a_dictionary_without_a_part_to_observe_is_refused(
    name: str, observation: str | None, message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        adapted(name, observation=observation)


def test_arguments_reach_the_world_and_wrong_ones_are_named() -> None:
    given = (Argument(name="end", value=3),)
    env = adapted("rulescope/Parts-v0", observation="image", arguments=given)
    assert env._envs[0].unwrapped.end == 3
    with pytest.raises(SpecError, match=r"'rulescope/Walk-v0' cannot be made with end"):
        adapted("rulescope/Walk-v0", arguments=given)
    with pytest.raises(SpecError, match="given twice"):
        adapted("rulescope/Parts-v0", arguments=given * 2)


BAD: dict[str, Callable[..., Any]] = {
    "reward is nan": lambda o, _r, e, t, i: (o, float("nan"), e, t, i),
    "reward is inf": lambda o, _r, e, t, i: (o, np.float32("inf"), e, t, i),
    "reward must be one number, not None": lambda o, _r, e, t, i: (o, None, e, t, i),
    r"reward must be one number, not an array": lambda o, _r, e, t, i: (o, np.zeros(2), e, t, i),
    "terminated must be True or False, not None": lambda o, r, _e, t, i: (o, r, None, t, i),
    "truncated must be True or False, not nan": lambda o, r, e, _t, i: (o, r, e, np.nan, i),
    "step must return": lambda o, r, e, _t, i: (o, r, e, i),
    "an observation is not of Box": lambda _o, r, e, t, i: (3, r, e, t, i),
    "an observation holds nan": lambda o, r, e, t, i: (o * np.nan, r, e, t, i),
}


@pytest.mark.parametrize("message", BAD)
def test_a_step_that_is_not_sound_stops_the_run(
    message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Faulty, "returned", staticmethod(BAD[message]))
    env = adapted("rulescope/Faulty-v0")
    env.reset(0)
    env.step(np.array([1, 1]))
    with pytest.raises(WorldError, match=f"the world 'rulescope/Faulty-v0': {message}"):
        env.step(np.array([1, 1]))


WORLD = """
import gymnasium
import numpy as np
from gymnasium import spaces

class Line(gymnasium.Env):
    observation_space = spaces.Box(0.0, 9.0, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, goal=3):
        self.goal = goal

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.at += int(action)
        done = self.at >= self.goal
        return np.full(2, self.at, np.float32), REWARD * done, done, False, {}

gymnasium.register("Line-v0", "line_world:Line", max_episode_steps=9)
"""


class Module:
    """The module ``line_world``, as each process would import it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, reward: str) -> None:
        """Write the module with another reward, and forget what this process knows of it."""
        (self.folder / "line_world.py").write_text(WORLD.replace("REWARD", reward))
        plugin_source.digest.cache_clear()
        plugin_source.package_digest.cache_clear()
        gymnasium_adapter._origin.cache_clear()
        sys.modules.pop("line_world", None)
        gymnasium.registry.pop("Line-v0", None)
        importlib.invalidate_caches()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Module]:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    written = Module(folder)
    written.write("1.0")
    yield written
    sys.modules.pop("line_world", None)
    gymnasium.registry.pop("Line-v0", None)


def line(**fields: Any) -> RunSpec:
    world = gymnasium_adapter.pin_gymnasium("line_world:Line-v0", **fields)
    learner = A2C(agent=NetworkSizes(hidden=(4, 4)))
    return RunSpec(learner=learner, environment=world, iterations=4, log_every=2, steps=6)


def test_an_edited_world_and_other_arguments_are_other_runs(module: Module) -> None:
    first = line()
    assert line() == first
    assert line(arguments={"goal": 2}).id != first.id
    module.write("2.0")
    assert line().id != first.id
    with pytest.raises(SpecError, match=r"environment\.source: the world 'line_world:Line-v0' is"):
        run_packages.require_plugins([first])
    with pytest.raises(SpecError, match=r"environment\.source"):
        Lifetime(first)


def test_the_id_of_a_run_without_a_source_is_as_it_was() -> None:
    spec = RunSpec(environment=Gymnasium(id="CartPole-v1", flat=True))
    assert spec.id == "755fa08539b05e94df9b28495c373d99d0932fd22e6589f06a9389b144f72c97"


def test_a_record_made_by_other_code_is_not_served(module: Module, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    unpinned = msgspec.structs.replace(line(), environment=Gymnasium(id="line_world:Line-v0"))
    made = find_or_make(unpinned, store)
    assert find_or_make(unpinned, store).manifest.science_hash == made.manifest.science_hash
    module.write("2.0")
    with pytest.raises(RecordError, match="made by other code of the world 'line_world:Line-v0'"):
        find_or_make(unpinned, store)
    with pytest.raises(RecordError, match="made by other code"):
        run_all([unpinned], store, workers=1)


def test_the_command_line_pins_the_world_of_a_spec_file(module: Module, tmp_path: Path) -> None:
    unpinned = msgspec.structs.replace(line(), environment=Gymnasium(id="line_world:Line-v0"))
    (tmp_path / "run.json").write_bytes(canonical(unpinned))
    command = ["life", "--spec", str(tmp_path / "run.json"), "--store", str(tmp_path / "store")]

    def life() -> Any:
        result = CliRunner().invoke(app, [*command, "--json"], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    first = life()
    assert first["id"] == line().id
    assert life()["found"]
    module.write("2.0")
    second = life()
    assert not second["found"]
    assert second["id"] == line().id != first["id"]


@pytest.mark.usefixtures("module")
def test_a_manifest_names_the_packages_of_the_world(tmp_path: Path) -> None:
    spec = line()
    runtime = find_or_make(spec, Store(tmp_path / "store")).manifest.runtime
    assert isinstance(spec.environment, Gymnasium)
    assert runtime["package_gymnasium"] == gymnasium.__version__
    assert runtime["package_cloudpickle"] == metadata.version("cloudpickle")
    assert runtime["world_sha256"] == spec.environment.source
    assert isinstance(runtime["native_threads"], int)


@pytest.mark.usefixtures("module")
def test_a_checkpoint_depends_on_the_versions_of_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    life = Lifetime(line())
    checkpoint = life.save()
    assert life.accepts(checkpoint)
    monkeypatch.setattr(run_packages, "_installed", lambda _: ("0.0.1", ()))
    assert not Lifetime(line()).accepts(checkpoint)


def test_a_world_that_exits_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(*_: Any) -> None:
        raise SystemExit  # what sys.exit does; other packages replace the function itself

    monkeypatch.setattr(Faulty, "returned", staticmethod(leave))
    spec = RunSpec(
        learner=A2C(agent=NetworkSizes(hidden=(4, 4))),
        environment=Gymnasium(id="rulescope/Faulty-v0"),
        iterations=4,
        log_every=2,
    )
    with pytest.raises(ExitError, match=r"iteration 1: .*called sys\.exit\(\)"):
        find_or_make(spec, Store(tmp_path))


def test_a_world_whose_code_is_not_in_a_file_runs_but_cannot_be_pinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Walk, "__module__", "typed_in")
    gymnasium_adapter._origin.cache_clear()
    learner = A2C(agent=NetworkSizes(hidden=(4, 4)))
    world = Gymnasium(id="rulescope/Walk-v0")
    spec = RunSpec(learner=learner, environment=world, iterations=2, log_every=1)
    runtime = find_or_make(spec, Store(tmp_path)).manifest.runtime
    assert runtime["world_sha256"] is None
    with pytest.raises(SpecError, match="is not in files"):
        gymnasium_adapter.pin_gymnasium("rulescope/Walk-v0")
    gymnasium_adapter._origin.cache_clear()
