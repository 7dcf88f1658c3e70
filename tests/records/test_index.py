"""The index: derived from the records, incremental, rebuilt when damaged."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rulescope.core.errors import RecordError
from rulescope.records import Store, columns, index, index_shards, query

from .sample_record import sample


def scores(store: Store) -> dict[str, float]:
    """Return the best score of every record that a query sees."""
    with query.open_database(store) as database:
        rows = list(database.query("SELECT id, max(score) FROM logs GROUP BY id").rows)
        counted = list(database.query("SELECT count(*), count(DISTINCT id) FROM runs").rows)
    assert counted == [(len(rows), len(rows))]
    return dict(rows)


def shard_folders(store: Store) -> list[Path]:
    """Return the shards in use."""
    home = index.Index(store).folder
    return sorted(folder for folder in home.iterdir() if not (folder / "worn").exists())


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of records that were opened, in order."""
    opened: list[str] = []
    real = Store.read_log

    def read_log(self: Store, run: str, max_bytes: int | None = None) -> Any:
        opened.append(run)
        return real(self, run, max_bytes)

    monkeypatch.setattr(Store, "read_log", read_log)
    return opened


def test_each_record_is_read_once(store: Store, reads: list[str]) -> None:
    first = [store.commit(sample(seed)) for seed in range(3)]
    assert scores(store) == dict.fromkeys(first, 0.25)
    assert sorted(reads) == sorted(first)
    reads.clear()
    scores(store)
    assert reads == []
    more = store.commit(sample(3))
    assert len(scores(store)) == 4
    assert reads == [more]


def test_deleted_records_disappear_and_new_results_appear(store: Store, reads: list[str]) -> None:
    runs = [store.commit(sample(seed)) for seed in range(3)]
    scores(store)
    store.delete(runs[0])
    log = dict(sample().log) | {"score": np.array([0.9, 0.0, 0.0])}
    store.delete(runs[1])
    store.commit(sample(1, log=log))
    reads.clear()
    assert scores(store) == {runs[1]: 0.9, runs[2]: 0.25}
    assert reads == [runs[1]]


def test_a_damaged_record_is_reported_and_not_served_from_the_index(store: Store) -> None:
    runs = [store.commit(sample(seed)) for seed in range(2)]
    scores(store)
    path = store.folder(runs[0]) / "log.npz"
    content = bytearray(path.read_bytes())
    content[30] ^= 1
    path.write_bytes(content)
    with query.open_database(store) as database:
        assert [problem.id for problem in database.problems] == [runs[0]]
        assert database.ids("true") == [runs[1]]
    assert [item.id for item in store.quarantined()] == [runs[0]]


@pytest.mark.parametrize("name", [index_shards.RUNS, index_shards.LOGS])
@pytest.mark.parametrize("damage", ["flip", "truncate", "remove", "folder", "link"])
def test_a_damaged_index_is_rebuilt_silently(
    store: Store, tmp_path: Path, name: str, damage: str, capfd: pytest.CaptureFixture[str]
) -> None:
    runs = {store.commit(sample(seed)) for seed in range(3)}
    scores(store)
    [folder] = shard_folders(store)
    path = folder / name
    content = bytearray(path.read_bytes())
    path.unlink()
    if damage == "flip":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    elif damage == "truncate":
        path.write_bytes(content[:-10])
    elif damage == "folder":
        path.mkdir()
    elif damage == "link":
        (tmp_path / "x").write_bytes(content[:-1])
        path.symlink_to(tmp_path / "x")
    assert set(scores(store)) == runs
    assert len(shard_folders(store)) == 1
    assert capfd.readouterr() == ("", "")


def test_the_index_can_be_deleted_and_foreign_files_in_it_are_harmless(store: Store) -> None:
    runs = {store.commit(sample(seed)) for seed in range(3)}
    scores(store)
    shutil.rmtree(store.root / "index")
    assert set(scores(store)) == runs
    home = index.Index(store).folder
    (home / "notes.txt").write_text("hello")
    (home / ("0" * 64)).mkdir()
    assert set(scores(store)) == runs
    assert len(shard_folders(store)) == 1


def test_a_shard_of_another_store_is_not_used(store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path / "other")
    other.commit(sample(0, log=dict(sample().log) | {"score": np.array([9.0, 9.0, 9.0])}))
    scores(other)
    run = store.commit(sample(0))
    shutil.copytree(other.root / "index", store.root / "index")
    assert scores(store) == {run: 0.25}


def test_many_small_shards_are_merged(
    store: Store, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "_MAX_SMALL", 3)
    runs = set()
    for seed in range(7):
        runs.add(store.commit(sample(seed)))
        assert set(scores(store)) == runs
        assert len(shard_folders(store)) <= 4
    assert sorted(reads) == sorted(runs)  # joining reads shards, not records


def test_a_replaced_shard_stays_for_a_while_for_its_readers(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [store.commit(sample(seed)) for seed in range(3)]
    with query.open_database(store) as early:
        store.delete(runs[0])
        assert len(scores(store)) == 2  # a later process replaces the shard
        assert list(early.query("SELECT count(DISTINCT id) FROM logs").rows) == [(3,)]
    home = index.Index(store).folder
    assert len(list(home.iterdir())) == 2
    monkeypatch.setattr(index, "_GRACE", -1.0)
    assert len(scores(store)) == 2
    assert len(list(home.iterdir())) == 1


def test_large_indexes_are_written_in_several_shards(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_shards, "FULL", 2)
    runs = {store.commit(sample(seed)) for seed in range(5)}
    assert set(scores(store)) == runs
    assert len(shard_folders(store)) == 3


def test_an_interrupted_build_is_continued(
    store: Store, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_shards, "FULL", 2)
    for seed in range(6):
        store.commit(sample(seed))

    def stop(done: int, _: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), query.open_database(store, stop):
        pass
    assert list((store.root / "tmp").iterdir()) == []
    reads.clear()
    assert len(scores(store)) == 6
    assert len(reads) == 4


def test_a_store_that_cannot_be_written_is_indexed_elsewhere(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.commit(sample())

    def refuse(_: Store) -> None:
        raise RecordError("read-only")

    monkeypatch.setattr(Store, "require_writable", refuse)
    assert len(scores(store)) == 1
    assert not (store.root / "index").exists()


def test_a_store_path_with_wildcards_can_be_indexed(tmp_path: Path) -> None:
    store = Store(tmp_path / "a*[b]?'c\"d")
    store.commit(sample())
    assert len(scores(store)) == 1
    assert len(scores(store)) == 1


def test_duplicate_shards_of_the_same_records_are_resolved(store: Store) -> None:
    runs = {store.commit(sample(seed)) for seed in range(3)}
    scores(store)
    [folder] = shard_folders(store)
    kept = folder.with_name("kept")
    folder.rename(kept)
    store.commit(sample(3))
    shutil.copytree(kept, folder.parent.parent / "aside")
    scores(store)
    (folder.parent.parent / "aside").rename(folder)  # as another process might put it there
    assert set(scores(store)) == runs | {sample(3).spec.id}


def test_records_with_oversized_logs_are_left_out_and_reported(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = store.commit(sample(0))
    wide = store.commit(sample(1, log={f"c{n}": np.zeros(1) for n in range(1001)}))
    long = store.commit(sample(2, log={"score": np.zeros(300_000)}))
    many = store.commit(sample(3, log={"score": np.zeros((500, 500), dtype=bool)}))
    monkeypatch.setattr(index, "MAX_LOG", 1_000_000)
    monkeypatch.setattr(columns, "MAX_VALUES", 200_000)  # small as a file, and large as objects
    with query.open_database(store) as database:
        assert database.ids("true") == [good]
        assert {problem.id for problem in database.problems} == {wide, long, many}
    assert store.quarantined() == []


def test_the_index_is_ignored_by_git(store: Store) -> None:
    store.commit(sample())
    scores(store)
    assert (store.root / "index" / ".gitignore").read_text() == "*\n"
