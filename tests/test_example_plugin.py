"""The example package passes the tests that plug-in authors are to copy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from plugin_packages import CONTINUAL, EXAMPLE, example_installed


@pytest.mark.parametrize(("example", "passing"), [(EXAMPLE, 8), (CONTINUAL, 9)])
def test_an_example_passes_its_own_tests(
    example: Path, passing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with example_installed(tmp_path / "site", monkeypatch, example):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"],
            cwd=example,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{passing} passed" in done.stdout


def test_the_rule_is_as_short_as_is_said() -> None:
    assert _lines(EXAMPLE / "src/rulescope_example/rule.py") <= 20


def test_published_methods_are_short_rules() -> None:
    folder = CONTINUAL / "src/rulescope_continual"
    assert _lines(folder / "return_scaled.py") <= 50
    assert _lines(folder / "continual_backprop.py") <= 70


def _lines(module: Path) -> int:
    """Return the lines of the class in ``module``, empty ones left out."""
    source = module.read_text()
    body = source[source.index("\nclass ") :].splitlines()
    return len([line for line in body if line.strip()])
