"""OPEN as an optimiser of torch's."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from learners.open_golden import ACTOR, CRITIC, HERE, Content, flat
from rulescope.core import arrays
from rulescope.rules.open import OPEN
from rulescope.rules.rule_weights import OPEN_KEY, RuleWeights, load


def mlp(*sizes: int) -> nn.Sequential:
    modules: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        modules += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*modules[:-1])


def pair(seed: int = 0) -> tuple[nn.Sequential, nn.Sequential]:
    torch.manual_seed(seed)
    return mlp(5, 4, 4, 3), mlp(5, 4, 4, 1)


def optimiser(actor: nn.Module, critic: nn.Module) -> OPEN:
    noise = torch.Generator().manual_seed(7)
    return OPEN(
        actor, critic, "open-random:11", updates=3, epochs=2, minibatches=2, generator=noise
    )


def descend(actor: nn.Module, critic: nn.Module, optim: OPEN, steps: int, start: int = 0) -> None:
    for turn in range(start, start + steps):
        torch.manual_seed(100 + turn)
        seen = torch.randn(32, 5)
        loss = actor(seen).square().mean() + critic(seen).square().mean()
        optim.zero_grad()
        loss.backward()
        optim.step()


def linears(network: nn.Module) -> list[nn.Linear]:
    return [module for module in network.modules() if isinstance(module, nn.Linear)]


def filled(network: nn.Module, data: Content, prefix: str, names: list[str]) -> None:
    """Copy golden tensors (kernels are [inputs, outputs]) to a network's parameters."""
    for place, layer in enumerate(linears(network)):
        bias, kernel = (data[f"{prefix}/{name}"] for name in names[2 * place : 2 * place + 2])
        layer.weight.data.copy_(torch.tensor(kernel.T))
        layer.bias.data.copy_(torch.tensor(bias))


def test_its_steps_are_the_original_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients and activities are put in its way; the rest is its own."""
    data = arrays.read(HERE / "tiny_randS_live.npz")
    actor, critic = pair()
    filled(actor, data, "p0", ACTOR)
    filled(critic, data, "p0", CRITIC)
    rule = RuleWeights("golden", {OPEN_KEY: data["theta"]}, "", "")
    optim = OPEN(actor, critic, rule, updates=3, epochs=2, minibatches=2, max_norm=None)
    for turn in range(5):
        at = f"s{turn}"
        holders = pair()
        filled(holders[0], data, f"{at}/grad", ACTOR)
        filled(holders[1], data, f"{at}/grad", CRITIC)
        for network, holder in zip((actor, critic), holders, strict=True):
            for param, gradient in zip(network.parameters(), holder.parameters(), strict=True):
                param.grad = gradient.data.clone()
        for network, name in ((actor, "actor"), (critic, "critic")):
            for place, layer in enumerate(linears(network)):
                optim._activity[id(layer)] = torch.tensor(data[f"{at}/act/{name}{place}"])
        noise = pair()[0]
        filled(noise, data, f"{at}/noise", ACTOR)
        drawn = torch.cat([p.data.reshape(-1) for p in noise.parameters()])
        monkeypatch.setattr(torch, "randn", lambda *_, drawn=drawn, **__: drawn)
        optim.step()
        for network, names in ((actor, ACTOR), (critic, CRITIC)):
            found = [t.T if t.ndim == 2 else t for t in own(network)]
            both = torch.cat([t.reshape(-1) for t in found])
            torch.testing.assert_close(both, flat(data, f"{at}/param", names), rtol=0, atol=1e-7)


def own(network: nn.Module) -> list[Tensor]:
    """Return the parameters in the order of the golden arrays: bias first."""
    return [part.data for layer in linears(network) for part in (layer.bias, layer.weight)]


def test_saved_and_loaded_it_continues_bit_identically() -> None:
    whole, parts, again = pair(), pair(), pair(seed=1)
    descend(*whole, optimiser(*whole), steps=6)
    first = optimiser(*parts)
    descend(*parts, first, steps=3)
    for fresh, trained in zip(again, parts, strict=True):
        fresh.load_state_dict(trained.state_dict())
    second = optimiser(*again)
    second.load_state_dict(first.state_dict())
    generator = first._generator
    assert generator is not None
    second._generator = torch.Generator()
    second._generator.set_state(generator.get_state())
    descend(*again, second, steps=3, start=3)
    for one, other in zip(whole, again, strict=True):
        for mine, yours in zip(one.parameters(), other.parameters(), strict=True):
            assert torch.equal(mine, yours)
    assert second.param_groups[0]["steps"] == 6


def test_its_state_is_what_the_rule_works_on() -> None:
    actor, critic = pair()
    optim = optimiser(actor, critic)
    first = linears(actor)[0].weight
    assert optim.state[first]["carry"].shape == (4, 5, 8)
    assert optim.state[first]["momenta"].shape == (4, 5, 6)
    descend(actor, critic, optim, steps=1)
    assert optim.state[first]["carry"].any()
    optim.zero_carry()
    assert not optim.state[first]["carry"].any()
    assert optim.state[first]["momenta"].any()


def test_activity_is_that_of_the_pass_that_is_differentiated() -> None:
    actor, critic = pair()
    optim = optimiser(actor, critic)
    with pytest.raises(RuntimeError, match="needs a forward pass of every layer"):
        optim.step()
    seen = torch.randn(32, 5)
    actor(seen)
    critic(seen)
    hidden = torch.relu(linears(actor)[0](seen)).abs().mean(0).detach()
    found = optim._activity[id(linears(actor)[0])]
    torch.testing.assert_close(found, hidden)
    with torch.no_grad():
        actor(100 * seen)
    assert optim._activity[id(linears(actor)[0])] is found or torch.equal(
        optim._activity[id(linears(actor)[0])], hidden
    )
    last = linears(actor)[-1]
    assert float(optim._activity[id(last)].min()) > 0.0


def test_only_dense_layers_and_open_rules_are_taken() -> None:
    actor, critic = pair()
    with pytest.raises(ValueError, match="dense layers only"):
        optimiser(nn.Sequential(nn.Conv1d(1, 2, 3), actor), critic)
    with pytest.raises(ValueError, match="'random:0' is not an OPEN rule"):
        OPEN(actor, critic, load("random:0"), updates=3)


def test_a_closure_s_loss_is_returned_and_a_missing_critic_is_no_matter() -> None:
    actor, _ = pair()
    optim = OPEN(actor, rule="open-random-large:12", updates=2)
    before = [param.clone() for param in actor.parameters()]

    def closure() -> Tensor:
        optim.zero_grad()
        loss: Tensor = actor(torch.ones(3, 5)).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    assert float(optim.step(closure).detach()) > 0.0
    moved = [not torch.equal(p, q) for p, q in zip(before, actor.parameters(), strict=True)]
    assert all(moved)
    assert all(bool(np.isfinite(p.detach().numpy()).all()) for p in actor.parameters())
