from __future__ import annotations

import pytest
import torch
from torch import Tensor

from rulescope.core import seeds
from rulescope.discover import candidate_rules
from rulescope.discover.candidate_rules import Rollout
from rulescope.learners.a2c import generalised_advantages
from rulescope.rules import drift, lpg_format, lpg_network, lpo_format

CANDIDATES, AGENTS, STEPS, LANES, ACTIONS, PREDICTIONS = 2, 3, 7, 2, 3, 5
LPG = lpg_format.LpgSizes(PREDICTIONS, 4, 6)


def stacked(rules: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the arrays of several rules as the batched functions expect them."""
    return {
        name.partition("/")[2]: torch.stack(
            [rule[name].view(1, -1) if rule[name].ndim == 1 else rule[name] for rule in rules]
        )
        for name in rules[0]
    }


def drawn(shape: tuple[int, ...], name: str) -> Tensor:
    return torch.tensor(seeds.stream(0, "test", name).standard_normal(shape))


@pytest.fixture
def rollout() -> Rollout:
    shape = (CANDIDATES, AGENTS, STEPS, LANES)
    stream = seeds.stream(0, "rollout")
    return Rollout(
        observations=torch.zeros(0),
        actions=torch.tensor(stream.integers(ACTIONS, size=shape)),
        rewards=drawn(shape, "rewards"),
        terminals=torch.tensor(stream.random(shape) < 0.3).double(),
    )


@pytest.fixture
def lpg_rules() -> list[dict[str, Tensor]]:
    """Rules whose biases are not zero, so that a bias in the wrong place is found."""
    return [
        {name: drawn(shape, f"{name}/{rule}") for name, shape in lpg_format.shapes(LPG).items()}
        for rule in range(CANDIDATES)
    ]


def outputs() -> Tensor:
    return drawn((CANDIDATES, AGENTS, STEPS + 1, LANES, ACTIONS + PREDICTIONS), "outputs")


def test_lpg_targets_are_those_of_the_rule_of_a_lifetime(
    rollout: Rollout, lpg_rules: list[dict[str, Tensor]]
) -> None:
    inputs = candidate_rules.lpg_inputs(candidate_rules.lpg_outputs(outputs(), ACTIONS), rollout)
    found = candidate_rules.lpg_targets(stacked(lpg_rules), inputs)
    for index, rule in enumerate(lpg_rules):
        rewards, terminals, chosen, predictions = (x[:, index] for x in inputs)
        expected = lpg_network.lpg_forward(rule, rewards, terminals, chosen, predictions)
        assert torch.allclose(found.policy[:, index], expected.policy, atol=1e-12)
        assert torch.allclose(found.logits[:, index].softmax(-1), expected.y, atol=1e-12)


def test_the_gradient_of_lpg_is_that_of_the_loss_of_a_lifetime(
    rollout: Rollout, lpg_rules: list[dict[str, Tensor]]
) -> None:
    whole = outputs()
    read = candidate_rules.lpg_outputs(whole, ACTIONS)
    targets = candidate_rules.lpg_targets(
        stacked(lpg_rules), candidate_rules.lpg_inputs(read, rollout)
    )
    found = candidate_rules.lpg_gradient(read, rollout, targets, 0.7)
    for candidate in range(CANDIDATES):
        for agent in range(AGENTS):
            own = whole[candidate, agent].clone().requires_grad_()
            policy = own[:-1, :, :ACTIONS].softmax(-1)
            actions = rollout.actions[candidate, agent].unsqueeze(-1)
            loss = lpg_network.lpg_loss(
                lpg_rules[candidate],
                rollout.rewards[candidate, agent],
                rollout.terminals[candidate, agent],
                policy.gather(-1, actions).squeeze(-1),
                own[..., ACTIONS:].softmax(-1),
                0.7,
            )
            [expected] = torch.autograd.grad(loss, own)
            # The loss of a lifetime adds 1e-8 to probabilities, whose gradient is left out here.
            assert torch.allclose(found[candidate, agent], expected, rtol=1e-5, atol=1e-9)


def test_the_slope_of_lpo_is_the_derivative_of_its_drift() -> None:
    sizes = lpo_format.LpoSizes(9)
    rules = [
        {name: drawn(shape, f"{name}/{rule}") for name, shape in lpo_format.shapes(sizes).items()}
        for rule in range(CANDIDATES)
    ]
    log_ratio, gain = 0.4 * drawn((CANDIDATES, 50), "ratio"), drawn((CANDIDATES, 50), "gain")
    found = candidate_rules.lpo_drift_slope(stacked(rules), log_ratio, gain)
    assert 0 < int((found == 0).sum()) < found.numel()
    for index, rule in enumerate(rules):
        own = log_ratio[index].clone().requires_grad_()
        [expected] = torch.autograd.grad(drift.lpo_drift(rule, own, gain[index]).sum(), own)
        assert torch.allclose(found[index], expected, atol=1e-12)


def test_advantages_are_the_generalised_ones(rollout: Rollout) -> None:
    rewards, terminals = (x.flatten(0, 1) for x in (rollout.rewards, rollout.terminals))
    values = drawn((CANDIDATES * AGENTS, STEPS + 1, LANES), "values")
    found = candidate_rules.advantages(rewards, terminals, values, 0.9, 0.8)
    for index in range(len(values)):
        expected = generalised_advantages(
            rewards[index].numpy(), terminals[index].numpy(), values[index].numpy(), 0.9, 0.8
        )
        assert torch.allclose(found[index], torch.tensor(expected), atol=1e-12)
