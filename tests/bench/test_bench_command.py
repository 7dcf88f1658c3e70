import json
import sys
from typing import Any

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from benchmarks import disco_comparison, sb3_comparison
from benchmarks.bench_command import bench
from benchmarks.measurement import Spread
from rulescope.envs.world_config import Catch
from rulescope.learners.baseline_config import A2C, NetworkSizes
from rulescope.learners.disco_config import AGENTS, Disco
from rulescope.run_spec import RunSpec


@pytest.fixture(autouse=True)
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every lifetime small and disco-torch unavailable, and do not measure memory."""

    def spec(_rule: str, environment: Catch, bundle: str = "historical", batch: int = 4) -> RunSpec:
        learner = Disco(
            rule=disco_comparison.FALLBACK,
            conventions=AGENTS[bundle],
            batch=4,
            capacity=max(8, batch),
        )
        return RunSpec(learner=learner, environment=environment)

    monkeypatch.setattr(disco_comparison, "lifetime_spec", spec)
    monkeypatch.setattr(disco_comparison, "peak_memory", lambda _rule, _iterations: 123.0)
    monkeypatch.setitem(sys.modules, "disco_torch", None)


def run(*arguments: str) -> Any:
    app = typer.Typer()
    app.command("bench")(bench)
    result = CliRunner().invoke(app, ["--quick", "--rounds", "1", *arguments])
    assert result.exit_code == 0, result.output
    return result


def test_json_is_one_object_on_standard_output() -> None:
    found = json.loads(run("--no-scaling", "--json").stdout)
    assert found["ratio_to_peer"] is None
    assert found["peer"] is None
    assert any("pip install rulescope[bench]" in note for note in found["notes"])
    assert found["ratio_to_limit"] == found["catch"]["ratio_to_limit"]["median"] > 0.0
    assert found["catch"]["grid"] == 8
    assert found["catch_big"]["grid"] == 24
    assert found["catch"]["agent"] == "legacy"
    assert found["scaling"] == []
    assert found["memory_mb"] == 123.0
    assert found["runtime"]["threads"] == 1


def test_tables_have_limit_peer_and_memory() -> None:
    result = run()
    assert "must be otherwise idle" in result.stdout
    assert "pip install rulescope[bench]" in result.stdout
    assert "ours / limit" in result.stdout
    assert "24x24" in result.stdout
    assert "123 MB" in result.stdout
    assert "bench" in result.stderr


def test_the_peer_can_be_left_out() -> None:
    found = json.loads(run("--no-peer", "--no-scaling", "--json").stdout)
    assert found["ratio_to_peer"] is None
    assert not any("disco-torch" in note for note in found["notes"])


def test_a_ratio_to_the_peer_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = disco_comparison.compare

    def compare(*arguments: Any, **named: Any) -> disco_comparison.Comparison:
        spread = Spread(5.5, 5.0, 6.0)
        return msgspec.structs.replace(inner(*arguments, **named), ratio_to_peer=spread)

    monkeypatch.setattr(disco_comparison, "compare", compare)
    assert json.loads(run("--no-scaling", "--json").stdout)["ratio_to_peer"] == 5.5
    assert "5.50 (5.00 to 6.00)" in run("--no-scaling").stdout


def test_a_baseline_is_measured_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    little = NetworkSizes(hidden=(8, 8))
    spec = RunSpec(learner=A2C(agent=little), iterations=1000, log_every=1000)
    monkeypatch.setattr(sb3_comparison, "baseline_spec", lambda _: spec)
    found = json.loads(run("--learner", "a2c", "--no-peer", "--json").stdout)
    assert found["learner"] == "a2c"
    assert found["ratio_to_peer"] is None
    assert found["ours_iterations_per_second"]["median"] > 0.0
    shown = run("--learner", "a2c", "--no-peer").stdout
    assert "a2c, catch 8x8" in shown
    assert "peer / ours: -" in shown
