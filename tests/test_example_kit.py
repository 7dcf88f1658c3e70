"""The examples of the kit pass the tests that authors of rules are to copy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from plugin_packages import EXAMPLES, example_installed
from rulescope.engine.local_engine import run_all
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.learners.plugin_rule import pin_rule
from rulescope.lifetime import Lifetime
from rulescope.records import Store
from rulescope.run_spec import RunSpec

KIT = EXAMPLES / "kit"


@pytest.mark.parametrize(("rules", "passed"), [("not jax", 9), ("jax", 3)])
def test_the_examples_pass_their_own_tests(
    rules: str, passed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if rules == "jax":
        pytest.importorskip("jax")
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"]
    with example_installed(tmp_path / "site", monkeypatch, KIT):
        done = subprocess.run(
            [*command, "-k", rules],
            cwd=KIT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{passed} passed" in done.stdout


def test_a_rule_in_jax_has_the_same_results_in_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is another process, in which JAX starts anew and finds all cores."""
    pytest.importorskip("jax")
    with example_installed(tmp_path / "site", monkeypatch, KIT):
        rule = replace(pin_rule("sized-jax"), agent=NetworkSizes(hidden=(16, 16)))
        spec = RunSpec(learner=rule, scale=0.1, iterations=6, log_every=2, steps=9)
        store = Store(tmp_path / "store")
        assert run_all([spec], store, workers=1).finished == 1
        here = Lifetime(spec)
        here.run()
        there = store.manifest(spec.id)
    assert here.record().manifest.science_hash == there.science_hash
    assert "package_jax" in there.runtime
    assert "package_jaxlib" in there.runtime
