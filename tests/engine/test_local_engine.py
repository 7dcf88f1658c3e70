"""The local engine: equal records for any number of workers; donors before recipients."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from engine import fakes
from engine.campaigns import DONOR, LONG, SMALL, hashes, recipient
from engine.fakes import endless, fake
from rulescope.cli.console import Meter
from rulescope.cli.main import app
from rulescope.engine.local_engine import Campaign, EngineError, run_all
from rulescope.records import Store
from rulescope.run_spec import with_donors
from rulescope.runner import find_or_make


@pytest.mark.usefixtures("fast_heartbeats")
def test_records_are_equal_in_this_process_and_from_two_workers_one_of_them_killed(
    tmp_path: Path,
) -> None:
    recipients = [recipient(DONOR), recipient(recipient(DONOR), seed=1)]  # a donor with a donor
    specs = [LONG, DONOR, *recipients]
    expected, store = Store(tmp_path / "expected"), Store(tmp_path / "store")
    for spec in specs:
        find_or_make(spec, expected)
    killed: list[int] = []

    def kill_once(campaign: Campaign) -> None:
        run = campaign.running.get(LONG.id)
        if run and run.worker and run.iteration and not killed:
            killed.append(run.worker)
            os.kill(run.worker, signal.SIGKILL)

    campaign = run_all(reversed(specs), store, workers=2, report=kill_once)
    assert killed
    assert (campaign.runs, campaign.finished, campaign.failed) == (4, 4, {})
    assert campaign.done == campaign.total == 1512
    assert hashes(specs, store) == hashes(specs, expected)
    assert store.read(recipients[1].id).manifest.parents == (recipients[0].id,)


@pytest.mark.usefixtures("fast_heartbeats")
def test_a_device_that_a_worker_cannot_use_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="device 'abacus' cannot be used here"):
        run_all([SMALL], Store(tmp_path), workers=1, device="abacus")


@pytest.mark.usefixtures("fast_heartbeats")
def test_an_interrupted_campaign_resumes_bit_for_bit(tmp_path: Path) -> None:
    store, whole = Store(tmp_path / "parts"), Store(tmp_path / "whole")

    def interrupt(campaign: Campaign) -> None:
        if campaign.done and not campaign.stopping:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_all([LONG], store, workers=1, report=interrupt)
    checkpoint = store.load_checkpoint(LONG.id)
    assert checkpoint is not None
    reached = int(checkpoint["loop/iteration"])
    assert 0 < reached < LONG.iterations
    iterations: list[int] = []
    find_or_make(LONG, store, report=lambda progress: iterations.append(progress.iteration))
    assert iterations[0] == reached + 1
    find_or_make(LONG, whole)
    assert hashes([LONG], store) == hashes([LONG], whole)


@pytest.mark.usefixtures("fake_workers")
class TestOrder:
    """The order of runs, with fake workers."""

    def test_runs_with_a_record_are_not_run_again(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        seen: list[int] = []
        first = run_all([fake(1), fake(2)], store, workers=1, report=lambda c: seen.append(c.done))
        assert (first.runs, first.finished, first.failed) == (2, 2, {})
        assert seen[-1] == first.total == first.done == 40
        reports: list[Campaign] = []
        again = run_all([fake(1), fake(2)], store, workers=1, report=reports.append)
        assert (again.finished, again.done) == (2, again.total)
        assert not reports

    def test_runs_keep_the_given_order_with_donors_first(self, tmp_path: Path) -> None:
        second = recipient(recipient(DONOR), seed=1)
        order: list[str] = []

        def report(campaign: Campaign) -> None:
            order.extend(key for key in campaign.running if key not in order)

        last, first = fake(3, iterations=100), fake(9, iterations=100)
        store = Store(tmp_path)
        third = msgspec.structs.replace(SMALL, iterations=100)
        run_all([first, second, third, last], store, workers=1, report=report)
        expected = [first.id, *with_donors([second]), third.id, last.id]
        assert [key for key in expected if key in order] == order
        assert order[0] == first.id
        assert len(list(store.ids())) == 6

    def test_recipients_of_a_failed_donor_fail_with_it(self, tmp_path: Path) -> None:
        failing = msgspec.structs.replace(SMALL, seed=fakes.DIVERGES)
        child, grandchild = recipient(failing), recipient(recipient(failing), seed=1)
        campaign = run_all([grandchild, fake(2)], Store(tmp_path), workers=1)
        assert campaign.finished == 1
        assert set(campaign.failed) == {failing.id, child.id, grandchild.id}
        assert campaign.failed[grandchild.id] == f"its donor {child.id[:12]} failed"
        assert campaign.given_up == 12


@pytest.mark.usefixtures("fake_workers")
class TestInterrupts:
    """Ctrl-C, SIGTERM, and errors of the caller."""

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_stops_every_worker_at_a_checkpoint(
        self, number: signal.Signals, tmp_path: Path
    ) -> None:
        store, specs = Store(tmp_path), [endless(seed) for seed in range(3)]
        before = signal.getsignal(number)

        def interrupt(campaign: Campaign) -> None:
            if not campaign.stopping and len(campaign.running) == 2 and campaign.rate:
                os.kill(os.getpid(), number)

        with pytest.raises(KeyboardInterrupt):
            run_all(specs, store, workers=2, report=interrupt)
        assert signal.getsignal(number) is before
        kept = [store.load_checkpoint(spec.id) is not None for spec in specs]
        assert kept == [True, True, False], "only runs in progress have a checkpoint"
        assert not (tmp_path / "failures").exists()

    def test_an_error_of_the_caller_stops_workers_at_a_checkpoint(self, tmp_path: Path) -> None:
        store = Store(tmp_path)

        def fail(campaign: Campaign) -> None:
            if campaign.rate:
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            run_all([endless()], store, workers=1, report=fail)
        assert store.load_checkpoint(endless().id) is not None

    def test_a_second_signal_does_not_wait_for_the_iteration(self, tmp_path: Path) -> None:
        stuck = fake(fakes.STUCK)
        workers: list[int | None] = []

        def interrupt(campaign: Campaign) -> None:
            if campaign.running and not campaign.stopping:
                workers.extend(run.worker for run in campaign.running.values())
                signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
                signal.alarm(1)  # while we wait for the stuck run
                signal.raise_signal(signal.SIGINT)

        before = signal.getsignal(signal.SIGALRM)
        try:
            with pytest.raises(KeyboardInterrupt):
                run_all([stuck], Store(tmp_path), workers=1, report=interrupt)
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
        (worker,) = workers
        assert worker is not None
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)

    def test_the_command_line_ends_with_code_130(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupt(_: Meter, campaign: Campaign, note: str = "") -> None:
            if campaign.done and "stopping" not in note:
                signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(Meter, "follow", interrupt)
        monkeypatch.setattr("rulescope.cli.run.seconds_left", lambda *_: 1.0)
        command = "run E1 --rule random:0 --preset smoke --iterations 1000000 --workers 1"
        places = ["--store", str(tmp_path / "store"), "--out", str(tmp_path / "out")]
        result = CliRunner().invoke(app, [*command.split(), *places])
        assert result.exit_code == 130
        assert len(list((tmp_path / "store" / "checkpoints").iterdir())) == 1
