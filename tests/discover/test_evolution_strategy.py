from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from rulescope.core.arrays import bit_equal
from rulescope.discover.evolution_strategy import (
    EvolutionStrategy,
    Shaping,
    Strategy,
    search_gradient,
    shape_fitness,
)

OPTIMUM = np.linspace(-1.0, 1.0, 12)


def quadratic(candidates: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(-((candidates - OPTIMUM) ** 2).sum(-1))


@pytest.mark.parametrize("shaping", ["winner", "ranks", "z-score"])
def test_every_shaping_finds_the_optimum_of_a_quadratic(shaping: Shaping) -> None:
    settings = Strategy(shaping=shaping, learning_rate=0.05, rate_decay=0.99, sigma=0.1)
    search = EvolutionStrategy(settings, np.zeros(12), seed=3)
    for _ in range(300):
        search.advance(quadratic(search.candidates()))
    assert np.abs(search.mean - OPTIMUM).max() < 0.1 < np.abs(OPTIMUM).max()


def test_the_gradient_equals_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    directions, fitness, sigma = rng.normal(size=(5, 7)), rng.normal(size=(5, 2)), 0.3
    expected = [0.0] * 7
    for pair in range(5):
        for member, sign in enumerate((1.0, -1.0)):
            for place in range(7):
                term = fitness[pair, member] * sign * directions[pair, place]
                expected[place] += term / (sigma * 10)
    found = search_gradient(directions, fitness, sigma)
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_members_of_a_pair_are_opposite_and_generations_differ() -> None:
    search = EvolutionStrategy(Strategy(pairs=3), np.ones(4), seed=1)
    first = search.candidates()
    assert np.allclose(first.mean(1), 1.0)
    assert np.array_equal(first, search.candidates())
    search.advance(quadratic_of_four(first))
    assert not np.allclose(first, search.candidates())


def quadratic_of_four(candidates: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(-(candidates**2).sum(-1))


def test_shaped_fitness_is_as_defined() -> None:
    fitness = np.array([[1.0, 3.0], [2.0, 2.0], [np.nan, 5.0]])
    assert shape_fitness(fitness, "winner").tolist() == [[0, 1], [0.5, 0.5], [0, 1]]
    # In order: 1 and the missing one (as 1) share ranks 0 and 1, the 2s share 2 and 3.
    ranks = np.array([[0.5, 4], [2.5, 2.5], [0.5, 5]]) / 5 - 0.5
    assert np.allclose(shape_fitness(fitness, "ranks"), ranks)
    scores = shape_fitness(fitness, "z-score")
    assert scores.mean() == pytest.approx(0.0)
    assert scores.std() == pytest.approx(1.0)
    assert not shape_fitness(np.ones((2, 2)), "z-score").any()


def test_a_generation_without_a_finite_fitness_leaves_the_mean() -> None:
    search = EvolutionStrategy(Strategy(pairs=2), np.ones(3), seed=0)
    assert search.advance(np.full((2, 2), np.nan)) == 0.0
    assert search.mean.tolist() == [1.0, 1.0, 1.0]
    assert search.generation == 1


def test_rate_and_deviation_decay_to_their_floors() -> None:
    settings = Strategy(
        pairs=1, sigma=0.2, sigma_decay=0.5, sigma_floor=0.05, learning_rate=0.1, rate_decay=0.1
    )
    search = EvolutionStrategy(settings, np.zeros(2), seed=0)
    found = []
    for _ in range(4):
        found.append((search.sigma, search.learning_rate))
        search.advance(np.zeros((1, 2)))
    assert np.allclose(found, [(0.2, 0.1), (0.1, 0.01), (0.05, 1e-3), (0.05, 1e-4)])


def test_a_saved_search_continues_to_the_bit() -> None:
    whole = EvolutionStrategy(Strategy(sigma_decay=0.9), np.zeros(12), seed=5)
    for _ in range(3):
        whole.advance(quadratic(whole.candidates()))
    resumed = EvolutionStrategy(Strategy(sigma_decay=0.9), np.ones(12), seed=5)
    resumed.load(whole.save())
    for search in (whole, resumed):
        for _ in range(3):
            search.advance(quadratic(search.candidates()))
    assert bit_equal(whole.save(), resumed.save())
