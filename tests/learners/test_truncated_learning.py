"""What follows a cut-off episode is estimated at the observation where it was cut off."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from learners.baseline_cases import SMALL, factory
from rulescope.learners.a2c import ActorCritic
from rulescope.learners.a2c_popart import PopArtLearner
from rulescope.learners.dqn import transition_ends
from rulescope.learners.learner import Learner, Rollout

STEPS, LANES = 7, 2
CUTS = ((2, 0), (4, 1), (6, 0))
"""Step and lane of the episodes that are cut off."""


def cut_off_rollout(learner: Learner) -> Rollout:
    rng = np.random.default_rng(0)
    observations = rng.normal(size=(STEPS + 1, LANES, 4, 4)).astype(np.float32)
    choices = [learner.act(each) for each in observations[:-1]]
    truncated = np.zeros((STEPS, LANES), np.bool_)
    for cut in CUTS:
        truncated[cut] = True
    terminals = truncated.copy()
    terminals[1, 1] = True  # an episode that ends by itself
    return Rollout(
        observations=observations,
        actions=np.stack([choice.actions for choice in choices]),
        rewards=rng.normal(size=(STEPS, LANES)).astype(np.float32),
        terminals=terminals,
        began=np.zeros(LANES, np.bool_),
        behaviour={
            name: np.stack([choice.behaviour[name] for choice in choices])
            for name in choices[0].behaviour
        },
        truncated=truncated,
        final=rng.normal(size=(len(CUTS), 4, 4)).astype(np.float32),
    )


def value(learner: ActorCritic, observation: NDArray[np.float32]) -> float:
    estimate = float(learner.evaluate(learner.tensor(observation[None])).output_array[0, -1])
    if isinstance(learner, PopArtLearner):
        return estimate * learner.averages.scale(learner.config.floor) + learner.averages.mean
    return estimate


@pytest.mark.parametrize("name", ["a2c", "ppo", "a2c-popart"])
def test_a_cut_is_an_end_that_pays_the_value_of_what_was_cut_off(name: str) -> None:
    config = SMALL[name]
    one, other = factory(config)(), factory(config)()
    assert isinstance(one, ActorCritic)
    rollout = cut_off_rollout(one)
    cut_off_rollout(other)  # the same random draws
    assert rollout.final is not None
    rewards = rollout.rewards.astype(np.float64)
    for cut, final in zip(CUTS, rollout.final, strict=True):
        rewards[cut] += 0.997 * value(one, final)
    paid = rollout._replace(rewards=rewards.astype(np.float32), truncated=None, final=None)
    ended = rollout._replace(truncated=None, final=None)
    untouched = factory(config)()
    cut_off_rollout(untouched)
    for learner, given in ((one, rollout), (other, paid), (untouched, ended)):
        learner.learn(given, measure=False)
    params = [each.carriers["params"].get() for each in (one, other, untouched)]
    for array, expected in params[1].items():
        np.testing.assert_allclose(params[0][array], expected, atol=2e-6)
    assert any(np.abs(params[0][key] - params[2][key]).max() > 1e-5 for key in params[0])


def test_a_stored_transition_goes_on_to_the_observation_at_the_cut() -> None:
    rollout = cut_off_rollout(factory(SMALL["dqn"])())
    assert rollout.final is not None
    ended, following = transition_ends(rollout)
    finals = iter(rollout.final)
    for step in range(STEPS):
        for lane in range(LANES):
            cut = (step, lane) in CUTS
            after = next(finals) if cut else rollout.observations[step + 1, lane]
            np.testing.assert_array_equal(following[step, lane], after)
            assert ended[step, lane] == ((step, lane) == (1, 1))
