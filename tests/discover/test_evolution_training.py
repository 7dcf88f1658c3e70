from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from discover.tiny_evolution import TINY_LPG, TINY_LPO, tiny_evolution
from rulescope.core.arrays import bit_equal
from rulescope.discover.evolution_spec import Evolution, Imitation, Validation
from rulescope.discover.evolution_strategy import Strategy
from rulescope.discover.evolution_training import EvolutionTraining
from rulescope.discover.fitness_workers import Evaluators, Task
from rulescope.rules.weight_vectors import flatten_weights

BOTH = pytest.mark.parametrize("spec", [TINY_LPG, TINY_LPO], ids=["lpg", "lpo"])


def run_to_end(training: EvolutionTraining) -> EvolutionTraining:
    while not training.finished:
        training.advance()
    return training


class Toy(Evaluators):
    """A fitness that is known: minus the squared distance from an optimum, the same in all worlds.

    On validation and test seeds it is best when the weights have come ``half`` of the way.
    """

    def __init__(self, spec: Evolution, half: bool = False) -> None:
        super().__init__()
        self.spec, self.half = spec, half

    def evaluate(self, tasks: Sequence[Task]) -> list[NDArray[np.float64]]:
        return [self._scores(task) for task in tasks]

    def _scores(self, task: Task) -> NDArray[np.float64]:
        searching = task.worlds == self.spec.worlds
        optimum = 0.5 if self.half and not searching else 1.0
        distance = ((task.weights - optimum) ** 2).mean(1)
        return np.repeat(-distance[:, None], len(task.worlds), axis=1)


TOY = tiny_evolution(
    imitation=Imitation(),
    strategy=Strategy(pairs=20, sigma=0.1, learning_rate=0.05, shaping="ranks"),
    validation=Validation(every=2, agents=2, smoothing=0.0),
    generations=120,
)


def test_a_known_fitness_is_optimised() -> None:
    training = run_to_end(EvolutionTraining(TOY, Toy(TOY)))
    assert training.log[0].validation < -0.8
    assert training.log[-1].validation > -0.1
    assert np.abs(flatten_weights(training.rule_arrays()) - 1.0).mean() < 0.3


def test_the_result_is_the_mean_that_is_best_on_validation_seeds_not_the_last() -> None:
    training = run_to_end(EvolutionTraining(TOY, Toy(TOY, half=True)))
    validated = {row.generation: row.validation for row in training.log if row.validation < 0}
    best = max(validated, key=lambda generation: validated[generation])
    assert training.chosen.generation == best
    assert 0 < best < TOY.generations
    assert training.facts()["chosen"] == {
        "generation": best,
        "smoothed": round(validated[best], 4),
    }


def test_the_running_average_chooses_and_not_one_lucky_validation() -> None:
    spec = replace(TOY, validation=Validation(every=1, smoothing=0.75), generations=3)
    lucky = iter([0.0, 0.1, 1.0, 0.2])

    class Fixed(Toy):
        def _scores(self, task: Task) -> NDArray[np.float64]:
            scores = super()._scores(task)
            return np.full_like(scores, next(lucky)) if task.worlds != spec.worlds else scores

    training = run_to_end(EvolutionTraining(spec, Fixed(spec)))
    averages = [0.0, 0.025, 0.26875, 0.2515625]
    assert training.chosen.generation == 2
    assert training.chosen.smoothed == pytest.approx(averages[2])
    assert training.validation == pytest.approx(averages[3])


@BOTH
def test_a_loaded_checkpoint_continues_to_the_bit_from_every_step(spec: Evolution) -> None:
    whole = EvolutionTraining(spec)
    states = []
    while not whole.finished:
        states.append(whole.save())
        whole.advance()
    for state in states:
        resumed = EvolutionTraining(spec)
        resumed.load(state)
        assert bit_equal(run_to_end(resumed).save(), whole.save())
    assert len(states) == spec.steps


def test_results_do_not_depend_on_the_number_of_workers() -> None:
    with Evaluators(2) as evaluators:  # one pool for both: starting it takes most of the time
        for spec in (TINY_LPG, TINY_LPO):
            alone = run_to_end(EvolutionTraining(spec))
            shared = run_to_end(EvolutionTraining(spec, evaluators))
            assert shared.facts() == alone.facts()
            assert bit_equal(shared.save(), alone.save())


def test_seed_and_generation_change_the_seeds_of_the_lifetimes_and_pairs_share_them() -> None:
    seen: list[Task] = []

    class Seen(Toy):
        def evaluate(self, tasks: Sequence[Task]) -> list[NDArray[np.float64]]:
            seen.extend(tasks)
            return super().evaluate(tasks)

    for seed in (0, 1):
        spec = replace(TOY, seed=seed, generations=2)
        run_to_end(EvolutionTraining(spec, Seen(spec)))
    search = [task for task in seen if task.worlds == TOY.worlds]
    assert len({task.seed for task in search}) == len(search) == 2 * 2 * TOY.tasks
    for task in search:
        plus, minus = task.weights[::2], task.weights[1::2]
        middle = (plus + minus) / 2
        assert np.allclose(middle, middle[0])
        assert np.abs(plus - minus).max() > 0
    assert len({task.seed for task in seen if task.worlds != TOY.worlds}) == 2


def test_a_warm_start_fits_the_weights_before_the_first_generation() -> None:
    spec = tiny_evolution(imitation=Imitation(lifetimes=6, updates=60), generations=0)
    training = run_to_end(EvolutionTraining(spec))
    losses = training.facts()["warm_start_loss"]
    assert len(losses) == 6
    assert losses[-1] < 0.5 * losses[0]
    assert training.chosen.generation == 0
    assert set(training.facts()["test"]) == {"random", "start", "rule"}
    assert training.facts()["test"]["start"] == training.facts()["test"]["rule"]
    assert training.facts()["test"]["start"] != training.facts()["test"]["random"]


def test_the_log_has_one_row_for_every_step() -> None:
    training = run_to_end(EvolutionTraining(TINY_LPG))
    log = training.log_columns()
    assert log["step"].tolist() == list(range(1, 8))
    assert log["generation"].tolist() == [0, 0, 0, 1, 2, 3, 4]
    assert np.isfinite(log["loss"]).tolist() == [True, True, *[False] * 5]
    assert np.isfinite(log["validation"]).tolist() == [False, False, True, False, True, False, True]
    assert np.isfinite(log["score_1"]).tolist() == [False] * 3 + [True] * 4
    assert (log["best"] >= log["fitness"])[3:].all()
