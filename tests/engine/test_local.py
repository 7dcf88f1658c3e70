"""The local engine: the same records whatever the number of workers; donors before heirs."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from engine import fakes
from engine.fakes import endless, fake
from learners.small import small_spec
from rulescope.cli.main import app
from rulescope.cli.progress import Meter
from rulescope.engine.local_engine import Campaign, run_all
from rulescope.records import Store
from rulescope.runner import find_or_make
from rulescope.spec.baseline_config import A2C, NetworkSizes
from rulescope.spec.run_spec import RunSpec, Transplant, with_donors

SMALL = small_spec(iterations=4, log_every=2)
LONG = msgspec.structs.replace(
    SMALL, learner=A2C(agent=NetworkSizes(hidden=(8, 8))), iterations=1500, log_every=100
)
DONOR = msgspec.structs.replace(SMALL, seed=7, scale=0.1)


def recipient(donor: RunSpec, seed: int = 0) -> RunSpec:
    item = Transplant(carrier="recurrent", donor=donor, mode="clamp")
    return msgspec.structs.replace(SMALL, seed=seed, interventions=(item,))


def hashes(specs: list[RunSpec], store: Store) -> list[str]:
    return [store.read(spec.id).manifest.science_hash for spec in specs]


@pytest.mark.usefixtures("eager_workers")
def test_the_same_records_here_and_from_two_workers_one_of_them_killed(tmp_path: Path) -> None:
    heirs = [recipient(DONOR), recipient(recipient(DONOR), seed=1)]  # a donor with a donor
    specs = [LONG, DONOR, *heirs]
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    for spec in specs:
        find_or_make(spec, here)
    killed: list[int] = []

    def murder(campaign: Campaign) -> None:
        run = campaign.running.get(LONG.id)
        if run and run.worker and run.iteration and not killed:
            killed.append(run.worker)
            os.kill(run.worker, signal.SIGKILL)

    campaign = run_all(reversed(specs), there, workers=2, report=murder)
    assert killed
    assert (campaign.runs, campaign.finished, campaign.failed) == (4, 4, {})
    assert campaign.done == campaign.total == 1512
    assert hashes(specs, there) == hashes(specs, here)
    assert there.read(heirs[1].id).manifest.parents == (heirs[0].id,)


@pytest.mark.usefixtures("eager_workers")
def test_an_interrupted_campaign_goes_on_to_the_bit(tmp_path: Path) -> None:
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
    """Which run comes when; nothing is lived here."""

    def test_what_is_there_is_not_run_again(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        seen: list[int] = []
        first = run_all([fake(1), fake(2)], store, workers=1, report=lambda c: seen.append(c.done))
        assert (first.runs, first.finished, first.failed) == (2, 2, {})
        assert seen[-1] == first.total == first.done == 40
        reports: list[Campaign] = []
        again = run_all([fake(1), fake(2)], store, workers=1, report=reports.append)
        assert (again.finished, again.done) == (2, again.total)
        assert not reports

    def test_runs_are_lived_in_the_order_given_donors_first(self, tmp_path: Path) -> None:
        second = recipient(recipient(DONOR), seed=1)
        order: list[str] = []

        def report(campaign: Campaign) -> None:
            order.extend(key for key in campaign.running if key not in order)

        last, first = fake(3, iterations=100), fake(9, iterations=100)
        store = Store(tmp_path)
        lives = [msgspec.structs.replace(s, iterations=100) for s in (SMALL,)]
        run_all([first, second, *lives, last], store, workers=1, report=report)
        expected = [first.id, *with_donors([second]), lives[0].id, last.id]
        assert [key for key in expected if key in order] == order
        assert order[0] == first.id
        assert len(list(store.ids())) == 6

    def test_recipients_of_a_failed_donor_fail_with_it(self, tmp_path: Path) -> None:
        lost = msgspec.structs.replace(SMALL, seed=fakes.DIVERGES)
        heir, grandchild = recipient(lost), recipient(recipient(lost), seed=1)
        campaign = run_all([grandchild, fake(2)], Store(tmp_path), workers=1)
        assert campaign.finished == 1
        assert set(campaign.failed) == {lost.id, heir.id, grandchild.id}
        assert campaign.failed[grandchild.id] == f"its donor {heir.id[:12]} failed"
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
        assert kept == [True, True, False], "only runs under way have something to keep"
        assert not (tmp_path / "failures").exists()

    def test_an_error_of_the_caller_does_too(self, tmp_path: Path) -> None:
        store = Store(tmp_path)

        def fail(campaign: Campaign) -> None:
            if campaign.rate:
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            run_all([endless()], store, workers=1, report=fail)
        assert store.load_checkpoint(endless().id) is not None

    def test_the_second_signal_does_not_wait(self, tmp_path: Path) -> None:
        stuck = fake(fakes.STUCK)
        workers: list[int | None] = []

        def interrupt(campaign: Campaign) -> None:
            if campaign.running and not campaign.stopping:
                workers.extend(run.worker for run in campaign.running.values())
                signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
                signal.alarm(1)  # once we wait for the stuck one
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
