"""Hostile stores: links, pipes, oversized files and arbitrary JSON."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import numpy as np
import pytest

from rulescope.core import arrays
from rulescope.core.errors import RecordError
from rulescope.records import Store, query, sizes
from rulescope.records import record as records
from rulescope.records.merge import merge

from .sample_record import sample

RUN = sample().spec.id


@pytest.fixture
def outside(tmp_path: Path) -> Store:
    """Another store, which holds the sample."""
    other = Store(tmp_path / "outside")
    other.commit(sample())
    return other


@pytest.mark.parametrize("part", ["runs", f"runs/{RUN[:2]}", f"runs/{RUN[:2]}/{RUN}"])
def test_folders_that_are_links_are_never_followed(store: Store, outside: Store, part: str) -> None:
    (store.root / part).parent.mkdir(parents=True)
    (store.root / part).symlink_to(outside.root / part)
    for look in (
        lambda: store.read(RUN),
        lambda: store.delete(RUN),
        lambda: store.files(RUN),
        lambda: RUN in store,
        lambda: store.commit(sample()),
    ):
        with pytest.raises(RecordError, match="symbolic link"):
            look()
    if part != "runs":
        assert list(store.ids()) == []
        [problem] = store.verify()
        assert "symbolic link" in problem.problem
    assert outside.verify() == []
    assert (store.root / part).is_symlink()


@pytest.mark.parametrize("name", records.FILES)
def test_files_that_are_links_are_refused_and_left_alone(
    store: Store, outside: Store, name: str
) -> None:
    store.commit(sample())
    path = store.folder(RUN) / name
    path.unlink()
    path.symlink_to(outside.folder(RUN) / name)
    with pytest.raises(RecordError, match=f"{name} is a symbolic link"):
        store.read(RUN)
    assert path.is_symlink()
    assert store.quarantined() == []


def test_deleting_removes_a_link_and_not_what_it_leads_to(store: Store, outside: Store) -> None:
    store.commit(sample())
    (store.folder(RUN) / "more").symlink_to(outside.root, target_is_directory=True)
    store.delete(RUN)
    assert RUN not in store
    assert outside.verify() == []


@pytest.mark.parametrize("part", ["tmp", "checkpoints", "quarantine", "index"])
def test_nothing_is_written_through_a_link(store: Store, tmp_path: Path, part: str) -> None:
    store.commit(sample())
    if (store.root / part).exists():
        (store.root / part).rmdir()
    target = tmp_path / "elsewhere"
    target.mkdir()
    (store.root / part).symlink_to(target)
    with pytest.raises(RecordError, match=r"symbolic link|could not be moved"):  # noqa: PT012
        if part == "index":
            with query.open_database(store):
                pass
        elif part == "quarantine":
            (store.folder(RUN) / "log.npz").write_bytes(b"")
            store.read(RUN)
        else:
            store.save_checkpoint(RUN, {"a/b": np.zeros(1)})
    assert list(target.iterdir()) == []


def test_a_checkpoint_that_is_a_link_is_quarantined(store: Store, tmp_path: Path) -> None:
    store.save_checkpoint(RUN, {"a/b": np.zeros(1)})
    path = store.root / "checkpoints" / f"{RUN}.npz"
    path.rename(tmp_path / "real.npz")
    path.symlink_to(tmp_path / "real.npz")
    assert store.load_checkpoint(RUN) is None
    assert (tmp_path / "real.npz").is_file()


@pytest.mark.parametrize("name", records.FILES)
def test_a_pipe_does_not_block_a_reader(store: Store, name: str) -> None:
    store.commit(sample())
    (store.folder(RUN) / name).unlink()
    os.mkfifo(store.folder(RUN) / name)
    with pytest.raises(RecordError, match="not a regular file"):
        store.read(RUN)


@pytest.mark.parametrize("name", records.FILES)
def test_oversized_files_are_refused_before_reading(store: Store, name: str) -> None:
    store.commit(sample())
    with (store.folder(RUN) / name).open("r+b") as file:
        file.truncate(arrays.MAX_BYTES + 1)  # a hole: it takes no room
    with pytest.raises(RecordError, match="too large"):
        store.read(RUN)
    assert store.quarantined() == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b'"manifest"',
        b"{}",
        b'{"checksum": []}',
        b'{"checksum": {"a": 1}, "schema": 1}',
        b'{"schema": NaN}',
        b"\xff\xfe{}",
        b'{"a":' * 100_000,
        b'{"a": "\\ud800"}',
        b'{"schema": 1e400}',
    ],
)
def test_json_of_any_shape_is_damage(content: bytes) -> None:
    with pytest.raises(records.DamageError):
        records.decode(RUN, records.encode(sample()) | {"manifest.json": content})


@pytest.mark.parametrize(
    "changes",
    [
        {"spec": []},
        {"spec": None},
        {"canonical": 3},
        {"payload": {"log.npz": "../../etc/passwd"}},
        {"payload": {}},
        {"parents": "abc"},
        {"runtime": {"a": {"b": 1}}},
        {"started": 5},
        {"rule": "disco103"},
        {"inherited": {"../x": "y"}},
    ],
)
def test_manifests_of_the_wrong_shape_with_a_valid_checksum_are_damage(
    changes: dict[str, object],
) -> None:
    files = records.encode(sample())
    plain = msgspec.json.decode(files["manifest.json"])
    plain.pop("checksum")
    sealed = files | {"manifest.json": records._encode_manifest(plain | changes)}
    with pytest.raises(records.DamageError):
        records.decode(RUN, sealed)


def test_an_npz_that_unpacks_to_too_much_is_refused() -> None:
    files = records.encode(sample(log={"x": np.zeros(500_000)}))
    assert len(files["log.npz"]) < 10_000
    for decode in (records.decode, records.decode_log):
        with pytest.raises(RecordError, match="more than 1,000,000") as caught:
            decode(RUN, files, max_bytes=1_000_000)
        assert not isinstance(caught.value, records.DamageError)  # to have no room is not its fault


def test_sizes_count_links_and_follow_none(store: Store, outside: Store) -> None:
    store.commit(sample())
    before = sizes.measure(store).parts["runs"].bytes
    (outside.root / "giant").write_bytes(b"0" * 100_000)
    (store.root / "runs" / "ff").symlink_to(outside.root)
    assert sizes.measure(store).parts["runs"].bytes - before < 1000


def test_nothing_is_overwritten_through_a_link_in_a_record(store: Store, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    store.commit(sample())
    (store.folder(RUN) / "reason.txt").symlink_to(precious)
    (store.folder(RUN) / "log.npz").write_bytes(b"")
    with pytest.raises(RecordError, match="quarantine"):
        store.read(RUN)
    assert precious.read_text() == "precious"
    [item] = store.quarantined()
    assert "log.npz" in item.reason
    (item.path / "reason.txt").unlink()
    os.mkfifo(item.path / "reason.txt")
    assert [item.reason for item in store.quarantined()] == ["unknown"]


def test_links_and_pipes_in_an_index_are_neither_followed_nor_read(
    store: Store, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    store.commit(sample())
    folder = store.root / "index" / "1" / ("0" * 64)
    folder.mkdir(parents=True)
    (store.root / "index" / ".gitignore").symlink_to(precious)
    os.mkfifo(folder / "runs.parquet")
    (folder / "logs.parquet").symlink_to("/dev/zero")
    with query.open_database(store) as database:
        assert database.ids("true") == [RUN]
    assert precious.read_text() == "precious"
    assert not folder.exists()


def test_a_source_without_read_permission_is_named(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", refuse)
    with pytest.raises(RecordError, match="theirs: cannot be read"):
        merge(store, tmp_path / "theirs")
