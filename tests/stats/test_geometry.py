"""Geometry of terminal states against worked vectors and the definitions, draw by draw."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rulescope.stats import (
    DataError,
    between_fraction,
    bootstrap_between_fraction,
    bootstrap_displacement,
    displacement,
    effective_bins,
    principal_fraction,
    seed_blocks,
    unit_radius,
)
from rulescope.stats.array_checks import FloatArray

NAN = math.nan
SQUARE = np.array([[0.0, 0], [2, 0], [0, 2], [2, 2]])
PAIR = np.stack([SQUARE, SQUARE + np.array([3, 4])])


def some_states(scales: int = 7, seeds: int = 12, d: int = 20) -> FloatArray:
    """Return states far from the origin, with a different spread and place at every scale."""
    rng = np.random.default_rng(0)
    spread = np.linspace(0.5, 2, scales)[:, None, None]
    place = rng.standard_normal((scales, 1, d))
    return 100 + place + spread * rng.standard_normal((scales, seeds, d))


def with_gaps() -> FloatArray:
    states = some_states()
    states[2, 3] = NAN
    states[3, 5, 7] = NAN  # one coordinate is enough
    states[3, 0, 0] = math.inf
    return states


def present(scale: FloatArray) -> FloatArray:
    kept: FloatArray = scale[np.isfinite(scale).all(axis=-1)]
    return kept


def defined_displacement(states: FloatArray, unit: int) -> FloatArray:
    centroids = np.array([present(scale).mean(0) for scale in states])
    radius = np.linalg.norm(present(states[unit]) - centroids[unit], axis=1).mean()
    return np.asarray(np.linalg.norm(centroids - centroids[unit], axis=1) / radius)


def defined_between(states: FloatArray) -> float:
    groups = [present(scale) for scale in states]
    everything = np.concatenate(groups)
    mean = everything.mean(0)
    between = sum(len(g) * np.sum((g.mean(0) - mean) ** 2) for g in groups)
    return float(between / np.sum((everything - mean) ** 2))


def defined_principal(states: FloatArray, components: int) -> float:
    rows = np.concatenate([present(scale) for scale in states])
    squared = np.linalg.svd(rows - rows.mean(0), compute_uv=False) ** 2
    return float(squared[:components].sum() / squared.sum())


def test_worked_displacement() -> None:
    assert unit_radius(SQUARE) == pytest.approx(1.4142135624, abs=5e-11)
    np.testing.assert_allclose(displacement(PAIR, 0), [0, 3.5355339059], atol=5e-11)
    np.testing.assert_allclose(displacement(PAIR, 1), [3.5355339059, 0], atol=5e-11)


def test_displacement_is_in_radii_of_the_unit_scale_alone() -> None:
    states = np.stack([SQUARE, 10 * SQUARE + 5])
    radius, shift = math.sqrt(2), 14 * math.sqrt(2)
    np.testing.assert_allclose(displacement(states, 0), [0, shift / radius])
    np.testing.assert_allclose(displacement(states, 1), [shift / (10 * radius), 0])


def test_worked_between_fraction() -> None:
    assert between_fraction(PAIR) == pytest.approx(0.7575757576, abs=5e-11)
    assert between_fraction(np.stack([SQUARE, SQUARE])) == pytest.approx(0, abs=1e-15)


def test_worked_principal_fraction() -> None:
    third = np.array([[0.0, 1, 0, 1], [1, 0, 1, 0]])[..., None]
    states = np.concatenate([PAIR, third], axis=-1)
    assert principal_fraction(states) == pytest.approx(0.9705882353, abs=5e-11)
    assert principal_fraction(states, 1) == pytest.approx(58 / 68)
    assert principal_fraction(states, 3) == pytest.approx(1.0)
    assert principal_fraction(PAIR) == pytest.approx(1.0)


@pytest.mark.parametrize("states", [some_states(), with_gaps(), some_states(3, 4, 50)])
def test_definitions(states: FloatArray) -> None:
    np.testing.assert_allclose(displacement(states, 1), defined_displacement(states, 1))
    assert between_fraction(states) == pytest.approx(defined_between(states))
    for components in (1, 2, 5):
        expected = defined_principal(states, components)
        assert principal_fraction(states, components) == pytest.approx(expected)


@pytest.mark.parametrize("states", [some_states(), with_gaps()])
def test_every_draw_recomputes_everything(states: FloatArray) -> None:
    blocks = seed_blocks(12, 60)
    shifts = bootstrap_displacement(states, 3, blocks)
    fractions = bootstrap_between_fraction(states, blocks)
    assert shifts.shape == (60, 7)
    assert fractions.shape == (60,)
    for draw, block in enumerate(blocks):
        drawn = states[:, block]
        np.testing.assert_allclose(shifts[draw], defined_displacement(drawn, 3))
        assert fractions[draw] == pytest.approx(defined_between(drawn))


def test_draws_do_not_depend_on_chunks() -> None:
    states, blocks = some_states(7, 12, 256), seed_blocks(12, 300)
    shifts = bootstrap_displacement(states, 3, blocks)
    assert shifts.shape == (300, 7)
    for draw in (0, 72, 73, 74, 146, 299):
        one = bootstrap_displacement(states, 3, blocks[draw : draw + 1])
        np.testing.assert_allclose(shifts[draw : draw + 1], one)


def test_identical_states_have_no_variation() -> None:
    """Not even of rounding errors: 0.1 and the like have no exact mean."""
    states = np.broadcast_to(np.random.default_rng(1).standard_normal(9), (7, 12, 9))
    blocks = seed_blocks(12, 100)
    assert math.isnan(between_fraction(states))
    assert math.isnan(principal_fraction(states))
    assert unit_radius(states[0]) == 0.0
    assert np.isnan(displacement(states, 3)).all()
    assert np.isnan(bootstrap_between_fraction(states, blocks)).all()
    assert np.isnan(bootstrap_displacement(states, 3, blocks)).all()


def test_shifts_are_not_measured_in_rounding_errors() -> None:
    states = np.array(some_states())
    states[3] = states[3, 0]
    assert np.isnan(displacement(states, 3)).all()
    assert np.isnan(bootstrap_displacement(states, 3, seed_blocks(12, 500))).all()


def test_one_seed_drawn_repeatedly_has_no_radius() -> None:
    blocks = np.array([[1, 1, 1, 1], [0, 1, 2, 3]])
    shifts = bootstrap_displacement(PAIR, 0, blocks)
    assert np.isnan(shifts[0]).all()
    assert np.isfinite(shifts[1]).all()
    np.testing.assert_allclose(bootstrap_between_fraction(PAIR, blocks), [1.0, 50 / 66])


def test_a_scale_without_states() -> None:
    states = np.array(some_states())
    states[5] = NAN
    shifts = displacement(states, 3)
    assert math.isnan(shifts[5])
    assert np.isfinite(np.delete(shifts, 5)).all()
    others = np.delete(states, 5, axis=0)
    assert between_fraction(states) == pytest.approx(between_fraction(others))
    assert principal_fraction(states) == pytest.approx(principal_fraction(others))


def test_no_states_at_all() -> None:
    states = np.full((3, 4, 5), NAN)
    assert math.isnan(unit_radius(states[0]))
    assert np.isnan(displacement(states, 0)).all()
    assert math.isnan(between_fraction(states))
    assert math.isnan(principal_fraction(states))


def test_bad_states() -> None:
    with pytest.raises(DataError, match=r"coordinates\], not \(4, 2\)"):
        displacement(SQUARE, 0)
    with pytest.raises(DataError, match=r"\[n, d\], not \(2, 4, 2\)"):
        unit_radius(PAIR)
    for index in (-1, 2):
        with pytest.raises(DataError, match=f"unit scale {index} is not among 2"):
            displacement(PAIR, index)
    with pytest.raises(DataError, match="do not draw from n=4"):
        bootstrap_between_fraction(PAIR, seed_blocks(5, 10))
    with pytest.raises(DataError, match="components must be at least 1, not 0"):
        principal_fraction(PAIR, 0)


def test_uniform_uses_every_bin() -> None:
    assert effective_bins(np.zeros((3, 601))) == pytest.approx(601, abs=1e-3)


def test_rows_are_averaged_before_the_entropy() -> None:
    one_hot = 1000 * np.eye(601)[[5, 400]]
    assert effective_bins(one_hot) == 2.0
    assert effective_bins(one_hot[:1]) == 1.0


def test_worked_mean_distribution() -> None:
    rows = 1000 * np.eye(2)[[0, 0, 1, 0]]
    assert effective_bins(rows) == pytest.approx(1.7547653506, abs=5e-11)
    assert effective_bins(np.log([[0.75, 0.25]])) == pytest.approx(1.7547653506, abs=1e-6)


def test_probabilities_are_those_of_float32() -> None:
    """1e-4 apart at 4096: the two logits are one number in float32, so both bins count fully."""
    assert effective_bins([[4096.0, 4096.0 + 1e-4]]) == 2.0
    shifted = effective_bins([[1e5, 1e5 + 0.002]])
    assert shifted == 2.0


def test_leading_axes_are_rows() -> None:
    logits = np.random.default_rng(0).standard_normal((4, 3, 11))
    assert effective_bins(logits) == effective_bins(logits.reshape(12, 11))
    p = np.exp(logits.reshape(12, 11))
    p = (p / p.sum(1, keepdims=True)).mean(0)
    assert effective_bins(logits) == pytest.approx(math.exp(-np.sum(p * np.log(p))), rel=1e-6)
    assert effective_bins(logits[0, 0]) == effective_bins(logits[:1, 0])


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 30), st.floats(0, 50))
def test_between_one_and_all(seed: int, rows: int, bins: int, spread: float) -> None:
    logits = spread * np.random.default_rng(seed).standard_normal((rows, bins))
    used = effective_bins(logits)
    assert 1 - 1e-9 <= used <= bins * (1 + 1e-9)
    assert effective_bins(logits[::-1, ::-1]) == pytest.approx(used, rel=1e-6)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e39])
def test_a_diverged_head_gives_nan(bad: float) -> None:
    assert math.isnan(effective_bins([[0.0, 1.0], [bad, 0.0]]))


@pytest.mark.parametrize("shape", [(), (0, 5), (3, 0)])
def test_empty_logits_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="rows of bins"):
        effective_bins(np.zeros(shape))
