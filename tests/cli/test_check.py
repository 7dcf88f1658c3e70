"""``rulescope check``."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import invoke, invoke_json
from rulescope.assays.streams import world_checks
from rulescope.core.errors import RulescopeError
from rulescope.numerics import parity_checks
from rulescope.numerics.output_parity import compare_value_estimator
from rulescope.numerics.tolerances import Comparison


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write results below a folder of the test's own."""
    monkeypatch.chdir(tmp_path)


def test_the_committed_arrays_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    # One kind suffices here: all of them are tested beside their code.
    monkeypatch.setattr(parity_checks, "CHECKS", (compare_value_estimator,))
    body = invoke_json("check")
    assert body["passed"] is True
    (kind,) = body["kinds"]
    assert kind["outputs"] == 9
    assert kind["absolute"] < 1e-12


def test_an_error_beyond_tolerance_is_exit_code_one(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Comparison("forward", "float64", "pi", 1.0, 1.0, 1e-9)
    monkeypatch.setattr(parity_checks, "CHECKS", (lambda _: iter([wrong]),))
    for arguments in (["check"], ["check", "--json"], ["check", "--all"]):
        invoke(*arguments, code=1)


def test_a_directory_without_golden_arrays_is_named(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(RulescopeError, match=str(place)):
            invoke("check", "--golden", place)


def test_the_numerical_table_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(parity_checks, "CHECKS", (compare_value_estimator,))
    body = invoke_json("check", "--out", tmp_path / "here")
    names = {Path(path).name for path in body["files"]}
    assert names == {"check.json", "tab-numeric.md", "tab-numeric.csv", "tab-numeric.tex"}
    text = (tmp_path / "here" / "check" / "tab-numeric.md").read_text()
    assert "| Value estimator | float64 / float64 | 9 | 5.471e-14 | 9 | 108 |" in text
    assert "written:" in invoke("check").stdout
    assert (tmp_path / "results" / "check" / "check.json").is_file()


def test_worlds_are_checked_and_recorded(tmp_path: Path) -> None:
    small = ("--episodes", "300", "--steps", "700")
    body = invoke_json("check", "worlds", *small)
    assert body["passed"] is True
    recorded = world_checks.read(tmp_path / "results" / "worlds" / "worlds.json")
    assert recorded.passed
    assert recorded.command == "rulescope check worlds --episodes 300 --steps 700"
    assert {Path(path).suffix for path in body["files"]} == {".json", ".md", ".csv", ".tex"}


def test_worlds_that_reset_are_exit_code_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world_checks, "SAMPLED", ())
    stream, control = world_checks.structures()
    monkeypatch.setattr(world_checks, "structures", lambda: (control, stream))
    assert "FAILED" in invoke("check", "worlds", code=1).stdout
