"""A worker of a cluster, without the cluster: what it is given, and what it gives back."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from engine.test_local import DONOR, LONG, SMALL, recipient
from made_up_records import made_up
from rulescope import runner
from rulescope.core import runtime
from rulescope.engine.messages import Ended, Ready, Unfit
from rulescope.engine.ray_actor import Files, Outcome, Remote
from rulescope.engine.ray_member import Actor
from rulescope.lifetime import Lifetime
from rulescope.records import Record, Store
from rulescope.records.record import decode
from rulescope.rules import locate, registry
from rulescope.spec import run_spec as specs
from rulescope.spec.disco_config import Disco
from rulescope.spec.run_spec import RunSpec


def worker() -> Remote:
    return Remote(runtime.program_name(), {}, "cpu")


def make(spec: RunSpec, donors: dict[str, Files] | None = None) -> Outcome:
    return worker().make(specs.canonical(spec), donors or {}, None)


def science(run: str, outcome: Outcome) -> str:
    return decode(run, outcome.made[run]).manifest.science_hash


def test_a_donor_that_comes_along_is_not_lived_again() -> None:
    heir = recipient(DONOR)
    donor = make(DONOR)
    alone, along = make(heir), make(heir, donor.made)
    assert along.ended == Ended(heir.id, "done", heir.iterations)
    assert set(alone.made) == {DONOR.id, heir.id}
    assert set(along.made) == {heir.id}
    assert science(heir.id, along) == science(heir.id, alone)


def test_another_goes_on_from_the_last_checkpoint_that_was_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "CHECKPOINT_SECONDS", 0.0)
    spec = msgspec.structs.replace(LONG, iterations=300)
    first, done = worker(), []
    thread = threading.Thread(
        target=lambda: done.append(first.make(specs.canonical(spec), {}, None))
    )
    thread.start()
    seen = first.look()
    while seen.checkpoint is None:
        seen = first.look()
    first.pause(spec.id)
    thread.join()
    (paused,) = done
    assert (paused.ended.how, paused.made) == ("paused", {})
    assert paused.checkpoint is not None
    assert first.make(specs.canonical(spec), {}, paused.checkpoint).ended.how == "done", (
        "it was given again, so it is wanted again"
    )
    second = worker()
    rest = second.make(specs.canonical(spec), {}, seen.checkpoint)
    assert rest.ended.how == "done"
    assert rest.checkpoint is None
    assert science(spec.id, rest) == science(spec.id, make(spec))


def test_what_goes_wrong_in_a_run_is_told_and_not_raised() -> None:
    lost = msgspec.structs.replace(SMALL, learner=Disco(rule="disco999"))
    ended = make(lost).ended
    assert (ended.how, ended.again) == ("failed", False)
    assert "disco999" in ended.cause


def test_another_result_of_the_same_run_is_told_and_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next attempt would find the first record, and forget that there was another."""
    store, outcome = Store(tmp_path), make(SMALL)
    store.commit(made_up(SMALL))
    actor = SimpleNamespace(begin=SimpleNamespace(remote=lambda: None))
    brought = Actor(actor, store)._brought(outcome)
    assert (brought.how, brought.again) == ("failed", False)
    assert "science hash" in brought.cause
    monkeypatch.setattr(runner, "find_or_make", lambda item, *_, **__: store.commit(_lived(item)))
    lived = make(SMALL).ended
    assert (lived.how, lived.again) == ("failed", False)
    assert "ConflictError" in lived.cause


def _lived(spec: RunSpec) -> Record:
    life = Lifetime(spec)
    life.run()
    return life.record()


def test_the_first_words_of_a_worker() -> None:
    assert isinstance(worker().begin().said, Ready)
    old = Remote("0.0.1", {}, "cpu").begin().said
    assert isinstance(old, Unfit)
    assert "0.0.1 is needed" in old.cause
    blind = Remote(runtime.program_name(), {}, "abacus").begin().said
    assert isinstance(blind, Unfit)
    assert "abacus" in blind.cause


def test_weights_are_brought_where_there_are_none_and_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rule = next(iter(registry.RULES.values()))
    fetched: list[bytes] = []
    monkeypatch.setattr(locate, "copies", lambda _: iter(()))
    monkeypatch.setattr(
        locate,
        "fetch",
        lambda rule, source: fetched.append((source / rule.basename).read_bytes()),
    )
    given = Remote(runtime.program_name(), {rule.name: b"these"}, "cpu")
    assert isinstance(given.begin().said, Ready)
    assert fetched == [b"these"]
    monkeypatch.undo()
    monkeypatch.setattr(locate, "copies", lambda _: iter(()))
    said = Remote(runtime.program_name(), {rule.name: b"not these"}, "cpu").begin().said
    assert isinstance(said, Unfit)
    assert "not the released weights" in said.cause
