"""``rulescope status`` while a campaign runs and after lifetimes have failed."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from command_line import invoke, invoke_json
from made_up_records import fill
from rulescope import assays
from rulescope.assays import Selection, narrowed
from rulescope.assays.plan import Plan
from rulescope.cli import status
from rulescope.core.errors import SpecError
from rulescope.engine import failures
from rulescope.records import Store

E1 = assays.ASSAYS["E1"]
PLAN = Plan.of(E1, narrowed(E1, E1.budget("quick"), Selection(tasks=["catch"], seeds=2)))
RUNS = list(PLAN.runs)
CHOICE = ["status", "E1", "--tasks", "catch", "--seeds", "2"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """One lifetime done, one running, one failed twice, one being tried again after a failure."""
    store = Store(tmp_path)
    fill(store, [PLAN.runs[RUNS[0]]])
    failures.add(store, RUNS[2], "OSError: away")
    failures.add(store, RUNS[2], "DivergedError: [not] finite")
    failures.add(store, RUNS[3], "its worker was killed by SIGKILL")
    announce(store)
    return store


def announce(store: Store, **facts: Any) -> Path:
    running = [
        {"id": RUNS[1], "iteration": 150, "iterations": 600, "rate": 4.5},
        {"id": RUNS[3], "iteration": 0, "iterations": 600, "rate": 0.0, "attempt": 2},
    ]
    body = {
        "name": "E1",
        "host": platform.node(),
        "pid": os.getpid(),
        "started": time.time() - 200,
        "updated": time.time(),
        "workers": 2,
        "runs": 9,
        "finished": 3,
        "rate": 4.5,
        "seconds_left": 9000.0,
        "running": running,
    }
    path = store.root / "campaigns" / "it.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(msgspec.json.encode(body | facts))
    return path


def test_running_and_failed_runs_are_shown(store: Store) -> None:
    shown = invoke(*CHOICE, "--store", store.root).stdout
    lines = shown.splitlines()
    assert "3/9 lifetimes, 2 running, 4.5 it/s, 2 h 30 min left; 2 workers, for 3 min" in lines[0]
    (row,) = [line for line in lines if line.strip().startswith(RUNS[1][:12])]
    assert row.split()[-7:] == ["150/600", "4.5", "1", "min", "40", "s", "1"]
    labels = [str(label) for label in PLAN.cells[0].labels.values() if isinstance(label, str)]
    assert row.split()[1 : 2 + len(labels)] == ["E1", *labels]
    (failed,) = [line for line in lines if line.startswith(RUNS[2][:12])]
    assert failed.endswith("2  DivergedError: [not] finite")
    assert "SIGKILL" not in shown, "it is being tried again"


def test_cells_count_running_and_failed_runs(store: Store) -> None:
    shown = invoke(*CHOICE, "--store", store.root).stdout
    rows = [line.split() for line in shown.splitlines()]
    heading = next(
        n for n, row in enumerate(rows) if row[-3:] == ["lifetimes", "running", "failed"]
    )
    assert [row[-2:] for row in rows[heading + 1 :][:2]] == [["1/2", "1"], ["1", "1"]]
    assert all(row[-1] == "0/2" for row in rows[heading + 3 :])
    body = invoke_json(*CHOICE, "--store", store.root)[0]
    assert body["done"] == 1
    assert body["running"] == sorted([RUNS[1], RUNS[3]])
    assert body["failed"] == {RUNS[2]: "DivergedError: [not] finite"}
    (campaign,) = body["campaigns"]
    assert campaign["seconds_left"] == 9000.0


def test_watching_continues_until_no_campaign_runs(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    naps = iter(range(1, 10))

    def sleep(_: float) -> None:
        nap = next(naps)
        if nap == 1:
            fill(store, [PLAN.runs[RUNS[1]]])
            announce(store, finished=4, running=[], rate=0.0, seconds_left=None)
        elif nap == 2:
            (store.root / "campaigns" / "it.json").unlink()

    monkeypatch.setattr("time.sleep", sleep)
    monkeypatch.setattr(status, "QUIET_SECONDS", 20.0)
    lines = invoke(*CHOICE, "--watch", "--store", store.root).stdout.splitlines()
    total = len(RUNS)
    assert "3/9 lifetimes, 2 running" in lines[0]
    assert lines[1].endswith("4/9 lifetimes, 0 running, starting")
    assert lines[2:] == [f"no campaign is running: 2/{total} lifetimes, 2 failed"] * 2


def test_in_a_terminal_watching_shows_the_tables_until_interrupted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupt)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setenv("LINES", "60")
    shown = invoke(*CHOICE, "--watch", "--store", store.root).stdout
    assert "150/600" in shown
    assert "DivergedError" in shown


def test_without_an_assay_all_failures_are_shown(store: Store) -> None:
    shown = invoke("status", "--store", store.root).stdout
    assert RUNS[2][:12] in shown
    assert "150/600" in shown


def test_control_characters_in_a_store_do_not_reach_the_terminal(store: Store) -> None:
    failures.add(store, RUNS[2], "\x1b[2J[/bold] gone")
    odd = {"id": "[/x]\x1b[1m", "iteration": 1, "iterations": 2, "rate": 1.0}
    announce(store, name="\x1b]0;title\x07", running=[odd])
    shown = invoke(*CHOICE, "--store", store.root).stdout
    assert "\x1b" not in shown
    assert "[/bold] gone" in shown
    (line, *_) = status.StoreState.read([("quick", PLAN)], store, by_cell=True).lines()
    assert "\x1b" not in line


def test_watching_excludes_json(store: Store) -> None:
    with pytest.raises(SpecError, match="--json"):
        invoke(*CHOICE, "--watch", "--json", "--store", store.root)
