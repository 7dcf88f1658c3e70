"""A changed world is the unchanged one until the change, and after it but for one mapping."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.env_samples import (
    CHANGES,
    CHANGING_WORLDS,
    SMALL_WORLDS,
    actions_for,
    assert_same_arrays,
    play,
)
from rulescope.core.errors import SpecError
from rulescope.envs import make
from rulescope.envs.boundaries import Masked, Scaled
from rulescope.envs.catch import CatchEnv
from rulescope.envs.changes import ChangingWorld, FlippedActions, MovedReward
from rulescope.envs.environment import Actions, Array, Environment, Step
from rulescope.envs.references import catch_oracle, chase, sample_references
from rulescope.envs.world_config import (
    ActionFlip,
    Boundary,
    Catch,
    CatchStream,
    Change,
    DeepSea,
    EnvironmentSpec,
    Gymnasium,
    MinAtar,
    ObservationFlip,
    RewardMove,
    RewardSign,
    Tracking,
    change_problem,
    reward_columns,
)

EPISODIC = Boundary()


def built(
    environment: EnvironmentSpec, change: Change | None = None, steps: int = 29
) -> ChangingWorld:
    env = make(environment, EPISODIC, 1.0, 2, change, steps)
    assert isinstance(env, ChangingWorld)
    return env


def unchanged(environment: EnvironmentSpec) -> Environment:
    return make(environment, EPISODIC, 1.0, 2)


def by_hand(
    environment: EnvironmentSpec, change: Change, actions: Actions, after: int
) -> tuple[list[Step], tuple[str, ...]]:
    """The unchanged world with the change made outside of it, and what that cannot imitate."""
    env = unchanged(environment)
    env.reset(0)
    late = np.arange(len(actions)) >= after
    if isinstance(change, ActionFlip):
        actions = np.where(late[:, None], np.array(env.flipped())[actions], actions)
    steps = [env.step(row) for row in actions]
    for index in np.flatnonzero(late):
        step = steps[index]
        if isinstance(change, ObservationFlip):
            mirrored = np.flip(step.observation, axis=-1).copy()
            final = None if step.final is None else np.flip(step.final, axis=-1).copy()
            steps[index] = step._replace(observation=mirrored, final=final)
        if isinstance(change, RewardSign):
            payoff = 0.0 - step.payoff
            steps[index] = step._replace(payoff=payoff, reward=payoff.astype(np.float32))
    return steps, ("reward", "payoff") if isinstance(change, RewardMove) else ()


@pytest.mark.parametrize(("world", "change"), CHANGING_WORLDS)
def test_only_the_named_mapping_changes(world: str, change: Change) -> None:
    environment, after = SMALL_WORLDS[world], 58
    env = built(environment, change)
    first = env.reset(0)
    np.testing.assert_array_equal(first, unchanged(environment).reset(0))
    actions = actions_for(env, 150)
    expected, moved = by_hand(environment, change, actions, after)
    found = [env.step(row) for row in actions]
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert_same_arrays(one, other, but=moved if index >= after else ())
    assert env.references == unchanged(environment).references
    if isinstance(change, ActionFlip | ObservationFlip) and world != "freeway":
        # Something is different, too. (Random play in Freeway hardly moves.)
        same = play(unchanged(environment), 150)
        assert any(
            one.observation.tobytes() != other.observation.tobytes()
            for one, other in zip(found, same, strict=True)
        )


@settings(deadline=None, max_examples=25)
@given(
    world=st.sampled_from(["catch", "catch-drift", "catch-stream", "tracking", "deep-sea"]),
    change=st.sampled_from(CHANGES),
    at=st.integers(0, 6),
    steps=st.integers(1, 9),
    saved=st.integers(0, 60),
    seed=st.integers(0, 1000),
)
def test_a_change_is_in_time_and_survives_a_checkpoint(
    world: str, change: Change, at: int, steps: int, saved: int, seed: int
) -> None:
    environment, change = SMALL_WORLDS[world], msgspec.structs.replace(change, at=at)
    if change_problem(environment, change) is not None:
        return
    env, other, plain = (
        built(environment, change, steps),
        built(environment, change, steps),
        unchanged(environment),
    )
    shown, true = env.reset(seed), plain.reset(seed)
    if at > 0:
        assert shown.tobytes() == true.tobytes()
    actions = actions_for(env, 60, seed)
    for index, row in enumerate(actions):
        assert env.changed == (index >= at * steps)
        if index == saved:
            other.load(env.save())
        step = env.step(row)
        if index < at * steps:
            assert_same_arrays(step, plain.step(row))
        if index >= saved:
            assert_same_arrays(step, other.step(row))


def test_a_world_can_have_changed_from_the_start() -> None:
    env = built(Catch(), ObservationFlip(at=0))
    np.testing.assert_array_equal(env.reset(1), unchanged(Catch()).reset(1)[..., ::-1])


def test_the_change_comes_in_the_middle_of_an_episode() -> None:
    """After 29 steps, four episodes of seven and one step of the next, left becomes right."""
    env = built(Catch(), ActionFlip(at=1))
    env.reset(0)
    for _ in range(28):
        step = env.step(np.array([0, 1]))
    paddles = [step.observation[:, -1].argmax(axis=1).tolist()]
    for _ in range(3):
        step = env.step(np.array([0, 1]))
        paddles.append(step.observation[:, -1].argmax(axis=1).tolist())
    assert paddles == [[4, 4], [3, 4], [4, 4], [5, 4]]


def test_the_reward_is_paid_in_the_moved_column() -> None:
    world = CatchEnv(Catch(), lanes=2)
    env = MovedReward(world, 0, reward_columns(RewardMove(at=0), 8))
    env.reset(0)
    env.load({**env.save(), "balls": np.array([2, 6])})
    for action in ([1, 0], [1, 0], [1, 0], [1, 0], [1, 1], [1, 1], [1, 1]):
        step = env.step(np.array(action))
    # The paddles are in columns 4 = (2 + 2) mod 8 and 0 = (6 + 2) mod 8.
    assert step.payoff.tolist() == [1.0, 1.0]
    env.load({**env.save(), "balls": np.array([4, 4])})
    for action in ([1, 2], [1, 2], [1, 1], [1, 1], [1, 1], [1, 1], [1, 1]):
        step = env.step(np.array(action))
    assert step.payoff.tolist() == [-1.0, 1.0]
    env.after = 100
    env.reset(0)
    assert world.rewarded == list(range(8))


def test_in_dense_catch_the_distance_is_to_the_moved_column() -> None:
    env = MovedReward(CatchEnv(Catch(dense=True), lanes=1), 0, reward_columns(RewardMove(at=0), 8))
    env.reset(0)
    env.load({**env.save(), "balls": np.array([4])})
    payoffs = [float(env.step(np.array([2])).payoff[0]) for _ in range(3)]
    # The paddle goes to 5, 6, 7, and the column that pays is 6.
    assert payoffs == pytest.approx([-1 / 7, 0.0, -1 / 7])


@pytest.mark.parametrize("size", [8, 16])
def test_what_a_perfect_catcher_falls_to(size: int) -> None:
    """Exactly -1/7 and -1/15 after a reward move or a change of sign, random after a flip."""
    config = Catch(rows=size, columns=size)
    references, steps = unchanged(config).references, size - 1

    def score(change: Change) -> float:
        env = make(config, EPISODIC, 1.0, 64, change)
        sample = sample_references(env, catch_oracle(config), 2000, seed=0)
        assert sample.rate * steps == pytest.approx(sample.mean_return, abs=1e-9)
        return references.return_score(sample.mean_return)

    lost = -2 / size / (2 - 2 / size)
    assert score(RewardMove(at=0)) == pytest.approx(lost, abs=1e-12)
    assert score(RewardMove(at=0, map="mirror")) == pytest.approx(lost, abs=1e-12)
    assert score(RewardSign(at=0)) == pytest.approx(lost, abs=1e-12)
    assert score(ActionFlip(at=0)) == pytest.approx(0.0, abs=0.06)
    assert round(lost, 4) == {8: -0.1429, 16: -0.0667}[size]


@pytest.mark.parametrize("config", [CatchStream(), Tracking()])
def test_a_policy_adapted_to_a_moved_reward_earns_as_before(config: CatchStream | Tracking) -> None:
    """In the mirrored world, chasing the mirror image of the ball is optimal."""
    env = make(config, EPISODIC, 1.0, 64, RewardMove(at=0, map="mirror"))

    def informed(observation: Array, generator: np.random.Generator) -> Actions:
        mirrored = observation.copy()
        mirrored[:, :-1] = mirrored[:, :-1, ::-1]
        return chase(mirrored, generator)

    found = sample_references(env, informed, 1, seed=0, step_cap=1400).rate
    ignorant = sample_references(env, chase, 1, seed=0, step_cap=1400).rate
    assert found == pytest.approx(env.references.oracle_rate, abs=0.02)
    assert env.references.rate_score(ignorant) < 0.3


def test_a_change_is_below_scale_and_boundary() -> None:
    env = make(Catch(), Boundary(terminals="masked"), 10.0, 2, RewardSign(at=1))
    assert isinstance(env, Masked)
    assert isinstance(env.env, Scaled)
    assert isinstance(env.env.env, ChangingWorld)
    steps = play(env, 42)
    np.testing.assert_array_equal(steps[34].payoff, -play(unchanged(Catch()), 42)[34].payoff)
    np.testing.assert_array_equal(steps[34].reward, 10 * steps[34].payoff)
    assert not any(str(value) == "-0.0" for step in steps for value in step.reward.tolist())


def test_reward_columns_are_permutations() -> None:
    assert reward_columns(RewardMove(at=1), 16) == [*range(4, 16), 0, 1, 2, 3]
    assert reward_columns(RewardMove(at=1, map="shift:1"), 4) == [1, 2, 3, 0]
    assert reward_columns(RewardMove(at=1, map="mirror"), 4) == [3, 2, 1, 0]


@pytest.mark.parametrize(
    ("environment", "change", "message"),
    [
        (
            DeepSea(),
            RewardMove(at=1),
            "change.kind: the reward of 'deep-sea' does not depend on a column",
        ),
        (Catch(columns=3), RewardMove(at=1), "change.map: 'shift' moves no reward on 3 columns"),
        (Catch(), RewardMove(at=1, map="shift:16"), "change.map: 'shift:16' moves no reward on 8"),
    ],
)
def test_impossible_changes_are_refused(
    environment: EnvironmentSpec, change: Change, message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        make(environment, EPISODIC, 1.0, 2, change)


def test_changes_that_do_not_fit_are_known_without_the_world() -> None:
    assert change_problem(MinAtar(game="breakout"), RewardMove(at=1)) is not None
    assert change_problem(Gymnasium(id="CartPole-v1"), ObservationFlip(at=1)) is not None
    assert change_problem(Gymnasium(id="CartPole-v1"), ActionFlip(at=1)) is None


@pytest.mark.parametrize(
    "name", ["", "shift:", "shift:0", "shift:-1", "shift:2x", "turn", "Mirror"]
)
def test_unknown_maps_are_refused(name: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"kind": "reward-move", "at": 1, "map": name}, Change)


def test_changes_are_read_and_written_by_kind() -> None:
    for change in CHANGES:
        data = msgspec.to_builtins(change)
        assert data["kind"] == change.kind
        assert msgspec.convert(data, Change) == change


def test_a_state_without_the_count_is_not_of_a_changing_world() -> None:
    plain = unchanged(Catch())
    plain.reset(0)
    with pytest.raises(ValueError, match="changing world"):
        built(Catch(), ActionFlip(at=1)).load(plain.save())


def test_wrong_constructions_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        FlippedActions(unchanged(Catch()), -1)
    with pytest.raises(ValueError, match="world of columns"):
        MovedReward(unchanged(DeepSea()), 1, [0, 1])
    with pytest.raises(ValueError, match="permutation"):
        MovedReward(unchanged(Catch()), 1, [0] * 8)
