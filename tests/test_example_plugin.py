"""The example package passes the tests that plug-in authors are to copy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from plugin_packages import EXAMPLE, example_installed


def test_the_example_passes_its_own_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with example_installed(tmp_path / "site", monkeypatch):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"],
            cwd=EXAMPLE,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 passed" in done.stdout


def test_the_rule_is_as_short_as_is_said() -> None:
    source = (EXAMPLE / "src/rulescope_example/rule.py").read_text()
    body = source[source.index("class Sized") :].splitlines()
    assert len([line for line in body if line.strip()]) <= 20
