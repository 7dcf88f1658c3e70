"""An optimiser that is given the state of another continues as the other does, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn, optim

from rulescope.core.arrays import bit_equal
from rulescope.core.errors import SpecError
from rulescope.kit import optimiser_carrier

Named = list[tuple[str, nn.Parameter]]
Make = Callable[[Any], optim.Optimizer]

MAKERS: dict[str, Make] = {
    "adam": lambda params: optim.Adam(params, 0.1),
    "amsgrad": lambda params: optim.AdamW(params, 0.1, amsgrad=True),
    "fused": lambda params: optim.Adam(params, 0.1, fused=True),
    "adagrad": lambda params: optim.Adagrad(params, 0.1, initial_accumulator_value=0.5),
    "adafactor": lambda params: optim.Adafactor(params, 0.1),
    "asgd": lambda params: optim.ASGD(params, 0.1, t0=1),
    "nadam": lambda params: optim.NAdam(params, 0.1),
    "radam": lambda params: optim.RAdam(params, 0.1),
    "rmsprop": lambda params: optim.RMSprop(params, 0.1, momentum=0.9, centered=True),
    "rprop": lambda params: optim.Rprop(params, 0.1),
    "sgd": lambda params: optim.SGD(params, 0.1),
    "momentum": lambda params: optim.SGD(params, 0.1, momentum=0.9, dampening=0.5),
}


class Counter(optim.Optimizer):
    """State in a number of Python, in a tensor, and in what depends on the parameter's rows."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, {})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # noqa: ARG002
        for param in self.param_groups[0]["params"]:
            state = self.state[param]
            state["turn"] = state.get("turn", 0) + 1
            state["rows"] = state.get("rows", torch.zeros(len(param))) + param.grad.flatten(1).sum(
                1
            )
            param -= 0.1 * state["turn"] * state["rows"].view(-1, *[1] * (param.dim() - 1))


MAKERS["numbers"] = Counter


def parameters() -> Named:
    generator = torch.Generator().manual_seed(3)
    shapes = {"weight": (3, 2), "bias": (3, 1)}
    return [
        (name, nn.Parameter(torch.randn(shape, generator=generator)))
        for name, shape in shapes.items()
    ]


def descend(optimiser: optim.Optimizer, named: Named, turn: int) -> None:
    generator = torch.Generator().manual_seed(turn)
    for _, each in named:
        each.grad = torch.randn(each.shape, generator=generator)
    optimiser.step()


def values(named: Named) -> list[Any]:
    return [each.detach().clone() for _, each in named]


@pytest.mark.parametrize("stop", [0, 1, 3])
@pytest.mark.parametrize("name", MAKERS)
def test_another_optimiser_continues_from_the_arrays(name: str, stop: int) -> None:
    make, named = MAKERS[name], parameters()
    untouched, bare = parameters(), MAKERS[name]
    plain = bare(untouched)
    optimiser = make(named)
    carrier = optimiser_carrier(optimiser)
    first = carrier.get()
    for turn in range(stop):
        descend(optimiser, named, turn)
    content = carrier.get()
    assert {key: (each.shape, each.dtype) for key, each in first.items()} == {
        key: (each.shape, each.dtype) for key, each in content.items()
    }
    successor = parameters()
    with torch.no_grad():
        for (_, into), value in zip(successor, values(named), strict=True):
            into.copy_(value)
    fresh = make(successor)
    taken = optimiser_carrier(fresh)
    taken.set(content)
    assert bit_equal(taken.get(), content)
    for turn in range(stop, 6):
        descend(optimiser, named, turn)
        descend(fresh, successor, turn)
    for turn in range(6):  # and an optimiser without any carrier does the same
        descend(plain, untouched, turn)
    for one, other, third in zip(values(named), values(successor), values(untouched), strict=True):
        assert torch.equal(one, other)
        assert torch.equal(one, third)
    assert bit_equal(carrier.get(), taken.get())


@pytest.mark.parametrize("name", [each for each in MAKERS if each != "adagrad"])
def test_a_carrier_of_zeros_is_a_new_optimiser(name: str) -> None:
    named, fresh = parameters(), parameters()
    optimiser = MAKERS[name](named)
    carrier = optimiser_carrier(optimiser)
    descend(optimiser, named, 0)
    zeros = {key: np.zeros_like(each) for key, each in carrier.get().items()}
    carrier.set(zeros)
    assert bit_equal(carrier.get(), zeros)
    with torch.no_grad():
        for (_, one), (_, other) in zip(named, fresh, strict=True):
            other.copy_(one)
    successor = MAKERS[name](fresh)
    descend(optimiser, named, 1)
    descend(successor, fresh, 1)
    for one, other in zip(values(named), values(fresh), strict=True):
        assert torch.equal(one, other)


def test_arrays_are_named_after_parameters_and_steps_are_whole_numbers() -> None:
    named = parameters()
    optimiser = optim.Adam(named)
    carrier = optimiser_carrier(optimiser)
    for turn in range(3):
        descend(optimiser, named, turn)
    content = carrier.get()
    parts = ("step", "exp_avg", "exp_avg_sq")
    assert list(content) == [
        "started",
        *(f"{name}.{part}" for name in ("weight", "bias") for part in parts),
    ]
    assert content["weight.step"].dtype == np.int64
    assert int(content["weight.step"]) == 3
    assert content["started"].tolist() == [True, True]
    np.testing.assert_array_equal(
        content["bias.exp_avg"], optimiser.state[named[1][1]]["exp_avg"].numpy()
    )
    numbered = optimiser_carrier(optim.Adam([each for _, each in parameters()]))
    assert "1.exp_avg" in numbered.get()


def test_a_parameter_without_a_gradient_is_not_started() -> None:
    named = parameters()
    optimiser = optim.Adam(named)
    carrier = optimiser_carrier(optimiser)
    named[0][1].grad = torch.ones(3, 2)
    optimiser.step()
    content = carrier.get()
    assert content["started"].tolist() == [True, False]
    assert not content["bias.exp_avg_sq"].any()
    content["bias.exp_avg"] += 1.0
    with pytest.raises(SpecError, match="started is False for 'bias', but its arrays are not zero"):
        carrier.set(content)


def test_making_a_carrier_changes_nothing() -> None:
    named = parameters()
    before, state = values(named), torch.get_rng_state()
    calls: list[int] = []
    optimiser = optim.Adam(named)
    optimiser.register_step_post_hook(lambda *_: calls.append(1))
    optimiser_carrier(optimiser)
    assert not optimiser.state
    assert not calls
    assert all(each.grad is None for _, each in named)
    assert torch.equal(state, torch.get_rng_state())
    for one, other in zip(before, values(named), strict=True):
        assert torch.equal(one, other)


def test_an_option_must_not_change_unless_it_is_carried() -> None:
    named = parameters()
    optimiser = optim.SGD(named, 0.5, momentum=0.9)
    strict, carrying = optimiser_carrier(optimiser), optimiser_carrier(optimiser, carried=["lr"])
    schedule = optim.lr_scheduler.ExponentialLR(optimiser, 0.5)
    descend(optimiser, named, 0)
    schedule.step()
    for call in (strict.get, lambda: strict.set({})):
        with pytest.raises(SpecError, match=r"lr of parameter group 0 was 0.5 and is now 0.25.*"):
            call()
    content = carrying.get()
    assert content["lr"].tolist() == [0.25]
    fresh = optim.SGD(parameters(), 0.5, momentum=0.9)
    taken = optimiser_carrier(fresh, carried=["lr"])
    taken.set(content)
    assert fresh.param_groups[0]["lr"] == 0.25
    with pytest.raises(SpecError, match="carried: no option 'learning_rate'"):
        optimiser_carrier(optimiser, carried=["learning_rate"])
    with pytest.raises(SpecError, match="carried: nesterov is False, not a number"):
        optimiser_carrier(optimiser, carried=["nesterov"])


def test_what_cannot_be_carried_is_refused() -> None:
    with pytest.raises(SpecError, match="a copy of LBFGS cannot make a step"):
        optimiser_carrier(optim.LBFGS([each for _, each in parameters()]))

    class Listing(Counter):
        def step(self, closure: Any = None) -> None:  # type: ignore[override]  # noqa: ARG002
            for each in self.param_groups[0]["params"]:
                self.state[each]["past"] = [each.grad]

    with pytest.raises(SpecError, match="the state 'past' of Listing is <class 'list'>"):
        optimiser_carrier(Listing(parameters()))
    optimiser = optim.Adam(parameters())
    carrier = optimiser_carrier(optimiser)
    with pytest.raises(SpecError, match=r"the array .weight\.\w+. is missing"):
        carrier.set({"started": np.zeros(2, np.bool_)})
    optimiser.add_param_group({"params": [("late", nn.Parameter(torch.ones(1)))]})
    with pytest.raises(SpecError, match="parameters were added"):
        carrier.get()


def test_a_state_that_changes_its_shape_is_refused() -> None:
    class Growing(Counter):
        def step(self, closure: Any = None) -> None:  # type: ignore[override]  # noqa: ARG002
            for each in self.param_groups[0]["params"]:
                past: Tensor = self.state[each].get("past", torch.zeros(0))
                self.state[each]["past"] = torch.cat([past, torch.ones(1)])

    named = parameters()
    optimiser = Growing(named)
    carrier = optimiser_carrier(optimiser)
    descend(optimiser, named, 0)
    descend(optimiser, named, 1)
    with pytest.raises(
        SpecError, match=r"'weight.past' is float32 \[2\] and must be float32 \[1\]"
    ):
        carrier.get()
