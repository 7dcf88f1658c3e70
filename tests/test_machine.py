"""Markers of tests; and a missing program: a clear skip for users, a failure in CI."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import machine
import markers

TESTS = Path(__file__).parent
CI_SCRIPT = TESTS.parent / ".ci" / "run"
SAMPLE = """
import machine
import pytest

NOWHERE = machine.Program("Abacus", ("abacus-of-no-machine",), "buy one")


@pytest.mark.parametrize("number", [1, 2])
def test_that_counts(number: int) -> None:
    machine.require(NOWHERE, machine.find(NOWHERE))


def test_that_passes(record_property: object) -> None:
    record_property("left out", "counting with beads")
"""
SENTENCE = "2 tests skipped: no Abacus on this machine: buy one."


def run_pytest(folder: Path, text: str, *options: str, **surroundings: str) -> tuple[int, str]:
    """Run pytest as in this project on a file with ``text``; return exit code and output."""
    (folder / "test_sample.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    kept = {key: value for key, value in os.environ.items() if key not in machine.STRICT_VARIABLES}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "conftest",
            "-p",
            "no:cacheprovider",
            *options,
        ],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(TESTS)} | surroundings,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["one process", "workers"])
def test_a_missing_program_is_a_skip_that_the_last_lines_explain(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    code, output = run_pytest(tmp_path, SAMPLE, *options)
    assert code == 0, output
    last = output[output.index("not tested on this machine") :].splitlines()
    assert SENTENCE in last
    assert "Left out: counting with beads." in last


@pytest.mark.parametrize("name", machine.STRICT_VARIABLES)
def test_a_missing_program_is_a_failure_in_continuous_integration(
    tmp_path: Path, name: str
) -> None:
    code, output = run_pytest(tmp_path, SAMPLE, **{name: "true"})
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "Failed: no Abacus on this machine: buy one" in output
    assert "2 failed, 1 passed" in output


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["one process", "workers"])
def test_any_skip_fails_the_run_in_continuous_integration(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    sample = "import pytest\n\ndef test_that_is_skipped():\n    pytest.importorskip('no_such')\n"
    assert run_pytest(tmp_path, sample, *options)[0] == 0
    code, output = run_pytest(tmp_path, sample, *options, CI="true")
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "1 test skipped: could not import 'no_such'" in output


@pytest.mark.parametrize(
    ("value", "expected"), [("true", True), ("1", True), ("", False), ("false", False)]
)
def test_only_a_variable_that_says_yes_is_strict(value: str, expected: bool) -> None:
    assert machine.strict({"CI": value}) is expected
    assert machine.strict({"RULESCOPE_TEST_ALL": value}) is expected
    assert not machine.strict({})


def test_the_script_of_continuous_integration_lets_nothing_be_skipped() -> None:
    script = CI_SCRIPT.read_text()
    assert "export RULESCOPE_TEST_ALL=1" in script
    for program in (machine.CHROMIUM, machine.GIT):
        assert f"command -v {program.names[0]}" in script


@pytest.mark.parametrize("place", markers.MARKERS)
def test_every_place_with_a_marker_exists(place: str) -> None:
    assert markers.exists(place), "renamed or moved: adapt tests/markers.py"


@pytest.mark.parametrize(
    ("file", "name", "marker"),
    [
        ("stats/test_bins.py", "test_anything", "fast"),
        ("torture/test_torture.py", "test_anything", "torture"),
        ("bench/test_bench_peer.py", "test_anything[1]", "slow"),
        ("audit/test_history_answer.py", "test_no_answer_contradicts_what_is_true[a-b]", "slow"),
        ("audit/test_history_answer.py", "test_anything", "fast"),
    ],
)
def test_a_test_has_the_marker_of_its_place(file: str, name: str, marker: str) -> None:
    assert markers.marker_of(TESTS / file, name) == marker


def test_a_test_elsewhere_gets_no_marker(tmp_path: Path) -> None:
    assert markers.marker_of(tmp_path / "test_sample.py", "test_anything") is None


def test_markers_that_are_assigned_are_declared(pytestconfig: pytest.Config) -> None:
    declared = {line.partition(":")[0] for line in pytestconfig.getini("markers")}
    assert {"fast", *markers.MARKERS.values()} <= declared


def test_the_workflow_runs_every_test_with_the_packages_of_the_script() -> None:
    workflow = (TESTS.parent / ".github" / "workflows" / "test.yml").read_text()
    assert "run: make test" in workflow
    assert 'RULESCOPE_TEST_ALL: "1"' in workflow
    install = re.compile(r"--no-install-recommends ([^\n\\]+)")
    ours, theirs = (install.findall(text) for text in (CI_SCRIPT.read_text(), workflow))
    assert ours[0].split() == theirs[0].split()


def test_hooks_before_a_commit_call_the_tools_of_the_virtual_environment() -> None:
    hooks = (TESTS.parent / ".pre-commit-config.yaml").read_text()
    assert re.findall(r"repo: (\S+)", hooks) == ["local"]
    for tool in ("ruff check", "ruff format", "mypy"):
        assert f"entry: .venv/bin/{tool}" in hooks
