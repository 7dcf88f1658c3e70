"""Episodes that a limit of the world cuts off: what is reported, and what learners make of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rulescope import envs
from rulescope.core.errors import SpecError, WorldError
from rulescope.envs.environment import Actions, Environment, State, Step
from rulescope.envs.environment_conformance import check_truncation
from rulescope.envs.gymnasium_adapter import GymnasiumEnv
from rulescope.envs.plugin_world import Checked
from rulescope.envs.world_config import (
    WORLDS,
    Argument,
    Boundary,
    Gymnasium,
    MinAtar,
    ObservationFlip,
    WorldWrapper,
)
from rulescope.learners.baseline_config import A2C, DQN, PPO, A2CPopArt, NetworkSizes, RandomPolicy
from rulescope.learners.disco_config import Disco
from rulescope.learners.learner_base import ReturnScaling
from rulescope.lifetime import Lifetime
from rulescope.run_spec import RunSpec, checked

gymnasium: Any = pytest.importorskip("gymnasium")

SMALL = NetworkSizes(hidden=(4, 4))
LIMIT = 5
SHORT_POLE = Gymnasium(
    id="CartPole-v1",
    wrappers=(
        WorldWrapper(
            name="TimeLimit", arguments=(Argument(name="max_episode_steps", value=LIMIT),)
        ),
    ),
)
BOOTSTRAP = Boundary(truncation="bootstrap")


def test_a_cut_off_episode_shows_where_it_would_have_gone_on() -> None:
    """The oracle is Gymnasium itself, stepped in a plain loop from the same seed."""
    env = GymnasiumEnv(SHORT_POLE, 1)
    env.reset(0)
    plain = gymnasium.make("CartPole-v1")
    plain.reset(seed=env._seeds[0])
    for index, action in enumerate((0, 1, 0, 1, 0), start=1):
        step = env.step(np.array([action]))
        observation, *_ = plain.step(action)
        assert step.truncated is not None
        assert step.final is not None
        assert bool(step.truncated[0]) == bool(step.ended[0]) == bool(step.terminal[0])
        assert bool(step.truncated[0]) == (index == LIMIT)
        np.testing.assert_array_equal(step.final[0], np.asarray(observation, np.float32))
    first, _ = plain.reset(seed=env._seeds[0])
    np.testing.assert_array_equal(step.observation[0], first)


def test_an_end_of_its_own_in_the_last_step_is_not_cut_off() -> None:
    falls = GymnasiumEnv(Gymnasium(id="CartPole-v1"), 1)
    falls.reset(3)
    steps = [falls.step(np.array([1])) for _ in range(30)]
    length = next(i for i, step in enumerate(steps, start=1) if step.ended[0])
    limit = (Argument(name="max_episode_steps", value=length),)
    both = GymnasiumEnv(
        Gymnasium(id="CartPole-v1", wrappers=(WorldWrapper(name="TimeLimit", arguments=limit),)), 1
    )
    both.reset(3)
    last = [both.step(np.array([1])) for _ in range(length)][-1]
    assert last.ended[0]
    assert last.truncated is not None
    assert not last.truncated[0]


def test_worlds_that_may_cut_off_conform() -> None:
    envs.check_env(lambda: GymnasiumEnv(SHORT_POLE, 2), steps=60)


def test_a_limit_of_minatar_is_told_apart_from_the_end_of_the_game() -> None:
    pytest.importorskip("minatar")
    world = MinAtar(game="breakout", sticky=0.0, actions="minimal", limit=4)
    env = envs.make(world, Boundary(), 1.0, 3)
    unlimited = envs.make(MinAtar(game="breakout", sticky=0.0, actions="minimal"), Boundary(), 1, 3)
    env.reset(0)
    unlimited.reset(0)
    for index in range(1, 5):
        step, other = (each.step(np.zeros(3, np.int64)) for each in (env, unlimited))
        assert step.truncated is not None
        assert step.final is not None
        assert step.truncated.tolist() == [index == 4 and not over for over in other.ended]
        cut = step.truncated
        np.testing.assert_array_equal(step.final[cut], other.observation[cut])
    assert not step.terminal[~step.ended].any()


@pytest.mark.parametrize(
    "name", [name for name in WORLDS if not name.startswith(("minatar", "gymnax"))]
)
def test_the_published_worlds_never_cut_an_episode_off(name: str) -> None:
    env = envs.make(WORLDS[name], Boundary(), 1.0, 2)
    env.reset(0)
    for _ in range(40):
        step = env.step(np.zeros(2, np.int64))
        assert step.truncated is None
        assert step.final is None


def test_a_flipped_observation_is_flipped_where_it_was_cut_off_too() -> None:
    pytest.importorskip("minatar")
    world = MinAtar(game="breakout", sticky=0.0, actions="minimal", limit=4)
    flipped = envs.make(world, Boundary(), 1.0, 2, ObservationFlip(at=0))
    plain = envs.make(world, Boundary(), 1.0, 2)
    flipped.reset(0)
    plain.reset(0)
    for _ in range(4):
        one, other = (each.step(np.zeros(2, np.int64)) for each in (flipped, plain))
        assert one.final is not None
        assert other.final is not None
        np.testing.assert_array_equal(one.final, other.final[..., ::-1])


class Told(Environment):
    """A world of one step that reports what it is asked to."""

    lanes, actions, observation_shape = 2, 2, (1,)
    references = envs.make(WORLDS["catch"], Boundary(), 1.0, 1).references

    def __init__(self, **reported: Any) -> None:
        self.reported = reported

    def reset(self, seed: int) -> Any:  # noqa: ARG002
        return np.zeros((2, 1), np.float32)

    def step(self, actions: Actions) -> Step:  # noqa: ARG002
        no = np.zeros(2, np.bool_)
        shown = np.zeros((2, 1), np.float32)
        sound = Step(shown, np.zeros(2, np.float32), no, np.zeros(2), no)
        return sound._replace(**self.reported)

    def save(self) -> State:
        return {}

    def load(self, state: State) -> None: ...


NO, YES, ZERO = np.zeros(2, np.bool_), np.ones(2, np.bool_), np.zeros((2, 1), np.float32)


@pytest.mark.parametrize(
    ("reported", "plugin", "clause"),
    [
        (
            {"truncated": NO},
            "truncated and final must be given",
            "one of truncated and final without",
        ),
        ({"truncated": YES, "final": ZERO}, "truncated is set where ended is not", "where ended"),
        (
            {"truncated": NO, "final": ZERO + 1},
            None,
            "differs from observation where no lane was cut off",
        ),
        ({"truncated": NO, "final": np.zeros((3, 1), np.float32)}, "final must be an array", None),
    ],
)
def test_contradictory_reports_are_refused(
    reported: dict[str, Any], plugin: str | None, clause: str | None
) -> None:
    env = Told(**reported)
    step = env.step(np.zeros(2, np.int64))
    if clause is not None:
        with pytest.raises(AssertionError, match=rf"\[truncation\] .*{clause}"):
            check_truncation([step, step])
    if plugin is not None:
        guarded = Checked(env, "told")
        guarded.reset(0)
        with pytest.raises(WorldError, match=f"the world 'told': {plugin}"):
            guarded.step(np.zeros(2, np.int64))


def spec(learner: Any, boundary: Boundary = BOOTSTRAP, **fields: Any) -> RunSpec:
    given: dict[str, Any] = {"environment": SHORT_POLE, "iterations": 3, "steps": 12} | fields
    return RunSpec(learner=learner, boundary=boundary, log_every=1, **given)


def collect(learner: Any, boundary: Boundary) -> tuple[Any, Any]:
    """A learner and its first rollout, not learned from."""
    life = Lifetime(spec(learner, boundary))
    return life.learner, life._interact(12)


def test_a_rollout_tells_of_cut_off_episodes_only_if_the_spec_asks_for_it() -> None:
    _, plain = collect(A2C(agent=SMALL), Boundary())
    assert plain.truncated is None
    assert plain.final is None
    _, told = collect(A2C(agent=SMALL), BOOTSTRAP)
    expected = np.zeros((12, 2), np.bool_)
    expected[4::5] = True
    np.testing.assert_array_equal(told.truncated, expected)
    np.testing.assert_array_equal(told.terminals, expected)
    assert told.final.shape == (4, 4)
    np.testing.assert_array_equal(plain.observations, told.observations)


@pytest.mark.parametrize("boundary", [Boundary(), BOOTSTRAP], ids=["terminal", "bootstrap"])
def test_advantages_add_the_value_at_the_cut(boundary: Boundary) -> None:
    """The oracle walks forward over each episode, from every step on its own."""
    from rulescope.learners.a2c import gae, rows, split_values

    learner, rollout = collect(A2C(agent=SMALL), boundary)
    config = learner.config
    output = learner.evaluate(learner.tensor(rows(rollout))).output_array[:, -1]
    values, final = split_values(rollout, output)
    found = gae(rollout, values, config.discount, config.trace, final)

    def value(observation: Any) -> float:
        return float(learner.evaluate(learner.tensor(observation[None])).output_array[0, -1])

    cuts = iter(rollout.final) if rollout.truncated is not None else iter(())
    at_cut = {
        place: value(next(cuts))
        for place in zip(*np.nonzero(rollout.terminals), strict=True)
        if rollout.truncated is not None
    }
    for lane in range(2):
        for start in range(12):
            total, weight = 0.0, 1.0
            for t in range(start, 12):
                after = value(rollout.observations[t + 1, lane])
                if rollout.terminals[t, lane]:
                    after = at_cut.get((t, lane), 0.0)
                error = rollout.rewards[t, lane] + config.discount * after
                total += weight * (error - value(rollout.observations[t, lane]))
                weight *= config.discount * config.trace
                if rollout.terminals[t, lane]:
                    break
            assert found[start, lane] == pytest.approx(total, abs=1e-5)


def test_dqn_stores_the_observation_at_the_cut_and_no_terminal() -> None:
    learner, rollout = collect(DQN(agent=SMALL, start=20, capacity=100), BOOTSTRAP)
    learner.learn(rollout, measure=False)
    content = learner.replay.get()
    cuts = iter(rollout.final)
    expected = [
        next(cuts) if rollout.truncated[t, lane] else rollout.observations[t + 1, lane]
        for t in range(12)
        for lane in range(2)
    ]
    np.testing.assert_array_equal(content["rows"][content["index"][:, 1]], expected)
    assert not content["terminals"].any()
    plain, same = collect(DQN(agent=SMALL, start=20, capacity=100), Boundary())
    plain.learn(same, measure=False)
    assert plain.replay.get()["terminals"].sum() == 4


@pytest.mark.parametrize(
    "learner",
    [A2C(agent=SMALL), PPO(agent=SMALL), A2CPopArt(agent=SMALL), DQN(agent=SMALL, start=20)],
    ids=lambda each: each.kind,
)
def test_bootstrapping_changes_what_is_learned_and_resumes_to_the_bit(learner: Any) -> None:
    told, plain = Lifetime(spec(learner)), Lifetime(spec(learner, Boundary()))
    told.run()
    plain.run()
    apart = told.learner.carriers["params"].get()["flat"]
    assert (apart != plain.learner.carriers["params"].get()["flat"]).any()
    half, resumed = Lifetime(spec(learner)), Lifetime(spec(learner))
    half.run(until=1)
    resumed.load(half.save())
    resumed.run()
    np.testing.assert_array_equal(resumed.learner.carriers["params"].get()["flat"], apart)


@pytest.mark.parametrize("learner", [A2C(agent=SMALL), PPO(agent=SMALL), DQN(agent=SMALL, start=8)])
def test_a_world_that_never_cuts_off_is_the_same_to_the_bit(learner: Any) -> None:
    logs = []
    for boundary in (BOOTSTRAP, Boundary()):
        life = Lifetime(spec(learner, boundary, environment=WORLDS["catch"]))
        life.run()
        logs.append(life.learner.carriers["params"].get()["flat"].tobytes())
    assert logs[0] == logs[1]


@pytest.mark.parametrize(
    ("learner", "boundary", "message"),
    [
        (Disco(), BOOTSTRAP, "boundary.truncation: the learner 'disco' takes every end"),
        (A2C(scaling=ReturnScaling()), BOOTSTRAP, "the learner 'a2c' takes every end"),
        (
            A2C(),
            Boundary(terminals="masked", truncation="bootstrap"),
            "boundary.truncation: 'bootstrap' has no meaning with terminals 'masked'",
        ),
    ],
)
def test_what_cannot_bootstrap_is_refused(learner: Any, boundary: Boundary, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        checked(spec(learner, boundary))


def test_the_default_is_not_part_of_an_id() -> None:
    plain = spec(RandomPolicy(), Boundary())
    assert plain.id == spec(RandomPolicy(), Boundary(truncation="terminal")).id
    assert plain.id != spec(RandomPolicy()).id
