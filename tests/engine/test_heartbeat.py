"""Status files of running campaigns, and causes of failed runs, in the store."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from engine.fakes import fake
from rulescope.core.errors import RecordError
from rulescope.engine import failures, heartbeat
from rulescope.engine.campaign import Campaign
from rulescope.engine.heartbeat import CampaignStatus, StatusFile
from rulescope.engine.local_engine import run_all
from rulescope.records import Store

RUN = fake(1, iterations=600)


@pytest.mark.usefixtures("fake_workers")
def test_a_campaign_has_a_status_file_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "WRITE_SECONDS", 0.0)
    store, seen = Store(tmp_path), []

    def look(campaign: Campaign) -> None:
        if campaign.rate:
            seen.extend(heartbeat.load(store))

    run_all([RUN], store, workers=1, report=look, name="E9")
    last = seen[0]
    assert (last.name, last.host, last.pid) == ("E9", platform.node(), os.getpid())
    assert (last.runs, last.finished, last.workers, last.iterations) == (1, 0, 1, 600)
    (run,) = last.running
    assert (run.id, run.iterations, run.attempt) == (RUN.id, 600, 1)
    assert 0 < run.iteration == last.done <= 600
    assert run.rate > 0
    assert last.seconds_left is not None
    assert heartbeat.load(store) == []
    assert list((tmp_path / "campaigns").iterdir()) == []


def write(store: Store, name: str, **facts: object) -> Path:
    status = {"host": platform.node(), "pid": os.getpid(), "started": 1.0, "updated": time.time()}
    path = store.root / "campaigns" / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(msgspec.json.encode(status | facts))
    return path


def test_stale_status_files_are_ignored_and_removed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    here = write(store, "here.json", started=2.0)
    there = write(store, "there.json", host="elsewhere", pid=ended.pid, started=1.0)
    gone = write(store, "gone.json", pid=ended.pid)
    old = write(store, "old.json", host="elsewhere", updated=time.time() - 61)
    odd = store.root / "campaigns" / "odd.json"
    odd.write_text("{")
    found = heartbeat.load(store)
    assert [each.host for each in found] == ["elsewhere", platform.node()]
    assert all(isinstance(each, CampaignStatus) for each in found)
    assert here.exists()
    assert there.exists()
    assert not gone.exists()
    assert not old.exists()


def test_reading_does_not_create_a_store(tmp_path: Path) -> None:
    store = Store(tmp_path / "none")
    assert heartbeat.load(store) == []
    assert failures.load(store) == {}
    assert not store.root.exists()


def test_a_status_file_that_cannot_be_written_does_not_end_a_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(heartbeat, "WRITE_SECONDS", 0.0)
    (tmp_path / "campaigns").touch()  # where the folder should be
    monkeypatch.setattr(heartbeat, "load", lambda _: [])
    with StatusFile(Store(tmp_path), Campaign(1)) as status_file:
        status_file.update()
        status_file.update()
    assert len(caplog.records) == 1


def test_failures_are_kept_over_campaigns_and_damaged_files_are_ignored(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for n in range(failures.KEPT + 2):
        failures.add(store, RUN.id, f"cause {n}", iteration=n)
    failures.add(store, fake(2).id, "another")
    known = failures.load(store)
    assert set(known) == {RUN.id, fake(2).id}
    assert known[RUN.id].cause == f"cause {failures.KEPT + 1}"
    assert known[RUN.id].attempts[0].iteration == 2
    assert set(failures.load(store, [fake(2).id, fake(3).id])) == {fake(2).id}
    (tmp_path / "failures" / f"{RUN.id}.json").write_text("{}")
    assert set(failures.load(store)) == {fake(2).id}
    failures.clear(store, fake(2).id)
    failures.clear(store, fake(2).id)
    assert failures.load(store) == {}


def test_foreign_files_are_ignored(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number, pid in enumerate((2**40, -1, 0)):
        write(store, f"{number}.json", pid=pid, workers=7)
    os.mkfifo(store.root / "campaigns" / "pipe.json")  # reading it would block
    assert [each.workers for each in heartbeat.load(store)] == [7, 7, 7]
    (store.root / "failures").mkdir()
    attempts = [{"when": "", "cause": "stray"}]
    for name in ("stray", "0" * 64):
        content = msgspec.json.encode({"id": name, "attempts": attempts})
        (store.root / "failures" / f"{name}.json").write_bytes(content)
    os.mkfifo(store.root / "failures" / f"{'1' * 64}.json")
    assert set(failures.load(store)) == {"0" * 64}


@pytest.mark.parametrize(
    ("part", "touch"),
    [
        (heartbeat.FOLDER, heartbeat.load),
        (heartbeat.FOLDER, lambda store: StatusFile(store, Campaign(1))),
        (failures.FOLDER, failures.load),
        (failures.FOLDER, lambda store: failures.add(store, RUN.id, "a cause")),
        (failures.FOLDER, lambda store: failures.clear(store, RUN.id)),
    ],
)
def test_a_folder_that_is_a_link_is_not_followed(
    tmp_path: Path, part: str, touch: Callable[[Store], object]
) -> None:
    store, outside = Store(tmp_path / "store"), tmp_path / "outside"
    outside.mkdir()
    store.root.mkdir()
    (store.root / part).symlink_to(outside)
    with pytest.raises(RecordError, match="symbolic link"):
        touch(store)
    assert list(outside.iterdir()) == []
