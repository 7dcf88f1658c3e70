"""Failures of workers and runs: crashes, hangs, errors and time limits, and their causes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import rulescope
from engine import fakes
from engine.fakes import endless, fake
from rulescope.engine import failures, heartbeat, process_pool, scheduler
from rulescope.engine.campaign import RunProgress
from rulescope.engine.local_engine import Campaign, run_all
from rulescope.engine.worker_pool import EngineError, Timeouts
from rulescope.records import Store
from rulescope.run_spec import RunSpec

pytestmark = pytest.mark.usefixtures("fake_workers")

LONG = fake(1, iterations=600)


def when_running(
    spec: RunSpec, act: Callable[[int], None], times: int = 1
) -> tuple[Callable[[Campaign], None], list[int]]:
    """Return a report that calls ``act`` on the first workers of ``spec``, and a list of them."""
    seen: list[int] = []

    def report(campaign: Campaign) -> None:
        run = campaign.running.get(spec.id)
        if run and run.worker and run.iteration and run.worker not in seen and len(seen) < times:
            seen.append(run.worker)
            act(run.worker)

    return report, seen


def send_signal(number: signal.Signals) -> Callable[[int], None]:
    return lambda pid: os.kill(pid, number)


def count_attempts(store: Store, spec: RunSpec) -> int:
    return len(list((store.root / "attempts" / spec.id).iterdir()))


def test_only_the_killed_worker_is_replaced(tmp_path: Path) -> None:
    store, other = Store(tmp_path), fake(2, iterations=600)
    report, killed = when_running(LONG, send_signal(signal.SIGKILL))
    campaign = run_all([LONG, other], store, workers=2, report=report)
    assert len(killed) == 1
    assert (campaign.finished, campaign.failed) == (2, {})
    assert (count_attempts(store, LONG), count_attempts(store, other)) == (2, 1), (
        "the other run was not restarted"
    )
    (cause,) = campaign.causes[LONG.id]
    assert cause.startswith("its worker was killed by SIGKILL")
    assert not failures.load(store), "it succeeded at last"


def test_a_stopped_worker_is_killed_and_replaced(tmp_path: Path) -> None:
    store, other = Store(tmp_path), fake(2, iterations=600)
    report, stopped = when_running(LONG, send_signal(signal.SIGSTOP))
    timeouts = Timeouts(heartbeat=1.0)
    campaign = run_all([LONG, other], store, workers=2, report=report, timeouts=timeouts)
    assert len(stopped) == 1
    assert (campaign.finished, campaign.failed) == (2, {})
    assert campaign.causes == {LONG.id: ["its worker sent no heartbeat for 1 s and was killed"]}
    with pytest.raises(ProcessLookupError):
        os.kill(stopped[0], 0)


def test_a_worker_that_finishes_no_iteration_is_replaced(tmp_path: Path) -> None:
    stuck = fake(fakes.STUCK_ONCE)
    campaign = run_all([stuck], Store(tmp_path), workers=1, timeouts=Timeouts(iteration=1.5))
    assert (campaign.finished, campaign.failed) == (1, {})
    assert campaign.causes[stuck.id] == ["its worker finished no iteration in 1.5 s and was killed"]


def test_a_worker_that_gets_sigterm_saves_a_checkpoint_and_its_run_resumes(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    report, stopped = when_running(LONG, send_signal(signal.SIGTERM))
    campaign = run_all([LONG], store, workers=1, report=report)
    assert len(stopped) == 1
    assert (campaign.finished, campaign.causes, count_attempts(store, LONG)) == (1, {}, 2)


def test_a_run_over_its_time_limit_is_stopped_with_a_checkpoint(tmp_path: Path) -> None:
    store, quick = Store(tmp_path), fake(2)
    late, stuck = endless(), fake(fakes.STUCK)
    campaign = run_all(
        [late, stuck, quick], store, workers=2, timeouts=Timeouts(run=1.0, heartbeat=1.0)
    )
    assert quick.id in store
    assert set(campaign.failed) == {late.id, stuck.id}
    assert "not finished within the time limit of 1 s" in campaign.failed[late.id]
    assert "time limit" in campaign.failed[stuck.id]
    assert count_attempts(store, late) == 1, "not retried: it would take as long again"
    checkpoint = store.load_checkpoint(late.id)
    assert checkpoint is not None, "it can be resumed"
    assert failures.load(store)[late.id].attempts[0].iteration == int(checkpoint["iteration"])


def test_a_failed_run_is_retried_and_every_cause_is_kept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    always, twice, never = fake(fakes.RAISES), fake(fakes.RAISES_TWICE), fake(2)
    seen: list[list[str]] = []

    def report(_: Campaign) -> None:
        found = failures.load(store).get(twice.id)
        seen.extend([[each.cause for each in found.attempts]] if found else [])

    campaign = run_all([always, twice, never], store, workers=1, report=report)
    expected = [f"OSError: attempt {n}: the disk is away" for n in (1, 2, 3)]
    assert campaign.failed == {always.id: f"{expected[2]} (the last of 3 attempts)"}
    assert campaign.causes == {always.id: expected, twice.id: expected[:2]}
    assert seen[-1] == expected[:2]
    assert {twice.id, never.id} == set(store.ids())
    (failed,) = failures.load(store).values()
    assert [each.cause for each in failed.attempts] == expected
    assert "the disk is away" in failed.attempts[0].trace
    again = run_all([always], store, workers=1)
    assert len(failures.load(store)[always.id].attempts) == 2 * scheduler.ATTEMPTS
    assert list(again.failed) == [always.id]


def test_a_diverged_run_is_not_retried(tmp_path: Path) -> None:
    diverging = fake(fakes.DIVERGES)
    campaign = run_all([diverging], Store(tmp_path), workers=1)
    assert campaign.failed == {diverging.id: "DivergedError: not finite"}
    assert campaign.causes == {diverging.id: ["DivergedError: not finite"]}


@pytest.mark.parametrize("seed", fakes.WRONG)
def test_an_error_of_the_run_itself_is_not_retried(seed: int, tmp_path: Path) -> None:
    wrong, store = fake(seed), Store(tmp_path)
    campaign = run_all([wrong], store, workers=1)
    fault = fakes.WRONG[seed]
    assert campaign.failed == {wrong.id: f"{type(fault).__name__}: {fault}"}
    assert count_attempts(store, wrong) == 1


def test_a_passing_error_is_retried(tmp_path: Path) -> None:
    store, damaged = Store(tmp_path), fake(fakes.DAMAGED_ONCE)
    assert run_all([damaged], store, workers=1).failed == {}
    assert count_attempts(store, damaged) == 2


def test_a_worker_whose_program_was_edited_is_replaced(tmp_path: Path) -> None:
    store, mixed = Store(tmp_path), fake(fakes.MIXED_ONCE)
    workers: set[int | None] = set()

    def report(campaign: Campaign) -> None:
        workers.update(run.worker for run in campaign.running.values())

    campaign = run_all([mixed, fake(1), fake(2)], store, workers=1, report=report)
    assert (campaign.failed, campaign.causes) == ({}, {}), "the run did not fail"
    assert count_attempts(store, mixed) == 2
    assert len(workers - {None}) == 2


def test_a_run_whose_worker_is_killed_at_every_attempt_fails(tmp_path: Path) -> None:
    store, after = Store(tmp_path), fake(2)
    report, killed = when_running(endless(), send_signal(signal.SIGKILL), times=9)
    campaign = run_all([endless(), after], store, workers=1, report=report)
    assert len(killed) == scheduler.ATTEMPTS
    assert list(campaign.failed) == [endless().id]
    assert after.id in store


def test_workers_that_cannot_import_raise_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_pool, "run_worker", fakes.run_worker_without_torch)
    with pytest.raises(
        EngineError, match=r"cannot be started.*ImportError: libtorch: no such file"
    ):
        run_all([fake(seed) for seed in range(4)], Store(tmp_path), workers=4)
    assert not failures.load(Store(tmp_path)), "no run has failed"


def test_progress_reports_runs_rates_and_time_left(tmp_path: Path) -> None:
    seen: list[tuple[float, float | None, int]] = []

    def report(campaign: Campaign) -> None:
        for run in campaign.running.values():
            if campaign.rate:
                seen.append((run.rate, campaign.seconds_left, run.iteration))

    campaign = run_all([LONG], Store(tmp_path), workers=1, report=report)
    rate, left, iteration = seen[0]
    assert 0 < iteration < 600
    assert left == pytest.approx((600 - iteration) / rate)
    assert (campaign.running, campaign.seconds_left) == ({}, 0.0)


def test_time_left_is_that_of_the_longest_run_and_excludes_failed_runs() -> None:
    campaign = Campaign(total=1000, done=500, given_up=100)
    assert campaign.seconds_left is None
    campaign.running = {"a": RunProgress(300, 100, rate=2.0), "b": RunProgress(300, 200, rate=3.0)}
    assert campaign.seconds_left == 100.0  # of run a, although 400 at 5 per second would take 80
    campaign.running = {"a": RunProgress(300, 290, rate=2.0), "b": RunProgress(300, 200, rate=2.0)}
    assert campaign.seconds_left == 100.0  # 400 at 4 per second


UNGUARDED = """
from pathlib import Path
from rulescope.engine.local_engine import run_all
from rulescope.records import Store
from rulescope.run_spec import RunSpec
print("begun", flush=True)
run_all([RunSpec(seed=seed) for seed in range(4)], Store(Path("store")), workers=4)
"""
GUARDED = """
from pathlib import Path
from engine import fakes
from rulescope.engine import local_engine, process_pool
from rulescope.records import Store

def report(campaign):
    for run in campaign.running.values():
        if run.iteration:
            print(run.worker, flush=True)

if __name__ == "__main__":
    process_pool.run_worker = fakes.run_worker
    local_engine.run_all([fakes.endless()], Store(Path("store")), workers=1, report=report)
"""


def script(text: str, folder: Path) -> subprocess.Popen[str]:
    """Start a script with the same import path."""
    (folder / "script.py").write_text(text)
    paths = [Path(rulescope.__file__).parents[1], Path(__file__).parents[1]]
    return subprocess.Popen(
        [sys.executable, "script.py"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_script_without_a_main_guard_raises_one_clear_error(tmp_path: Path) -> None:
    process = script(UNGUARDED, tmp_path)
    output, error = process.communicate()
    assert process.returncode == 1
    assert output.split() == ["begun", "begun"], "one worker was started"
    assert error.count("Traceback") == 1
    assert "put what the script does under `if __name__ == '__main__':`" in error
    assert not list((tmp_path / "store").rglob("*.json"))


def test_workers_whose_parent_is_killed_save_a_checkpoint_and_exit(tmp_path: Path) -> None:
    with script(GUARDED, tmp_path) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) != process.pid
        process.kill()
        process.communicate()  # returns when the worker, too, has closed its output by exiting
    assert Store(tmp_path / "store").load_checkpoint(endless().id) is not None
    assert heartbeat.load(Store(tmp_path / "store")) == []
