"""Cleanup: what is removed, and what must be kept."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rulescope.records import Store, cleanup, store_layout

from .sample_record import sample

RUN = sample().spec.id


def ended_process() -> int:
    """Return the id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def leave_write(store: Store, pid: int, seconds: float, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create an unfinished write of a process in ``tmp``, ``seconds`` ago."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: pid)
        folder = store.root / "tmp" / store_layout.temporary_name(RUN[:16])
    folder.mkdir(parents=True)
    (folder / "log.npz").write_bytes(b"half")
    for path in (folder / "log.npz", folder):
        os.utime(path, (time.time() - seconds, time.time() - seconds))
    return folder


def test_writes_of_crashed_processes_are_removed_and_those_of_running_ones_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashed = leave_write(store, ended_process(), 100, monkeypatch)
    leave_write(store, os.getpid(), 100, monkeypatch)
    leave_write(store, ended_process(), 1, monkeypatch)  # perhaps a machine of the same name
    old = leave_write(store, os.getpid(), 2 * store_layout.ABANDONED_SECONDS, monkeypatch)
    found = cleanup.find(store)
    assert {each.path for each in found} == {crashed, old}
    assert {each.bytes for each in found} == {4}
    cleanup.remove(found)
    assert len(list((store.root / "tmp").iterdir())) == 2
    cleanup.remove(found)  # already removed


def test_a_write_of_another_machine_is_kept_for_a_day(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(store_layout, "_host", lambda: "elsewhere")
        leave_write(store, ended_process(), 3600, monkeypatch)
    assert cleanup.find(store) == []


def test_checkpoints_are_removed_only_if_there_is_a_record(store: Store) -> None:
    store.save_checkpoint(RUN, sample().state)
    assert cleanup.find(store) == []
    store.commit(sample())
    [found] = cleanup.find(store)
    cleanup.remove([found])
    assert (found.part, store.load_checkpoint(RUN)) == ("checkpoints", None)
    assert store.verify() == []


def test_quarantine_is_removed_only_if_asked_for_and_links_are_not_followed(
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
