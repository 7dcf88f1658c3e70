from __future__ import annotations

import torch

from discover.specs import TINY
from rulescope.discover import rule_weights
from rulescope.discover.discovery_spec import RuleSizes
from rulescope.discover.population import Population
from rulescope.rules import disco_format


def test_a_fresh_rule_is_a_rule() -> None:
    rule = rule_weights.fresh(RuleSizes(predictions=7, lifetime=5, embedding=3), 0)
    arrays = rule_weights.as_arrays(rule)
    assert disco_format.fault(arrays) is None
    assert disco_format.sizes_of(arrays).predictions == 7
    assert disco_format.sizes_of(arrays).lifetime_action_embedding == 3
    back = rule_weights.from_arrays(arrays)
    assert all(torch.equal(back[name], array) for name, array in rule.items())


def test_every_array_has_the_spread_it_was_published_with() -> None:
    rule = rule_weights.fresh(RuleSizes(predictions=200, trajectory=128, lifetime=128), 1)
    cut = 0.8796  # what is left of a standard deviation after the cut at two
    for name, std in {
        "lstm/linear/w": 1.0,
        "lstm/linear_2/w": 0.3,
        "lstm/mlp/~/linear_0/w": 200**-0.5,
        "lstm/lstm/linear/w": (23 + 8 + 128) ** -0.5,
        "lstm/sequential_1/conv1_d/w": (2 * (128 + 4)) ** -0.5,
    }.items():
        assert abs(float(rule[name].std()) / (cut * std) - 1) < 0.05, name
    assert all(not array.any() for name, array in rule.items() if name.endswith("/b"))


def test_the_first_targets_of_a_fresh_rule_say_nothing() -> None:
    population = Population(TINY)
    told = population.learn(rule_weights.copies(rule_weights.fresh(TINY.sizes, 3), 3))
    assert not told.y.any()
    assert not told.z.any()
    assert population.state.recurrent.hidden.detach().abs().min() > 0
