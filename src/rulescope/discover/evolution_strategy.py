"""Antithetic evolution strategies: Adam on a search gradient over one flat vector of weights.

A generation draws pairs of opposite perturbations of the mean. The caller evaluates both members
of a pair on the same seeds and worlds, so that their difference is due to the weights. Fitness is
shaped, and the mean moves along the gradient that the shaped differences estimate.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from rulescope.core import seeds
from rulescope.core.arrays import Arrays
from rulescope.core.structs import Frozen, Positive, Rate
from rulescope.learners.adam import EPSILON, FIRST_DECAY, SECOND_DECAY

Vector = NDArray[np.float64]
Shaping = Literal["winner", "ranks", "z-score"]
Shrinkage = Annotated[float, Meta(gt=0.0, le=1.0)]


class Strategy(Frozen, frozen=True):
    """The settings of an evolution strategy."""

    pairs: Positive = 16
    """Antithetic pairs in a generation; the population is twice as large."""
    sigma: Rate = 0.1
    """Standard deviation of the perturbations in the first generation."""
    sigma_decay: Shrinkage = 1.0
    """Factor of ``sigma`` in each generation; 1 keeps it constant."""
    sigma_floor: Rate = 1e-3
    """Least value that ``sigma`` decays to."""
    learning_rate: Rate = 1e-2
    """Of Adam, in the first generation."""
    rate_decay: Shrinkage = 0.999
    """Factor of the learning rate in each generation."""
    rate_floor: Rate = 1e-5
    """Least value that the learning rate decays to."""
    shaping: Shaping = "winner"
    """``winner``: 1 for the better member of a pair and 0 for the other. ``ranks``: ranks in the
    population, from -0.5 to 0.5. ``z-score``: minus the mean, over the standard deviation."""


class EvolutionStrategy:
    """The mean of a population, advanced one generation at a time; fitness is maximised."""

    def __init__(self, settings: Strategy, start: Vector, seed: int) -> None:
        """``start`` [D] is the first mean; perturbations are derived from ``seed``."""
        self.settings, self.seed = settings, seed
        self.mean = np.array(start, np.float64)
        self._first = np.zeros_like(self.mean)
        self._second = np.zeros_like(self.mean)
        self.generation = 0
        """Generations made."""

    @property
    def sigma(self) -> float:
        """Standard deviation of the perturbations in the present generation."""
        own = self.settings
        return _decayed(own.sigma, own.sigma_decay, own.sigma_floor, self.generation)

    @property
    def learning_rate(self) -> float:
        """Learning rate in the present generation."""
        own = self.settings
        return _decayed(own.learning_rate, own.rate_decay, own.rate_floor, self.generation)

    def perturbations(self) -> NDArray[np.float64]:
        """Return the standard normal directions [pairs, D] of the present generation.

        Each generation has a stream of its own, so nothing but its number has to be saved.
        """
        stream = seeds.stream(self.seed, "evolution", self.generation)
        return stream.standard_normal((self.settings.pairs, self.mean.size))

    def candidates(self) -> NDArray[np.float64]:
        """Return the population [pairs, 2, D]: the mean plus, and minus, each perturbation."""
        moves = self.sigma * self.perturbations()
        return np.stack([self.mean + moves, self.mean - moves], axis=1)

    def advance(self, fitness: NDArray[np.float64]) -> float:
        """Move the mean by the ``fitness`` [pairs, 2] of the candidates; return the gradient norm.

        A fitness that is not finite counts as the least finite one of the generation; if none is
        finite, the mean stays.
        """
        shaped = shape_fitness(fitness, self.settings.shaping)
        gradient = search_gradient(self.perturbations(), shaped, self.sigma)
        rate = self.learning_rate
        self.generation += 1
        count = self.generation
        self._first += (1.0 - FIRST_DECAY) * (gradient - self._first)
        self._second += (1.0 - SECOND_DECAY) * (gradient * gradient - self._second)
        scale = np.sqrt(self._second / (1.0 - SECOND_DECAY**count)) + EPSILON
        if np.isfinite(fitness).any():
            self.mean += rate * (self._first / (1.0 - FIRST_DECAY**count)) / scale
        return float(np.linalg.norm(gradient))

    def save(self) -> dict[str, NDArray[Any]]:
        """Return everything that :meth:`load` needs to continue to the bit."""
        return {
            "mean": self.mean.copy(),
            "first": self._first.copy(),
            "second": self._second.copy(),
            "generation": np.array(self.generation),
        }

    def load(self, state: Arrays) -> None:
        """Continue from what :meth:`save` returned."""
        self.mean, self._first, self._second = (
            np.array(state[name], np.float64) for name in ("mean", "first", "second")
        )
        self.generation = int(state["generation"])


def shape_fitness(fitness: NDArray[np.float64], shaping: Shaping) -> NDArray[np.float64]:
    """Return the shaped ``fitness`` [pairs, 2]; ties share what they would get together."""
    finite = np.isfinite(fitness)
    if not finite.any():
        return np.zeros_like(fitness)
    values = np.where(finite, fitness, fitness[finite].min())
    if shaping == "winner":
        won: NDArray[np.float64] = 0.5 + 0.5 * np.sign(values - values[:, ::-1])
        return won
    if shaping == "z-score":
        spread = values.std()
        return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)
    flat = values.ravel()
    below = (flat[:, None] > flat).sum(1)
    ties = (flat[:, None] == flat).sum(1) - 1
    ranks = (below + 0.5 * ties) / (flat.size - 1) - 0.5
    return np.asarray(ranks).reshape(values.shape)


def search_gradient(
    perturbations: NDArray[np.float64], shaped: NDArray[np.float64], sigma: float
) -> NDArray[np.float64]:
    """Return the estimate [D] of the gradient: mean of (f+ - f-) / (2 sigma) times each direction.

    ``perturbations`` is [pairs, D], ``shaped`` fitness [pairs, 2].
    """
    differences = (shaped[:, 0] - shaped[:, 1]) / (2.0 * sigma)
    return np.asarray(differences @ perturbations / len(perturbations))


def _decayed(first: float, factor: float, floor: float, generation: int) -> float:
    """Return ``first`` after ``generation`` decays, at least ``floor`` unless it began below."""
    return max(first * factor**generation, min(floor, first))
