"""A discovery by evolution: a warm start, generations, and validations that choose the result."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from rulescope.core import runtime, seeds
from rulescope.core.arrays import Arrays, prefix_names, unprefix
from rulescope.discover.batched_lifetimes import Vectors, make_rules
from rulescope.discover.evolution_spec import Evolution
from rulescope.discover.evolution_strategy import EvolutionStrategy
from rulescope.discover.fitness_workers import Evaluators, Task
from rulescope.discover.imitation import WarmStart
from rulescope.rules.weight_vectors import unflatten_weights


class EvolutionStep(NamedTuple):
    """Measurements of one generation, or of one lifetime of the warm start."""

    generation: int
    """Generations made: 0 in the warm start and at the validation before the first one."""
    scores: tuple[float, ...]
    """Mean over the candidates, by world: 0 is random play, 1 optimal. Empty in the warm start."""
    fitness: float
    """Mean over candidates and worlds."""
    best: float
    """The best candidate's mean over worlds."""
    gradient_norm: float
    broken: int
    """Candidates with an agent that was no longer finite."""
    validation: float
    """Fitness of the mean of the population on validation seeds; NaN if it was not evaluated."""
    loss: float
    """Of the warm start; NaN in a generation."""


class Chosen(NamedTuple):
    """The best of the validated means so far."""

    weights: Vectors
    generation: int
    smoothed: float
    """Running average of the validation fitness at that generation."""


class EvolutionTraining:
    """A discovery, advanced one step at a time; ``save`` and ``load`` continue to the bit."""

    device = "cpu"

    def __init__(self, spec: Evolution, evaluators: Evaluators | None = None) -> None:
        runtime.single_threaded()
        self.spec = spec
        self.evaluators = evaluators or Evaluators()
        self._rules = make_rules(spec.rule)
        self._random = self._rules.draw_initial(spec.seed)
        self._warm = WarmStart(spec, self._random) if spec.imitation.lifetimes else None
        self._search = EvolutionStrategy(spec.strategy, self._random, spec.seed)
        self._start = self._random
        self._smoothed = math.nan
        self.chosen = Chosen(self._random, 0, -math.inf)
        self.log: list[EvolutionStep] = []

    @property
    def step(self) -> int:
        """Steps made."""
        return len(self.log)

    @property
    def finished(self) -> bool:
        """Whether the last generation has been made."""
        return self.step >= self.spec.steps

    @property
    def validation(self) -> float:
        """The running average of the validation fitness."""
        return self._smoothed

    def advance(self) -> EvolutionStep:
        """Make the next step."""
        if self._warm is not None and not self._warm.finished:
            made = _EMPTY._replace(loss=self._warm.advance())
        elif self.step == self.spec.imitation.lifetimes:
            made = self._begin()
        else:
            made = self._generation()
        self.log.append(made)
        return made

    def _begin(self) -> EvolutionStep:
        """Start the search where the warm start has ended, and validate that."""
        if self._warm is not None:
            self._start = self._warm.weights
        self._search = EvolutionStrategy(self.spec.strategy, self._start, self.spec.seed)
        self.chosen = Chosen(self._start, 0, -math.inf)
        return _EMPTY._replace(validation=self._validate())

    def _generation(self) -> EvolutionStep:
        search, spec = self._search, self.spec
        candidates = search.candidates()
        scores = np.concatenate(self.evaluators.evaluate(self._tasks(candidates)))
        fitness = scores.mean(1)
        norm = search.advance(fitness.reshape(-1, 2))
        due = search.generation % spec.validation.every == 0
        sound = np.isfinite(fitness)
        return EvolutionStep(
            generation=search.generation,
            scores=tuple(float(x) for x in scores[sound].mean(0)) if sound.any() else (),
            fitness=float(fitness[sound].mean()) if sound.any() else math.nan,
            best=float(fitness[sound].max()) if sound.any() else math.nan,
            gradient_norm=norm,
            broken=int((~sound).sum()),
            validation=self._validate() if due else math.nan,
            loss=math.nan,
        )

    def _tasks(self, candidates: Vectors) -> list[Task]:
        """Return the work of this generation for ``candidates`` [pairs, 2, D].

        Both members of a pair are in one task, and so on the same seeds.
        """
        spec, stream = self.spec, seeds.stream(self.spec.seed, "fitness", self._search.generation)
        groups = [candidates[i : i + spec.group] for i in range(0, len(candidates), spec.group)]
        return [
            Task(
                spec,
                spec.worlds,
                group.reshape(-1, group.shape[-1]),
                spec.lifetimes.updates,
                int(stream.integers(2**31)),
            )
            for group in groups
        ]

    def _validate(self) -> float:
        """Return the fitness of the mean on validation seeds, and keep it if it is the best."""
        mean = self._search.mean.copy()
        [fitness] = self._on_other_seeds("validation", mean[None]).mean(1)
        if not math.isfinite(fitness):  # counts as no validation
            return math.nan
        old, decay = self._smoothed, self.spec.validation.smoothing
        self._smoothed = fitness if math.isnan(old) else decay * old + (1.0 - decay) * fitness
        if self._smoothed > self.chosen.smoothed:
            self.chosen = Chosen(mean, self._search.generation, float(self._smoothed))
        return float(fitness)

    def _on_other_seeds(self, purpose: str, weights: Vectors) -> Vectors:
        """Return the scores [C, W] of ``weights`` [C, D] on seeds of which the search sees none."""
        own = self.spec.validation
        worlds = [replace(world, agents=world.agents * own.agents) for world in self.spec.worlds]
        seed = int(seeds.stream(self.spec.seed, purpose).integers(2**31))
        task = Task(self.spec, tuple(worlds), weights, own.updates, seed)
        return self.evaluators.evaluate([task])[0]

    def rule_arrays(self) -> dict[str, NDArray[np.float32]]:
        """Return the result: the mean with the best running average of the validation fitness."""
        return unflatten_weights(self.chosen.weights, self._rules.like)

    def facts(self) -> dict[str, Any]:
        """Return what the manifest of the discovery states about its result.

        ``test`` has scores by world on seeds that chose nothing: of the random weights that the
        discovery started from, of the result of the warm start, and of the rule.
        """
        weights = {"random": self._random, "start": self._start, "rule": self.chosen.weights}
        scores = self._on_other_seeds("test", np.stack(list(weights.values())))
        validated = [row for row in self.log if not math.isnan(row.validation)]
        return {
            "method": "evolution",
            "chosen": {
                "generation": self.chosen.generation,
                "smoothed": round(self.chosen.smoothed, 4),
            },
            "validation": [[row.generation, round(row.validation, 4)] for row in validated],
            "warm_start_loss": [round(row.loss, 4) for row in self.log if not math.isnan(row.loss)],
            "test": {
                name: [round(float(x), 4) for x in row]
                for name, row in zip(weights, scores, strict=True)
            },
        }

    def log_columns(self) -> dict[str, NDArray[Any]]:
        """Return the measurements of all steps; ``scores`` by world."""
        worlds = len(self.spec.worlds)
        columns: dict[str, NDArray[Any]] = {
            "step": np.arange(1, len(self.log) + 1, dtype=np.float64)
        }
        for name in EvolutionStep._fields:
            if name != "scores":
                columns[name] = np.array([getattr(row, name) for row in self.log], np.float64)
        table = np.array([row.scores or (math.nan,) * worlds for row in self.log])
        table = table.reshape(len(self.log), worlds)
        for index in range(worlds):
            columns[f"score_{index}"] = table[:, index]
        return columns

    def save(self) -> dict[str, NDArray[Any]]:
        """Return everything that :meth:`load` needs to continue to the bit."""
        parts: dict[str, Arrays] = {
            "search": self._search.save(),
            "log": self.log_columns(),
            "own": {
                "start": self._start,
                "smoothed": np.array(self._smoothed),
                "chosen": self.chosen.weights,
                "chosen_at": np.array(self.chosen.generation),
                "chosen_smoothed": np.array(self.chosen.smoothed),
            },
        }
        if self._warm is not None:
            parts["warm"] = self._warm.save()
        return {name: np.array(array) for name, array in prefix_names(parts).items()}

    def load(self, state: Arrays) -> None:
        """Continue from what :meth:`save` of the same specification returned."""
        own = unprefix("own", state)
        if self._warm is not None:
            self._warm.load(unprefix("warm", state))
        self._search.load(unprefix("search", state))
        self._start = np.array(own["start"])
        self._smoothed = float(own["smoothed"])
        self.chosen = Chosen(
            np.array(own["chosen"]), int(own["chosen_at"]), float(own["chosen_smoothed"])
        )
        self.log = _rows(unprefix("log", state), len(self.spec.worlds))


_EMPTY = EvolutionStep(0, (), math.nan, math.nan, math.nan, 0, math.nan, math.nan)


def _rows(columns: Arrays, worlds: int) -> list[EvolutionStep]:
    """Return the log whose columns :meth:`EvolutionTraining.log_columns` returned."""
    rows = []
    for i in range(len(columns["step"])):
        scores = tuple(float(columns[f"score_{w}"][i]) for w in range(worlds))
        rows.append(
            EvolutionStep(
                generation=int(columns["generation"][i]),
                scores=() if math.isnan(scores[0]) else scores,
                fitness=float(columns["fitness"][i]),
                best=float(columns["best"][i]),
                gradient_norm=float(columns["gradient_norm"][i]),
                broken=int(columns["broken"][i]),
                validation=float(columns["validation"][i]),
                loss=float(columns["loss"][i]),
            )
        )
    return rows
