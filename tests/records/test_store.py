from __future__ import annotations

import multiprocessing
import shutil
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from rulescope.core.errors import RecordError
from rulescope.records import Store, quarantine, science_hash

from .sample_record import changed_log, sample

RUN = sample().spec.id


def folder_of(store: Store, run: str = RUN) -> Path:
    return store.root / "runs" / run[:2] / run


def listing(store: Store, part: str) -> list[str]:
    folder = store.root / part
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_round_trip(store: Store) -> None:
    record = sample()
    assert store.commit(record) == RUN
    again = store.read(RUN)
    assert again.spec == record.spec
    assert science_hash(again.log, again.state) == record.manifest.science_hash
    assert sorted(path.name for path in folder_of(store).iterdir()) == [
        "log.npz",
        "manifest.json",
        "state.npz",
    ]
    assert listing(store, "tmp") == []


def test_contents_and_ids(store: Store) -> None:
    assert RUN not in store
    runs = {store.commit(sample(seed)) for seed in range(5)}
    assert all(run in store for run in runs)
    assert list(store.ids()) == sorted(runs)
    assert store.verify() == []
    assert store.quarantined() == []


def test_a_record_can_be_copied_to_another_store(store: Store, tmp_path: Path) -> None:
    store.commit(sample())
    other = Store(tmp_path / "deep" / "er" / "store")
    other.commit(store.read(RUN))
    assert other.read(RUN).manifest == store.read(RUN).manifest


def test_the_same_result_twice_keeps_the_first(store: Store) -> None:
    store.commit(sample(seconds=1.0))
    assert store.commit(sample(seconds=2.0)) == RUN
    assert store.read(RUN).manifest.seconds == 1.0
    assert listing(store, "tmp") == []


def test_a_different_result_is_an_error_that_names_both(store: Store) -> None:
    old, new = sample(), sample(log=changed_log(), torch="2.7.0")
    store.commit(old)
    with pytest.raises(RecordError, match="made with different torch") as caught:
        store.commit(new)
    assert old.manifest.science_hash in str(caught.value)
    assert new.manifest.science_hash in str(caught.value)
    assert store.read(RUN).manifest.science_hash == old.manifest.science_hash


def test_a_damaged_record_is_replaced_by_a_new_one(store: Store) -> None:
    store.commit(sample())
    (folder_of(store) / "log.npz").write_bytes(b"garbage")
    assert store.commit(sample()) == RUN
    assert store.read(RUN).spec == sample().spec
    assert [(item.id, item.reason) for item in store.quarantined()] == [
        (RUN, "log.npz does not match its sha256")
    ]


@pytest.mark.parametrize("name", ["manifest.json", "log.npz", "state.npz"])
@pytest.mark.parametrize("damage", ["flip", "truncate", "remove"])
def test_a_damaged_record_is_detected_and_quarantined(store: Store, name: str, damage: str) -> None:
    store.commit(sample())
    path = folder_of(store) / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes(content if damage == "flip" else content[: len(content) // 2])

    with pytest.raises(RecordError, match=f"{name}.*quarantine"):
        store.read(RUN)
    assert RUN not in store
    assert list(store.ids()) == []
    [item] = store.quarantined()
    assert item.id == RUN
    assert name in item.reason
    assert item.path == store.root / "quarantine" / f"{RUN}-1"
    with pytest.raises(RecordError, match="holds no record"):
        store.read(RUN)


def test_repeated_damage_is_quarantined_beside_the_first(store: Store) -> None:
    for _ in range(3):
        store.commit(sample())
        (folder_of(store) / "manifest.json").write_text("{}")
        assert [problem.id for problem in store.verify()] == [RUN]
    assert listing(store, "quarantine") == [f"{RUN}-1", f"{RUN}-2", f"{RUN}-3"]


def test_a_record_under_the_id_of_another_is_detected(store: Store) -> None:
    store.commit(sample(0))
    other = folder_of(store, sample(1).spec.id)
    other.parent.mkdir(exist_ok=True)
    folder_of(store).rename(other)
    with pytest.raises(RecordError, match=f"is that of run {RUN}"):
        store.read(sample(1).spec.id)


def test_verify_lists_every_problem_and_foreign_entry(store: Store) -> None:
    for seed in range(3):
        store.commit(sample(seed))
    (folder_of(store) / "state.npz").write_bytes(b"")
    (folder_of(store).parent / "notes").mkdir()
    (store.root / "runs" / "list.txt").write_text("")
    (store.root / "runs" / ".hidden").write_text("")
    shutil.copytree(folder_of(store, sample(1).spec.id), store.root / "runs" / "zz" / RUN)
    found = dict(store.verify())
    assert found.pop("runs/list.txt") == "not a record"
    assert found.pop(f"runs/{RUN[:2]}/notes") == "not a record"
    assert found.pop(f"runs/zz/{RUN}") == "not a record"
    assert list(found) == [RUN]
    assert "state.npz" in found[RUN]
    assert sorted(store.ids()) == sorted(sample(seed).spec.id for seed in (1, 2))


def test_files_left_by_crashed_processes_are_harmless(store: Store) -> None:
    stale = store.root / "tmp" / f"{RUN[:16]}-dead"
    stale.mkdir(parents=True)
    (stale / "manifest.json").write_text("{")
    (folder_of(store)).mkdir(parents=True)  # an empty folder is no record either
    assert store.commit(sample()) == RUN
    assert store.verify() == []
    assert listing(store, "tmp") == [stale.name]


@pytest.mark.parametrize(
    "run",
    ["", "..", "../../etc/passwd", RUN[:-1], RUN + "0", RUN.upper(), f"{RUN}\n", f"/{RUN[1:]}"],
)
def test_only_ids_become_paths(store: Store, run: str) -> None:
    store.commit(sample())
    with pytest.raises(RecordError, match="not a run id"):
        store.read(run)
    with pytest.raises(RecordError, match="not a run id"):
        _ = run in store
    with pytest.raises(RecordError, match="not a run id"):
        store.save_checkpoint(run, {})
    with pytest.raises(RecordError, match="not a run id"):
        store.load_checkpoint(run)
    with pytest.raises(RecordError, match="not a run id"):
        store.drop_checkpoint(run)


def test_reading_a_missing_store_names_it_and_creates_nothing(store: Store) -> None:
    for look in (store.ids, store.verify, store.quarantined, lambda: store.read(RUN)):
        with pytest.raises(RecordError, match=f"{store.root}: no such store"):
            look()
    assert RUN not in store
    assert store.load_checkpoint(RUN) is None
    store.drop_checkpoint(RUN)
    assert not store.root.exists()


def test_reading_an_empty_store_creates_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert list(store.ids()) == []
    assert store.verify() == []
    assert store.quarantined() == []
    assert list(tmp_path.iterdir()) == []


def commit_together(root: Path, barrier: Barrier) -> None:
    """Wait for the others, then commit the same run as they do."""
    record = sample()
    barrier.wait(timeout=60)
    Store(root).commit(record)


def test_eight_processes_commit_one_record(store: Store) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(8)
    processes = [
        context.Process(target=commit_together, args=(store.root, barrier)) for _ in range(8)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=60)
    assert [process.exitcode for process in processes] == [0] * 8
    assert list(store.ids()) == [RUN]
    assert store.verify() == []
    assert store.quarantined() == []
    assert listing(store, "tmp") == []


def test_an_intact_record_that_has_replaced_a_damaged_one_is_moved_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.commit(sample())
    damaged = folder_of(store) / "log.npz"
    content = damaged.read_bytes()
    damaged.write_bytes(content[:-1])
    real = quarantine.move

    def late(path: Path, *rest: Any, **options: Any) -> str:
        # Another process was faster: it has moved the damaged record and run the run again.
        damaged.write_bytes(content)
        return real(path, *rest, **options)

    monkeypatch.setattr(quarantine, "move", late)
    with pytest.raises(RecordError, match="put an intact one in its place"):
        store.read(RUN)
    assert store.read(RUN).spec.id == RUN
    assert store.quarantined() == []
