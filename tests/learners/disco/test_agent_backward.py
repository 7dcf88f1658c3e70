"""The agent with its backward pass written out, against the plain agent and autograd."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from torch import Tensor

from rulescope.learners.disco.agent_backward import Evaluation, OutputGradients
from rulescope.learners.disco.agent_network import Agent
from rulescope.learners.disco_config import AGENTS, AgentSizes, Conventions

GRID, BOARD = AgentSizes(hidden=(32, 24), model=16, head=20), (4, 4)
CHANNEL, IMAGE = (
    AgentSizes(torso="channel", hidden=(1, 24), channels=4, model=16, head=20),
    (2, 5, 6),
)
PREDICTIONS, BINS, ROWS = 40, 11, 5

TORSOS = pytest.mark.parametrize(("sizes", "shape"), [(GRID, BOARD), (CHANNEL, IMAGE)])


def make(
    conventions: Conventions,
    sizes: AgentSizes = GRID,
    shape: tuple[int, ...] = BOARD,
    actions: int = 3,
) -> Agent:
    return Agent(shape, actions, PREDICTIONS, BINS, sizes, conventions)


def normal(seed: int, *shape: int) -> Tensor:
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape))


def parameters(agent: Agent, seed: int = 0) -> Tensor:
    return 0.4 * normal(seed, agent.layout.size)


def pull_on(agent: Agent, taken: list[int], seed: int = 5) -> OutputGradients:
    """Return arbitrary gradients at the outputs, on these flat pairs of row and action."""
    count = len(taken)
    return OutputGradients(
        logits=normal(seed, ROWS, agent.actions),
        y=normal(seed + 1, ROWS, PREDICTIONS),
        taken=torch.tensor(taken, dtype=torch.int64),
        z=normal(seed + 2, count, PREDICTIONS),
        aux=normal(seed + 3, count, agent.actions),
        q=normal(seed + 4, count, BINS),
    )


def automatic(agent: Agent, flat: Tensor, rows: Tensor, pull: OutputGradients) -> Tensor:
    """Return the same gradient by differentiating the plain agent."""
    leaf = flat.clone().requires_grad_()
    found = agent.outputs(agent.layout.views(leaf), rows)
    outputs = [found.logits, found.y]
    outputs += [head.flatten(0, 1)[pull.taken] for head in (found.z, found.aux, found.q)]
    at_outputs = [pull.logits, pull.y, pull.z, pull.aux, pull.q]
    (gradient,) = torch.autograd.grad(outputs, leaf, at_outputs)
    return gradient


def assert_same_gradient(agent: Agent, taken: list[int]) -> None:
    flat, rows = parameters(agent), normal(1, ROWS, *agent.observation_shape)
    pull = pull_on(agent, taken)
    found = agent.layout.views(Evaluation(agent, agent.layout.views(flat), rows).gradient(pull))
    expected = agent.layout.views(automatic(agent, flat, rows, pull))
    for name, array in expected.items():
        torch.testing.assert_close(found[name], array, rtol=1e-11, atol=1e-11, msg=name)


@pytest.mark.parametrize("bundle", AGENTS)
@TORSOS
def test_outputs_are_those_of_the_plain_agent(
    bundle: str, sizes: AgentSizes, shape: tuple[int, ...]
) -> None:
    agent = make(AGENTS[bundle], sizes, shape, actions=4)
    flat, rows = parameters(agent), normal(1, ROWS, *shape)
    found = Evaluation(agent, agent.layout.views(flat), rows)
    expected = agent.outputs(agent.layout.views(flat), rows)
    torch.testing.assert_close(found.logits, expected.logits, rtol=1e-12, atol=1e-12)
    for name, one, two in zip(expected._fields, found.probabilities, expected, strict=True):
        assert not one.requires_grad
        torch.testing.assert_close(one, two.softmax(-1), rtol=1e-12, atol=1e-12, msg=name)


@pytest.mark.parametrize("bundle", AGENTS)
@TORSOS
def test_gradient_is_the_automatic_one(
    bundle: str, sizes: AgentSizes, shape: tuple[int, ...]
) -> None:
    assert_same_gradient(make(AGENTS[bundle], sizes, shape), [0, 3, 4, 7, 14])


@pytest.mark.parametrize("action_model", ["chained", "independent"])
@pytest.mark.parametrize("forget_bias", [0, 1])
@pytest.mark.parametrize("biases", [1, 2])
@pytest.mark.parametrize("final_relu", [False, True])
def test_gradient_is_the_automatic_one_in_any_mixture(
    action_model: str, forget_bias: int, biases: int, final_relu: bool
) -> None:
    conventions = replace(
        Conventions(),
        action_model=action_model,
        forget_bias=forget_bias,
        model_biases=biases,
        final_relu=final_relu,
    )
    assert_same_gradient(make(conventions, actions=4), [1, 2, 8, 13, 19])


@pytest.mark.parametrize("bundle", ["historical", "reference"])
@settings(max_examples=15, deadline=None)
@given(taken=st.sets(st.integers(0, ROWS * 6 - 1), min_size=1))
def test_gradient_is_the_automatic_one_for_any_actions_taken(bundle: str, taken: set[int]) -> None:
    assert_same_gradient(make(AGENTS[bundle], actions=6), sorted(taken))


def test_evaluating_and_differentiating_leave_the_parameters_alone() -> None:
    agent = make(AGENTS["reference"])
    flat, rows = parameters(agent), normal(1, ROWS, *BOARD)
    before, seen = flat.clone(), rows.clone()
    evaluation = Evaluation(agent, agent.layout.views(flat), rows)
    first = evaluation.gradient(pull_on(agent, [0, 5]))
    assert torch.equal(flat, before)
    assert torch.equal(rows, seen)
    assert not flat.requires_grad
    assert not first.requires_grad


def test_gradients_of_two_evaluations_share_no_memory() -> None:
    agent = make(AGENTS["historical"])
    flat, rows = parameters(agent), normal(1, ROWS, *BOARD)
    pull = pull_on(agent, [2, 9])
    first = Evaluation(agent, agent.layout.views(flat), rows).gradient(pull)
    kept = first.clone()
    second = Evaluation(agent, agent.layout.views(flat), rows).gradient(pull)
    second.zero_()
    assert torch.equal(first, kept)
