from __future__ import annotations

import numpy as np
import pytest

from rulescope.core import initialisers


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_truncated_normal_is_cut_and_not_rescaled() -> None:
    draw = initialisers.truncated_normal(rng(), (200_000,), 0.5)
    assert np.abs(draw).max() <= 1.0
    assert np.abs(draw).max() > 0.99
    assert draw.std() == pytest.approx(0.8796 * 0.5, rel=0.01)
    assert abs(draw.mean()) < 0.005


def test_truncated_normal_redraws_only_what_falls_outside() -> None:
    plain = rng().standard_normal((50,))
    cut = initialisers.truncated_normal(rng(), (50,), 1.0)
    inside = np.abs(plain) <= 2.0
    assert not inside.all()
    assert (cut[inside] == plain[inside]).all()


def test_normal_has_its_deviation_and_its_tails() -> None:
    draw = initialisers.normal(rng(), (200_000,), 0.01)
    assert draw.std() == pytest.approx(0.01, rel=0.01)
    assert np.abs(draw).max() > 0.035


def test_uniform_is_bounded_by_the_root_of_its_inputs() -> None:
    draw = initialisers.uniform(rng(), (200_000,), 64)
    assert 0.1249 < np.abs(draw).max() <= 0.125
    assert draw.std() == pytest.approx(0.125 / np.sqrt(3.0), rel=0.01)


@pytest.mark.parametrize("draw", [initialisers.normal, initialisers.truncated_normal])
def test_no_deviation_means_zero(draw: object) -> None:
    assert callable(draw)
    assert not draw(rng(), (5,), 0.0).any()


@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (5, 5)], ids=str)
def test_orthogonal_has_rows_or_columns_of_one_length_at_right_angles(
    shape: tuple[int, int],
) -> None:
    draw = initialisers.orthogonal(rng(), shape, 2.0)
    assert draw.shape == shape
    product = draw.T @ draw if shape[0] >= shape[1] else draw @ draw.T
    np.testing.assert_allclose(product, 4.0 * np.eye(min(shape)), atol=1e-12)


def test_orthogonal_favours_no_direction() -> None:
    """Without the correction of signs, the first entry would never be positive."""
    stream = rng()
    first = [initialisers.orthogonal(stream, (3, 3), 1.0)[0, 0] for _ in range(400)]
    assert abs(np.mean(np.sign(first))) < 0.2
