from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec.structs import replace

from discover.tiny_evolution import TINY_LPG, TINY_LPO
from rulescope.core import runtime
from rulescope.discover.batched_lifetimes import Cohort, evaluate, make_rules
from rulescope.discover.discovery_spec import World
from rulescope.discover.evolution_spec import Evolution, Lifetimes, SmallAgents
from rulescope.envs.world_config import Catch

BOTH = pytest.mark.parametrize("spec", [TINY_LPG, TINY_LPO], ids=["lpg", "lpo"])


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> None:
    runtime.single_threaded()


def draw(spec: Evolution, *numbers: int) -> np.ndarray:
    rules = make_rules(spec.rule)
    return np.stack([rules.draw_initial(number) for number in numbers])


@BOTH
def test_equal_candidates_have_equal_scores_and_others_do_not(spec: Evolution) -> None:
    spec = replace(spec, agents=replace(spec.agents, learning_rate=0.2))
    scores = evaluate(spec, spec.worlds, draw(spec, 0, 1, 0), 12, seed=3)
    assert scores.shape == (3, 2)
    assert np.array_equal(scores[0], scores[2])
    assert not np.array_equal(scores[0], scores[1])
    assert np.array_equal(scores, evaluate(spec, spec.worlds, draw(spec, 0, 1, 0), 12, seed=3))
    assert not np.array_equal(scores, evaluate(spec, spec.worlds, draw(spec, 0, 1, 0), 12, seed=4))


def test_the_fitness_is_the_score_of_the_last_part_of_a_lifetime() -> None:
    spec = replace(TINY_LPG, lifetimes=Lifetimes(late=0.4))
    weights = draw(spec, 0)
    found = evaluate(spec, spec.worlds, weights, 5, seed=3)
    cohort, rules = Cohort(spec, spec.worlds, 1, 3), make_rules(spec.rule)
    payoffs = []
    for _ in range(5):
        rollout, mean = cohort.collect()
        payoffs.append(mean)
        rules.learn(rules.views(weights), cohort, rollout)
    assert np.allclose(found, cohort.mix.scores((payoffs[3] + payoffs[4]) / 2))


def test_ppo_as_the_drift_of_zero_weights_learns_catch() -> None:
    agents = SmallAgents(hidden=(16, 16), learning_rate=0.01, max_norm=0.5, lanes=4)
    worlds = (World(environment=Catch(rows=3, columns=3), agents=3),)
    spec = replace(TINY_LPO, agents=agents, worlds=worlds)
    zero = np.zeros((1, draw(spec, 0).shape[1]))  # without a network the drift is that of PPO
    before, after = (evaluate(spec, worlds, zero, updates, 0).mean() for updates in (4, 60))
    assert before < 0.35
    assert after > 0.7


def test_a_candidate_that_diverges_has_no_score_and_harms_no_other() -> None:
    weights = draw(TINY_LPG, 0, 1)
    broken = weights.copy()
    broken[1] = np.inf
    expected = evaluate(TINY_LPG, TINY_LPG.worlds, weights, 4, seed=0)
    found = evaluate(TINY_LPG, TINY_LPG.worlds, broken, 4, seed=0)
    assert np.array_equal(found[0], expected[0])
    assert math.isnan(found[1].mean())


def test_agents_start_with_one_of_the_scales_of_their_world() -> None:
    worlds = (World(environment=Catch(rows=3, columns=3), agents=40, scales=(0.1, 10.0)),)
    scales = Cohort(TINY_LPG, worlds, 2, seed=0).mix.scales
    assert sorted(set(scales[:, 0].tolist())) == pytest.approx([0.1, 10.0])
