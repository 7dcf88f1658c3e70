"""Campaigns that exceed disk or memory are refused before anything runs."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import numpy as np
import pytest

from engine.fakes import fake
from learners.small import RULE, small_spec
from rulescope.core import arrays
from rulescope.engine import resources
from rulescope.engine.local_engine import EngineError, run_all
from rulescope.learners.baseline_config import A2C, DQN, RandomPolicy
from rulescope.learners.disco_config import Disco
from rulescope.learners.learner_config import LearnerSpec
from rulescope.lifetime import Lifetime
from rulescope.records import Store
from rulescope.records.record import encode
from rulescope.run_spec import RunSpec

SPECS = [fake(seed) for seed in range(3)]


@pytest.mark.parametrize(
    ("fit", "hint"),
    [(2, "--workers 2 would fit"), (1, "--workers 1 would fit"), (0, "not even one fits")],
)
def test_too_little_memory_is_an_error_with_the_number_of_workers_that_fit(
    fit: int, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = resources.estimate(SPECS[0]).memory
    monkeypatch.setattr(resources, "free_memory", lambda: fit * each + 1)
    with pytest.raises(EngineError, match=rf"memory: 3 workers of about .* each need .*{hint}"):
        run_all(SPECS, Store(tmp_path / "store"), workers=8)
    assert not (tmp_path / "store").exists()


def test_too_little_disk_names_the_place_and_the_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "free_disk", lambda _: 1_500_000)
    with pytest.raises(
        EngineError, match=r"/store: 3 runs need about .* MB .*, and 1.5 MB are free"
    ):
        run_all(SPECS, Store(tmp_path / "store"), workers=2)
    assert not (tmp_path / "store").exists()


@pytest.mark.usefixtures("fake_workers")
def test_who_knows_better_can_insist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "free_disk", lambda _: 0)
    monkeypatch.setattr(resources, "free_memory", lambda: 0)
    assert run_all(SPECS[:1], Store(tmp_path), workers=1, force=True).finished == 1
    # Runs with a record need nothing.
    assert run_all(SPECS[:1], Store(tmp_path), workers=1).finished == 1


def test_intermediate_results_on_a_gpu_take_no_main_memory() -> None:
    spec = RunSpec(learner=Disco(rule="random:0"))
    here, there = resources.estimate(spec), resources.estimate(spec, "cuda")
    assert here.memory - there.memory == spec.learner.workspace(spec.lanes, spec.steps) > 0
    assert here[:2] == there[:2], "records and checkpoints are on the disk in any case"


def test_workers_that_share_a_gpu_are_counted_by_their_main_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = [RunSpec(learner=Disco(rule="random:0"), seed=seed) for seed in range(2)]
    enough = 2 * resources.estimate(specs[0], "cuda").memory
    monkeypatch.setattr(resources, "free_memory", lambda: enough)
    resources.require(specs, 2, tmp_path, "cuda")
    with pytest.raises(EngineError, match="--workers 1 would fit"):
        resources.require(specs, 2, tmp_path)


def test_unknown_limits_are_not_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "free_disk", lambda _: None)
    monkeypatch.setattr(resources, "free_memory", lambda: None)
    resources.require(SPECS, 1000, tmp_path)


def test_free_disk_of_a_store_that_does_not_exist_yet(tmp_path: Path) -> None:
    here = resources.free_disk(tmp_path)
    assert here is not None
    deep = resources.free_disk(tmp_path / "a" / "b")
    assert deep is not None
    assert abs(deep - here) < 1e9


def test_the_limits_of_a_container_apply(tmp_path: Path) -> None:
    own, top = tmp_path / "cgroup", tmp_path / "top"
    own.write_text("4:cpu,memory:/job\n0::/slice/job\n3:cpuset:/elsewhere\n")

    def group(path: str, limit: str, used: int, inactive: str) -> None:
        folder = top / path
        folder.mkdir(parents=True)
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        names = names if path.startswith("memory") else ("memory.max", "memory.current")
        (folder / names[0]).write_text(f"{limit}\n")
        (folder / names[1]).write_text(f"{used}\n")
        (folder / "memory.stat").write_text(f"anon 7\n{inactive} 10\n")

    group("slice/job", "max", 50, "inactive_file")
    group("memory/job", "1000", 300, "total_inactive_file")
    (top / "slice" / "memory.max").write_text("500")
    (top / "slice" / "memory.current").write_text("200")
    (top / "slice" / "memory.stat").write_text("inactive_file 20")
    assert sorted(resources._container_memory(own, top)) == [320, 710]
    assert list(resources._container_memory(tmp_path / "none", top)) == []


@pytest.mark.parametrize(
    "learner", [Disco(rule=RULE), A2C(), DQN(capacity=500, start=100), RandomPolicy()]
)
def test_estimates_are_upper_bounds_and_not_absurd(learner: LearnerSpec) -> None:
    spec: RunSpec = msgspec.structs.replace(small_spec(), learner=learner, iterations=6)
    kept = learner.CARRIERS if isinstance(learner, DQN) else spec.keep
    lifetime = Lifetime(msgspec.structs.replace(spec, keep=kept))
    lifetime.run(until=4)
    checkpoint = len(arrays.pack(lifetime.save(), compress=False))
    need = resources.estimate(lifetime.spec)
    assert checkpoint <= need.checkpoint <= 3 * checkpoint + 5_000_000
    assert need.memory < 1_000_000_000
    lifetime.run()
    assert sum(map(len, encode(lifetime.record()).values())) <= need.record
    assert np.isfinite(lifetime.log()["iteration"]).all()


@pytest.mark.parametrize(
    ("quota", "expected"),
    [("max 100000", 4), ("250000 100000", 2), ("50000 100000", 1), ("garbage", 4), ("", 4)],
)
def test_cores_are_those_that_this_process_may_use(
    quota: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2, 4, 6})
    (tmp_path / "cpu.max").write_text(quota)
    assert resources.cores(tmp_path / "cpu.max") == expected
    assert resources.cores(tmp_path / "none") == 4
