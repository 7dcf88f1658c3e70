from __future__ import annotations

import io
import os
import pickle
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rulescope.core import arrays
from rulescope.core.arrays import ArrayFileError, Arrays


def some_arrays() -> Arrays:
    return {
        "carrier/h": np.linspace(0, 1, 5, dtype=np.float32),
        "scalar": np.array(3.0),
        "empty": np.zeros((0, 3), dtype=np.int16),
        "text": np.array(["a", "bc"]),
        "flags": np.array([True, False]),
        "file": np.arange(3, dtype=np.uint64),
        "allow_pickle": np.array([1]),
    }


def npy(array: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def zipped(**entries: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize("compress", [True, False])
def test_round_trip_keeps_names_types_shapes_and_bits(compress: bool) -> None:
    again = arrays.unpack(arrays.pack(some_arrays(), compress=compress))
    assert again.keys() == some_arrays().keys()
    for name, array in some_arrays().items():
        assert again[name].dtype == array.dtype
        assert again[name].shape == array.shape
        assert again[name].tobytes() == array.tobytes()


def test_equal_arrays_give_equal_bytes_whatever_their_order_and_layout() -> None:
    table = np.arange(6.0).reshape(2, 3)
    left = arrays.pack({"a": table, "b": np.zeros(2)})
    right = arrays.pack({"b": np.zeros(4)[::2], "a": np.asfortranarray(table)})
    assert left == right


def test_reading_a_file_and_others_reading_ours(tmp_path: Path) -> None:
    path = tmp_path / "some.npz"
    path.write_bytes(arrays.pack(some_arrays()))
    assert arrays.digest(arrays.read(path)) == arrays.digest(some_arrays())
    with np.load(path, allow_pickle=False) as archive:
        assert sorted(archive.files) == sorted(some_arrays())
    np.savez(path, x=np.arange(3))
    assert arrays.read(path)["x"].tolist() == [0, 1, 2]


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        arrays.read(tmp_path / "none.npz")


class Trap:
    """Unpickling this would raise; nothing may ever try."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (exec, ("raise SystemExit('unpickled')",))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "not an npz archive", id="empty"),
        pytest.param(b"rubbish" * 100, "not an npz archive", id="rubbish"),
        pytest.param(npy(np.zeros(3)), "not an npz archive", id="npy"),
        pytest.param(pickle.dumps(Trap()), "not an npz archive", id="pickle"),
        pytest.param(
            zipped(**{"x.npy": npy(np.array([Trap()]), allow_pickle=True)}), "pickled", id="object"
        ),
        pytest.param(zipped(x=pickle.dumps(Trap())), "'x' is not a numeric", id="zipped pickle"),
        pytest.param(
            zipped(**{"x.npy": pickle.dumps(Trap())}), "pickled|numeric|magic", id="posing pickle"
        ),
        pytest.param(zipped(**{"word/document.xml": b"<w/>"}), "not a numeric", id="foreign zip"),
        pytest.param(zipped(**{"x.npy": npy(np.zeros(3, "c16"))}), "not a numeric", id="complex"),
        pytest.param(zipped(**{"x.npy": npy(np.zeros(3, "M8[s]"))}), "not a numeric", id="dates"),
        pytest.param(
            zipped(**{"x.npy": npy(np.zeros(3, "i4,f4"))}), "not a numeric", id="structured"
        ),
    ],
)
def test_foreign_content_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(ArrayFileError, match=message):
        arrays.unpack(content)


def test_truncation_is_refused_at_every_length() -> None:
    content = arrays.pack(some_arrays())
    for length in range(0, len(content), 13):
        with pytest.raises(ArrayFileError):
            arrays.unpack(content[:length])


@pytest.mark.filterwarnings("ignore:Reading `.npy`:UserWarning")
@pytest.mark.parametrize("compress", [True, False])
def test_a_flipped_bit_raises_nothing_else(compress: bool) -> None:
    content = arrays.pack(some_arrays(), compress=compress)
    refused = 0
    for bit in range(0, 8 * len(content), 7):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            arrays.unpack(bytes(flipped))
        except ArrayFileError as fault:
            refused += bool(str(fault))
    assert refused > 100


def test_oversize_is_refused_before_it_is_read() -> None:
    content = arrays.pack({"zeros": np.zeros(1_000_000)})
    assert len(content) < 20_000
    with pytest.raises(ArrayFileError, match=r"unpacks to 8,000,\d+ bytes, more than 1,000,000"):
        arrays.unpack(content, max_bytes=1_000_000)


def test_what_could_not_be_read_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "MAX_BYTES", 1000)
    with pytest.raises(ArrayFileError, match="more than 1,000"):
        arrays.pack({"zeros": np.zeros(1000)})


def test_a_header_that_claims_a_petabyte_is_refused() -> None:
    entry = npy(np.zeros(3)).replace(b"(3,), }" + b" " * 15, b"(1" + b"0" * 15 + b",), }")
    assert len(entry) == len(npy(np.zeros(3)))
    with pytest.raises(ArrayFileError):
        arrays.unpack(zipped(**{"x.npy": entry}))


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("x", np.array([object()], dtype=object), "not a numeric array"),
        ("x", np.zeros(2, dtype=complex), "not a numeric array"),
        ("", np.zeros(2), "not a name"),
        ("a\0b", np.zeros(2), "not a name"),
        ("a\nb", np.zeros(2), "not a name"),
    ],
)
def test_bad_arrays_and_names_are_not_written(name: str, array: Any, message: str) -> None:
    with pytest.raises(ArrayFileError, match=message):
        arrays.pack({name: array})


def test_digest_is_pinned() -> None:
    # A change here means that records and rule weights already on disk would no longer verify.
    table = {"b": np.array([1, 2], dtype="<i8"), "a": np.array([[0.5]], dtype="<f4")}
    assert (
        arrays.digest(table) == "5ee06ccb817e350c411614c276f3d208690f6af1cb8437113114e2d6758324f9"
    )


def test_digest_sees_everything_but_order_and_layout() -> None:
    base = {"a": np.arange(4.0).reshape(2, 2), "b": np.zeros(1)}
    assert arrays.digest(base) == arrays.digest(dict(reversed(base.items())))
    assert arrays.digest(base) == arrays.digest(base | {"a": np.asfortranarray(base["a"])})
    others: list[Arrays] = [
        base | {"a": base["a"].T},
        base | {"a": base["a"].ravel()},
        base | {"a": base["a"].astype(np.float32)},
        base | {"b": -base["b"]},
        base | {"b": np.array(0.0)},
        {"a": base["a"], "c": base["b"]},
        {"a": base["a"]},
        {},
    ]
    assert len({arrays.digest(other) for other in [base, *others]}) == 1 + len(others)


def claiming(shape: str, dtype: str = "<f8", data: bytes = b"\0" * 24) -> bytes:
    """Return an array entry whose header says whatever it likes."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        pytest.param(claiming("(1000000000000,)"), "size that its shape", id="huge shape"),
        pytest.param(claiming("(2**70, 2)"), ".", id="arithmetic"),
        pytest.param(claiming("(-3,)"), "size that its shape", id="negative"),
        pytest.param(claiming("(2,)"), "size that its shape", id="trailing bytes"),
        pytest.param(claiming("(1000000000000,)", "<U0", b""), "not a numeric", id="no size"),
        pytest.param(claiming("(3,)", "|O"), "pickled", id="objects"),
        pytest.param(claiming(f"({'1, ' * 70})", data=b"\0" * 8), ".", id="dimensions"),
        pytest.param(claiming("(" * 500 + "3" + ")" * 500), ".", id="nesting"),
        pytest.param(b"\x93NUMPY\x03\x00", "magic", id="version"),
        pytest.param(b"", "magic", id="empty"),
        pytest.param(b"\x93NUMPY\x02\x00" + b"\xff" * 4 + b" " * 20000, ".", id="long header"),
    ],
)
def test_headers_that_lie_are_refused(entry: bytes, message: str) -> None:
    tracemalloc.start()
    with pytest.raises(ArrayFileError, match=message):
        arrays.unpack(zipped(**{"x.npy": entry}))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000


def test_an_entry_that_is_there_twice_is_refused() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("x.npy", npy(np.array(1.0)))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("x.npy", npy(np.array(2.0)))
    with pytest.raises(ArrayFileError, match="twice"):
        arrays.unpack(buffer.getvalue())


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_compression_that_takes_memory_as_it_likes_is_refused(method: int) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("x.npy", npy(np.zeros(3)))
    with pytest.raises(ArrayFileError, match="unsupported compression method"):
        arrays.unpack(buffer.getvalue())


def test_a_long_table_of_contents_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "MAX_ENTRIES", 2)
    content = arrays.pack({name: np.zeros(1) for name in "abc"})
    monkeypatch.setattr(zipfile, "ZipFile", None)
    with pytest.raises(ArrayFileError, match="more than 2 entries"):
        arrays.unpack(content)


def test_files_that_are_too_large_or_no_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ArrayFileError, match="not a regular file"):
        arrays.read(tmp_path / "pipe")
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(arrays.MAX_BYTES + 1)
    with pytest.raises(ArrayFileError, match="more than"):
        arrays.read(tmp_path / "hole")


def test_arrays_that_are_read_can_be_written_to_and_keep_their_order() -> None:
    buffer = io.BytesIO()
    np.savez(buffer, f=np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    [array] = arrays.unpack(buffer.getvalue()).values()
    assert array.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    array[0, 0] = 7.0
    assert array[0, 0] == 7.0
