"""Effective bins of a categorical head."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rulescope.stats import DataError, effective_bins


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
