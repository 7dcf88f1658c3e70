"""The Ray engine: the same records from a cluster, also when it loses a node on the way."""

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

from engine.test_local import DONOR, LONG, SMALL, hashes, recipient
from rulescope.cli.main import app
from rulescope.core.errors import SpecError
from rulescope.engine import failures, local_engine, ray_engine
from rulescope.engine.campaign import Campaign
from rulescope.engine.pool import EngineError
from rulescope.engine.ray_engine import Share
from rulescope.records import Store
from rulescope.runner import find_or_make
from rulescope.spec.run_spec import RunSpec

SHORT = msgspec.structs.replace(LONG, iterations=300)
LENGTHS = (3_000, 12_000, 48_000, 192_000)
"""Iterations to try: an interruption takes a while to reach a cluster, and machines differ."""


@pytest.fixture(scope="module")
def ray_folder() -> Iterator[None]:
    """Let Ray have a place of its own, of a short name: its sockets are there."""
    folder = tempfile.mkdtemp(prefix="ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", folder)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "token")  # with one of its own, not the user's
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(16))
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        patch.delenv("RAY_ADDRESS", raising=False)
        yield
    shutil.rmtree(folder, ignore_errors=True)


class Machines:
    """A head without room, and two nodes with room for one run each, which say they have a GPU."""

    def __init__(self) -> None:
        import ray
        from ray.cluster_utils import Cluster

        small: dict[str, Any] = {"object_store_memory": 80 << 20, "include_dashboard": False}
        self.cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
        self.nodes = [self.cluster.add_node(num_cpus=1, num_gpus=1, **small) for _ in range(2)]
        ray.init(self.cluster.address, log_to_driver=False)

    def kill(self, worker: int) -> None:
        """Kill the node that a process is part of: everything there is gone, without a word."""
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
def machines(ray_folder: None) -> Iterator[Machines]:  # noqa: ARG001
    found = Machines()
    yield found
    found.close()


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


@pytest.mark.usefixtures("machines")
def test_interrupted_it_goes_on_and_a_damaged_donor_is_lived_again(tmp_path: Path) -> None:
    store, whole = Store(tmp_path / "parts"), Store(tmp_path / "whole")
    longer = interrupted_run(store)

    heir = recipient(DONOR)
    find_or_make(DONOR, store)
    (store.folder(DONOR.id) / "state.npz").write_bytes(b"damaged")
    campaign = ray_engine.run_all([heir, longer], store, share=Share(cpus=0.5))
    assert (campaign.finished, campaign.failed) == (3, {})
    (cause,) = campaign.causes[heir.id]
    assert "state.npz does not match its sha256" in cause
    assert [item.id for item in store.quarantined()] == [DONOR.id]
    assert list((store.root / "checkpoints").iterdir()) == []
    for item in (longer, heir):
        find_or_make(item, whole)
    assert hashes([longer, DONOR, heir], store) == hashes([longer, DONOR, heir], whole)


def test_the_same_records_from_a_cluster_that_loses_a_node(
    machines: Machines, tmp_path: Path
) -> None:
    heir = recipient(DONOR)
    lasting = msgspec.structs.replace(LONG, iterations=LENGTHS[1])  # many heartbeats long
    everything = [lasting, DONOR, heir, SHORT]
    alone, there = Store(tmp_path / "alone"), Store(tmp_path / "there")
    local_engine.run_all(everything, alone, workers=1)
    killed: list[int] = []
    most: list[int] = []

    def murder(campaign: Campaign) -> None:
        most.append(len(campaign.running))
        run = campaign.running.get(lasting.id)
        if run and run.worker and run.iteration and not killed:
            killed.append(run.worker)
            machines.kill(run.worker)

    campaign = ray_engine.run_all(reversed(everything), there, report=murder)
    assert len(killed) == 1
    assert (campaign.finished, campaign.failed) == (4, {})
    (cause,) = campaign.causes[lasting.id]
    assert re.match(r"its worker is lost: Actor(Died|Unavailable)Error", cause)
    assert max(most) <= 2, "no more than there are places for"
    assert hashes(everything, there) == hashes(everything, alone)
    made = there.read(heir.id).manifest
    assert made.parents == (DONOR.id,)
    assert made.runtime == alone.read(heir.id).manifest.runtime
    assert failures.known(there) == {}


@pytest.mark.usefixtures("machines")
def test_what_no_node_has_room_for_is_refused(tmp_path: Path) -> None:
    told = r"takes 64 CPU, 0.5 GPU, .*B memory; its largest have 1 CPU, 1 GPU, .* 0 CPU, .* --force"
    with pytest.raises(EngineError, match=told):
        ray_engine.run_all([SMALL], Store(tmp_path), share=Share(cpus=64, gpus=0.5))


@pytest.mark.usefixtures("machines")
def test_runs_that_take_a_gpu_are_lived_there(tmp_path: Path) -> None:
    store, share = Store(tmp_path), Share(cpus=0.5, gpus=0.25)
    if torch.cuda.is_available():
        assert ray_engine.run_all([SMALL], store, share=share).finished == 1
        assert str(store.read(SMALL.id).manifest.runtime["device"]).startswith("cuda")
    else:  # and are refused where there is none, whatever the node says
        with pytest.raises(EngineError, match="device 'cuda' cannot be used here"):
            ray_engine.run_all([SMALL], store, share=share)


@pytest.mark.parametrize("share", [Share(cpus=0.0), Share(gpus=1.5), Share(gpus=-1.0)])
def test_what_nobody_can_have_is_refused(share: Share, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="a part of a GPU or whole ones"):
        ray_engine.run_all([SMALL], Store(tmp_path), share=share)


@pytest.mark.usefixtures("machines")
def test_a_second_cluster_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="'auto': this process is connected to a Ray already"):
        ray_engine.run_all([SMALL], Store(tmp_path), address="auto")


def test_what_is_in_the_store_needs_no_cluster(tmp_path: Path) -> None:
    find_or_make(SMALL, Store(tmp_path))
    campaign = ray_engine.run_all([SMALL], Store(tmp_path), address="127.0.0.1:9")
    assert (campaign.finished, campaign.runs) == (1, 1)


ALONE = """
import signal, sys
from pathlib import Path
from engine.test_local import SMALL
from rulescope.engine import ray_engine as cluster
from rulescope.records import Store
before, store = signal.getsignal(signal.SIGTERM), Store(Path(sys.argv[1]))
try:
    cluster.run_all([SMALL], store, address="127.0.0.1:9")
except cluster.EngineError as fault:
    print(fault)
cluster.run_all([SMALL], store, workers=1)
assert signal.getsignal(signal.SIGTERM) is before
"""


@pytest.mark.usefixtures("ray_folder")
def test_a_ray_of_this_machine_comes_and_goes_with_the_campaign(tmp_path: Path) -> None:
    there, here = Store(tmp_path / "there"), Store(tmp_path / "here")
    command = [sys.executable, "-c", ALONE, str(there.root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no Ray cluster can be reached at '127.0.0.1:9': Connection")
    assert done.stdout.count("\n") == 1
    find_or_make(SMALL, here)
    assert hashes([SMALL], there) == hashes([SMALL], here)


def test_the_command_line_says_what_a_run_takes_and_where(
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
    assert "with 1 worker" in result.stdout, "how many there will be is not known"
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
def test_options_that_do_not_go_together(options: str, message: str, tmp_path: Path) -> None:
    command = ["run", "E1", "--rule", "random:0", "--store", str(tmp_path), *options.split()]
    result = CliRunner().invoke(app, command)
    assert isinstance(result.exception, SpecError)
    assert str(result.exception) == message


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    command = ["run", "E1", "--rule", "random:0", "--engine", "ray", "--store", str(tmp_path)]
    result = CliRunner().invoke(app, command)
    assert isinstance(result.exception, EngineError)
    assert "pip install 'rulescope[ray]'" in str(result.exception)


def test_a_cluster_that_goes_away_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
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
