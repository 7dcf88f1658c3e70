"""Campaigns that execute common iterations once: equal records, whatever happens."""

from __future__ import annotations

import os
import signal
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import msgspec
import pytest

from learners.baseline_cases import SMALL as BASELINES
from learners.small import small_spec
from rulescope.engine.campaign import Campaign
from rulescope.engine.local_engine import run_all
from rulescope.engine.rerun import rerun_records
from rulescope.envs.world_config import ActionFlip, RewardMove
from rulescope.learners.baseline_config import A2C, NetworkSizes
from rulescope.records import Record, Store, cleanup
from rulescope.records.branch_checkpoints import BranchCheckpoints
from rulescope.records.record import SharedPart
from rulescope.records.verification import check_store
from rulescope.run_spec import Freeze, Reset, RunSpec
from rulescope.runner import Paused, find_or_make
from rulescope.shared_prefix import branch_of

SWITCH, FROZEN = 300, 200
LIVE = small_spec(
    learner=A2C(agent=NetworkSizes(hidden=(8, 8))), iterations=500, log_every=100, steps=6
)
FLIPPED = msgspec.structs.replace(LIVE, change=ActionFlip(at=SWITCH))
MOVED = msgspec.structs.replace(LIVE, change=RewardMove(at=SWITCH))
STILL = msgspec.structs.replace(LIVE, interventions=(Freeze("params", FROZEN),))
GROUP = [LIVE, FLIPPED, MOVED, STILL]
LONG = [
    msgspec.structs.replace(spec, iterations=4000, change=change)
    for spec, change in ((LIVE, None), (LIVE, ActionFlip(at=3000)), (LIVE, RewardMove(at=3000)))
]


@cache
def alone(spec: RunSpec) -> Record:
    return find_or_make(spec, Store(Path(mkdtemp())))


def check_records(specs: list[RunSpec], store: Store) -> None:
    for spec in specs:
        record = store.read(spec.id)
        assert record.manifest.science_hash == alone(spec).manifest.science_hash


def shared(specs: list[RunSpec], store: Store) -> list[SharedPart | None]:
    return [store.manifest(spec.id).shared for spec in specs]


def checkpoints(store: Store) -> list[str]:
    folder = store.root / "checkpoints"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.mark.usefixtures("fast_heartbeats")
@pytest.mark.parametrize("workers", [1, 3])
def test_records_are_equal_to_those_of_runs_alone(workers: int, tmp_path: Path) -> None:
    dqn = small_spec(learner=BASELINES["dqn"], iterations=40, change=ActionFlip(at=20))
    cleared = msgspec.structs.replace(dqn, interventions=(Reset("replay", 20),))
    disco = small_spec(iterations=30)
    moved = msgspec.structs.replace(disco, change=RewardMove(at=15))
    specs, store = [*GROUP, dqn, cleared, disco, moved], Store(tmp_path)
    campaign = run_all(specs, store, workers=workers)
    assert (campaign.finished, campaign.failed) == (8, {})
    assert campaign.done == campaign.total
    assert campaign.shared == 0
    check_records(specs, store)
    assert shared(specs, store) == [
        None,
        SharedPart(LIVE.id, SWITCH),
        SharedPart(LIVE.id, SWITCH),
        SharedPart(LIVE.id, FROZEN - 1),
        None,
        SharedPart(dqn.id, 19),
        None,
        SharedPart(disco.id, 15),
    ]
    assert checkpoints(store) == [], "no branch checkpoint stays"
    findings = rerun_records(store, [spec.id for spec in specs], workers=workers)
    assert {finding.about for finding in findings} == {"rerun: bit-identical"}


@pytest.mark.usefixtures("fast_heartbeats")
def test_nothing_is_shared_if_that_is_not_wanted(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run_all(GROUP, store, workers=2, share_prefixes=False)
    check_records(GROUP, store)
    assert shared(GROUP, store) == [None] * 4


@pytest.mark.usefixtures("fast_heartbeats")
def test_a_run_waits_for_the_branch_even_if_workers_are_idle(tmp_path: Path) -> None:
    trunk, *others = (spec.id for spec in LONG)

    def report(campaign: Campaign) -> None:
        ahead = campaign.running.get(trunk)
        if ahead is not None and ahead.iteration < 3000:
            assert not any(run in campaign.running for run in others)

    store = Store(tmp_path)
    run_all(LONG, store, workers=3, report=report)
    check_records(LONG, store)
    assert shared(LONG, store) == [None, *[SharedPart(trunk, 3000)] * 2]


@pytest.mark.usefixtures("fast_heartbeats")
def test_a_trunk_whose_worker_is_killed_leaves_its_branches_all_the_same(tmp_path: Path) -> None:
    store = Store(tmp_path)
    killed: list[int] = []

    def kill_once(campaign: Campaign) -> None:
        run = campaign.running.get(LONG[0].id)
        if run and run.worker and run.iteration and not killed:
            killed.append(run.worker)
            os.kill(run.worker, signal.SIGKILL)

    campaign = run_all(LONG, store, workers=2, report=kill_once)
    assert killed
    assert not campaign.failed
    check_records(LONG, store)
    assert shared(LONG, store)[1:] == [SharedPart(LONG[0].id, 3000)] * 2
    assert checkpoints(store) == []


@pytest.mark.usefixtures("fast_heartbeats")
def test_an_interrupted_campaign_goes_on_from_its_branches(tmp_path: Path) -> None:
    store, branch = Store(tmp_path), branch_of(LONG[1], 3000)

    def interrupt(campaign: Campaign) -> None:
        run = campaign.running.get(LONG[0].id)
        if run and run.iteration >= 3000 and not campaign.stopping:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_all(LONG, store, workers=1, report=interrupt)
    assert branch.file_name in checkpoints(store)
    assert not cleanup.find(store), "runs without a record need it"
    # The trunk itself is not asked for any more.
    run_all(LONG[1:2], store, workers=1)
    assert branch.file_name in checkpoints(store), "another run needs it"
    run_all(LONG, store, workers=1)
    check_records(LONG, store)
    assert shared(LONG, store)[1:] == [SharedPart(LONG[0].id, 3000)] * 2
    assert checkpoints(store) == []


@pytest.mark.usefixtures("fast_heartbeats")
def test_a_run_that_is_asked_for_later_runs_alone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run_all([LIVE], store, workers=1)
    assert checkpoints(store) == []
    run_all(GROUP[:2], store, workers=1)
    check_records(GROUP[:2], store)
    assert shared(GROUP[:2], store) == [None, None]


@pytest.mark.usefixtures("fast_heartbeats")
def test_a_trunk_that_was_ahead_of_the_branch_makes_nobody_wait(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(Paused):
        find_or_make(LONG[0], store, stop_after=3500)
    campaign = run_all(LONG, store, workers=2)
    assert (campaign.finished, campaign.failed) == (3, {})
    check_records(LONG, store)
    assert shared(LONG, store) == [None] * 3
    assert checkpoints(store) == []


@pytest.mark.usefixtures("fast_heartbeats")
def test_a_damaged_branch_costs_time_only(tmp_path: Path) -> None:
    store = Store(tmp_path)
    branch = branch_of(FLIPPED, SWITCH)
    path = tmp_path / "checkpoints" / branch.file_name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"PK")
    [finding] = check_store(store).findings
    assert finding.wrong
    assert "damaged" in finding.about
    assert [each.path for each in cleanup.find(store)] == [path]
    run_all([FLIPPED, MOVED], store, workers=1)
    check_records([FLIPPED, MOVED], store)
    assert checkpoints(store) == []


def test_a_branch_is_a_leftover_when_its_runs_have_records(tmp_path: Path) -> None:
    store, branch = Store(tmp_path), branch_of(LIVE, SWITCH)
    BranchCheckpoints(store).save(branch, [FLIPPED.id, MOVED.id], {})
    find_or_make(FLIPPED, store)
    assert check_store(store).findings == []
    assert cleanup.find(store) == []
    find_or_make(MOVED, store)
    [found] = cleanup.find(store)
    cleanup.remove([found])
    assert checkpoints(store) == []
