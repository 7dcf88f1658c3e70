"""Finding, pausing, resuming and interrupting single lifetimes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

import rulescope
from learners.small import small_spec
from rulescope import runner
from rulescope.core.errors import DivergedError, ExitError, SpecError
from rulescope.learners.disco.disco_learner import DiscoLearner
from rulescope.lifetime import Lifetime, Progress
from rulescope.records import Store

SMALL = small_spec(iterations=8, log_every=2)


def test_a_record_is_made_once_and_then_found(tmp_path: Path) -> None:
    store = Store(tmp_path)
    made = runner.find_or_make(SMALL, store)
    seen: list[Progress] = []
    found = runner.find_or_make(SMALL, store, report=seen.append)
    assert found.manifest.science_hash == made.manifest.science_hash
    assert not seen, "nothing should have been run again"


def test_a_paused_lifetime_resumes_bit_identically(tmp_path: Path) -> None:
    whole = runner.find_or_make(SMALL, Store(tmp_path / "whole"))
    store = Store(tmp_path / "parts")
    for stop in (1, 3, 7):
        with pytest.raises(runner.Paused) as pause:
            runner.find_or_make(SMALL, store, stop_after=stop)
        assert pause.value.iteration == stop
        assert SMALL.id not in store
    iterations: list[int] = []
    record = runner.find_or_make(SMALL, store, report=lambda p: iterations.append(p.iteration))
    assert iterations == [8]
    assert record.manifest.science_hash == whole.manifest.science_hash
    assert store.load_checkpoint(SMALL.id) is None


def test_an_interrupt_waits_for_the_iteration_and_leaves_a_checkpoint(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def interrupt(progress: Progress) -> None:
        if progress.iteration == 3:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        runner.find_or_make(SMALL, store, report=interrupt)
    assert signal.getsignal(signal.SIGINT) is before
    checkpoint = store.load_checkpoint(SMALL.id)
    assert checkpoint is not None
    assert 3 <= int(checkpoint["loop/iteration"]) <= 4
    resumed = runner.find_or_make(SMALL, store)
    whole = runner.find_or_make(SMALL, Store(tmp_path / "whole"))
    assert resumed.manifest.science_hash == whole.manifest.science_hash


def test_long_runs_keep_checkpoints_as_they_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "CHECKPOINT_SECONDS", 0.0)
    store = Store(tmp_path)
    kept: list[int | None] = []

    def look(_: Progress) -> None:
        checkpoint = store.load_checkpoint(SMALL.id)
        kept.append(None if checkpoint is None else int(checkpoint["loop/iteration"]))

    runner.find_or_make(SMALL, store, report=look)
    assert kept == [None, *range(1, 8)]
    assert np.isfinite(store.read(SMALL.id).log["loss_y"][-1])


def test_a_spec_with_lists_for_tuples_finds_the_same_record(tmp_path: Path) -> None:
    loose = msgspec.structs.replace(SMALL, keep=list(SMALL.keep))
    made = runner.find_or_make(loose, Store(tmp_path))
    assert made.manifest.id == SMALL.id


def test_an_unknown_device_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="device 'abacus'"):
        runner.find_or_make(SMALL, Store(tmp_path), device="abacus")


def test_a_checkpoint_of_another_version_is_not_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path)
    with monkeypatch.context() as other:
        other.setattr("rulescope.core.runtime.source_identity", lambda: {"version": "0.0.1"})
        with pytest.raises(runner.Paused):
            runner.find_or_make(SMALL, store, stop_after=5)
    iterations: list[int] = []
    runner.find_or_make(SMALL, store, report=lambda p: iterations.append(p.iteration))
    assert iterations == list(range(1, 9))
    assert "starts again" in caplog.text


PART = """
import sys
from pathlib import Path
from rulescope.learners.baseline_config import A2C, NetworkSizes
from rulescope.records import Store
from rulescope.runner import Paused, find_or_make
from rulescope.run_spec import RunSpec

learner = A2C(agent=NetworkSizes(hidden=(4, 4)))
spec = RunSpec(learner=learner, iterations=8, log_every=2, steps=6)
seen = []
try:
    find_or_make(
        spec, Store(Path(sys.argv[1])), report=lambda p: seen.append(p.iteration), stop_after=4
    )
except Paused:
    pass
print(seen)
"""


def test_a_run_is_not_continued_by_an_edited_copy_of_the_program(tmp_path: Path) -> None:
    package = tmp_path / "copy" / "rulescope"
    left_out = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(rulescope.__file__).parent, package, ignore=left_out)

    def part() -> str:
        command = [sys.executable, "-c", PART, str(tmp_path / "store")]
        environment = {**os.environ, "PYTHONPATH": str(package.parent)}
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        ).stdout.strip()

    assert part() == "[1, 2, 3, 4]"
    assert part() == "[]", "the same program goes on from its checkpoint"
    source = package / "learners" / "a2c.py"
    source.write_text(source.read_text() + "\n# edited\n")
    assert part() == "[1, 2, 3, 4]"


def test_a_rule_that_exits_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscoLearner, "act", lambda *_: sys.exit(0))
    with pytest.raises(ExitError, match=r"iteration 1: .*called sys\.exit\(0\)"):
        runner.find_or_make(SMALL, Store(tmp_path))
    assert SMALL.id not in Store(tmp_path)


def test_a_divergence_error_names_the_iteration() -> None:
    lifetime = Lifetime(SMALL)
    lifetime.run(until=6)
    params = lifetime.learner.carriers["params"]
    params.set({"flat": np.full_like(params.get()["flat"], np.nan)})
    with pytest.raises(DivergedError, match=r"iteration 7: .*finite"):
        lifetime.advance()


def test_a_checkpoint_of_another_device_is_not_continued(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path)
    with pytest.raises(runner.Paused):
        runner.find_or_make(SMALL, store, stop_after=3)
    iterations: list[int] = []
    record = runner.find_or_make(
        SMALL, store, report=lambda p: iterations.append(p.iteration), device="cpu:0"
    )
    assert iterations == list(range(1, 9)), "it starts again"
    assert "starts again" in caplog.text
    assert record.manifest.runtime["device"] == "cpu:0"
