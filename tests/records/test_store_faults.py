"""Disk errors and interrupts at every step of a write."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rulescope.core import disk
from rulescope.core.errors import RecordError
from rulescope.records import Store, quarantine
from rulescope.records import store as stores

from .sample_record import changed_log, sample

RUN = sample().spec.id
STATE = sample().state
STEPS: list[tuple[Any, str]] = [
    (os, "fsync"),
    (os, "rename"),
    (os, "mkdir"),
    (Path, "open"),
    (disk, "sync"),
]
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
Write = Callable[[Store], object]


class Failing:
    """Stands in for a function and raises at its ``at``-th call (counted from 0)."""

    def __init__(self, real: Callable[..., Any], at: int, fault: BaseException) -> None:
        self.real, self.at, self.fault, self.calls = real, at, fault, 0

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.calls += 1
        if self.calls == self.at + 1:
            raise self.fault
        return self.real(*arguments, **options)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        """Bind like a function, so that it can stand in for a method too."""
        return self if owner is None else lambda *a, **o: self(owner, *a, **o)


def fail(write: Write, store: Store, where: Any, name: str, at: int, fault: BaseException) -> bool:
    """Run ``write`` with one call failing; tell whether that call was ever reached."""
    raised: BaseException | None = None
    with pytest.MonkeyPatch.context() as patch:
        double = Failing(getattr(where, name), at, fault)
        patch.setattr(where, name, double)
        try:
            write(store)
        except (RecordError, KeyboardInterrupt) as error:
            raised = error
    reached = double.calls > at
    assert reached == (raised is not None), f"failure {at} of {name} went unnoticed"
    if reached and fault is FULL:
        assert isinstance(raised, RecordError)
        assert str(store.root) in str(raised)
        assert "No space left" in str(raised)
    return reached


def leftovers(store: Store) -> list[Path]:
    return list((store.root / "tmp").glob("*"))


@pytest.mark.parametrize("fault", [FULL, KeyboardInterrupt()], ids=["full", "interrupted"])
@pytest.mark.parametrize(("where", "name"), STEPS)
def test_a_commit_that_fails_anywhere_leaves_nothing(
    tmp_path: Path, where: Any, name: str, fault: BaseException
) -> None:
    at, absent = 0, 0
    while True:
        store = Store(tmp_path / str(at))
        reached = fail(lambda it: it.commit(sample()), store, where, name, at, fault)
        assert leftovers(store) == []
        if not reached:
            break
        if RUN in store:
            # Only the last step comes after the rename: the record is there, and whole.
            assert store.verify() == []
            assert name in ("fsync", "sync")
        else:
            absent += 1
        store.commit(sample())  # a second attempt is not disturbed by what the first one left
        assert store.read(RUN).manifest.science_hash == sample().manifest.science_hash
        at += 1
    assert absent > 0
    assert at - absent <= 1


@pytest.mark.parametrize("fault", [FULL, KeyboardInterrupt()], ids=["full", "interrupted"])
@pytest.mark.parametrize(("where", "name"), STEPS)
def test_a_checkpoint_that_fails_anywhere_leaves_the_old_or_the_new(
    tmp_path: Path, where: Any, name: str, fault: BaseException
) -> None:
    newer = {name: array + 1 for name, array in STATE.items()}
    at, reached = 0, True
    while reached:
        store = Store(tmp_path / str(at))
        store.save_checkpoint(RUN, STATE)
        reached = fail(lambda it: it.save_checkpoint(RUN, newer), store, where, name, at, fault)
        kept = store.load_checkpoint(RUN)
        assert kept is not None
        value = kept["averages/moment"]
        assert value in (STATE["averages/moment"], newer["averages/moment"])
        assert leftovers(store) == []
        assert store.quarantined() == []
        at += 1
    assert at > 1


def test_a_folder_that_cannot_be_synced_is_not_an_error(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def fsync(handle: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{handle}"):  # noqa: PTH112
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    assert store.commit(sample()) == RUN


def test_losing_the_race_finds_the_winner(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    winner = sample(seconds=7.0)
    race(monkeypatch, lambda: Store(store.root).commit(winner))
    assert store.commit(sample()) == RUN
    assert store.read(RUN).manifest.seconds == 7.0
    assert leftovers(store) == []


def test_losing_the_race_to_another_result_is_an_error(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    race(monkeypatch, lambda: Store(store.root).commit(sample(log=changed_log())))
    with pytest.raises(RecordError, match="science hash"):
        store.commit(sample())
    assert leftovers(store) == []


def race(monkeypatch: pytest.MonkeyPatch, rival: Callable[[], object]) -> None:
    """Let ``rival`` act just before the first rename."""
    real = os.rename

    def rename(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "rename", real)
        rival()
        real(source, target)

    monkeypatch.setattr(os, "rename", rename)


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES, errno.EMFILE])
def test_a_read_error_of_the_disk_is_not_treated_as_damage(
    store: Store, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    store.commit(sample())
    store.save_checkpoint(RUN, STATE)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", Failing(Path.read_bytes, 1, OSError(code, "bad luck")))
        with pytest.raises(RecordError, match=r"log\.npz cannot be read \(bad luck\)"):
            store.read(RUN)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", Failing(Path.read_bytes, 0, OSError(code, "bad luck")))
        assert store.load_checkpoint(RUN) is None
    assert store.quarantined() == []
    assert store.read(RUN).manifest.id == RUN
    assert store.load_checkpoint(RUN) is not None


def test_damage_in_a_store_that_cannot_be_written_is_reported(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.commit(sample())
    (store.root / "runs" / RUN[:2] / RUN / "log.npz").write_bytes(b"")
    frozen = OSError(errno.EROFS, os.strerror(errno.EROFS))
    with monkeypatch.context() as patch:
        patch.setattr(os, "mkdir", Failing(os.mkdir, 0, frozen))
        with pytest.raises(RecordError, match=r"log\.npz.*could not be moved.*[Rr]ead-only"):
            store.read(RUN)
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", Failing(os.rename, 0, frozen))
        with pytest.raises(RecordError, match=r"log\.npz.*could not be moved.*[Rr]ead-only"):
            store.read(RUN)
    assert RUN in store
    assert store.quarantined() == []


def test_damage_that_another_process_has_moved_is_reported_as_such(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.commit(sample())
    (store.root / "runs" / RUN[:2] / RUN / "log.npz").write_bytes(b"")
    race(monkeypatch, lambda: Store(store.root).verify())
    with pytest.raises(RecordError, match="another process has moved it"):
        store.read(RUN)
    assert [item.id for item in store.quarantined()] == [RUN]


def test_a_damaged_record_that_cannot_be_moved_ends_the_commit(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.commit(sample())
    (store.root / "runs" / RUN[:2] / RUN / "log.npz").write_bytes(b"")
    monkeypatch.setattr(quarantine, "_new_folder", Failing(quarantine._new_folder, 0, FULL))
    monkeypatch.setattr(stores, "_ROUNDS", 1)
    with pytest.raises(RecordError, match="in the way"):
        store.commit(sample())
    assert leftovers(store) == []


@pytest.mark.parametrize("name", ["is_dir", "iterdir"])
def test_a_folder_without_read_permission_is_named(
    store: Store, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    store.commit(sample())
    refused = OSError(errno.EACCES, os.strerror(errno.EACCES))
    monkeypatch.setattr(Path, name, Failing(getattr(Path, name), 0, refused))
    with pytest.raises(RecordError, match=rf"{store.root}.*cannot be read \(Permission denied"):
        store.ids()


def test_a_file_at_the_path_of_the_store_is_named(store: Store) -> None:
    store.root.write_text("something else")
    with pytest.raises(RecordError, match=f"{store.root}.*Not a directory"):
        store.commit(sample())
    with pytest.raises(RecordError, match="no such store"):
        store.ids()
