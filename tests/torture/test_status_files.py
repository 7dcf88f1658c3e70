"""Damaged failures and status files must never end a campaign."""

from __future__ import annotations

from pathlib import Path

from rulescope.engine import failures, heartbeat
from rulescope.records import Store
from torture.grid import grid


def test_damaged_failures_and_status_files_are_ignored(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = next(iter(grid(1)))
    failures.add(store, run, "a cause")
    path = store.root / failures.FOLDER / f"{run}.json"
    path.write_bytes(path.read_bytes().replace(b"cause", b"c\xa2use"))
    assert failures.load(store) == {}
    failures.add(store, run, "another")
    assert failures.load(store)[run].cause == "another"
    (store.root / heartbeat.FOLDER).mkdir()
    (store.root / heartbeat.FOLDER / "a.json").write_bytes(b'{"host": "\xa2"}')
    assert heartbeat.load(store) == []
