import contextlib
import copy
import hashlib
import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rulescope.core import arrays
from rulescope.core import arrays as files
from rulescope.core.errors import WeightsError
from rulescope.discover.discovery_spec import RuleSizes
from rulescope.discover.rule_tensors import all_sizes
from rulescope.rules import disco_format, rule_weights
from rulescope.rules.disco_format import LIFETIME, DiscoSizes
from rulescope.rules.rule_weights import fresh

TINY = DiscoSizes(predictions=5, trajectory=3, lifetime=4, message=2, lifetime_input=6)
"""A rule of other sizes than Disco103, all of those that differ being different numbers."""

Arrays = dict[str, NDArray[Any]]


def tiny_rule() -> Arrays:
    rng = np.random.default_rng(0)
    shapes = disco_format.shapes(TINY)
    return {key: rng.standard_normal(shape).astype(np.float32) for key, shape in shapes.items()}


def save_npz(path: Path, arrays: Arrays) -> Path:
    keywords: dict[str, Any] = dict(arrays)
    with path.open("wb") as stream:
        np.savez(stream, **keywords)
    return path


def save_npy(path: Path, array: NDArray[Any]) -> Path:
    with path.open("wb") as stream:
        np.save(stream, array)
    return path


# --- the format ---------------------------------------------------------------------------------

M = LIFETIME
DISCO103_TABLE: dict[str, tuple[int, ...]] = {
    "lstm/linear/b": (256,),
    "lstm/linear/w": (128, 256),
    "lstm/linear_1/b": (1,),
    "lstm/linear_1/w": (256, 1),
    "lstm/linear_2/b": (600,),
    "lstm/linear_2/w": (256, 600),
    "lstm/linear_3/b": (600,),
    "lstm/linear_3/w": (256, 600),
    "lstm/linear_4/b": (1,),
    "lstm/linear_4/w": (16, 1),
    "lstm/lstm/linear/b": (1024,),
    "lstm/lstm/linear/w": (283, 1024),
    "lstm/mlp/~/linear_0/b": (16,),
    "lstm/mlp/~/linear_0/w": (600, 16),
    "lstm/mlp/~/linear_1/b": (1,),
    "lstm/mlp/~/linear_1/w": (16, 1),
    "lstm/mlp_1/~/linear_0/b": (16,),
    "lstm/mlp_1/~/linear_0/w": (600, 16),
    "lstm/mlp_1/~/linear_1/b": (1,),
    "lstm/mlp_1/~/linear_1/w": (16, 1),
    "lstm/sequential/conv1_d/b": (16,),
    "lstm/sequential/conv1_d/w": (1, 18, 16),
    "lstm/sequential/conv1_d_1/b": (2,),
    "lstm/sequential/conv1_d_1/w": (1, 32, 2),
    "lstm/sequential_1/conv1_d/b": (16,),
    "lstm/sequential_1/conv1_d/w": (1, 516, 16),
    f"{M}lstm/linear/b": (512,),
    f"{M}lstm/linear/w": (144, 512),
    f"{M}mlp/~/linear_0/b": (16,),
    f"{M}mlp/~/linear_0/w": (600, 16),
    f"{M}mlp/~/linear_1/b": (1,),
    f"{M}mlp/~/linear_1/w": (16, 1),
    f"{M}mlp_1/~/linear_0/b": (16,),
    f"{M}mlp_1/~/linear_0/w": (600, 16),
    f"{M}mlp_1/~/linear_1/b": (1,),
    f"{M}mlp_1/~/linear_1/w": (16, 1),
    f"{M}mlp_2/~/linear_0/b": (16,),
    f"{M}mlp_2/~/linear_0/w": (29, 16),
    f"{M}sequential/conv1_d/b": (16,),
    f"{M}sequential/conv1_d/w": (1, 18, 16),
    f"{M}sequential/conv1_d_1/b": (2,),
    f"{M}sequential/conv1_d_1/w": (1, 32, 2),
}


def test_the_default_sizes_give_the_42_shapes_of_disco103_in_sorted_order() -> None:
    assert disco_format.shapes() == DISCO103_TABLE
    assert list(disco_format.shapes()) == sorted(DISCO103_TABLE)


def test_sizes_are_read_back_from_the_arrays() -> None:
    sizes = DiscoSizes(*range(2, 2 + len(DiscoSizes._fields)))
    arrays = {key: np.zeros(shape, np.float32) for key, shape in disco_format.shapes(sizes).items()}
    assert disco_format.sizes_of(arrays) == sizes
    assert disco_format.fault(arrays) is None


def test_no_array_may_have_another_shape() -> None:
    """Whichever array is one row too long, the rule is refused."""
    for key in disco_format.shapes():
        arrays = tiny_rule()
        arrays[key] = np.concatenate([arrays[key], arrays[key][-1:]])
        assert "has shape" in (disco_format.fault(arrays) or ""), key


# --- good files ---------------------------------------------------------------------------------


def test_a_small_disco_rule_is_read(tmp_path: Path) -> None:
    arrays = tiny_rule()
    path = save_npz(tmp_path / "tiny.npz", arrays)
    weights = rule_weights.read_disco(path)
    assert weights.name == "tiny"
    assert weights.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert weights.content == files.digest(arrays)
    assert weights.parameter_count == sum(array.size for array in arrays.values())
    assert all(np.array_equal(weights.arrays[key], arrays[key]) for key in arrays)


def test_packing_changes_the_file_hash_but_not_the_content_hash(tmp_path: Path) -> None:
    arrays = tiny_rule()
    plain = rule_weights.read_disco(save_npz(tmp_path / "plain.npz", arrays))
    (tmp_path / "packed.npz").write_bytes(files.pack(arrays))
    packed = rule_weights.read_disco(tmp_path / "packed.npz")
    assert plain.sha256 != packed.sha256
    assert plain.content == packed.content


@pytest.mark.parametrize("length", [1211, 3571])
def test_an_open_rule_is_read(tmp_path: Path, length: int) -> None:
    vector = np.linspace(-1, 1, length, dtype=np.float32)
    weights = rule_weights.read("open", save_npy(tmp_path / "some_OPEN.npy", vector))
    assert weights.parameter_count == length
    assert np.array_equal(weights.arrays[rule_weights.OPEN_KEY], vector)


# --- read-only ----------------------------------------------------------------------------------


def test_weights_cannot_be_written_to() -> None:
    weights = rule_weights.random_weights(0)
    for key, array in weights.arrays.items():
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
        with pytest.raises(TypeError):
            weights.arrays[key] = array  # type: ignore[index]


def test_copies_and_pickles_are_read_only_too() -> None:
    weights = rule_weights.random_weights(1)
    for twin in (copy.deepcopy(weights), pickle.loads(pickle.dumps(weights))):
        assert files.digest(twin.arrays) == weights.content == twin.content
        assert not any(array.flags.writeable for array in twin.arrays.values())


# --- random weights -----------------------------------------------------------------------------


def test_random_weights_are_those_of_the_reference_vectors() -> None:
    weights = rule_weights.load("random:20240")
    raw = b"".join(weights.arrays[key].tobytes() for key in sorted(weights.arrays))
    assert hashlib.sha256(raw).hexdigest() == (
        "4e354cfc6dcf811030aa3947e623d9c595cfa4a168266c63ae7655832aa03bf7"
    )
    first = weights.arrays["lstm/linear/b"][:3]
    assert np.allclose(first, [-0.07418273, -0.02053509, -0.10140818], rtol=0, atol=1e-8)
    assert weights.parameter_count == 754_778
    assert (weights.name, weights.sha256) == ("random:20240", weights.content)


def test_the_seed_alone_decides_random_weights() -> None:
    assert rule_weights.load("random:7").content == rule_weights.load("random:7").content
    assert rule_weights.load("random:7").content != rule_weights.load("random:8").content


@pytest.mark.parametrize("name", ["random", "random:", "random:x", "random:-1", "random:1.5"])
def test_random_weights_need_a_whole_number(name: str) -> None:
    with pytest.raises(WeightsError, match="such as random:0"):
        rule_weights.load(name)


def test_an_unknown_rule_gives_the_nearest() -> None:
    with pytest.raises(WeightsError, match="nearest: 'open-ant'"):
        rule_weights.load("open_ant")


# --- bad files ----------------------------------------------------------------------------------


def changed(**changes: Any) -> Callable[[Path], None]:
    """Write a tiny rule with some arrays replaced (``a__b`` for ``a/b``), or left out if None."""

    def write(path: Path) -> None:
        arrays = tiny_rule() | {key.replace("__", "/"): value for key, value in changes.items()}
        save_npz(path, {key: value for key, value in arrays.items() if value is not None})

    return write


def content(data: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


def tiny_bytes() -> bytes:
    return files.pack(tiny_rule())


def truncated(path: Path) -> None:
    path.write_bytes(tiny_bytes()[:-200])


def corrupted(path: Path) -> None:
    data = bytearray(tiny_bytes())
    data[300:340] = bytes(40)
    path.write_bytes(data)


def bomb(path: Path) -> None:
    """A few hundred kilobytes that unpack to more than any rule needs."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("lstm/linear/b.npy", bytes(rule_weights.MAX_BYTES + 1))


def huge_shape(path: Path) -> None:
    """A header that promises more values than any memory holds, with none behind it."""
    stream = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": (1 << 45,)}
    np.lib.format.write_array_header_1_0(stream, header)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("lstm/linear/b.npy", stream.getvalue())


def sparse(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(rule_weights.MAX_BYTES + 1)


def with_text_entry(path: Path) -> None:
    path.write_bytes(tiny_bytes())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("README.txt", "hello")


def foreign(path: Path) -> None:
    save_npz(path, {"weight": np.ones(3)})


def nothing(path: Path) -> None:
    assert not path.exists()


def infinite() -> NDArray[np.float32]:
    return np.full(3, np.inf, np.float32)


BAD_DISCO: dict[str, tuple[Callable[[Path], None], str]] = {
    "missing file": (nothing, "does not exist"),
    "directory": (Path.mkdir, "is not a file"),
    "empty file": (content(b""), "not an npz archive"),
    "text file": (content(b"404: Not Found\n"), "not an npz archive"),
    "truncated": (truncated, "not an npz archive, or truncated"),
    "corrupted": (corrupted, "a Disco rule is an npz"),
    "bare pickle": (content(pickle.dumps({"lstm/linear/b": [1.0]})), "not an npz archive"),
    "pickled objects": (changed(lstm__linear__b=np.array([{}, None, 1])), "pickled"),
    "foreign npz": (foreign, "'weight'"),
    "missing key": (changed(lstm__linear_3__w=None), "lacks the array 'lstm/linear_3/w'"),
    "misspelt key": (
        changed(lstm__linear_3__w=None, lstm__liner_3__w=np.ones((3, 5), np.float32)),
        "'lstm/liner_3/w' that no Disco rule has; nearest: 'lstm/linear_3/w'",
    ),
    "extra key": (changed(extra=np.ones(1, np.float32)), "'extra'"),
    "text entry": (with_text_entry, "README.txt"),
    "float64": (changed(lstm__linear__b=np.ones(3)), "'lstm/linear/b' is float64, not float32"),
    "big-endian": (changed(lstm__linear__b=np.ones(3, ">f4")), "'lstm/linear/b' is >f4"),
    "NaN": (changed(lstm__linear__b=np.full(3, np.nan, np.float32)), "'lstm/linear/b' holds"),
    "infinity": (changed(lstm__linear__b=infinite()), "not finite"),
    "wrong shape": (
        changed(lstm__linear_2__w=np.ones((3, 6), np.float32)),
        r"'lstm/linear_2/w' has shape (3, 6), but the other arrays require (3, 5)",
    ),
    "wrong dimensions": (
        changed(lstm__linear_2__w=np.ones(15, np.float32)),
        "'lstm/linear_2/w' has 1 dimensions, not 2",
    ),
    "empty array": (changed(lstm__linear__b=np.ones(0, np.float32)), "'lstm/linear/b' is empty"),
    "zip bomb": (bomb, "unpacks to"),
    "huge shape": (huge_shape, "a Disco rule is an npz"),
    "huge file": (sparse, "more than the"),
}

OPEN_VECTOR = np.ones(1211, np.float32)


def npy(array: NDArray[Any]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        save_npy(path, array)

    return write


BAD_OPEN: dict[str, tuple[Callable[[Path], None], str]] = {
    "missing file": (nothing, "does not exist"),
    "directory": (Path.mkdir, "is not a file"),
    "empty file": (content(b""), "an OPEN rule is"),
    "text file": (content(b"404: Not Found\n"), "not a plain .npy file"),
    "bare pickle": (content(pickle.dumps([1.0])), "not a plain .npy file"),
    "pickled objects": (npy(np.array([{}, None])), "not a plain .npy file"),
    "truncated": (content(b"\x93NUMPY\x01\x00v\x00{'descr'"), "an OPEN rule is"),
    "truncated archive": (content(b"PK\x03\x04abc"), "an OPEN rule is"),
    "archive": (changed(), "an archive of several arrays"),
    "float64": (npy(OPEN_VECTOR.astype(float)), "holds float64"),
    "wrong length": (npy(OPEN_VECTOR[:-1]), r"has shape (1210,)"),
    "matrix": (npy(OPEN_VECTOR.reshape(1, -1)), r"has shape (1, 1211)"),
    "NaN": (npy(OPEN_VECTOR * np.float32(np.nan)), "not finite"),
    "huge file": (sparse, "more than the"),
}


def refused(read: Callable[[Path], Any], write: Callable[[Path], None], path: Path) -> str:
    """Return the message with which the file is refused, after checking that it is untouched."""
    write(path)
    before = sorted((entry.name, entry.stat().st_mtime_ns) for entry in path.parent.iterdir())
    with pytest.raises(WeightsError) as caught:
        read(path)
    after = sorted((entry.name, entry.stat().st_mtime_ns) for entry in path.parent.iterdir())
    assert before == after
    return str(caught.value)


@pytest.mark.parametrize("case", BAD_DISCO)
def test_a_bad_disco_file_is_refused_by_name(tmp_path: Path, case: str) -> None:
    write, reason = BAD_DISCO[case]
    message = refused(rule_weights.read_disco, write, tmp_path / "bad.npz")
    assert message.startswith(f"{tmp_path / 'bad.npz'}: ")
    assert reason in message
    assert "\n" not in message


@pytest.mark.parametrize("case", BAD_OPEN)
def test_a_bad_open_file_is_refused_by_name(tmp_path: Path, case: str) -> None:
    write, reason = BAD_OPEN[case]
    message = refused(rule_weights.read_open, write, tmp_path / "bad.npy")
    assert message.startswith(f"{tmp_path / 'bad.npy'}: ")
    assert reason in message
    assert "\n" not in message


def test_random_damage_never_escapes_as_another_error(tmp_path: Path) -> None:
    """Flip a few bytes of an uncompressed rule, many times: it is read, or refused properly."""
    path = save_npz(tmp_path / "tiny.npz", tiny_rule())
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(200):
        data = bytearray(good)
        for place in rng.integers(0, len(data), size=3):
            data[place] = int(rng.integers(256))
        path.write_bytes(data)
        with contextlib.suppress(WeightsError):
            rule_weights.read_disco(path)


def test_sprouts_random_twin_is_what_a_discovery_starts_from() -> None:
    assert all_sizes(RuleSizes()) == disco_format.SPROUT
    twin = rule_weights.load("sprout-random:3")
    drawn = fresh(disco_format.SPROUT, 3)
    assert all(np.array_equal(twin.arrays[name], array) for name, array in drawn.items())
    assert disco_format.fault(dict(twin.arrays)) is None


def test_a_rule_in_a_file_is_identified_by_its_content(tmp_path: Path) -> None:
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    one.write_bytes(arrays.pack(fresh(disco_format.SPROUT, 0)))
    other.write_bytes(arrays.pack(fresh(disco_format.SPROUT, 1)))
    name = rule_weights.name_of(one)
    assert rule_weights.load(name, one).name == name
    copy = tmp_path / "copy.npz"
    copy.write_bytes(arrays.pack(fresh(disco_format.SPROUT, 0), compress=False))
    assert rule_weights.name_of(copy) == name
    with pytest.raises(WeightsError, match="holds another rule"):
        rule_weights.load(name, other)
    with pytest.raises(WeightsError, match="--weights"):
        rule_weights.load(name)
