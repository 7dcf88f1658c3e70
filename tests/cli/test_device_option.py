"""``--device``: refused before anything runs, or passed to where learners compute.

No GPU is needed: torch computes on ``cpu:0`` as on ``cpu``, but it is another name, so it can be
followed through commands and worker processes.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import invoke, invoke_json
from discover.tiny_discovery import TINY
from learners.small import small_spec
from rulescope.core import runtime
from rulescope.core.errors import SpecError
from rulescope.core.structs import expanded
from rulescope.discover import discovery_runner
from rulescope.engine.execution import Execution
from rulescope.records import Store

RUN = ["run", "scale", "--rule", "random:0", "--preset", "smoke", "--iterations", "20"]
RUN += ["--scales", "1", "--arms", "live", "--workers", "2"]


@pytest.fixture
def other_name(monkeypatch: pytest.MonkeyPatch) -> str:
    """A second name of the processor, which counts as available."""
    monkeypatch.setattr(runtime, "list_devices", lambda: ["cpu", "cpu:0"])
    return "cpu:0"


@pytest.fixture
def lifetime_file(tmp_path: Path) -> Path:
    path = tmp_path / "lifetime.json"
    path.write_text(json.dumps(expanded(small_spec(iterations=4, log_every=2))))
    return path


@pytest.fixture
def discovery_file(tmp_path: Path) -> Path:
    path = tmp_path / "discovery.json"
    path.write_text(json.dumps(expanded(TINY)))
    return path


@pytest.mark.parametrize("device", ["abacus", "meta", "cpu:1", ""])
@pytest.mark.parametrize(
    "command",
    [RUN, [*RUN, "--plan"], ["audit", "--preset", "smoke"], ["life"], ["discover"], ["check"]],
    ids=" ".join,
)
def test_a_device_that_is_not_here_is_an_error_before_anything_runs(
    command: list[str], device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runtime, "list_devices", lambda: ["cpu", "cuda", "cuda:0"])
    with pytest.raises(SpecError) as caught:
        invoke(*command, "--device", device)
    expected = f"--device: {device!r} is not available here; available: cpu, cuda, cuda:0"
    assert str(caught.value) == expected
    assert list(tmp_path.iterdir()) == []


def test_the_device_of_an_assay_reaches_the_learners_in_its_workers(
    tmp_path: Path, other_name: str
) -> None:
    places = ["--store", str(tmp_path / "store"), "--out", str(tmp_path / "results")]
    assert invoke_json(*RUN, *places, "--device", other_name)["failed"] == {}
    invoke(*RUN, "--store", tmp_path / "usual", "--out", tmp_path / "results")
    store, usual = Store(tmp_path / "store"), Store(tmp_path / "usual")
    runs = list(store.ids())
    assert runs == list(usual.ids()), "the device is no part of the run id"
    for run in runs:
        made, expected = store.read(run).manifest, usual.read(run).manifest
        assert (made.runtime["device"], expected.runtime["device"]) == (other_name, "cpu")
        assert made.science_hash == expected.science_hash


def test_the_device_of_a_lifetime_is_in_its_record(
    lifetime_file: Path, tmp_path: Path, other_name: str
) -> None:
    words = ["life", "--spec", str(lifetime_file), "--store", str(tmp_path / "store")]
    body = invoke_json(*words, "--device", other_name)
    assert Store(tmp_path / "store").read(body["id"]).manifest.runtime["device"] == other_name


def test_the_device_of_a_discovery_is_in_its_manifest_and_its_rule_is_the_same(
    discovery_file: Path, tmp_path: Path, other_name: str
) -> None:
    files = []
    for device in ("cpu", other_name):
        words = ["discover", "--spec", str(discovery_file), "--store", str(tmp_path / device)]
        folder = Path(invoke_json(*words, "--device", device)["folder"])
        manifest = discovery_runner.read_manifest(folder)
        assert manifest["runtime"]["device"] == device
        files.append(manifest["files"])
    assert files[0] == files[1]


def test_parity_on_the_cpu_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    usual = invoke_json("check", "--all")
    assert invoke_json("check", "--all", "--device", "cpu") == usual
    recorded = json.loads((tmp_path / "results" / "check" / "check.json").read_text())
    assert recorded["runtime"]["device"] == "cpu"


@pytest.mark.parametrize(
    ("device", "gpus", "message"),
    [
        ("cuda", None, "--device: 'cuda' with --engine ray needs --gpus-per-run"),
        ("cuda:1", 1.0, "--device: 'cuda:1' does not go with --engine ray"),
        ("abacus", 1.0, "--device: 'abacus' does not go with --engine ray"),
    ],
)
def test_ray_selects_the_gpu_of_a_run_itself(device: str, gpus: float | None, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Execution(engine="ray", device=device, gpus_per_run=gpus)
    Execution(engine="ray", device="cuda", gpus_per_run=0.25)  # which nodes have one is known later
