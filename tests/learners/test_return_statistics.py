"""Return-based scaling: sigma against a plain loop, and its place in A2C and in Disco."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

from learners.baseline_cases import LITTLE, factory
from learners.small import small_disco
from rulescope import learners
from rulescope.core.errors import SpecError
from rulescope.learners.a2c import A2CLearner, gae, rows
from rulescope.learners.baseline_config import A2C
from rulescope.learners.disco.disco_learner import DiscoLearner
from rulescope.learners.disco_config import Disco
from rulescope.learners.learner import Rollout
from rulescope.learners.learner_base import ReturnScaling
from rulescope.learners.learner_conformance import check_learner
from rulescope.learners.return_statistics import ReturnStatistics
from rulescope.run_spec import Pin, RunSpec, canonical, checked

STEPS, LANES, DISCOUNT = 6, 2, 0.9
RELATIVE = ReturnScaling(floor_unit="reward")
pytestmark = pytest.mark.usefixtures("deterministic")


def rollout(number: int, scale: float = 1.0, ends: float = 0.3) -> Rollout:
    rng = np.random.default_rng(number)
    return Rollout(
        observations=rng.standard_normal((STEPS + 1, LANES, 4, 4)).astype(np.float32),
        actions=rng.integers(3, size=(STEPS, LANES)),
        rewards=(scale * rng.standard_normal((STEPS, LANES)) + scale).astype(np.float32),
        terminals=rng.random((STEPS, LANES)) < ends,
        began=np.zeros(LANES, np.bool_),
        behaviour={"logits": rng.standard_normal((STEPS, LANES, 3)).astype(np.float32)},
    )


def plain_sigma(seen: list[Rollout]) -> float:
    """Compute sigma without its floor from all interactions at once, lane by lane."""
    rewards, discounts, returns = [], [], []
    for lane in range(LANES):
        total = 0.0
        for part in seen:
            for t in range(STEPS):
                reward, end = float(part.rewards[t, lane]), bool(part.terminals[t, lane])
                rewards.append(reward)
                discounts.append(0.0 if end else DISCOUNT)
                total += reward
                if end:
                    returns.append(total)
                    total = 0.0
    square = sum(g * g for g in returns) / len(returns) if returns else 0.0
    return math.sqrt(float(np.var(rewards)) + float(np.var(discounts)) * square)


@pytest.mark.parametrize("ends", [0.0, 0.1, 0.6])
def test_sigma_is_that_of_a_plain_loop_over_the_lifetime(ends: float) -> None:
    statistics = ReturnStatistics(ReturnScaling(floor=0.0), DISCOUNT)
    seen = [rollout(number, ends=ends) for number in range(7)]
    for count, part in enumerate(seen, start=1):
        statistics.push(part)
        assert statistics.sigma == pytest.approx(plain_sigma(seen[:count]), rel=1e-12)


def test_a_fixed_floor_binds_at_small_rewards_and_a_relative_one_does_not() -> None:
    fixed, relative = (ReturnStatistics(config, DISCOUNT) for config in (ReturnScaling(), RELATIVE))
    for statistics in (fixed, relative):
        statistics.push(rollout(0, scale=1e-3))
    assert fixed.sigma == 0.01
    assert relative.sigma == pytest.approx(plain_sigma([rollout(0, scale=1e-3)]), rel=1e-12)


def test_a_relative_floor_binds_at_constant_rewards_and_zero_rewards_are_not_scaled() -> None:
    part = rollout(0, ends=0.0)
    for reward, sigma in ((4.0, 0.04), (0.0, 1.0)):
        statistics = ReturnStatistics(RELATIVE, DISCOUNT)
        statistics.push(part._replace(rewards=np.full((STEPS, LANES), reward, np.float32)))
        assert statistics.sigma == pytest.approx(sigma)


@pytest.mark.parametrize("scaling", [ReturnScaling(), RELATIVE])
def test_scaled_learners_conform(scaling: ReturnScaling) -> None:
    check_learner(factory(A2C(agent=LITTLE, scaling=scaling)), (4, 4), 3, steps=7)
    config = small_disco("published", scaling=scaling, batch=4)
    check_learner(lambda: learners.make(config, (4, 4), 3, STEPS, 0), (4, 4), 3, steps=STEPS)


def test_carriers_are_those_of_the_configuration() -> None:
    for config in (A2C(agent=LITTLE, scaling=RELATIVE), small_disco(scaling=RELATIVE)):
        made = learners.make(config, (4, 4), 3, STEPS, 0)
        assert set(made.carriers) == set(config.carrier_names)
        assert "scaling" in made.carriers
        assert made.metrics[-1] == "return_scale"


def test_a2c_divides_advantages_and_value_errors_by_sigma() -> None:
    """With sigma as a constant, the gradient is that of a plain A2C with such targets."""
    part = rollout(1, scale=100.0)
    plain, scaled = (
        A2CLearner(A2C(agent=LITTLE, discount=DISCOUNT, scaling=scaling), (4, 4), 3, seed=2)
        for scaling in (None, ReturnScaling())
    )
    values = plain.evaluate(plain.tensor(rows(part))).output_array[:, -1]
    advantages = gae(part, values.reshape(STEPS + 1, LANES), DISCOUNT, 0.95)
    sigma = plain_sigma([part])
    metrics = scaled.learn(part, measure=True)
    unscaled = plain.learn(part, measure=True)
    assert metrics["return_scale"] == pytest.approx(sigma)
    assert metrics["advantage_std"] == pytest.approx(advantages.std() / sigma)
    assert metrics["loss_value"] == pytest.approx(unscaled["loss_value"] / sigma**2, rel=1e-4)
    assert metrics["loss_policy"] == pytest.approx(unscaled["loss_policy"] / sigma, rel=1e-4)


def disco(scaling: ReturnScaling | None) -> DiscoLearner:
    made = learners.make(
        small_disco("published", scaling=scaling, batch=4, discount=DISCOUNT), (4, 4), 3, STEPS, 0
    )
    assert isinstance(made, DiscoLearner)
    return made


def test_a_batch_of_disco_has_rewards_in_units_of_sigma_and_the_replay_has_not() -> None:
    learner, seen = disco(ReturnScaling()), [rollout(number) for number in range(3)]
    for part in seen:
        learner.learn(part, measure=False)
    stored = learner.replay.get()["rewards"]
    assert (stored[0] == seen[0].rewards[: learner.transitions, 0]).all()
    batch = learner.batch(np.random.default_rng(0))
    again = learner.replay.sample(np.random.default_rng(0), 4).columns["rewards"]
    assert batch.rewards.T.numpy() == pytest.approx(again / plain_sigma(seen), rel=1e-6)


def test_disco_with_a_relative_floor_does_not_depend_on_the_reward_scale() -> None:
    """To the bit, for a power of two; with a fixed floor it depends on it."""
    for scaling, same in ((RELATIVE, True), (ReturnScaling(), False), (None, False)):
        one, small = disco(scaling), disco(scaling)
        for number in range(5):
            one.learn(rollout(number), measure=False)
            small.learn(rollout(number, scale=2.0**-10), measure=False)
        for carrier in ("params", "recurrent", "averages"):
            found = one.carriers[carrier].get(), small.carriers[carrier].get()
            equal = all((found[0][key] == found[1][key]).all() for key in found[0])
            assert equal == same


def test_the_option_is_part_of_the_run_id_and_its_carrier_of_the_specification() -> None:
    plain = RunSpec(learner=Disco())
    scaled = RunSpec(learner=Disco(scaling=ReturnScaling()))
    assert b"scaling" not in canonical(plain)
    assert len({plain.id, scaled.id, RunSpec(learner=Disco(scaling=RELATIVE)).id}) == 3
    pin = (Pin(carrier="scaling"),)
    checked(msgspec.structs.replace(scaled, interventions=pin))
    with pytest.raises(SpecError, match="no carrier 'scaling'"):
        checked(msgspec.structs.replace(plain, interventions=pin))
