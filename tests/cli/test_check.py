"""``rulescope check`` from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rulescope.cli.main import app
from rulescope.errors import RulescopeError
from rulescope.numerics import check as families
from rulescope.numerics.comparison import Comparison
from rulescope.numerics.values import value_estimator


def test_the_committed_arrays_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    # One family suffices here: all of them are tested beside their code.
    monkeypatch.setattr(families, "FAMILIES", (value_estimator,))
    result = CliRunner().invoke(app, ["check", "--json"], catch_exceptions=False)
    body = json.loads(result.stdout)
    assert result.exit_code == 0
    assert body["passed"] is True
    (family,) = body["families"]
    assert family["outputs"] == 9
    assert family["absolute"] < 1e-12


def test_an_error_beyond_tolerance_is_exit_code_one(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Comparison("forward", "float64", "pi", 1.0, 1.0, 1e-9)
    monkeypatch.setattr(families, "FAMILIES", (lambda _: iter([wrong]),))
    for arguments in (["check"], ["check", "--json"], ["check", "--all"]):
        assert CliRunner().invoke(app, arguments).exit_code == 1


def test_a_directory_without_golden_arrays_is_named(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(RulescopeError, match=str(place)):
            CliRunner().invoke(app, ["check", "--golden", str(place)], catch_exceptions=False)
