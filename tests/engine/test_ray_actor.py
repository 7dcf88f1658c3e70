"""The Ray actor without Ray: what it receives and what it returns."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from engine.campaigns import DONOR, LONG, SMALL, recipient
from made_up_records import made_up
from rulescope import run_spec as specs
from rulescope import runner
from rulescope.core import runtime
from rulescope.engine.messages import Ready, RunEnded, StartFailed
from rulescope.engine.ray_actor import Files, RayActor, RunReport
from rulescope.engine.ray_pool import ActorHandle
from rulescope.learners.disco_config import Disco
from rulescope.lifetime import Lifetime
from rulescope.records import Record, Store
from rulescope.records.record import decode
from rulescope.rules import released_rules, weight_files
from rulescope.run_spec import RunSpec


def new_actor() -> RayActor:
    return RayActor(runtime.program_name(), {}, "cpu")


def run(spec: RunSpec, donors: dict[str, Files] | None = None) -> RunReport:
    return new_actor().run(specs.canonical(spec), donors or {}, None)


def science_hash(id_: str, report: RunReport) -> str:
    return decode(id_, report.records[id_]).manifest.science_hash


def test_a_donor_sent_with_the_run_is_not_run_again() -> None:
    child = recipient(DONOR)
    donor = run(DONOR)
    without, with_donor = run(child), run(child, donor.records)
    assert with_donor.ended == RunEnded(child.id, "done", child.iterations)
    assert set(without.records) == {DONOR.id, child.id}
    assert set(with_donor.records) == {child.id}
    assert science_hash(child.id, with_donor) == science_hash(child.id, without)


def test_another_actor_resumes_from_the_last_reported_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "CHECKPOINT_SECONDS", 0.0)
    spec = msgspec.structs.replace(LONG, iterations=300)
    first, done = new_actor(), []
    thread = threading.Thread(
        target=lambda: done.append(first.run(specs.canonical(spec), {}, None))
    )
    thread.start()
    progress = first.report_progress()
    while progress.checkpoint is None:
        progress = first.report_progress()
    first.pause(spec.id)
    thread.join()
    (paused,) = done
    assert (paused.ended.outcome, paused.records) == ("paused", {})
    assert paused.checkpoint is not None
    assert first.run(specs.canonical(spec), {}, paused.checkpoint).ended.outcome == "done", (
        "a run that is assigned again is not paused any more"
    )
    second = new_actor()
    rest = second.run(specs.canonical(spec), {}, progress.checkpoint)
    assert rest.ended.outcome == "done"
    assert rest.checkpoint is None
    assert science_hash(spec.id, rest) == science_hash(spec.id, run(spec))


def test_an_error_of_a_run_is_reported_and_not_raised() -> None:
    failing = msgspec.structs.replace(SMALL, learner=Disco(rule="disco999"))
    ended = run(failing).ended
    assert (ended.outcome, ended.retry) == ("failed", False)
    assert "disco999" in ended.cause


def test_a_conflict_with_the_stored_record_is_reported_and_not_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another attempt would find the stored record and hide the conflict."""
    store, report = Store(tmp_path), run(SMALL)
    store.commit(made_up(SMALL))
    actor = SimpleNamespace(start=SimpleNamespace(remote=lambda: None))
    committed = ActorHandle(actor, store)._commit(report)
    assert (committed.outcome, committed.retry) == ("failed", False)
    assert "science hash" in committed.cause
    monkeypatch.setattr(runner, "find_or_make", lambda item, *_, **__: store.commit(_record(item)))
    ended = run(SMALL).ended
    assert (ended.outcome, ended.retry) == ("failed", False)
    assert "ConflictError" in ended.cause


def _record(spec: RunSpec) -> Record:
    life = Lifetime(spec)
    life.run()
    return life.record()


def test_an_actor_reports_whether_it_could_start() -> None:
    assert isinstance(new_actor().start().message, Ready)
    old = RayActor("0.0.1", {}, "cpu").start().message
    assert isinstance(old, StartFailed)
    assert "needs 0.0.1" in old.cause
    without_device = RayActor(runtime.program_name(), {}, "abacus").start().message
    assert isinstance(without_device, StartFailed)
    assert "abacus" in without_device.cause


def test_missing_weights_are_installed_and_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rule = next(iter(released_rules.RULES.values()))
    fetched: list[bytes] = []
    monkeypatch.setattr(weight_files, "copies", lambda _: iter(()))
    monkeypatch.setattr(
        weight_files,
        "fetch",
        lambda rule, source: fetched.append((source / rule.basename).read_bytes()),
    )
    given = RayActor(runtime.program_name(), {rule.name: b"these"}, "cpu")
    assert isinstance(given.start().message, Ready)
    assert fetched == [b"these"]
    monkeypatch.undo()
    monkeypatch.setattr(weight_files, "copies", lambda _: iter(()))
    message = RayActor(runtime.program_name(), {rule.name: b"not these"}, "cpu").start().message
    assert isinstance(message, StartFailed)
    assert "not the released weights" in message.cause
