"""How far apart targets are: known values, and what makes no difference."""

from __future__ import annotations

import numpy as np
import pytest

from rulescope.mechanism.target_divergence import cosine, mean_kl, mean_total_variation, softmax


def test_known_divergences() -> None:
    one, other = np.array([[0.5, 0.5]]), np.array([[0.25, 0.75]])
    assert mean_kl(one, other) == pytest.approx(0.5 * np.log(2.0) + 0.5 * np.log(2.0 / 3.0))
    assert mean_total_variation(one, other) == pytest.approx(0.25)
    assert mean_kl(one, other) != pytest.approx(mean_kl(other, one))


def test_the_mean_is_over_all_transitions() -> None:
    one = np.array([[[0.5, 0.5], [1.0, 0.0]]])
    other = np.array([[[0.5, 0.5], [0.5, 0.5]]])
    assert mean_kl(one, other) == pytest.approx(np.log(2.0) / 2.0)
    assert mean_total_variation(one, other) == pytest.approx(0.25)


def test_equal_distributions_are_exactly_alike_and_zeros_are_finite() -> None:
    some = softmax(np.random.default_rng(0).normal(size=(7, 600)))
    assert mean_kl(some, some) == 0.0
    assert mean_total_variation(some, some) == 0.0
    certain = np.array([[1.0, 0.0]])
    assert 80.0 < mean_kl(certain, certain[:, ::-1]) < 90.0


def test_softmax_does_not_mind_large_logits() -> None:
    assert softmax(np.array([1e4, 1e4 + np.log(3.0)])) == pytest.approx([0.25, 0.75])


def test_cosines() -> None:
    x, y = np.array([1.0, 0.0]), np.array([1.0, 1.0])
    assert cosine(x, y) == pytest.approx(np.sqrt(0.5))
    assert cosine(x, -3.0 * x) == pytest.approx(-1.0)
    assert np.isnan(cosine(x, 0.0 * x))
