"""Archives and merging: exact copies of records; hostile archives are refused."""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import shutil
import stat
import tarfile
import tracemalloc
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rulescope.core.errors import RecordError
from rulescope.records import Store, archive
from rulescope.records import record as records
from rulescope.records.archive import Limits
from rulescope.records.merge import merge

from .sample_record import changed_log, sample

KINDS = [".zip", ".tar", ".tar.gz", ".tgz"]
RUN = sample().spec.id
PLACE = f"runs/{RUN[:2]}/{RUN}"


@pytest.fixture
def source(tmp_path: Path) -> Store:
    store = Store(tmp_path / "source")
    for seed in range(3):
        store.commit(sample(seed))
    return store


def contents(store: Store) -> dict[str, bytes]:
    """Return every file of every record."""
    return {
        str(path.relative_to(store.root)): path.read_bytes()
        for path in sorted((store.root / "runs").rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("kind", KINDS)
def test_an_exported_archive_is_imported_bit_for_bit(
    store: Store, source: Store, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "deep" / f"records{kind}"
    assert archive.write(source, source.ids(), path) == (3, [])
    found = merge(store, path)
    assert sorted(found.new) == list(source.ids())
    assert contents(store) == contents(source)
    again = merge(store, path)
    assert (again.new, len(again.same), again.conflicts, again.refused) == ([], 3, [], [])
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("kind", KINDS)
def test_equal_records_give_equal_archives(source: Store, tmp_path: Path, kind: str) -> None:
    paths = [tmp_path / f"{name}{kind}" for name in "ab"]
    for path in paths:
        archive.write(source, source.ids(), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_merging_a_store_does_not_change_it(store: Store, source: Store) -> None:
    run = sample(1).spec.id
    (source.folder(run) / "log.npz").write_bytes(b"garbage")
    before = contents(source)
    found = merge(store, source.root)
    assert len(found.new) == 2
    assert [(item.id, "log.npz" in item.problem) for item in found.refused] == [(run, True)]
    assert contents(source) == before
    assert source.quarantined() == []
    assert store.verify() == []


def test_a_conflict_is_reported_and_changes_nothing(store: Store, source: Store) -> None:
    store.commit(sample(0, log=changed_log()))
    before = contents(store)
    found = merge(store, source.root)
    assert [item.id for item in found.conflicts] == [RUN]
    assert "science hash" in found.conflicts[0].problem
    assert len(found.new) == 2
    assert before.items() <= contents(store).items()


def test_a_damaged_record_is_replaced_by_an_intact_one(store: Store, source: Store) -> None:
    store.commit(sample(0))
    (store.folder(RUN) / "state.npz").write_bytes(b"")
    assert RUN in merge(store, source.root).new
    assert store.verify() == []
    assert len(store.quarantined()) == 1


def test_damaged_records_are_not_exported(source: Store, tmp_path: Path) -> None:
    (source.folder(RUN) / "state.npz").write_bytes(b"")
    done, problems = archive.write(source, source.ids(), tmp_path / "x.zip")
    assert (done, [problem.id for problem in problems]) == (2, [RUN])
    assert len(merge(Store(tmp_path / "new"), tmp_path / "x.zip").new) == 2


def test_an_interrupted_import_leaves_whole_records_and_can_be_repeated(
    store: Store, source: Store, tmp_path: Path
) -> None:
    archive.write(source, source.ids(), tmp_path / "x.tar.gz")

    def stop(found: Any) -> None:
        if len(found.new) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        merge(store, tmp_path / "x.tar.gz", report=stop)
    assert len(list(store.ids())) == 2
    assert store.verify() == []
    assert len(merge(store, tmp_path / "x.tar.gz").new) == 1
    assert contents(store) == contents(source)


def test_an_interrupted_export_leaves_nothing(
    source: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = itertools.count()
    real = Store.files

    def files(self: Store, run: str) -> dict[str, bytes]:
        if next(calls) == 1:
            raise KeyboardInterrupt
        return real(self, run)

    monkeypatch.setattr(Store, "files", files)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x.zip").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        archive.write(source, source.ids(), tmp_path / "out" / "x.zip")
    assert (tmp_path / "out" / "x.zip").read_bytes() == b"old"
    assert len(list((tmp_path / "out").iterdir())) == 1


# Hostile archives

Members = Iterable[tuple[str, bytes]]


def good() -> list[tuple[str, bytes]]:
    files = records.encode(sample())
    return [
        *((f"{PLACE}/{name}", files[name]) for name in records.FILES),
        ("contents.json", f'{{"format":1,"records":["{RUN}"]}}'.encode()),
    ]


def packed(path: Path, members: Members, **attributes: Any) -> Path:
    """Write an archive by hand; ``attributes`` are set on the description of the first member."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
            for place, (name, content) in enumerate(members):
                info = zipfile.ZipInfo(name)
                for key, value in attributes.items() if place == 0 else ():
                    setattr(info, key, value)
                made.writestr(info, content, zipfile.ZIP_DEFLATED)
        return path
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as tar:
        for place, (name, content) in enumerate(members):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for key, value in attributes.items() if place == 0 else ():
                setattr(member, key, value)
            tar.addfile(member, io.BytesIO(content))
    return path


def check_refused(store: Store, path: Path, message: str, limits: Limits = archive.LIMITS) -> None:
    """Check that an archive is refused, in little memory, and leaves nothing."""
    around = sorted(path.parent.iterdir())
    tracemalloc.start()
    with pytest.raises(RecordError, match=message) as caught:
        merge(store, path, limits=limits)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30_000_000
    assert str(path) in str(caught.value)
    assert not store.root.exists()
    assert sorted(path.parent.iterdir()) == around


NAMES = [
    "../../evil",
    "/etc/evil",
    f"{PLACE}/../../../../evil",
    f"runs/{RUN[:2]}/{RUN}/log.npz/../evil",
    f"runs/zz/{RUN}/log.npz",
    f"runs/{RUN[:2]}/{RUN.upper()}/log.npz",
    f"{PLACE}/log.npz\n",
    f"{PLACE}/notes.txt",
    f"{PLACE}\\log.npz",
    "index/1/x/runs.parquet",
    "C:/evil",
    f"./{PLACE}/log.npz",
]


@pytest.mark.parametrize("kind", [".zip", ".tar", ".tar.gz"])
@pytest.mark.parametrize("name", NAMES)
def test_members_with_foreign_names_are_refused(
    store: Store, tmp_path: Path, name: str, kind: str
) -> None:
    path = packed(tmp_path / f"x{kind}", [*good()[:3], (name, b"evil"), good()[3]])
    check_refused(store, path, "has no place|plain file")


@pytest.mark.parametrize("kind", [".zip", ".tar", ".tar.gz"])
def test_valid_archives_of_other_tools_are_read(store: Store, tmp_path: Path, kind: str) -> None:
    assert merge(store, packed(tmp_path / f"x{kind}", good())).new == [RUN]


@pytest.mark.parametrize(
    "type_",
    [
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.FIFOTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        tarfile.DIRTYPE,
        tarfile.GNUTYPE_SPARSE,
    ],
)
def test_only_plain_files_are_taken_from_a_tar(store: Store, tmp_path: Path, type_: bytes) -> None:
    path = packed(tmp_path / "x.tar", good(), type=type_, linkname="/etc/passwd")
    check_refused(store, path, "plain file|damaged|no place|out of order")


@pytest.mark.parametrize("mode", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFDIR])
def test_only_plain_files_are_taken_from_a_zip(store: Store, tmp_path: Path, mode: int) -> None:
    path = packed(tmp_path / "x.zip", good(), external_attr=(mode | 0o777) << 16)
    check_refused(store, path, "plain file")


@pytest.mark.parametrize("kind", [".tar", ".tar.gz"])
@pytest.mark.parametrize(
    "order",
    [
        [0, 1, 1, 2, 3],
        [0, 1, 2, 0, 1, 2, 3],
        [0, 1, 2, 3, 3],
        [0, 2, 1, 3],
        [0, 1, 3],
        [0, 1, 2],
        [3],
        [],
        [3, 0, 1, 2],
    ],
)
def test_repeated_missing_and_unordered_members_are_refused(
    store: Store, tmp_path: Path, kind: str, order: list[int]
) -> None:
    path = packed(tmp_path / f"x{kind}", [good()[place] for place in order])
    check_refused(store, path, r"twice|after|not whole|damaged")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_with_a_member_twice_is_refused(store: Store, tmp_path: Path) -> None:
    path = packed(tmp_path / "x.zip", [*good()[:2], good()[1], *good()[2:]])
    check_refused(store, path, "twice")


@pytest.mark.parametrize("kind", [".zip", ".tar.gz"])
def test_archive_bombs_are_refused_before_unpacking(
    store: Store, tmp_path: Path, kind: str
) -> None:
    bomb = b"\0" * 50_000_000
    path = packed(tmp_path / f"x{kind}", [good()[0], (f"{PLACE}/log.npz", bomb)])
    del bomb
    assert path.stat().st_size < 100_000
    check_refused(store, path, "would grow more than 100 times")


@pytest.mark.parametrize("kind", [".zip", ".tar", ".tar.gz"])
def test_members_and_archives_have_a_size_limit(store: Store, tmp_path: Path, kind: str) -> None:
    path = packed(tmp_path / f"x{kind}", good())
    check_refused(store, path, "bytes, more than 100", Limits(file=100))
    check_refused(store, path, "too large", Limits(total=2000))
    check_refused(store, path, "more than|too large", Limits(records=0))


def test_arrays_that_unpack_to_too_much_are_refused(store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path / "other")
    other.commit(sample(0, log={"x": np.zeros(1_000_000)}))
    other.commit(sample(1))
    archive.write(other, other.ids(), tmp_path / "x.zip")
    for source in (tmp_path / "x.zip", other.root):
        found = merge(store, source, limits=Limits(unpacked=1_000_000))
        assert [item.id for item in found.refused] == [RUN]
    assert list(store.ids()) == [sample(1).spec.id]


def test_a_header_with_a_giant_name_is_refused(store: Store, tmp_path: Path) -> None:
    member = tarfile.TarInfo("././@LongLink")
    member.type, member.size = tarfile.GNUTYPE_LONGNAME, 7 << 30
    (tmp_path / "x.tar").write_bytes(member.tobuf(tarfile.GNU_FORMAT) + b"a" * 10240)
    check_refused(store, tmp_path / "x.tar", "a header claims 7,516,192,")


def test_a_header_of_negative_size_does_not_cause_an_endless_loop(
    store: Store, tmp_path: Path
) -> None:
    header = bytearray(tarfile.TarInfo(f"{PLACE}/manifest.json").tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\xff" * 10 + b"\xfc\x00"  # -1024, as GNU tar writes large numbers
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    (tmp_path / "x.tar").write_bytes(bytes(header) * 20)
    check_refused(store, tmp_path / "x.tar", "damaged|backwards|bytes, more than|not whole")


@pytest.mark.parametrize("kind", [".zip", ".tar", ".tar.gz"])
def test_truncated_and_damaged_archives_import_no_wrong_record(
    source: Store, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / f"x{kind}"
    archive.write(source, source.ids(), path)
    content = path.read_bytes()
    target = Store(tmp_path / "target")
    refused = 0
    for length in range(0, len(content) - 1, len(content) // 20):
        path.write_bytes(content[:length])
        with contextlib.suppress(RecordError):
            merge(target, path)
        refused += not target.root.exists()
        if target.root.exists():  # what was cut off is only padding
            assert contents(target) == contents(source)
            shutil.rmtree(target.root)
    assert refused >= 8
    for place in range(0, len(content), len(content) // 40):
        path.write_bytes(content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :])
        with contextlib.suppress(RecordError):
            merge(target, path)
        if target.root.exists():
            assert target.verify() == []
            assert contents(target).items() <= contents(source).items()
            shutil.rmtree(target.root)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b'{"format":2,"records":[]}', b'{"format":1,"records":[1]}', b"{" * 100_000],
)
def test_contents_of_the_wrong_shape_are_refused(
    store: Store, tmp_path: Path, content: bytes
) -> None:
    path = packed(tmp_path / "x.zip", [*good()[:3], ("contents.json", content)])
    check_refused(store, path, r"contents\.json|format 2")


def test_an_invalid_source_is_named(store: Store, tmp_path: Path) -> None:
    for name, message in (
        ("missing.zip", "No such file"),
        ("missing", "does not end in"),
        ("note.txt", "does not end in"),
        ("folder", "no folder 'runs'"),
    ):
        if name == "folder":
            (tmp_path / name).mkdir()
        with pytest.raises(RecordError, match=message):
            merge(store, tmp_path / name)
    store.commit(sample())
    with pytest.raises(RecordError, match="is the target store itself"):
        merge(store, store.root)
    with pytest.raises(RecordError, match="must end in"):
        archive.write(store, [RUN], tmp_path / "x.rar")


def test_a_gzip_of_something_else_is_refused(store: Store, tmp_path: Path) -> None:
    (tmp_path / "x.tar.gz").write_bytes(gzip.compress(b"hello"))
    check_refused(store, tmp_path / "x.tar.gz", "damaged|not whole")


def test_links_in_a_source_store_are_not_followed(
    store: Store, source: Store, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (source.folder(RUN) / "log.npz").unlink()
    (source.folder(RUN) / "log.npz").symlink_to(secret)
    found = merge(store, source.root)
    assert ["symbolic link" in item.problem for item in found.refused] == [True]
    assert len(found.new) == 2
