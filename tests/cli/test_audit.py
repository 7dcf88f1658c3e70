"""``rulescope audit`` from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rulescope.cli.main import app
from rulescope.errors import RulescopeError


def test_the_audit_writes_figure_table_and_data(tmp_path: Path) -> None:
    command = ["audit", "random:20240", "--iterations", "20", "--seeds", "1", "--workers", "1"]
    command += ["--store", str(tmp_path / "store"), "--out", str(tmp_path / "results")]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 0
    assert "pinned" in result.stdout
    names = sorted(path.name for path in (tmp_path / "results").iterdir())
    assert names == [f"live-versus-pinned.{ending}" for ending in ("json", "md", "png")]
    body = json.loads((tmp_path / "results" / "live-versus-pinned.json").read_text())
    assert body["scores"].keys() == {"live", "pinned"}
    assert body["runs"]["live"] != body["runs"]["pinned"]
    assert "| pinned | 1 |" in (tmp_path / "results" / "live-versus-pinned.md").read_text()


def test_an_unknown_rule_is_refused_before_anything_runs(tmp_path: Path) -> None:
    command = ["audit", "disco1003", "--store", str(tmp_path / "store")]
    with pytest.raises(RulescopeError, match="disco103"):
        CliRunner().invoke(app, command, catch_exceptions=False)
    assert not (tmp_path / "store").exists()
