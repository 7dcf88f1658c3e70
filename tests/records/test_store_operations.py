"""Finding, committing, partly reading and deleting records of a store."""

from __future__ import annotations

import errno
import os
import shutil

import pytest

from rulescope.core.errors import RecordError
from rulescope.records import ConflictError, Store
from rulescope.records.record import FILES, decode, encode

from .sample_record import changed_log, sample

RUN = sample().spec.id


def test_a_unique_prefix_finds_a_record(store: Store) -> None:
    runs = sorted(store.commit(sample(seed)) for seed in range(20))
    for run in runs:
        assert store.find(run) == run
        assert store.find(run[:10]) == run
    firsts = [run[0] for run in runs]
    shared = next(first for first in firsts if firsts.count(first) > 1)
    with pytest.raises(RecordError, match=f"{firsts.count(shared)} records begin with this"):
        store.find(shared)
    with pytest.raises(RecordError, match="holds no record"):
        store.find("0" * 64)


@pytest.mark.parametrize("prefix", ["", "..", "../x", "ABC", "g", "a" * 65, "*", "a/b"])
def test_an_invalid_prefix_is_refused(store: Store, prefix: str) -> None:
    store.commit(sample())
    with pytest.raises(RecordError, match="not the beginning of a run id"):
        store.find(prefix)


def test_committed_files_are_kept_bit_for_bit(store: Store) -> None:
    files = encode(sample())
    assert store.commit_files(RUN, files | {"../extra": b"not wanted"})
    assert not store.commit_files(RUN, encode(sample(seconds=99.0)))
    assert {name: (store.folder(RUN) / name).read_bytes() for name in FILES} == files
    assert store.files(RUN) == files
    assert sorted(path.name for path in store.folder(RUN).iterdir()) == sorted(FILES)


def test_invalid_files_are_not_committed(store: Store) -> None:
    files = encode(sample())
    with pytest.raises(RecordError, match=r"log\.npz"):
        store.commit_files(RUN, files | {"log.npz": files["log.npz"][:-1]})
    with pytest.raises(RecordError, match="is that of run"):
        store.commit_files(sample(1).spec.id, files)
    with pytest.raises(RecordError, match="not a run id"):
        store.commit_files("../../etc", files)
    assert not store.root.exists()


def test_a_different_result_is_a_conflict(store: Store) -> None:
    store.commit(sample())
    with pytest.raises(ConflictError, match="science hash"):
        store.commit_files(RUN, encode(sample(log=changed_log())))
    assert store.read(RUN).manifest.science_hash == sample().manifest.science_hash


def test_a_log_is_read_without_its_state(store: Store) -> None:
    store.commit(sample())
    (store.folder(RUN) / "state.npz").write_bytes(b"garbage")
    logged = store.read_log(RUN)
    assert logged.spec == sample().spec
    assert logged.log["iteration"].tolist() == [20, 40, 60]
    assert store.manifest(RUN) == logged.manifest
    (store.folder(RUN) / "log.npz").write_bytes(b"garbage")
    assert store.manifest(RUN).id == RUN
    with pytest.raises(RecordError, match=r"log\.npz.*quarantine"):
        store.read_log(RUN)
    with pytest.raises(RecordError, match="holds no record"):
        store.manifest(RUN)


def test_reading_files_does_not_quarantine_damage(store: Store) -> None:
    store.commit(sample())
    (store.folder(RUN) / "log.npz").write_bytes(b"garbage")
    with pytest.raises(RecordError, match=r"log\.npz"):
        store.files(RUN)
    assert RUN in store
    assert store.quarantined() == []


def test_a_deleted_record_is_gone(store: Store) -> None:
    runs = [store.commit(sample(seed)) for seed in range(3)]
    store.delete(runs[1])
    assert list(store.ids()) == sorted({runs[0], runs[2]})
    assert list((store.root / "tmp").iterdir()) == []
    with pytest.raises(RecordError, match="holds no record"):
        store.delete(runs[1])
    assert store.commit(sample(1)) == runs[1]


def test_an_interrupted_deletion_leaves_the_whole_record_or_a_temporary_folder(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.commit(sample())
    full = OSError(errno.EIO, os.strerror(errno.EIO))
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", lambda *_: (_ for _ in ()).throw(full))
        with pytest.raises(RecordError, match="cannot be written"):
            store.delete(RUN)
    assert store.verify() == []
    assert decode(RUN, store.files(RUN)).spec == sample().spec
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)  # killed before it began
        store.delete(RUN)
    assert RUN not in store
    [left] = (store.root / "tmp").iterdir()
    assert (left / RUN / "manifest.json").is_file()
