"""The Ray engine: equal records from a cluster, also if it loses a node meanwhile."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from typer.testing import CliRunner

from engine.campaigns import DONOR, LONG, SMALL, hashes, recipient
from rulescope.cli.main import app
from rulescope.core.errors import SpecError
from rulescope.engine import failures, local_engine, ray_engine
from rulescope.engine.campaign import Campaign
from rulescope.engine.ray_engine import Share
from rulescope.engine.worker_pool import EngineError
from rulescope.records import Store
from rulescope.run_spec import RunSpec
from rulescope.runner import find_or_make

SHORT = msgspec.structs.replace(LONG, iterations=300)
LENGTHS = (3_000, 12_000, 48_000, 192_000)
"""Iterations to try: an interrupt takes a while to reach a cluster, and machines differ."""


@pytest.fixture(scope="module")
def ray_folder() -> Iterator[None]:
    """Give Ray a temporary folder with a short path, since its sockets are in it."""
    folder = tempfile.mkdtemp(prefix="ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", folder)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "token")  # a token of its own, not the user's
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(16))
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        patch.delenv("RAY_ADDRESS", raising=False)
        yield
    shutil.rmtree(folder, ignore_errors=True)


class NodeCluster:
    """A head without room for runs, and two nodes with one CPU and one declared GPU each."""

    def __init__(self) -> None:
        import ray
        from ray.cluster_utils import Cluster

        small: dict[str, Any] = {"object_store_memory": 80 << 20, "include_dashboard": False}
        self.cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
        self.nodes = [self.cluster.add_node(num_cpus=1, num_gpus=1, **small) for _ in range(2)]
        ray.init(self.cluster.address, log_to_driver=False)

    def kill(self, worker: int) -> None:
        """Kill the node that a process belongs to, with all its processes."""
        raylets = {node.all_processes["raylet"][0].process.pid: node for node in self.nodes}
        self.cluster.remove_node(raylets[parent(worker)], allow_graceful=False)

    def close(self) -> None:
        import ray

        ray.shutdown()
        self.cluster.shutdown()


def parent(pid: int) -> int:
    """Return the process that started another."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in lines)["PPid"])


@pytest.fixture(scope="module")
def cluster(ray_folder: None) -> Iterator[NodeCluster]:  # noqa: ARG001
    started = NodeCluster()
    yield started
    started.close()


def interrupted_run(store: Store) -> RunSpec:
    """Interrupt a campaign of one run while it runs; return the run, whose checkpoint is kept."""

    def interrupt(campaign: Campaign) -> None:
        if campaign.done and not campaign.stopping:
            os.kill(os.getpid(), signal.SIGTERM)

    for iterations in LENGTHS:
        run = msgspec.structs.replace(LONG, iterations=iterations)
        interrupted = False
        try:
            ray_engine.run_all([run], store, workers=1, report=interrupt)
        except KeyboardInterrupt:
            interrupted = True
        checkpoint = store.load_checkpoint(run.id)
        if checkpoint is not None:
            assert interrupted
            assert 0 < int(checkpoint["loop/iteration"]) < iterations
            return run
        assert run.id in store  # it ended before the interruption arrived
    raise AssertionError(f"a run of {LENGTHS[-1]:,} iterations ended before it was interrupted")


@pytest.mark.usefixtures("cluster")
def test_an_interrupted_run_resumes_and_a_damaged_donor_is_run_again(tmp_path: Path) -> None:
    store, whole = Store(tmp_path / "parts"), Store(tmp_path / "whole")
    longer = interrupted_run(store)

    child = recipient(DONOR)
    find_or_make(DONOR, store)
    (store.folder(DONOR.id) / "state.npz").write_bytes(b"damaged")
    campaign = ray_engine.run_all([child, longer], store, share=Share(cpus=0.5))
    assert (campaign.finished, campaign.failed) == (3, {})
    (cause,) = campaign.causes[child.id]
    assert "state.npz does not match its sha256" in cause
    assert [item.id for item in store.quarantined()] == [DONOR.id]
    assert list((store.root / "checkpoints").iterdir()) == []
    for item in (longer, child):
        find_or_make(item, whole)
    assert hashes([longer, DONOR, child], store) == hashes([longer, DONOR, child], whole)


def test_records_are_equal_from_a_cluster_that_loses_a_node(
    cluster: NodeCluster, tmp_path: Path
) -> None:
    child = recipient(DONOR)
    lasting = msgspec.structs.replace(LONG, iterations=LENGTHS[1])  # many heartbeats long
    everything = [lasting, DONOR, child, SHORT]
    expected, store = Store(tmp_path / "expected"), Store(tmp_path / "store")
    local_engine.run_all(everything, expected, workers=1)
    killed: list[int] = []
    running: list[int] = []

    def kill_node_once(campaign: Campaign) -> None:
        running.append(len(campaign.running))
        run = campaign.running.get(lasting.id)
        if run and run.worker and run.iteration and not killed:
            killed.append(run.worker)
            cluster.kill(run.worker)

    campaign = ray_engine.run_all(reversed(everything), store, report=kill_node_once)
    assert len(killed) == 1
    assert (campaign.finished, campaign.failed) == (4, {})
    (cause,) = campaign.causes[lasting.id]
    assert re.match(r"its worker is lost: Actor(Died|Unavailable)Error", cause)
    assert max(running) <= 2, "no more than the nodes have room for"
    assert hashes(everything, store) == hashes(everything, expected)
    made = store.read(child.id).manifest
    assert made.parents == (DONOR.id,)
    assert made.runtime == expected.read(child.id).manifest.runtime
    assert failures.load(store) == {}


@pytest.mark.usefixtures("cluster")
def test_a_run_that_fits_on_no_node_is_refused(tmp_path: Path) -> None:
    message = (
        r"takes 64 CPU, 0.5 GPU, .*B memory; its largest have 1 CPU, 1 GPU, .* 0 CPU, .* --force"
    )
    with pytest.raises(EngineError, match=message):
        ray_engine.run_all([SMALL], Store(tmp_path), share=Share(cpus=64, gpus=0.5))


@pytest.mark.usefixtures("cluster")
def test_runs_with_a_gpu_compute_on_it(tmp_path: Path) -> None:
    store, share = Store(tmp_path), Share(cpus=0.5, gpus=0.25)
    if torch.cuda.is_available():
        assert ray_engine.run_all([SMALL], store, share=share).finished == 1
        assert str(store.read(SMALL.id).manifest.runtime["device"]).startswith("cuda")
    else:  # refused where there is none, whatever the node declares
        with pytest.raises(EngineError, match="device 'cuda' cannot be used here"):
            ray_engine.run_all([SMALL], store, share=share)


@pytest.mark.parametrize("share", [Share(cpus=0.0), Share(gpus=1.5), Share(gpus=-1.0)])
def test_an_impossible_share_is_refused(share: Share, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="a fraction of a GPU or whole GPUs"):
        ray_engine.run_all([SMALL], Store(tmp_path), share=share)


@pytest.mark.usefixtures("cluster")
def test_a_second_cluster_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="'auto': this process is connected to a Ray already"):
        ray_engine.run_all([SMALL], Store(tmp_path), address="auto")


def test_runs_with_a_record_need_no_cluster(tmp_path: Path) -> None:
    find_or_make(SMALL, Store(tmp_path))
    campaign = ray_engine.run_all([SMALL], Store(tmp_path), address="127.0.0.1:9")
    assert (campaign.finished, campaign.runs) == (1, 1)


LOCAL_RAY = """
import signal, sys
from pathlib import Path
from engine.campaigns import SMALL
from rulescope.engine import ray_engine
from rulescope.records import Store
before, store = signal.getsignal(signal.SIGTERM), Store(Path(sys.argv[1]))
try:
    ray_engine.run_all([SMALL], store, address="127.0.0.1:9")
except ray_engine.EngineError as fault:
    print(fault)
ray_engine.run_all([SMALL], store, workers=1)
assert signal.getsignal(signal.SIGTERM) is before
"""


@pytest.mark.usefixtures("ray_folder")
def test_a_local_ray_starts_and_ends_with_the_campaign(tmp_path: Path) -> None:
    store, expected = Store(tmp_path / "store"), Store(tmp_path / "expected")
    command = [sys.executable, "-c", LOCAL_RAY, str(store.root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no Ray cluster can be reached at '127.0.0.1:9': Connection")
    assert done.stdout.count("\n") == 1
    find_or_make(SMALL, expected)
    assert hashes([SMALL], store) == hashes([SMALL], expected)


def test_the_command_line_passes_address_and_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def run_all(specs: Iterable[RunSpec], _: Store, **options: Any) -> Campaign:
        asked.update(options)
        return Campaign(total=0, failed={item.id: "none" for item in specs})

    monkeypatch.setattr(ray_engine, "run_all", run_all)
    monkeypatch.setattr("rulescope.cli.run.seconds_left", lambda *_: 1.0)
    command = "run E1 --rule random:0 --preset smoke --engine ray --address head:6379 "
    command += f"--cpus-per-run 0.5 --store {tmp_path} --out {tmp_path}"
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code == 3
    assert "with 1 worker" in result.stdout, "the number on the cluster is not known"
    assert (asked["address"], asked["share"]) == ("head:6379", Share(0.5, 0.0))
    assert asked["workers"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--engine rya", "--engine: no 'rya'; nearest: 'ray'; valid: local, ray"),
        ("--address auto", "--address: goes with --engine ray"),
        ("--gpus-per-run 0.5", "--gpus-per-run: goes with --engine ray"),
    ],
)
def test_options_that_exclude_each_other_are_refused(
    options: str, message: str, tmp_path: Path
) -> None:
    command = ["run", "E1", "--rule", "random:0", "--store", str(tmp_path), *options.split()]
    result = CliRunner().invoke(app, command)
    assert isinstance(result.exception, SpecError)
    assert str(result.exception) == message


def test_without_ray_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    command = ["run", "E1", "--rule", "random:0", "--engine", "ray", "--store", str(tmp_path)]
    result = CliRunner().invoke(app, command)
    assert isinstance(result.exception, EngineError)
    assert "pip install 'rulescope[ray]'" in str(result.exception)


def test_a_lost_cluster_raises_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    error: Any = ray.exceptions.RaySystemError  # which has no types
    lost = error("gone")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda *_, **__: None)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    with (
        pytest.raises(EngineError, match="cluster at 'auto' is lost: RaySystemError"),
        ray_engine._connected("auto", None, Share()),
    ):
        raise lost
