from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from discover.tiny_evolution import TINY_LPG, TINY_LPO
from rulescope.core import arrays
from rulescope.discover import evolution_runner
from rulescope.discover.discovery_runner import LOG, RULE, read_manifest, write_tensorboard
from rulescope.discover.evolution_recipes import EVOLUTIONS, select_evolution
from rulescope.discover.evolution_spec import Evolution
from rulescope.discover.evolution_training import EvolutionStep, EvolutionTraining
from rulescope.discover.fitness_workers import Evaluators, WorkerLostError
from rulescope.records import Store
from rulescope.rules import lpg_format, lpo_format
from rulescope.rules.rule_weights import read_any


@pytest.mark.parametrize("spec", [TINY_LPG, TINY_LPO], ids=["lpg", "lpo"])
def test_a_finished_evolution_is_stored_with_its_curve_and_found_again(
    spec: Evolution, tmp_path: Path
) -> None:
    folder = evolution_runner.find_or_run(spec, Store(tmp_path))
    manifest = read_manifest(folder)
    assert manifest["id"] == spec.id == folder.name
    assert manifest["spec"]["method"] == "evolution"
    assert [row[0] for row in manifest["validation"]] == [0, 2, 4]
    rule = read_any(folder / RULE)
    assert rule.parameter_count == manifest["parameters"]
    fault = lpg_format.fault if spec is TINY_LPG else lpo_format.fault
    assert fault(rule.arrays) is None
    assert len(arrays.read(folder / LOG)["step"]) == spec.steps
    seen: list[int] = []
    again = evolution_runner.find_or_run(
        spec, Store(tmp_path), lambda training, _: seen.append(training.step)
    )
    assert again == folder
    assert not seen
    assert not list(tmp_path.glob("checkpoints/*"))
    assert list(write_tensorboard(folder, tmp_path / "events").glob("events.*"))


@pytest.mark.parametrize("stop", [1, 2, 3, 5])
def test_an_interrupted_evolution_ends_like_an_uninterrupted_one(stop: int, tmp_path: Path) -> None:
    def interrupt(training: EvolutionTraining, _: EvolutionStep) -> None:
        if training.step == stop:
            os.kill(os.getpid(), signal.SIGINT)

    store = Store(tmp_path / "interrupted")
    with pytest.raises(KeyboardInterrupt):
        evolution_runner.find_or_run(TINY_LPG, store, interrupt, workers=2 if stop == 5 else 1)
    assert not (store.root / "discoveries").exists()
    steps: list[int] = []
    folder = evolution_runner.find_or_run(TINY_LPG, store, lambda t, _: steps.append(t.step))
    assert steps == list(range(stop + 1, TINY_LPG.steps + 1))
    whole = evolution_runner.find_or_run(TINY_LPG, Store(tmp_path / "whole"))
    for name in (RULE, LOG):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()


def test_a_killed_worker_is_an_error_and_the_command_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rulescope.discover.discovery_runner.CHECKPOINT_SECONDS", 0.0)
    pools: list[Evaluators] = []

    def kill(training: EvolutionTraining, step: EvolutionStep) -> None:
        if step.generation == 2:
            pool = training.evaluators.pool
            assert pool is not None
            os.kill(next(iter(pool._processes)), signal.SIGKILL)
            pools.append(training.evaluators)

    store = Store(tmp_path / "killed")
    with pytest.raises(WorkerLostError, match="start the command again"):
        evolution_runner.find_or_run(TINY_LPG, store, kill, workers=2)
    assert pools
    steps: list[int] = []
    folder = evolution_runner.find_or_run(TINY_LPG, store, lambda t, _: steps.append(t.step))
    assert steps[0] > TINY_LPG.imitation.lifetimes + 2
    whole = evolution_runner.find_or_run(TINY_LPG, Store(tmp_path / "whole"))
    assert (folder / RULE).read_bytes() == (whole / RULE).read_bytes()


def test_every_recipe_is_valid_and_has_an_id_of_its_own() -> None:
    specs = [select_evolution(name) for name in EVOLUTIONS]
    assert len({spec.id for spec in specs}) == len(specs)
