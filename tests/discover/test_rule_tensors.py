from __future__ import annotations

import torch

from discover.tiny_discovery import TINY
from rulescope.discover import rule_tensors
from rulescope.discover.discovery_spec import RuleSizes
from rulescope.discover.population import Population
from rulescope.rules import disco_format


def test_initial_weights_are_a_valid_rule() -> None:
    rule = rule_tensors.draw_initial(RuleSizes(predictions=7, lifetime=5, embedding=3), 0)
    arrays = rule_tensors.to_arrays(rule)
    assert disco_format.fault(arrays) is None
    assert disco_format.sizes_of(arrays).predictions == 7
    assert disco_format.sizes_of(arrays).lifetime_action_embedding == 3
    back = rule_tensors.from_arrays(arrays)
    assert all(torch.equal(back[name], array) for name, array in rule.items())


def test_every_array_has_its_published_standard_deviation() -> None:
    rule = rule_tensors.draw_initial(RuleSizes(predictions=200, trajectory=128, lifetime=128), 1)
    cut = 0.8796  # standard deviation of a unit normal that is truncated at two
    for name, std in {
        "lstm/linear/w": 1.0,
        "lstm/linear_2/w": 0.3,
        "lstm/mlp/~/linear_0/w": 200**-0.5,
        "lstm/lstm/linear/w": (23 + 8 + 128) ** -0.5,
        "lstm/sequential_1/conv1_d/w": (2 * (128 + 4)) ** -0.5,
    }.items():
        assert abs(float(rule[name].std()) / (cut * std) - 1) < 0.05, name
    assert all(not array.any() for name, array in rule.items() if name.endswith("/b"))


def test_the_first_prediction_targets_of_a_random_rule_are_uniform() -> None:
    population = Population(TINY)
    emitted = population.update(
        rule_tensors.copy_per_agent(rule_tensors.draw_initial(TINY.sizes, 3), 3)
    )
    assert not emitted.y.any()
    assert not emitted.z.any()
    assert population.state.recurrent.hidden.detach().abs().min() > 0
