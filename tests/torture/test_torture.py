"""The stress tests at a small size, each in a process of its own, as with ``make torture``."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import machine
import rulescope
from rulescope.records import Store
from torture import faults, flips, kills, writers
from torture.grid import grid
from torture.torture_main import main

SCRIPT = Path(__file__).parents[2] / "scripts" / "torture"


def run_part(folder: Path, part: str, *options: str) -> dict[str, Any]:
    """Run one part of the script; check its promise; return the figures."""
    command = [sys.executable, str(SCRIPT), "--only", part, "--json", "--folder", str(folder)]
    source = str(Path(rulescope.__file__).parents[1])
    done = subprocess.run(
        [*command, *options],
        env=os.environ | {"PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [promise] = json.loads(done.stdout)
    assert promise["kept"]
    assert promise["problems"] == []
    figures: dict[str, Any] = promise["figures"]
    return figures


def test_kills_at_every_step_of_a_write(tmp_path: Path) -> None:
    found = run_part(tmp_path, "points")
    assert {"before fsync", "amid write", "before rename", "after rename"} < found["phases"].keys()


def test_kills_at_any_moment(tmp_path: Path) -> None:
    small = ("--lifetimes", "light", "--seeds", "1", "--kills", "8")
    found = run_part(tmp_path, "kills", *small)
    assert found["kills"] >= 8
    assert found["complete"] >= 1


def test_damage_to_every_kind_of_file(tmp_path: Path) -> None:
    small = ("--lifetimes", "light", "--seeds", "1", "--damages", "12")
    found = run_part(tmp_path, "flips", *small)
    assert found["detected"] == dict.fromkeys(flips.KINDS, 2)


def test_many_writers(tmp_path: Path) -> None:
    found = run_part(tmp_path, "writers", "--writers", "4", "--commits", "20")
    assert (found["commits"], found["once"], found["leftovers"]) == (80, 20, 0)


def test_disk_errors(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    found = run_part(tmp_path, "faults", "--commands", "1")
    for what in found["skipped"]:
        record_property(machine.LEFT_OUT, what)
    assert found["faults"].keys() > faults.FAULTS.keys()


def broken_kills(*_: object, **__: object) -> kills.Killed:
    return kills.Killed(complete=1, problems=["a partial record is visible"])


def broken_writers(*_: object, **__: object) -> writers.Written:
    return writers.Written(4, {"a": 1, "b": 2}, [], 0)


@pytest.mark.parametrize(
    ("module", "broken", "problem"),
    [(kills, broken_kills, "a partial record"), (writers, broken_writers, "1/2 runs")],
)
def test_a_broken_promise_is_printed_and_sets_the_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    module: Any,
    broken: Callable[..., object],
    problem: str,
) -> None:
    monkeypatch.setattr(module, "torture", broken)
    part = module.__name__.rpartition(".")[2]
    assert main(["--only", part, "--kills", "0", "--commits", "2"]) == 1
    output = capsys.readouterr().out
    assert "BROKEN" in output
    assert problem in output


def test_the_check_of_visible_records_detects_a_partial_one(tmp_path: Path) -> None:
    from made_up_records import fill

    store, specs = Store(tmp_path / "store-0"), grid(1)
    fill(store, list(specs.values())[:1])
    [run] = store.ids()
    torturer = kills._Torturer(tmp_path, "light", 1, {run: "?"}, random.Random(0), print)
    torturer._check_records()
    assert torturer.found.problems == [f"run {run} has another science hash"]
    (store.folder(run) / "log.npz").write_bytes(b"half")
    torturer._check_records()
    assert "a partial record is visible" in torturer.found.problems[-1]
