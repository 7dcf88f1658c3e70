"""Parity with the original program, and proof that the comparisons can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rulescope.learners import adam
from rulescope.learners.disco import features, losses, update, value_estimates, value_interface
from rulescope.learners.disco.batch import loss_mask
from rulescope.learners.disco.features import ActionEncoder
from rulescope.learners.disco.rule_network import Gates
from rulescope.learners.disco_config import Conventions
from rulescope.numerics import output_parity, parity_checks, update_parity
from rulescope.numerics.golden import Golden
from rulescope.numerics.tolerances import TOLERANCES, Comparison

GOLDEN = Path(__file__).parents[1] / "golden" / "disco"
STORED = [key for key in TOLERANCES if not key[0].startswith(("live", "rule "))]
"""Kinds of Disco's stored arrays. (A live comparison runs the original; those of further rules are
in test_further_parity.)"""
Check = Callable[[Golden], Iterator[Comparison]]


@cache
def golden() -> Golden:
    return Golden(GOLDEN)


@cache
def everything() -> tuple[Comparison, ...]:
    return tuple(parity_checks.compare_all(golden()))


def faults(comparisons: Iterator[Comparison]) -> list[str]:
    return [f"{item.output}: {item.relative:.1e}" for item in comparisons if not item.passed]


@pytest.mark.parametrize(("kind", "precision"), STORED)
def test_every_kind_agrees_with_the_original(kind: str, precision: str) -> None:
    chosen = [item for item in everything() if (item.kind, item.precision) == (kind, precision)]
    assert len(chosen) >= 6
    assert faults(iter(chosen)) == []


def test_every_comparison_has_a_tolerance() -> None:
    found = {(item.kind, item.precision) for item in everything()}
    assert found == set(STORED)
    assert len({(item.kind, item.precision, item.output) for item in everything()}) > 700


def test_another_name_of_the_device_changes_no_comparison() -> None:
    assert tuple(parity_checks.compare_all(Golden(GOLDEN, "cpu:0"))) == everything()


def test_float64_errors_are_rounding() -> None:
    """Most are ten thousand times within tolerance: the computation is the same."""
    exact = [item.relative for item in everything() if item.precision == "float64"]
    assert float(np.median(exact)) < 1e-13


def fails(kind: Check) -> bool:
    """Return whether some comparison of ``kind`` fails; stops at the first."""
    return any(not item.passed for item in kind(golden()))


def override(module: Any, name: str, monkeypatch: pytest.MonkeyPatch, **overrides: Any) -> None:
    """Override keyword arguments in every call of ``module.name``."""
    original = getattr(module, name)

    def wrong(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **(kwargs | overrides))

    monkeypatch.setattr(module, name, wrong)


@pytest.mark.parametrize(
    "overrides", [{"discount": 0.99}, {"trace": 1.0}, {"decay": 0.9}, {"convention": "skip"}]
)
@pytest.mark.parametrize(
    ("module", "kind"),
    [
        (output_parity, output_parity.compare_forward),
        (output_parity, output_parity.compare_value_estimator),
        (update, update_parity.compare_inner_steps),
    ],
)
def test_a_wrong_value_estimate_fails(
    monkeypatch: pytest.MonkeyPatch, module: Any, kind: Check, overrides: dict[str, Any]
) -> None:
    override(module, "estimate", monkeypatch, **overrides)
    assert fails(kind)


def torch_order(stored: Tensor, forget_bias: float) -> Tensor:
    """Read the gates in torch's order i, f, g, o, which is not the stored one."""
    admit, forget, candidate, emit = stored.chunk(4, dim=-1)
    return torch.cat([admit, forget + forget_bias, emit, 2.0 * candidate], dim=-1)


def without_forget_bias(stored: Tensor, forget_bias: float) -> Tensor:
    admit, candidate, forget, emit = stored.chunk(4, dim=-1)
    return torch.cat([admit, forget, emit, 2.0 * candidate], dim=-1) + 0.0 * forget_bias


@pytest.mark.parametrize("order", [torch_order, without_forget_bias])
@pytest.mark.parametrize(
    "kind",
    [
        output_parity.compare_forward,
        update_parity.compare_inner_steps,
        update_parity.compare_meta_gradients,
    ],
)
def test_wrong_gates_fail(
    monkeypatch: pytest.MonkeyPatch, kind: Check, order: Callable[..., Tensor]
) -> None:
    monkeypatch.setattr(Gates, "_ordered", staticmethod(order))
    assert fails(kind)


def test_features_of_the_other_network_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "NETWORKS", features.NETWORKS[::-1])
    assert fails(output_parity.compare_forward)


def test_an_action_encoder_without_its_last_relu_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def linear(self: ActionEncoder, channels: Tensor) -> Tensor:
        for k, (weight, mean_weight, bias) in enumerate(self._blocks):
            pooled = channels.mean(-2, keepdim=True)
            channels = channels @ weight + pooled @ mean_weight + bias
            channels = channels.relu() if k == 0 else channels
        return channels

    monkeypatch.setattr(ActionEncoder, "__call__", linear)
    assert fails(output_parity.compare_forward)


@pytest.mark.parametrize("mask", ["none", "in-trajectory"])
def test_another_loss_mask_fails(monkeypatch: pytest.MonkeyPatch, mask: str) -> None:
    original = loss_mask
    monkeypatch.setattr(update, "loss_mask", lambda batch, _: original(batch, mask))
    assert fails(update_parity.compare_inner_steps)


def test_reversed_divergence_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    original = losses.kl
    monkeypatch.setattr(losses, "kl", lambda target, logits: original(logits, target))
    assert fails(update_parity.compare_inner_steps)


def test_another_clip_of_the_direction_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adam, "MAX_DIRECTION", 0.5)
    assert fails(update_parity.compare_inner_steps)


def test_a_variance_without_its_mean_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    override(value_estimates, "normalise", monkeypatch, centre=False)
    assert fails(output_parity.compare_value_estimator)


@pytest.mark.parametrize(
    "wrong", [{"two_hot": "exact"}, {"inverse": "clamped"}], ids=["two_hot", "inverse"]
)
def test_the_other_arithmetic_of_the_interface_is_detected_where_it_differs(
    monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any]
) -> None:
    """The projections differ in any precision; the inverses agree but in float32."""
    reference = {"inverse": "plain", "two_hot": "offset"}
    monkeypatch.setattr(output_parity, "REFERENCE", Conventions(**(reference | wrong)))
    failed = [item for item in output_parity.compare_value_interface(golden()) if not item.passed]
    if "two_hot" in wrong:
        assert {item.precision for item in failed} >= {"float64"}
    else:
        assert [item for item in failed if item.precision == "float64"] == []


def test_a_wrong_epsilon_of_the_transform_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_interface, "EPSILON", 1.1e-3)
    assert fails(output_parity.compare_value_interface)
