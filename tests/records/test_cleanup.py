"""What can go, and above all what must stay."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rulescope.records import Store, cleanup, staging

from .samples import sample

RUN = sample().spec.id


def dead() -> int:
    """Return the number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def left(store: Store, pid: int, seconds: float, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Leave a write of a process in ``tmp``, so many seconds ago."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: pid)
        folder = store.root / "tmp" / staging.name(RUN[:16])
    folder.mkdir(parents=True)
    (folder / "log.npz").write_bytes(b"half")
    for path in (folder / "log.npz", folder):
        os.utime(path, (time.time() - seconds, time.time() - seconds))
    return folder


def test_writes_of_dead_processes_go_and_those_of_living_ones_stay(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    rubbish = left(store, dead(), 100, monkeypatch)
    left(store, os.getpid(), 100, monkeypatch)
    left(store, dead(), 1, monkeypatch)  # perhaps of another machine that goes by our name
    old = left(store, os.getpid(), 2 * staging.ABANDONED_SECONDS, monkeypatch)
    found = cleanup.find(store)
    assert {each.path for each in found} == {rubbish, old}
    assert {each.bytes for each in found} == {4}
    cleanup.remove(found)
    assert len(list((store.root / "tmp").iterdir())) == 2
    cleanup.remove(found)  # somebody else was faster


def test_a_write_of_another_machine_stays_for_a_day(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(staging, "_host", lambda: "elsewhere")
        left(store, dead(), 3600, monkeypatch)
    assert cleanup.find(store) == []


def test_checkpoints_go_when_there_is_a_record_and_only_then(store: Store) -> None:
    store.save_checkpoint(RUN, sample().state)
    assert cleanup.find(store) == []
    store.commit(sample())
    [found] = cleanup.find(store)
    cleanup.remove([found])
    assert (found.part, store.load_checkpoint(RUN)) == ("checkpoints", None)
    assert store.verify() == []


def test_quarantine_goes_only_if_asked_for_and_links_lead_nowhere(
    store: Store, tmp_path: Path
) -> None:
    store.commit(sample())
    (store.folder(RUN) / "log.npz").write_bytes(b"")
    store.verify()
    assert cleanup.find(store) == []
    [found] = cleanup.find(store, quarantine=True)
    cleanup.remove([found])
    assert store.quarantined() == []
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "precious").mkdir(parents=True)
    (store.root / "quarantine").rmdir()
    (store.root / "quarantine").symlink_to(elsewhere)
    assert cleanup.find(store, quarantine=True) == []
