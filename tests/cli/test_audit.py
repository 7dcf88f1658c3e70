"""``rulescope audit`` from the outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rulescope.cli import audit
from rulescope.cli.main import app
from rulescope.engine import local
from rulescope.errors import RulescopeError, WeightsError
from rulescope.rules import loading, locate

SHORT = ["--iterations", "20", "--seeds", "1", "--workers", "1"]


def invoke(*arguments: str | Path) -> Any:
    command = ["audit", *(str(part) for part in arguments)]
    return CliRunner().invoke(app, command, catch_exceptions=False)


def test_the_audit_writes_figures_tables_and_data(tmp_path: Path) -> None:
    places: list[str | Path] = ["--store", tmp_path / "store", "--out", tmp_path / "results"]
    result = invoke("random:20240", *SHORT, "--scales", "0.1,1", *places)
    assert result.exit_code == 0
    assert "Pin 0" in result.stdout
    folder = tmp_path / "results" / "E1-random-20240"
    names = {path.name for path in folder.iterdir()}
    assert {"README.md", "results.json", "scale-audit.png", "tab-e1-all.csv"} <= names
    data = json.loads((folder / "results.json").read_text())
    assert data["axes"]["arm"] == ["live", "pin"]
    assert len(data["runs"]) == 4


def test_limits_are_passed_on_as_by_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def run_all(specs: Any, _: Any, **options: Any) -> local.Campaign:
        asked.update(options)
        return local.Campaign(total=0, failed={item.id: "none" for item in specs})

    monkeypatch.setattr(local, "run_all", run_all)
    places: list[str | Path] = ["--store", tmp_path / "store", "--out", tmp_path / "results"]
    assert invoke("random:0", *SHORT, "--time-limit", "9", "--force", *places).exit_code == 3
    assert (asked["patience"].run, asked["force"]) == (9.0, True)


def test_an_unknown_rule_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(RulescopeError, match="disco103"):
        invoke("disco1003", "--store", tmp_path / "store")
    assert not (tmp_path / "store").exists()


def without_rule(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    def refuse(name: str, *rest: Any, **options: Any) -> Any:
        if name == "disco103":
            raise WeightsError(fault)
        return real(name, *rest, **options)

    real = loading.load
    monkeypatch.setattr(loading, "load", refuse)


def test_without_weights_it_audits_random_ones_and_says_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_rule(monkeypatch, "the weights of disco103 could not be fetched: by hand: ...")
    monkeypatch.setattr(locate, "find", lambda *_: None)
    places: list[str | Path] = ["--store", tmp_path / "store", "--out", tmp_path / "results"]
    result = invoke(*SHORT, *places, "--json")
    assert result.exit_code == 0
    assert "could not be fetched" in result.stderr
    assert "get its weights as above" in result.stderr
    said = json.loads(result.stdout)
    assert said["folder"].endswith("E1-random-0")
    assert said["results"]["axes"]["arm"] == ["live", "pin", "hold"]


def test_damaged_weights_are_an_error_not_a_reason_for_other_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_rule(monkeypatch, "disco_103.npz: wrong sha256")
    monkeypatch.setattr(locate, "find", lambda *_: tmp_path)
    with pytest.raises(WeightsError, match="wrong sha256"):
        audit._available(None)
