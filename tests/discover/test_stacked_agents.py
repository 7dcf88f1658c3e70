from __future__ import annotations

import math

import pytest
import torch

from rulescope.discover.stacked_agents import StackedAgents, make_agents
from rulescope.learners.adam import Adam
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.learners.torso import Evaluation

SIZES = NetworkSizes(hidden=(5, 4))


@pytest.mark.parametrize("max_norm", [None, 0.1])
def test_stacked_agents_learn_as_each_would_alone(max_norm: float | None) -> None:
    network, initial = make_agents(6, 3, SIZES, [4, 7], copies=2)
    assert torch.equal(initial[0], initial[2])
    assert not torch.equal(initial[0], initial[1])
    agents = StackedAgents(network, initial, 0.01, max_norm)
    alone = [row.clone() for row in initial]
    optimisers = [Adam(params, 0.01, max_norm or math.inf) for params in alone]
    torch.manual_seed(0)
    for _ in range(3):
        rows, at_outputs = torch.randn(4, 9, 6), torch.randn(4, 9, 3)
        layers = agents.forward(rows)
        agents.descend(layers, at_outputs)
        for index, (params, optimiser) in enumerate(zip(alone, optimisers, strict=True)):
            evaluation = Evaluation(network, network.layout.views(params), rows[index])
            assert torch.allclose(layers.outputs[index], evaluation.outputs, atol=1e-6)
            gradient = torch.zeros_like(params)
            evaluation.gradient_(at_outputs[index], network.layout.views(gradient))
            optimiser.step_(gradient)
    assert torch.allclose(agents.params, torch.stack(alone), atol=1e-5)
    assert not agents.broken.any()


def test_an_agent_whose_gradient_is_not_finite_stops_alone() -> None:
    network, initial = make_agents(6, 3, SIZES, [4, 7], copies=1)
    agents = StackedAgents(network, initial, 0.01, 0.5)
    at_outputs = torch.ones(2, 9, 3)
    at_outputs[1, 0, 0] = math.nan
    agents.descend(agents.forward(torch.ones(2, 9, 6)), at_outputs)
    assert agents.broken.tolist() == [False, True]
    assert torch.equal(agents.params[1], initial[1])
    assert not torch.equal(agents.params[0], initial[0])
