"""``rulescope records clean``: tells what it would remove, removes it, and leaves records alone."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from made_up_records import fill
from rulescope.cli.main import app
from rulescope.records import Store
from rulescope.spec.baseline_config import RandomPolicy
from rulescope.spec.run_spec import RunSpec

SPEC = RunSpec(learner=RandomPolicy(), iterations=20, log_every=10)


def clean(root: Path, *options: str) -> Any:
    command = ["records", "clean", "--store", str(root), *options]
    return CliRunner().invoke(app, command)


def test_leftovers_are_told_and_removed_and_records_stay(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    fill(store, [SPEC])
    rubbish = store.root / "tmp" / "0123-dead"
    rubbish.mkdir(parents=True, exist_ok=True)
    os.utime(rubbish, (0, 0))
    aside = store.root / "quarantine" / f"{'0' * 64}-1"
    aside.mkdir(parents=True)
    assert "1 leftover of 0 B would be removed" in clean(store.root, "--dry-run").stdout
    assert rubbish.exists()
    said = json.loads(clean(store.root, "--json").stdout)
    assert [each["path"] for each in said["leftovers"]] == ["tmp/0123-dead"]
    assert not rubbish.exists()
    assert aside.exists()
    assert "1 leftover" in clean(store.root, "--quarantine").stdout
    assert not aside.exists()
    assert store.verify() == []
    assert list(store.ids()) == [SPEC.id]


def test_a_store_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    result = clean(tmp_path / "nowhere")
    assert "no such store" in str(result.exception)
