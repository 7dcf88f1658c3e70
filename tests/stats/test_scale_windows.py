"""Scale windows: printed curves, ties, edges, and agreement with a search over all runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rulescope.stats import (
    COMPETENT,
    DataError,
    Window,
    bootstrap,
    half_best,
    scale_window,
    seed_blocks,
    trimmed_mean,
    window_widths,
)
from rulescope.stats.array_checks import FloatArray
from rulescope.stats.scale_windows import WindowKind

NAN = math.nan
SCALES = [1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3]
CATCH_LIVE = [0.828, 0.977, 0.976, 0.994, 0.997, 0.997, 0.996]
CATCH_PIN = [0.004, 0.012, 0.176, 0.991, 0.993, 0.988, 0.995]
LONG_LIVE = [0.144, 0.741, 0.772, 0.961, 0.988, 0.987, 0.988]

curve_values = st.sampled_from([NAN, -0.5, 0.0, 0.1, 0.4, 0.5, 0.8, 0.9, 1.0])
curves = hnp.arrays(np.float64, 7, elements=curve_values)


@pytest.mark.parametrize(
    ("curve", "threshold", "width", "low", "high"),
    [
        (CATCH_LIVE, 0.8, 6, 1e-3, 1e3),
        (CATCH_LIVE, 0.9, 5, 1e-2, 1e3),
        (CATCH_LIVE, 0.4985, 6, 1e-3, 1e3),
        (CATCH_PIN, 0.8, 3, 1, 1e3),
        (LONG_LIVE, 0.7, 5, 1e-2, 1e3),
        (LONG_LIVE, 0.8, 3, 1, 1e3),
        (LONG_LIVE, 0.9, 3, 1, 1e3),
        (LONG_LIVE, 0.494, 5, 1e-2, 1e3),
        ([0.9, 0.9, 0.1, 0.9, 0.9, 0.1, 0.9], 0.8, 1, 1e-3, 1e-2),
        ([0.1, 0.9, 0.1, 0.1, 0.9, 0.9, 0.1], 0.8, 1, 1e1, 1e2),
        ([0.9, 0.1, 0.1, 0.1, 0.1, 0.9, 0.9], 0.8, 1, 1e2, 1e3),
    ],
)
def test_worked_windows(
    curve: list[float], threshold: float, width: float, low: float, high: float
) -> None:
    assert scale_window(SCALES, curve, threshold) == Window(width, low, high, "interval")
    assert window_widths(SCALES, curve, threshold) == width


@pytest.mark.parametrize(
    ("curve", "tau", "width"),
    [(CATCH_LIVE, 0.4985, 6), (CATCH_PIN, 0.4975, 3), (LONG_LIVE, 0.494, 5)],
)
def test_worked_half_best(curve: list[float], tau: float, width: float) -> None:
    assert float(half_best(curve)) == pytest.approx(tau)
    assert window_widths(SCALES, curve, half_best(curve)) == width


def test_singleton_and_none() -> None:
    curve = [0.1, 0.1, 0.1, 0.85, 0.1, 0.1, 0.1]
    assert scale_window(SCALES, curve, 0.8) == Window(0.0, 1.0, 1.0, "singleton")
    none = scale_window(SCALES, [0] * 7, 0.8)
    assert (none.width, none.kind) == (0.0, "none")
    assert math.isnan(none.low)
    assert math.isnan(none.high)
    two = scale_window(SCALES, [0.1, 0.85, 0.1, 0.85, 0.1, 0.1, 0.99], 0.8)
    assert two == Window(0.0, 1e-2, 1e-2, "singleton")


def test_a_score_at_the_threshold_passes_and_one_below_does_not() -> None:
    curve = [0.0, 0.8, np.nextafter(0.8, 0), 0.8, 0.8, 0.0, 0.0]
    assert scale_window(SCALES, curve, 0.8) == Window(1.0, 1.0, 1e1, "interval")


def test_missing_scores_break_a_run() -> None:
    curve = [0.9, 0.9, NAN, 0.9, math.inf, 0.9, 0.9]
    assert scale_window(SCALES, curve, 0.8) == Window(1.0, 1e-3, 1e-2, "interval")
    assert scale_window(SCALES, [NAN] * 7, -5.0).kind == "none"
    assert scale_window(SCALES, [0.9] * 7, NAN).kind == "none"


def test_width_is_in_decades_of_the_grid_not_in_points() -> None:
    window = scale_window([0.5, 1.0, 100.0, 200.0, 400.0], [1, 1, 0, 1, 1], 0.8)
    assert window[1:] == (0.5, 1.0, "interval")
    assert window.width == pytest.approx(math.log10(2))
    window = scale_window([1.0, 2.0, 4.0, 5.0, 500.0], [1, 1, 1, 0, 1], 0.8)
    assert window.width == pytest.approx(math.log10(4))
    window = scale_window([1.0, 2.0, 3.0, 4.0, 400.0], [1, 1, 0, 1, 1], 0.8)
    assert window[1:] == (4.0, 400.0, "interval")
    assert window.width == pytest.approx(2.0)


@pytest.mark.parametrize("base", [2.0, 3.0, 7.0, 1.1])
def test_rounding_of_logarithms_does_not_break_ties(base: float) -> None:
    """log(b^2)-log(b) and log(b)-log(1) differ in the last bit for some bases."""
    grid = base ** np.arange(-9.0, 10.0)
    for first in range(4):
        curve = np.zeros(19)
        for start in range(first, 18, 3):
            curve[start : start + 2] = 1.0
        assert scale_window(grid, curve, 0.5).low == grid[first]


def test_half_of_a_best_score_of_zero_is_no_criterion() -> None:
    stack = [[0.0] * 7, [-1.0] * 6 + [0.0], [NAN] * 7, [NAN] * 6 + [0.2], [-3.0] * 6 + [1e-9]]
    half = half_best(stack, floor=-math.inf)
    np.testing.assert_array_equal(half, [np.inf, np.inf, NAN, 0.1, 5e-10])
    np.testing.assert_array_equal(window_widths(SCALES, stack, half), [0.0] * 5)
    kinds = [scale_window(SCALES, c, tau).kind for c, tau in zip(stack, half, strict=True)]
    assert kinds == ["none", "none", "none", "singleton", "singleton"]


def test_half_of_an_incompetent_best_is_no_criterion() -> None:
    dead, almost, just = [0.09, 0.05, 0.06] + [0.07] * 4, [0.799] * 7, [0.8] + [0.5] * 6
    np.testing.assert_array_equal(half_best([dead, almost, just]), [np.inf, np.inf, 0.4])
    np.testing.assert_array_equal(half_best([dead, almost], floor=0.7), [np.inf, 0.3995])
    stack = [dead, almost, just]
    np.testing.assert_array_equal(window_widths(SCALES, stack, half_best(stack)), [0, 0, 6])
    assert scale_window(SCALES, dead, float(half_best(dead))).kind == "none"


def runs_by_search(curve: list[float], threshold: float) -> Window:
    """Try every run of consecutive points; keep the first of the widest."""
    best = Window(0.0, NAN, NAN, "none")
    for i in range(7):
        for j in range(i, 7):
            if all(score >= threshold for score in curve[i : j + 1]) and (
                best.kind == "none" or j - i > best.width
            ):
                kind: WindowKind = "interval" if j > i else "singleton"
                best = Window(float(j - i), SCALES[i], SCALES[j], kind)
    return best


@given(curve=curves, threshold=st.sampled_from([-1.0, 0.05, 0.5, 0.8, 1.0, 1.5, NAN, math.inf]))
def test_windows_by_search(curve: FloatArray, threshold: float) -> None:
    expected = runs_by_search(curve.tolist(), threshold)
    found = scale_window(SCALES, curve, threshold)
    np.testing.assert_array_equal(found[:3], expected[:3])
    assert found.kind == expected.kind
    assert window_widths(SCALES, curve, threshold) == found.width


@given(curve=curves, a=st.floats(-1, 2), b=st.floats(-1, 2))
def test_a_stricter_threshold_never_widens(curve: FloatArray, a: float, b: float) -> None:
    loose, strict = window_widths(SCALES, curve, [min(a, b), max(a, b)])
    assert strict <= loose


@settings(max_examples=30)
@given(hnp.arrays(np.float64, (4, 3, 7), elements=curve_values))
def test_a_stack_is_its_curves(stack: FloatArray) -> None:
    thresholds = np.array([0.1, 0.5, 0.85])
    widths = window_widths(SCALES, stack, thresholds)
    half = window_widths(SCALES, stack, half_best(stack))
    for i in range(4):
        for j in range(3):
            curve = stack[i, j]
            assert widths[i, j] == scale_window(SCALES, curve, thresholds[j]).width
            assert half[i, j] == scale_window(SCALES, curve, float(half_best(curve))).width


def test_thresholds_broadcast_over_criteria() -> None:
    widths = window_widths(SCALES, [CATCH_LIVE, CATCH_PIN, LONG_LIVE], [[0.7], [0.8], [0.9]])
    np.testing.assert_array_equal(widths, [[6, 3, 5], [6, 3, 3], [5, 3, 3]])


def test_half_best_is_recomputed_in_every_draw() -> None:
    """Arms, scales and criteria of an assay in one pass, against draw-by-draw computation."""
    scores = np.random.default_rng(0).random((3, 2, 7, 12)) ** 0.5
    blocks = seed_blocks(12, 1000)
    samples = bootstrap(scores, blocks)
    widths = window_widths(SCALES, samples, half_best(samples))
    for draw in (0, 1, 499, 999):
        curve = trimmed_mean(scores[..., blocks[draw]])
        best = curve.max(axis=-1)
        best = np.where(best < COMPETENT, np.inf, 0.5 * best)
        for task in range(3):
            for arm in range(2):
                expected = scale_window(SCALES, curve[task, arm], float(best[task, arm])).width
                assert widths[draw, task, arm] == expected


@pytest.mark.parametrize(
    "scales",
    [[1, 1, 2], [2, 1, 3], [0, 1, 2], [-1, 1, 2], [1, 2, NAN], [1, 2, math.inf], [], [[1, 2, 3]]],
)
def test_bad_scales(scales: list[float]) -> None:
    for function in (scale_window, window_widths):
        with pytest.raises(DataError, match="scales must be"):
            function(scales, [1.0, 1.0, 1.0], 0.5)


def test_curves_must_fit_the_scales() -> None:
    with pytest.raises(DataError, match=r"\(6,\) for 7 scales"):
        scale_window(SCALES, [1.0] * 6, 0.5)
    with pytest.raises(DataError, match=r"\(2, 6\) for 7 scales"):
        window_widths(SCALES, np.ones((2, 6)), 0.5)
