from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from rulescope.core import arrays
from rulescope.core.arrays import Arrays
from rulescope.core.errors import RecordError
from rulescope.records import Store

from .sample_record import sample

RUN = sample().spec.id


def some_state(value: float = 1.5) -> Arrays:
    return {
        "params/flat": np.full(5, value, dtype=np.float32),
        "replay/size": np.array(3, dtype=np.int64),
        "streams/action": np.arange(6, dtype=np.uint64),
        "file": np.zeros((0, 4), dtype=bool),
    }


def file_of(store: Store, run: str = RUN) -> Path:
    return store.root / "checkpoints" / f"{run}.npz"


def test_a_checkpoint_can_be_read_and_replaced(store: Store) -> None:
    for value in (1.5, 2.5):
        store.save_checkpoint(RUN, some_state(value))
        again = store.load_checkpoint(RUN)
        assert again is not None
        assert arrays.digest(again) == arrays.digest(some_state(value))
    assert [path.name for path in file_of(store).parent.iterdir()] == [f"{RUN}.npz"]
    assert list((store.root / "tmp").iterdir()) == []


def test_a_dropped_checkpoint_is_gone(store: Store) -> None:
    store.save_checkpoint(RUN, some_state())
    store.drop_checkpoint(RUN)
    store.drop_checkpoint(RUN)
    assert store.load_checkpoint(RUN) is None


def test_a_checkpoint_is_not_a_record(store: Store) -> None:
    store.save_checkpoint(RUN, some_state())
    assert RUN not in store
    assert list(store.ids()) == []


def check_quarantined(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """Check that the checkpoint is quarantined, and that this was logged."""
    with caplog.at_level(logging.WARNING):
        assert store.load_checkpoint(RUN) is None
    assert str(file_of(store)) in caplog.text
    assert not file_of(store).exists()
    item = store.quarantined()[-1]
    assert item.id == RUN
    assert item.reason in caplog.text
    assert (item.path / f"{RUN}.npz").is_file()


def test_truncation_is_detected(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    store.save_checkpoint(RUN, some_state())
    content = file_of(store).read_bytes()
    file_of(store).write_bytes(content[:-20])
    check_quarantined(store, caplog)
    store.save_checkpoint(RUN, some_state())
    assert store.load_checkpoint(RUN) is not None


def test_no_flipped_bit_changes_what_is_loaded(store: Store) -> None:
    store.save_checkpoint(RUN, some_state())
    content = file_of(store).read_bytes()
    refused = 0
    for bit in range(0, 8 * len(content), 37):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        file_of(store).write_bytes(flipped)
        state = store.load_checkpoint(RUN)
        # A few bits of a zip file (dates, attributes) have no meaning.
        assert state is None or arrays.digest(state) == arrays.digest(some_state())
        refused += state is None
    assert refused == len(store.quarantined()) > 100


def test_a_checkpoint_replaced_while_it_is_read_is_not_damaged(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a worker with this run, while another process verifies the store."""
    real = arrays.unpack

    def unpack(content: bytes, max_bytes: int | None = None) -> dict[str, np.ndarray]:
        store.save_checkpoint(RUN, some_state(2.5))
        return real(content, max_bytes)

    store.save_checkpoint(RUN, some_state(1.5))
    monkeypatch.setattr(arrays, "unpack", unpack)
    state = store.load_checkpoint(RUN)
    assert state is not None
    assert arrays.digest(state) == arrays.digest(some_state(1.5))
    assert store.quarantined() == []


def test_another_runs_checkpoint_is_refused(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    other = sample(1).spec.id
    store.save_checkpoint(other, some_state())
    file_of(store, other).rename(file_of(store))
    check_quarantined(store, caplog)


def test_foreign_arrays_are_refused(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    store.save_checkpoint(RUN, some_state())
    file_of(store).write_bytes(arrays.pack(some_state()))
    check_quarantined(store, caplog)


def test_pickles_are_refused(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    store.save_checkpoint(RUN, some_state())
    np.savez(file_of(store), x=np.array([{}], dtype=object))
    check_quarantined(store, caplog)
    assert "pickled" in caplog.text


@pytest.mark.parametrize("name", ["checkpoint-sha256", "", "a\0b"])
def test_impossible_names_are_refused(store: Store, name: str) -> None:
    with pytest.raises(RecordError, match="name"):
        store.save_checkpoint(RUN, {name: np.zeros(1)})
    assert not store.root.exists()


def test_objects_are_refused(store: Store) -> None:
    with pytest.raises(RecordError, match="not a numeric array"):
        store.save_checkpoint(RUN, {"x": np.array([{}], dtype=object)})
    assert not store.root.exists()
