from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from rulescope.core import seeds


def test_a_stream_is_pinned() -> None:
    # A change of these literals changes the meaning of every seed ever published.
    assert seeds.stream(0, "env", 0).integers(0, 2**63, 3).tolist() == [
        4139175862891402553,
        1049627694247621078,
        8036590503918593710,
    ]
    assert seeds.stream(7, "action").integers(0, 2**63, 3).tolist() == [
        9094722267479744892,
        4934173467951155743,
        2683851682851054789,
    ]
    assert seeds.stream(2**32 - 1, "agent.init").random(2).tolist() == [
        0.31563945150882,
        0.18828096343780465,
    ]


def test_a_stream_depends_on_its_name_and_seed_only() -> None:
    first = seeds.stream(3, "replay").random(5)
    seeds.stream(3, "env", 0).random(1000)
    assert seeds.stream(3, "replay").random(5).tolist() == first.tolist()


def test_streams_of_different_names_or_seeds_differ() -> None:
    names: list[tuple[str | int, ...]] = [
        ("env", 0),
        ("env", 1),
        ("env", 10),
        ("env",),
        ("action",),
        ("replay",),
        (),
    ]
    drawn = {
        tuple(seeds.stream(seed, *name).integers(0, 2**63, 4).tolist())
        for name in names
        for seed in (0, 1, 2**32 - 1)
    }
    assert len(drawn) == 3 * len(names)


def test_streams_of_different_names_are_uncorrelated() -> None:
    drawn = np.stack([seeds.stream(0, "env", lane).random(20_000) for lane in range(6)])
    correlations = np.asarray(np.corrcoef(drawn))[np.triu_indices(6, k=1)]
    assert np.abs(correlations).max() < 4 / np.sqrt(20_000)
    assert np.abs(drawn.mean(axis=1) - 0.5).max() < 4 * np.sqrt(1 / 12 / 20_000)


def draw(generator: Generator) -> list[float]:
    """Draw of every kind that a lifetime uses, 32-bit integers among them."""
    return [
        *generator.integers(0, 10, 5, dtype=np.uint32).tolist(),
        *generator.random(3).tolist(),
        *generator.standard_normal(3).tolist(),
        *generator.gumbel(size=3).tolist(),
        *generator.permutation(9).tolist(),
    ]


@pytest.mark.parametrize("spent", [0, 1, 2, 3, 1001])
def test_a_packed_stream_continues_bit_identically(spent: int) -> None:
    generator = seeds.stream(5, "action")
    for _ in range(spent):
        generator.integers(0, 2**32, dtype=np.uint32)
    words = seeds.pack(generator)
    assert words.dtype == np.uint64
    assert words.shape == (6,)
    # PCG64 yields 64 bits; after an odd number of 32-bit draws the other half is kept for later.
    assert bool(words[4]) == bool(spent % 2)
    again = seeds.unpack(words)
    assert draw(again) == draw(generator)
    assert seeds.pack(again).tolist() == seeds.pack(generator).tolist()


def test_packing_draws_nothing() -> None:
    generator = seeds.stream(5, "action")
    before = seeds.pack(generator).tolist()
    assert seeds.pack(generator).tolist() == before
    assert draw(generator) == draw(seeds.stream(5, "action"))


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_truncated_normal_is_cut_and_not_rescaled() -> None:
    draw = seeds.truncated_normal(rng(), (200_000,), 0.5)
    assert np.abs(draw).max() <= 1.0
    assert np.abs(draw).max() > 0.99
    assert draw.std() == pytest.approx(0.8796 * 0.5, rel=0.01)
    assert abs(draw.mean()) < 0.005


def test_truncated_normal_redraws_only_what_falls_outside() -> None:
    plain = rng().standard_normal((50,))
    cut = seeds.truncated_normal(rng(), (50,), 1.0)
    inside = np.abs(plain) <= 2.0
    assert not inside.all()
    assert (cut[inside] == plain[inside]).all()


def test_normal_has_its_deviation_and_its_tails() -> None:
    draw = seeds.normal(rng(), (200_000,), 0.01)
    assert draw.std() == pytest.approx(0.01, rel=0.01)
    assert np.abs(draw).max() > 0.035


def test_uniform_is_bounded_by_the_root_of_its_inputs() -> None:
    draw = seeds.uniform(rng(), (200_000,), 64)
    assert 0.1249 < np.abs(draw).max() <= 0.125
    assert draw.std() == pytest.approx(0.125 / np.sqrt(3.0), rel=0.01)


@pytest.mark.parametrize("draw", [seeds.normal, seeds.truncated_normal])
def test_no_deviation_means_zero(draw: object) -> None:
    assert callable(draw)
    assert not draw(rng(), (5,), 0.0).any()


@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (5, 5)], ids=str)
def test_orthogonal_has_rows_or_columns_of_one_length_at_right_angles(
    shape: tuple[int, int],
) -> None:
    draw = seeds.orthogonal(rng(), shape, 2.0)
    assert draw.shape == shape
    product = draw.T @ draw if shape[0] >= shape[1] else draw @ draw.T
    np.testing.assert_allclose(product, 4.0 * np.eye(min(shape)), atol=1e-12)


def test_orthogonal_favours_no_direction() -> None:
    """Without the correction of signs, the first entry would never be positive."""
    stream = rng()
    first = [seeds.orthogonal(stream, (3, 3), 1.0)[0, 0] for _ in range(400)]
    assert abs(np.mean(np.sign(first))) < 0.2
