"""Plans of campaigns in a store: written once, read strictly, carried along by a merge."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rulescope.core.errors import RecordError
from rulescope.learners.learner_config import Plugin
from rulescope.records import Store, archive
from rulescope.records.merge import merge
from rulescope.records.plans import CampaignPlan, add_plan, read_plans
from rulescope.records.sizes import measure

from .sample_record import sample

PLAN = CampaignPlan(
    assay="E1",
    typed_rule="mine",
    rule="mine",
    learner=Plugin(rule="mine", source="a" * 64),
    label="",
    null_rule=None,
    agent="",
    seeds=3,
    iterations=600,
    episodes=None,
    log_every=20,
    arms=("live", "pin"),
    scales=(0.1, 1.0),
    tasks=("catch",),
    conditions=(),
)
OTHER = msgspec.structs.replace(PLAN, seeds=4, learner=None, rule="disco103")


def files(store: Store) -> list[Path]:
    return sorted((store.root / "plans").iterdir())


def put(store: Store, content: bytes, name: str | None = None) -> Path:
    """Write a file among the plans, named after its content unless a ``name`` is given."""
    folder = store.root / "plans"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name or hashlib.sha256(content).hexdigest()}.json"
    path.write_bytes(content)
    return path


def test_a_plan_comes_back_and_is_named_after_its_content(store: Store) -> None:
    add_plan(store, PLAN)
    add_plan(store, OTHER)
    assert sorted(read_plans(store), key=lambda plan: plan.seeds) == [PLAN, OTHER]
    for path in files(store):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.stem
    assert list((store.root / "tmp").iterdir()) == []


def test_the_same_plan_is_written_once(store: Store) -> None:
    add_plan(store, PLAN)
    [path] = files(store)
    before = path.stat()
    add_plan(store, PLAN)
    [path] = files(store)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_store_without_plans_has_none(store: Store) -> None:
    assert read_plans(store) == []
    assert not store.root.exists()


def _changed(**fields: object) -> bytes:
    return json.dumps(msgspec.to_builtins(PLAN) | fields).encode()


@pytest.mark.parametrize(
    ("content", "warning"),
    [
        (b"{", "not a plan"),
        (b"[]", "not a plan"),
        (b"\xff", "not a plan"),
        (_changed(schema=2), "has schema 2; this version reads 1"),
        (_changed(seeds="3"), "not a plan"),
        (_changed(seeds=0), "not a plan"),
        (_changed(scales=[-1.0]), "not a plan"),
        (_changed(surprise=1), "not a plan"),
        (_changed(learner={"kind": "unheard-of"}), "not a plan"),
    ],
)
def test_what_is_no_plan_is_ignored_with_a_warning(
    content: bytes, warning: str, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    add_plan(store, PLAN)
    path = put(store, content)
    assert read_plans(store) == [PLAN]
    [message] = [record.getMessage() for record in caplog.records]
    assert warning in message
    assert path.name in message
    assert str(store.root) not in message


def _flip(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"3", b"4", 1))


def _link(path: Path) -> None:
    target = path.with_suffix(".real")
    path.rename(target)
    path.symlink_to(target)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("damage", [_flip, _link, _pipe])
def test_a_damaged_plan_is_ignored_with_a_warning(
    damage: Callable[[Path], None], store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    add_plan(store, OTHER)
    [path] = files(store)
    damage(path)
    add_plan(store, PLAN)
    assert read_plans(store) == [PLAN]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "damaged" in caplog.text


def test_a_folder_of_plans_that_leads_elsewhere_is_not_followed(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = Store(tmp_path / "other")
    add_plan(other, PLAN)
    store.root.mkdir(parents=True)
    (store.root / "plans").symlink_to(other.root / "plans")
    assert read_plans(store) == []
    assert "symbolic link" in caplog.text
    with pytest.raises(RecordError, match="symbolic link"):
        add_plan(store, OTHER)


def test_a_store_opened_to_be_read_gets_no_plan(store: Store) -> None:
    with pytest.raises(RecordError, match="read only"):
        add_plan(Store(store.root, read_only=True), PLAN)


def test_a_merge_brings_plans_along_and_leaves_damaged_ones(store: Store, tmp_path: Path) -> None:
    source = Store(tmp_path / "source")
    source.commit(sample())
    add_plan(source, PLAN)
    put(source, b"{", "0" * 64)
    add_plan(store, OTHER)
    merge(store, source.root)
    assert sorted(read_plans(store), key=lambda plan: plan.seeds) == [PLAN, OTHER]
    assert len(files(store)) == 2
    assert len(files(source)) == 2


def test_an_archive_holds_records_alone(store: Store, tmp_path: Path) -> None:
    source = Store(tmp_path / "source")
    source.commit(sample())
    add_plan(source, PLAN)
    archive.write(source, source.ids(), tmp_path / "records.zip")
    assert merge(store, tmp_path / "records.zip").new == [sample().spec.id]
    assert read_plans(store) == []


def test_plans_have_their_size_and_are_no_fault_of_a_store(store: Store) -> None:
    store.commit(sample())
    add_plan(store, PLAN)
    [path] = files(store)
    assert measure(store).parts["plans"] == (1, path.stat().st_size)
    assert store.verify() == []
