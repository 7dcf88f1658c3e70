"""The tortures at a small size. Each is a process of its own, as ``make torture`` would be."""

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
from torture.main import main

SCRIPT = Path(__file__).parents[2] / "scripts" / "torture"


def shown(folder: Path, part: str, *options: str) -> dict[str, Any]:
    """Run one part of the script; return the promise that it is about."""
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


def test_death_at_every_step_of_a_write(tmp_path: Path) -> None:
    found = shown(tmp_path, "points")
    assert {"before fsync", "amid write", "before rename", "after rename"} < found["phases"].keys()


def test_kills_at_any_moment(tmp_path: Path) -> None:
    small = ("--lives", "light", "--seeds", "1", "--kills", "8")
    found = shown(tmp_path, "kills", *small)
    assert found["kills"] >= 8
    assert found["complete"] >= 1


def test_damage_to_every_kind_of_file(tmp_path: Path) -> None:
    small = ("--lives", "light", "--seeds", "1", "--damages", "12")
    found = shown(tmp_path, "flips", *small)
    assert found["detected"] == dict.fromkeys(flips.KINDS, 2)


def test_many_writers(tmp_path: Path) -> None:
    found = shown(tmp_path, "writers", "--writers", "4", "--commits", "20")
    assert (found["commits"], found["once"], found["rubbish"]) == (80, 20, 0)


def test_bad_disks(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    found = shown(tmp_path, "faults", "--commands", "1")
    for what in found["skipped"]:
        record_property(machine.LEFT_OUT, what)
    assert found["faults"].keys() > faults.FAULTS.keys()


def broken_kills(*_: object, **__: object) -> kills.Killed:
    return kills.Killed(complete=1, wrong=["a partial record is visible"])


def broken_writers(*_: object, **__: object) -> writers.Written:
    return writers.Written(4, {"a": 1, "b": 2}, [], 0)


@pytest.mark.parametrize(
    ("module", "broken", "told"),
    [(kills, broken_kills, "a partial record"), (writers, broken_writers, "1/2 runs")],
)
def test_a_broken_promise_is_told_and_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    module: Any,
    broken: Callable[..., object],
    told: str,
) -> None:
    monkeypatch.setattr(module, "torture", broken)
    part = module.__name__.rpartition(".")[2]
    assert main(["--only", part, "--kills", "0", "--commits", "2"]) == 1
    said = capsys.readouterr().out
    assert "BROKEN" in said
    assert told in said


def test_half_a_record_would_be_seen(tmp_path: Path) -> None:
    """The watch over a campaign that is killed is awake."""
    from made_up_records import fill

    store, specs = Store(tmp_path / "store-0"), grid(1)
    fill(store, list(specs.values())[:1])
    [run] = store.ids()
    torturer = kills._Torturer(tmp_path, "light", 1, {run: "?"}, random.Random(0), print)
    torturer._look()
    assert torturer.found.wrong == [f"run {run} has another science hash"]
    (store.folder(run) / "log.npz").write_bytes(b"half")
    torturer._look()
    assert "a partial record is visible" in torturer.found.wrong[-1]
