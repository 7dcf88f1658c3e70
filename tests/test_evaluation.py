"""The terminal evaluation: read-only, and on the same games for all runs of a seed."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest

from learners.baseline_cases import SMALL as BASELINES
from learners.small import small_disco
from learners.test_open_ppo import SMALL as OPEN
from rulescope.core.arrays import bit_equal
from rulescope.core.errors import SpecError
from rulescope.envs.world_config import ActionFlip, Catch, MinAtar
from rulescope.evaluation import evaluate_policies, evaluation_streams, play
from rulescope.learners.learner_config import LearnerSpec
from rulescope.lifetime import Lifetime
from rulescope.records import Record
from rulescope.run_spec import Evaluation, RunSpec, canonical, checked, decode

LEARNERS: dict[str, LearnerSpec] = {
    "small": OPEN["small"],
    "adam": OPEN["adam"],
    "dqn": BASELINES["dqn"],
    "a2c-popart": BASELINES["a2c-popart"],
    "disco": small_disco(),
}
PLAN = Evaluation(lanes=3, steps=20)


def short(name: str, **changes: Any) -> RunSpec:
    base = RunSpec(
        learner=LEARNERS[name],
        environment=Catch(rows=5, columns=5),
        iterations=6,
        log_every=2,
        steps=6,
        evaluation=PLAN,
        keep=LEARNERS[name].CARRIERS,
    )
    return msgspec.structs.replace(base, **changes)


@cache
def completed(spec: RunSpec) -> Record:
    life = Lifetime(spec)
    life.run()
    return life.record()


def earned(record: Record, policy: str) -> list[float]:
    rewards: list[float] = record.state[f"evaluation.{policy}/reward"].tolist()
    return rewards


@pytest.mark.parametrize("name", LEARNERS)
def test_it_leaves_the_learner_as_it_is(name: str) -> None:
    life = Lifetime(short(name))
    life.run()
    before = life.save()
    one, two = life.record(), life.record()
    after = life.save()
    assert bit_equal(
        {**before, "loop/seconds": np.zeros(())}, {**after, "loop/seconds": np.zeros(())}
    )
    assert one.manifest.science_hash == two.manifest.science_hash
    plain = completed(short(name, evaluation=None))
    kept = {key: a for key, a in one.state.items() if not key.startswith("evaluation")}
    assert bit_equal(kept, plain.state)
    assert bit_equal(one.log, plain.log)


def test_what_is_kept_is_what_each_lane_earned() -> None:
    record = completed(short("small"))
    assert {key for key in record.state if key.startswith("evaluation")} == {
        f"evaluation.{policy}/{what}"
        for policy in ("terminal", "initial", "random")
        for what in ("reward", "episodes")
    }
    assert record.state["evaluation.random/episodes"].tolist() == [5, 5, 5]  # of four steps each
    assert all(abs(reward) <= 5 for reward in earned(record, "terminal"))


def test_the_luck_depends_on_the_seed_alone() -> None:
    records = [completed(short(name)) for name in LEARNERS]
    records.append(completed(short("small", scale=100.0, iterations=3, log_every=1)))
    assert len({tuple(earned(record, "random")) for record in records}) == 1
    assert earned(completed(short("small")), "initial") == earned(
        completed(short("adam")), "initial"
    )
    others = {tuple(earned(completed(short("small", seed=k)), "random")) for k in range(3)}
    assert len(others) > 1


def test_the_initial_policy_is_the_untrained_one_and_the_terminal_one_is_not() -> None:
    spec = short("adam", iterations=40, evaluation=Evaluation(lanes=20, steps=100), log_every=40)
    record = completed(spec)
    initial = Lifetime(spec).learner
    again = evaluate_policies(spec, PLAN, initial, initial)
    assert bit_equal(again["evaluation.initial"], again["evaluation.terminal"])
    assert sum(earned(record, "terminal")) > sum(earned(record, "initial"))


def test_a_policy_near_indifference_plays_like_chance() -> None:
    """A fresh OPEN learner has logits of 0.01, which the same noise hardly lets through."""
    spec = short("small", evaluation=Evaluation(lanes=8, steps=200))
    life = Lifetime(spec)
    plan = spec.evaluation
    assert plan is not None
    found = evaluate_policies(spec, plan, life.learner, life.learner)
    gap = found["evaluation.initial"]["reward"] - found["evaluation.random"]["reward"]
    assert abs(gap.sum()) < 0.05 * 8 * 200


def test_rewards_are_those_of_the_world_whatever_the_learner_observes() -> None:
    worlds = play(lambda seen: np.zeros(len(seen), np.int64), Catch(rows=5, columns=5), 4, 40, 7)
    again = play(lambda seen: np.zeros(len(seen), np.int64), Catch(rows=5, columns=5), 4, 40, 7)
    assert worlds.reward.tolist() == again.reward.tolist()
    assert set(np.abs(worlds.reward) % 1.0) == {0.0}


def test_streams_are_restored_after_an_evaluation_even_after_a_fault() -> None:
    life = Lifetime(short("small"))
    before = life.learner.save()
    with pytest.raises(RuntimeError, match="shapes"), evaluation_streams(life.learner, 0):
        life.learner.act(np.zeros((2, 5), np.float32))
    assert bit_equal(before, life.learner.save())


def test_it_is_part_of_what_a_run_is_and_absent_by_default() -> None:
    assert b"evaluation" not in canonical(short("small", evaluation=None))
    spec = short("small")
    assert decode(canonical(spec)) == spec
    assert spec.id != short("small", evaluation=None).id


def test_a_run_with_a_change_has_none() -> None:
    with pytest.raises(SpecError, match="evaluation: a run with a change has none"):
        checked(short("small", change=ActionFlip(at=3)))
    with pytest.raises(SpecError, match=r"evaluation\.policies"):
        decode('{"evaluation": {"policies": ["final"]}}')


def test_minatar_is_played_too() -> None:
    world = MinAtar(game="breakout", sticky=0.0, actions="minimal", limit=1000)
    spec = short("small", environment=world, iterations=1, log_every=1)
    record = completed(spec)
    assert record.state["evaluation.terminal/reward"].shape == (3,)
    assert earned(record, "initial") == earned(record, "random")
