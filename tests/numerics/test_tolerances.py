from __future__ import annotations

import math

import numpy as np
import pytest

from rulescope.numerics.tolerances import (
    ACCELERATOR_FACTOR,
    Comparison,
    compare,
    summarise,
    widen_for,
)


def forward(
    precision: str, actual: object, expected: object, scale: float | None = None
) -> Comparison:
    return compare(
        "forward", precision, "a/b", np.asarray(actual), np.asarray(expected), scale=scale
    )


def test_float64_errors_are_relative_to_the_largest_value() -> None:
    found = forward("float64", [0.01, 0.02 + 1e-6], [0.01, 0.02])
    assert found.absolute == pytest.approx(1e-6)
    assert found.relative == pytest.approx(5e-5)
    assert not found.passed


def test_float32_errors_of_small_values_are_absolute() -> None:
    assert forward("float32", [1e-5], [0.0]).relative == pytest.approx(1e-5)
    assert forward("float32", [100.001], [100.0]).relative == pytest.approx(1e-5)


def test_a_given_scale_replaces_the_default() -> None:
    assert forward("float64", [2.0], [1.0], scale=1e12).passed


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_nan_and_infinity_never_pass(precision: str) -> None:
    assert not forward(precision, [math.nan], [1.0]).passed
    assert not forward(precision, [1.0], [math.nan]).passed
    assert not forward(precision, [math.inf], [1.0]).passed


def test_shapes_must_agree() -> None:
    found = forward("float64", [1.0, 1.0], [1.0])
    assert not found.passed
    assert found.absolute == math.inf


def test_zeros_agree_only_up_to_rounding() -> None:
    assert forward("float64", [0.0], [0.0]).passed
    assert not forward("float64", [1e-12], [0.0]).passed
    assert forward("float64", [], []).passed


def test_a_summary_has_one_line_for_each_kind_and_precision() -> None:
    items = [
        Comparison("forward", "float64", "x: pi", 1.0, 1e-12, 1e-9),
        Comparison("forward", "float64", "y: pi", 3.0, 1e-10, 1e-9),
        Comparison("forward", "float32", "x: q", 1.0, 1.0, 5e-5),
    ]
    first, second = summarise(items)
    assert (first.outputs, first.comparisons, first.worst) == (1, 2, "y: pi")
    assert (first.absolute, first.relative, first.passed) == (3.0, 1e-10, True)
    assert not second.passed


def test_a_summary_shows_a_nan() -> None:
    items = [
        Comparison("forward", "float64", "fine", 1.0, 5.0, 1e-9),
        Comparison("forward", "float64", "broken", math.nan, math.nan, 1e-9),
    ]
    (line,) = summarise(items)
    assert line.worst == "broken"
    assert math.isnan(line.relative)
    assert not line.passed


def test_rounding_around_zero_passes_at_any_relative_error() -> None:
    zero = np.array([0.0, 3e-17])
    noise = compare("meta-gradient", "float64", "x", zero, np.zeros(2), 1e-17)
    assert noise.relative > noise.tolerance
    assert noise.passed
    assert compare("gradients", "float64", "x", zero, np.zeros(2)).passed
    wrong = compare("meta-gradient", "float64", "x", zero + 1e-9, np.zeros(2), 1e-17)
    assert not wrong.passed
    [line] = summarise([noise, compare("meta-gradient", "float64", "y", [1.0 + 1e-10], [1.0])])
    assert line.passed
    assert line.worst == "y"
    assert not summarise([noise, wrong])[0].passed


def test_the_size_of_rounding_follows_from_the_largest_numbers() -> None:
    error = [1e-12]
    assert not compare("meta-gradient", "float64", "x", error, [0.0], 1e-12).passed
    assert compare("meta-gradient", "float64", "x", error, [0.0], 1e-12, magnitude=1e3).passed
    assert not compare("meta-gradient", "float64", "x", [np.nan], [0.0], magnitude=1e3).passed


def test_tolerances_of_other_devices_are_wider_by_one_stated_factor() -> None:
    item = Comparison("forward", "float32", "pi", 1e-4, 1e-4, 5e-5, floor=1e-6)
    for name in ("cpu", "cpu:0"):
        assert widen_for(item, name) is item
    for name in ("cuda", "cuda:1", "mps"):
        wider = widen_for(item, name)
        assert wider.tolerance == ACCELERATOR_FACTOR * item.tolerance
        assert wider.floor == ACCELERATOR_FACTOR * item.floor
        assert (item.passed, wider.passed) == (False, True)
