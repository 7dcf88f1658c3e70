"""Carriers of tensors and modules: each name, shape and bit comes back, all else is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from rulescope.core.arrays import bit_equal
from rulescope.core.errors import SpecError
from rulescope.kit import join_carriers, module_carrier, tensors_carrier


def tensors() -> dict[str, Tensor]:
    return {
        "float": torch.tensor([[1.5, -0.0], [float("inf"), 1e-45]]),
        "double": torch.tensor(1 / 3, dtype=torch.float64),
        "count": torch.tensor([2**62 + 1, -1]),
        "flag": torch.tensor([True, False]),
        "brain": torch.tensor([1.0078125, -3e38], dtype=torch.bfloat16),
        "half": torch.tensor([6.1e-5, 65504.0], dtype=torch.float16),
    }


class Shared(nn.Module):
    """A layer, running statistics, and one weight under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.torso = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        self.head = nn.Linear(4, 4, bias=False)
        self.tied = nn.Linear(4, 4, bias=False)
        self.tied.weight = self.head.weight


def test_tensors_of_every_type_come_back_to_the_bit() -> None:
    original, other = tensors(), {name: torch.zeros_like(each) for name, each in tensors().items()}
    one, two = tensors_carrier(original), tensors_carrier(other)
    content = one.get()
    two.set(content)
    assert bit_equal(two.get(), content)
    for name, each in original.items():
        assert torch.equal(each, other[name])
        assert content[name].dtype.kind in "biuf"


def test_a_read_is_a_copy_and_a_write_goes_into_the_tensor_that_is_there() -> None:
    held = {"h": torch.ones(2)}
    carrier = tensors_carrier(held)
    content = carrier.get()
    content["h"][:] = 7.0
    assert held["h"].tolist() == [1.0, 1.0]
    carrier.set(content)
    content["h"][:] = 8.0
    assert held["h"].tolist() == [7.0, 7.0]
    held["h"] = torch.full((2,), 3.0)  # a learner may put another tensor in its place
    assert carrier.get()["h"].tolist() == [3.0, 3.0]


def test_names_shapes_and_types_are_checked_before_anything_is_written() -> None:
    held = {"output": torch.ones(2), "cell": torch.ones(3)}
    carrier = tensors_carrier(held)
    valid = {name: np.zeros_like(each) for name, each in carrier.get().items()}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"output": valid["output"]}, "the array 'cell' is missing"),
        (valid | {"cel": np.zeros(3)}, "no array 'cel'; nearest: 'cell'; valid: cell, output"),
        (valid | {"cell": np.zeros(2, np.float32)}, r"'cell' is float32 \[2\] .* float32 \[3\]"),
        (valid | {"cell": np.zeros(3)}, r"'cell' is float64 \[3\] and must be float32 \[3\]"),
    ]
    for content, message in cases:
        with pytest.raises(SpecError, match=f"tensors_carrier: {message}"):
            carrier.set(content)
        assert bool(held["output"].all())
    held["cell"] = torch.ones(1, 3)
    with pytest.raises(SpecError, match=r"changed since .*: 'cell' is float32 \[1, 3\]"):
        carrier.get()


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (torch.zeros(1, dtype=torch.complex64), "complex64, which a record cannot hold"),
        (torch.eye(2).to_sparse(), "sparse"),
        (np.zeros(2), "not a tensor"),
    ],
)
def test_what_no_array_can_hold_is_refused(tensor: Any, message: str) -> None:
    with pytest.raises(SpecError, match=f"'x' is .*{message}"):
        tensors_carrier({"x": tensor})
    with pytest.raises(SpecError, match="'' is not a name"):
        tensors_carrier({"": torch.zeros(1)})


def test_a_module_has_its_parameters_and_buffers_by_name_each_once() -> None:
    module, other = Shared(), Shared()
    carrier = module_carrier(module)
    assert set(carrier.get()) == {
        "torso.0.weight",
        "torso.0.bias",
        "torso.1.weight",
        "torso.1.bias",
        "torso.1.running_mean",
        "torso.1.running_var",
        "torso.1.num_batches_tracked",
        "head.weight",
    }
    module.torso(torch.arange(15.0).view(5, 3))
    module_carrier(other).set(carrier.get())
    for name, each in module.state_dict().items():
        assert torch.equal(each, other.state_dict()[name])
    assert other.tied.weight is other.head.weight
    assert other.head.weight.requires_grad
    other.double()  # buffers are replaced by this, parameters are not
    with pytest.raises(SpecError, match=r"'torso.0.weight' is float64"):
        module_carrier(module).set(module_carrier(other).get())


def test_parts_of_a_module_are_chosen_by_name() -> None:
    module = Shared()
    part = module_carrier(module, ["torso.1", "head.weight"])
    assert list(part.get()) == [
        "torso.1.weight",
        "torso.1.bias",
        "head.weight",
        "torso.1.running_mean",
        "torso.1.running_var",
        "torso.1.num_batches_tracked",
    ]
    with pytest.raises(SpecError, match=r"names: no 'torso.2'; nearest: 'torso"):
        module_carrier(module, ["torso.2"])
    with pytest.raises(SpecError, match="must be a list of names"):
        module_carrier(module, "torso")


def test_a_module_whose_state_is_not_all_in_tensors_is_refused() -> None:
    class Counting(nn.Linear):
        def get_extra_state(self) -> Any:
            return 3

    with pytest.raises(SpecError, match="0 has a state that is not in tensors"):
        module_carrier(nn.Sequential(Counting(1, 1)))
    with pytest.raises(SpecError, match="has no shape yet"):
        module_carrier(nn.LazyLinear(3))


def test_joined_carriers_are_replaced_all_or_not_at_all() -> None:
    one, two = {"x": torch.ones(1)}, {"x": torch.ones(2)}
    joined = join_carriers({"one": tensors_carrier(one), "two": tensors_carrier(two)})
    content = joined.get()
    assert {name: each.tolist() for name, each in content.items()} == {
        "one/x": [1.0],
        "two/x": [1.0, 1.0],
    }
    zeros = {name: np.zeros_like(each) for name, each in content.items()}
    for wrong in (zeros | {"two/x": np.zeros(3, np.float32)}, zeros | {"to/x": zeros["two/x"]}):
        with pytest.raises(SpecError):
            joined.set(wrong)
        assert bit_equal(joined.get(), content)
    joined.set(zeros)
    assert not one["x"].any()
    assert not two["x"].any()
    with pytest.raises(SpecError, match="'a/b' is not a name without '/'"):
        join_carriers({"a/b": tensors_carrier(one)})
