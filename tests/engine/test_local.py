"""The local engine: the same records whatever the number of workers; failures kept apart."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import msgspec
import pytest

from learners.small import small_spec
from rulescope.engine.local import Campaign, run_all
from rulescope.learners.disco.config import Disco
from rulescope.records import Store
from rulescope.runner import find_or_make
from rulescope.spec import RunSpec, Transplant, with_donors

SMALL = small_spec(iterations=4, log_every=2)


def hashes(specs: list[RunSpec], store: Store) -> list[str]:
    return [store.read(spec.id).manifest.science_hash for spec in specs]


def test_one_and_two_workers_make_the_same_records(tmp_path: Path) -> None:
    specs = [msgspec.structs.replace(SMALL, seed=seed) for seed in range(3)]
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    seen: list[int] = []
    first = run_all(specs, one, workers=1, report=lambda c: seen.append(c.done))
    run_all(reversed(specs), two, workers=2)
    assert (first.runs, first.finished, first.failed) == (3, 3, {})
    assert seen[-1] == first.total == 12
    assert hashes(specs, one) == hashes(specs, two)
    assert len(set(hashes(specs, one))) == 3


def test_what_is_there_is_not_run_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run_all([SMALL], store, workers=1)
    reports: list[Campaign] = []
    again = run_all([SMALL], store, workers=1, report=reports.append)
    assert again.finished == 1
    assert again.done == again.total
    assert not reports


def test_a_failing_run_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    lost = msgspec.structs.replace(SMALL, learner=Disco(rule="random:not-a-number"))
    store = Store(tmp_path)
    campaign = run_all([lost, SMALL], store, workers=1)
    assert SMALL.id in store
    assert list(campaign.failed) == [lost.id]
    assert "not-a-number" in campaign.failed[lost.id]


DONOR = msgspec.structs.replace(SMALL, seed=7, scale=0.1)


def recipient(donor: RunSpec, seed: int = 0) -> RunSpec:
    item = Transplant(carrier="recurrent", donor=donor, mode="clamp")
    return msgspec.structs.replace(SMALL, seed=seed, interventions=(item,))


def test_donors_live_first_and_once(tmp_path: Path) -> None:
    second = recipient(recipient(DONOR), seed=1)  # a donor with a donor of its own
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    campaign = run_all([second, recipient(DONOR)], one, workers=2)
    assert (campaign.runs, campaign.finished, campaign.failed) == (3, 3, {})
    assert campaign.done == campaign.total == 12
    assert find_or_make(second, two).manifest.parents == (recipient(DONOR).id,)
    everything = [DONOR, recipient(DONOR), second]
    assert hashes(everything, one) == hashes(everything, two)
    assert list(with_donors([second])) == [item.id for item in everything]


def test_recipients_of_a_failed_donor_fail_with_it(tmp_path: Path) -> None:
    lost = msgspec.structs.replace(SMALL, learner=Disco(rule="random:not-a-number"))
    heir, grandchild = recipient(lost), recipient(recipient(lost), seed=1)
    campaign = run_all([grandchild, SMALL], Store(tmp_path), workers=1)
    assert campaign.finished == 1
    assert set(campaign.failed) == {lost.id, heir.id, grandchild.id}
    assert campaign.failed[grandchild.id] == f"its donor {heir.id[:12]} failed"


def test_an_interrupt_stops_every_worker_at_a_checkpoint(tmp_path: Path) -> None:
    long = msgspec.structs.replace(SMALL, iterations=1_000_000)
    specs = [msgspec.structs.replace(long, seed=seed) for seed in range(3)]
    store = Store(tmp_path)

    def interrupt(campaign: Campaign) -> None:
        if campaign.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(specs, store, workers=1, report=interrupt)
    kept = [store.load_checkpoint(spec.id) is not None for spec in specs]
    assert kept == [True, False, False], "only the run under way has something to keep"


def kill_workers() -> None:
    for process in multiprocessing.active_children():
        if process.pid is not None:
            os.kill(process.pid, signal.SIGKILL)


def test_killed_workers_are_replaced_and_their_runs_done(tmp_path: Path) -> None:
    specs = [msgspec.structs.replace(SMALL, iterations=60, seed=seed) for seed in range(2)]
    heir = msgspec.structs.replace(recipient(specs[1], seed=5), iterations=60)
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    kills = iter(range(1))

    def murder(campaign: Campaign) -> None:
        if campaign.done and next(kills, None) is not None:
            kill_workers()

    campaign = run_all([heir, *specs], one, workers=2, report=murder)
    run_all([heir, *specs], two, workers=2)
    assert next(kills, None) is None  # somebody was killed
    assert (campaign.finished, campaign.failed) == (3, {})
    assert hashes([heir, *specs], one) == hashes([heir, *specs], two)


def test_a_run_whose_worker_is_always_killed_fails_in_the_end(tmp_path: Path) -> None:
    long = msgspec.structs.replace(SMALL, iterations=100_000)

    campaign = run_all(
        [long, recipient(long)], Store(tmp_path), workers=1, report=lambda _: kill_workers()
    )
    assert "BrokenProcessPool" in campaign.failed[long.id]
    assert set(campaign.failed) == {long.id, recipient(long).id}
