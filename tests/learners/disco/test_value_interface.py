"""Between scalars and categorical values: transforms, projections, readouts."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rulescope.learners.disco.value_interface import (
    TwoHot,
    ValueInterface,
    effective_bins,
    hyperbolic,
    hyperbolic_inverse,
    sign_log,
)
from rulescope.learners.disco_config import AGENTS, INTERFACES, Interface

CPU = torch.device("cpu")
MODERATE = st.floats(-1e5, 1e5, allow_nan=False)


def make(interface: str | Interface = "default", bundle: str = "historical") -> ValueInterface:
    config = INTERFACES[interface] if isinstance(interface, str) else interface
    return ValueInterface(config, AGENTS[bundle], CPU)


def double(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def mean(weights: Tensor, bound: float = 300.0) -> Tensor:
    return weights @ torch.linspace(-bound, bound, weights.shape[-1], dtype=torch.float64)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (0.0, 0.0),
        (1.0, 0.4152135624),
        (1000.0, 31.6385840391),
        (-0.001, -0.0005008751),
        (1e6, 1999.0005),
    ],
)
def test_transform_of_known_values(x: float, expected: float) -> None:
    assert hyperbolic(double(x)).item() == pytest.approx(expected, rel=1e-7, abs=1e-10)


@pytest.mark.parametrize("variant", ["plain", "clamped"])
@given(x=st.floats(-1e6, 1e6, allow_nan=False))
def test_inverse_undoes_the_transform(variant: str, x: float) -> None:
    back = hyperbolic_inverse(hyperbolic(double(x)), variant).item()
    assert back == pytest.approx(x, rel=1e-11, abs=1e-12)


@given(x=MODERATE)
def test_transform_is_odd_and_monotone(x: float) -> None:
    pair = hyperbolic(double(x, -x, x + 1e-3))
    assert pair[0] == -pair[1]
    assert pair[2] > pair[0]


@given(y=st.floats(-1e-3, 1e-3))
def test_clamped_inverse_never_changes_sign_in_float32(y: float) -> None:
    value = hyperbolic_inverse(torch.tensor(y), "clamped").item()
    assert value * y >= 0.0


@given(x=MODERATE)
def test_sign_log_variants_agree(x: float) -> None:
    expected = math.copysign(math.log1p(abs(x)), x)
    for variant in ("log", "log1p"):
        assert sign_log(double(x), variant).item() == pytest.approx(expected, abs=1e-15, rel=1e-14)


def test_sign_log_variants_differ_in_float32_near_zero() -> None:
    tiny = torch.tensor(1e-9)
    assert sign_log(tiny, "log").item() == 0.0
    assert sign_log(tiny, "log1p").item() == pytest.approx(1e-9)


@pytest.mark.parametrize(
    ("interface", "value", "atom", "upper"),
    [
        ("default", 1.0, 300, 0.4152135624),
        ("support30", 1.0, 304, 0.1521356237),
        ("default", -2.5, 299, 0.1266713066),
        ("default", 1e6, 600, 0.0),
        ("default", -1e6, 0, 0.0),
        ("linear", 1.0, 301, 0.0),
        ("linear", -299.25, 0, 0.75),
        ("default", 0.0, 300, 0.0),
    ],
)
def test_two_hot_of_known_values(interface: str, value: float, atom: int, upper: float) -> None:
    weights = make(interface).project(double(value)).dense(601)[0]
    assert weights[atom].item() == pytest.approx(1.0 - upper, abs=1e-10)
    if upper:
        assert weights[atom + 1].item() == pytest.approx(upper, abs=1e-10)
    assert int((weights > 1e-12).sum()) == (2 if upper else 1)


def test_offset_two_hot_differs_by_the_constant_in_its_denominator() -> None:
    weights = make("default", "reference").project(double(1.0)).dense(601)[0]
    assert weights[300].item() == pytest.approx(0.584781, abs=5e-7)
    assert weights[301].item() == pytest.approx(0.415219, abs=5e-7)
    weights = make("support30", "reference").project(double(1.0)).dense(601)[0]
    assert weights[304].item() == pytest.approx(0.847780, abs=5e-7)
    assert weights[305].item() == pytest.approx(0.152220, abs=5e-7)


@pytest.mark.parametrize(("interface", "bundle"), list(product(INTERFACES, AGENTS)))
@settings(max_examples=30)
@given(values=st.lists(st.floats(-1e7, 1e7), min_size=1, max_size=5))
def test_weights_are_a_distribution(interface: str, bundle: str, values: list[float]) -> None:
    for dtype in (torch.float64, torch.float32):
        weights = make(interface, bundle).project(torch.tensor(values, dtype=dtype)).dense(601)
        assert weights.shape == (len(values), 601)
        assert weights.sum(-1).tolist() == pytest.approx([1.0] * len(values), abs=1e-6)
        assert weights.isfinite().all()


@given(y=st.floats(-300, 300))
def test_exact_projection_preserves_the_mean(y: float) -> None:
    weights = make().project_coordinates(double(y)).dense(601)
    assert mean(weights).item() == pytest.approx(y, abs=1e-10)


@given(y=st.floats(-300, 300))
def test_offset_projection_is_at_most_its_constant_too_high(y: float) -> None:
    weights = make("default", "reference").project_coordinates(double(y)).dense(601)
    assert -1e-9 <= mean(weights).item() - y <= 1e-5 + 1e-9


@pytest.mark.parametrize("bundle", AGENTS)
@pytest.mark.parametrize(("coordinate", "atom"), [(-1e9, 0), (-300.0, 0), (300.0, 600), (1e9, 600)])
def test_ends_of_the_support(bundle: str, coordinate: float, atom: int) -> None:
    for dtype in (torch.float64, torch.float32):
        point = torch.tensor([coordinate], dtype=dtype)
        weights = make("default", bundle).project_coordinates(point).dense(601)[0]
        assert weights[atom].item() == pytest.approx(1.0)


@pytest.mark.parametrize("bundle", AGENTS)
@pytest.mark.parametrize("interface", INTERFACES)
def test_an_atom_reads_out_as_its_own_value(interface: str, bundle: str) -> None:
    chosen = make(interface, bundle)
    atoms = torch.tensor([0, 17, 300, 301, 555, 600])
    one_hot = torch.nn.functional.one_hot(atoms, 601).double()
    bound = chosen.config.bound
    coordinates = torch.linspace(-bound, bound, 601, dtype=torch.float64)[atoms]
    assert torch.allclose(chosen.readout(one_hot), chosen.inverse(coordinates), atol=1e-10)
    assert torch.allclose(chosen.transform(chosen.readout(one_hot)), coordinates, atol=1e-10)


@pytest.mark.parametrize("interface", INTERFACES)
@given(value=st.floats(-25, 25))
def test_readout_undoes_the_exact_projection(interface: str, value: float) -> None:
    chosen = make(interface)
    weights = chosen.project(double(value)).dense(601)
    assert chosen.readout(weights).item() == pytest.approx(value, abs=1e-9)


def test_readout_takes_the_expectation_before_the_inverse() -> None:
    weights = torch.zeros(601, dtype=torch.float64)
    weights[[300, 310]] = 0.5
    assert make().readout(weights).item() == pytest.approx(
        hyperbolic_inverse(double(5.0)).item(), rel=1e-12
    )


def test_linear_interface_does_not_transform() -> None:
    chosen = make("linear")
    assert chosen.transform(double(12.5)).item() == 12.5
    assert chosen.inverse(double(12.5)).item() == 12.5


def test_dense_adds_where_both_atoms_are_one() -> None:
    pair = TwoHot(torch.tensor([2]), torch.tensor([2]), double(-3.0))
    assert pair.dense(4)[0].tolist() == [0.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([1.0] * 601, 601.0),
        ([0.5, 0.5], 2.0),
        ([0.75, 0.25], 1.7547653506),
        ([3.0, 1.0], 1.7547653506),
        ([0.0, 1.0, 0.0], 1.0),
    ],
)
def test_effective_bins_of_known_distributions(weights: list[float], expected: float) -> None:
    assert effective_bins(double(*weights)) == pytest.approx(expected, rel=1e-9)
