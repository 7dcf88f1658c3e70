"""The Disco learner around its update: acting, storing, starting to learn, its carriers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from learners.small import small_disco
from rulescope import learners
from rulescope.core import seeds
from rulescope.learners.disco.diagnostics import METRICS
from rulescope.learners.disco.disco_learner import DiscoLearner
from rulescope.learners.disco_config import Disco
from rulescope.learners.learner import Rollout

STEPS, LANES = 6, 2
pytestmark = pytest.mark.usefixtures("deterministic")


def make(bundle: str = "historical", seed: int = 0, **changes: object) -> DiscoLearner:
    learner = learners.make(small_disco(bundle, **changes), (4, 4), 3, STEPS, seed)
    assert isinstance(learner, DiscoLearner)
    return learner


def rollout(number: int) -> Rollout:
    rng = seeds.stream(number, "test")
    pool = rng.standard_normal((7, 4, 4)).astype(np.float32)
    return Rollout(
        observations=pool[rng.integers(7, size=(STEPS + 1, LANES))],
        actions=rng.integers(3, size=(STEPS, LANES)),
        rewards=rng.standard_normal((STEPS, LANES)).astype(np.float32),
        terminals=rng.random((STEPS, LANES)) < 0.3,
        began=rng.random(LANES) < 0.3,
        behaviour={"logits": rng.standard_normal((STEPS, LANES, 3)).astype(np.float32)},
    )


def test_learning_starts_once_a_batch_is_stored() -> None:
    learner = make(batch=5)
    start = learner.carriers["params"].get()["flat"]
    for number in range(2):
        assert learner.learn(rollout(number), measure=True) == {}
        assert (learner.carriers["params"].get()["flat"] == start).all()
    assert tuple(learner.learn(rollout(2), measure=True)) == METRICS
    assert (learner.carriers["params"].get()["flat"] != start).any()
    assert int(learner.carriers["moments"].get()["updates"]) == 1
    assert learner.learn(rollout(3), measure=False) == {}


@pytest.mark.parametrize(("bundle", "transitions"), [("historical", 5), ("legacy", 6)])
def test_what_is_stored_of_a_rollout(bundle: str, transitions: int) -> None:
    learner, collected = make(bundle), rollout(0)
    learner.learn(collected, measure=False)
    stored = learner.carriers["replay"].get()
    assert stored["actions"].shape == (LANES, transitions)
    for lane in range(LANES):
        seen = stored["rows"][stored["index"][lane]]
        assert (seen == collected.observations[: transitions + 1, lane]).all()
        assert (stored["actions"][lane] == collected.actions[:transitions, lane]).all()
        assert (stored["rewards"][lane] == collected.rewards[:transitions, lane]).all()
        assert (stored["terminals"][lane] == collected.terminals[:transitions, lane]).all()
        assert (
            stored["behaviour"][lane] == collected.behaviour["logits"][:transitions, lane]
        ).all()
    assert (stored["began"] == collected.began).all()


def test_actions_are_drawn_from_the_policy() -> None:
    learner = make()
    views = learner.update.agent.layout.views(learner.state.params)
    views["policy.w"].zero_()
    views["policy.b"].copy_(torch.tensor([0.2, 0.5, 0.3]).log())
    choice = learner.act(np.zeros((20_000, 4, 4), np.float32))
    shares = np.bincount(choice.actions, minlength=3) / 20_000
    assert shares == pytest.approx([0.2, 0.5, 0.3], abs=0.015)
    assert np.exp(choice.behaviour["logits"][0]) == pytest.approx([0.2, 0.5, 0.3], rel=1e-5)


def test_carriers_are_those_that_the_configuration_names() -> None:
    assert tuple(make().carriers) == Disco.CARRIERS


def test_fresh_carriers() -> None:
    carriers = {name: carrier.get() for name, carrier in make().carriers.items()}
    assert not carriers["recurrent"]["h"].any()
    assert not carriers["recurrent"]["c"].any()
    assert carriers["averages"]["advantage"].tolist() == [0.0, 0.0, 1.0]
    assert carriers["averages"]["td"].tolist() == [0.0, 0.0, 1.0]
    assert (carriers["target"]["flat"] == carriers["params"]["flat"]).all()
    assert not carriers["moments"]["first"].any()
    assert int(carriers["moments"]["updates"]) == 0
    assert carriers["replay"]["index"].shape == (0, STEPS)


def test_parameters_that_are_set_are_the_ones_that_act() -> None:
    learner, other = make(seed=0), make(seed=1)
    observation = rollout(0).observations[0]
    learner.carriers["params"].set(other.carriers["params"].get())
    logits = [one.act(observation).behaviour["logits"] for one in (learner, other)]
    assert (logits[0] == logits[1]).all()


def test_parameters_that_were_learnt_are_the_ones_that_act() -> None:
    learner = make()
    observation = rollout(0).observations[0]
    before = learner.act(observation).behaviour["logits"]
    for number in range(3):
        learner.learn(rollout(number), measure=False)
    after = learner.act(observation).behaviour["logits"]
    views = learner.update.agent.layout.views(learner.state.params)
    rows = torch.tensor(observation)
    assert (after == learner.update.agent.policy(views, rows).numpy()).all()
    assert (after != before).all()


def test_target_and_params_share_no_memory() -> None:
    learner = make()
    params = learner.carriers["params"].get()
    learner.carriers["target"].set({"flat": np.zeros_like(params["flat"])})
    assert (learner.carriers["params"].get()["flat"] == params["flat"]).all()


def test_rule_digest_is_that_of_the_loaded_weights() -> None:
    learner = make()
    assert learner.rule_digest() == learner.rule.content
    learner._weights["lstm/linear/b"][3] += 1e-6
    assert learner.rule_digest() != learner.rule.content


def test_one_transition_is_enough() -> None:
    """The smallest lifetime: trajectories of two observations."""
    config = small_disco(batch=2)
    learner = learners.make(config, (4, 4), 3, steps=2, seed=0)
    collected = rollout(0)
    short = Rollout(
        observations=collected.observations[:3],
        actions=collected.actions[:2],
        rewards=collected.rewards[:2],
        terminals=collected.terminals[:2],
        began=collected.began,
        behaviour={"logits": collected.behaviour["logits"][:2]},
    )
    metrics = learner.learn(short, measure=True)
    assert np.isfinite(list(metrics.values())).all()
