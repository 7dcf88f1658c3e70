from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import numpy as np
import pytest

from rulescope.core.arrays import Arrays
from rulescope.core.errors import RecordError
from rulescope.core.structs import expanded
from rulescope.records import record as records
from rulescope.records.record import DamageError, Record, decode, encode, science_hash

from .sample_record import STARTED, changed_log, sample, sample_log, sample_state


def same(left: Arrays, right: Arrays) -> bool:
    """Tell whether two mappings hold the same arrays to the bit."""
    return left.keys() == right.keys() and all(
        left[name].dtype == right[name].dtype
        and left[name].shape == right[name].shape
        and left[name].tobytes() == right[name].tobytes()
        for name in left
    )


def test_a_record_can_be_decoded_from_its_files() -> None:
    record = sample()
    again = decode(record.spec.id, encode(record))
    assert again.spec == record.spec
    assert same(again.log, record.log)
    assert same(again.state, record.state)
    assert msgspec.structs.replace(again.manifest, payload={}) == record.manifest


def test_equal_records_give_equal_files() -> None:
    assert encode(sample()) == encode(sample())


def test_the_manifest_holds_spec_time_and_provenance() -> None:
    record = sample(started=STARTED.astimezone())
    manifest = record.manifest
    assert manifest.id == record.spec.id
    assert manifest.spec == expanded(record.spec)
    assert manifest.spec["learner"]["kind"] == "disco"
    assert manifest.started == "2026-05-04T03:02:01+00:00"
    assert manifest.seconds == 1.25
    assert manifest.parents == ()
    assert manifest.rule is not None
    assert manifest.rule.name == "disco103"


def test_science_hash_ignores_times_hosts_and_order() -> None:
    later = sample(started=STARTED + timedelta(days=1), seconds=99.0, torch="9.9.9")
    assert later.manifest.science_hash == sample().manifest.science_hash
    backwards = dict(reversed(list(sample_log().items())))
    assert science_hash(backwards, sample_state()) == science_hash(sample_log(), sample_state())


def test_science_hash_ignores_memory_layout() -> None:
    wide = np.asfortranarray(sample_log()["policy"])
    assert science_hash({"p": wide}, {}) == science_hash({"p": wide.copy(order="C")}, {})


def test_science_hash_of_the_sample_is_pinned() -> None:
    # A change here means that records already on disk would no longer verify.
    expected = "9513ee92dd07d5664f48f94abea97935b3d2d844f11a225ca0548ae14b7e9fb4"
    assert science_hash(sample_log(), sample_state()) == expected


@pytest.mark.parametrize(
    ("log", "state"),
    [
        pytest.param({"x": np.array([1.0, np.nextafter(2.0, 3.0)])}, {}, id="one bit"),
        pytest.param({"x": np.array([1.0, 2.0], dtype=np.float32)}, {}, id="dtype"),
        pytest.param({"x": np.array([[1.0, 2.0]])}, {}, id="shape"),
        pytest.param({"y": np.array([1.0, 2.0])}, {}, id="name"),
        pytest.param({}, {"x": np.array([1.0, 2.0])}, id="log or state"),
        pytest.param({"x": np.array([1.0, 2.0]), "y": np.zeros(2)}, {}, id="one more column"),
    ],
)
def test_science_hash_changes_with_every_difference(log: Arrays, state: Arrays) -> None:
    assert science_hash(log, state) != science_hash({"x": np.array([1.0, 2.0])}, {})


def test_science_hash_distinguishes_signed_zeros_and_scalars() -> None:
    hashes = {
        science_hash({}, {"a/b": np.array(0.0)}),
        science_hash({}, {"a/b": np.array(-0.0)}),
        science_hash({}, {"a/b": np.array([0.0])}),
    }
    assert len(hashes) == 3


@pytest.mark.parametrize(
    ("log", "state", "message"),
    [
        ({"x": np.zeros(3), "y": np.zeros(4)}, {}, "number of rows"),
        ({"x": np.array(1.0)}, {}, "shape"),
        ({"x": np.zeros((2, 2, 2))}, {}, "shape"),
        ({}, {"recurrent": np.zeros(2)}, "carrier/array"),
        ({}, {"/h": np.zeros(2)}, "carrier/array"),
        ({}, {"recurrent/": np.zeros(2)}, "carrier/array"),
    ],
)
def test_misshapen_records_are_refused(log: Arrays, state: Arrays, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        Record(sample().spec, log, state, sample().manifest)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"science_hash": "c" * 64}, "science hash"),
        ({"id": "c" * 64}, "does not hash"),
        ({"canonical": "{}"}, "does not hash"),
        ({"seconds": float("nan")}, "seconds"),
        ({"seconds": -1.0}, "seconds"),
        ({"parents": ("../../etc",)}, "parents"),
    ],
)
def test_a_manifest_that_does_not_fit_is_not_written(changes: dict[str, Any], message: str) -> None:
    good = sample()
    bad = Record(good.spec, good.log, good.state, msgspec.structs.replace(good.manifest, **changes))
    with pytest.raises(RecordError, match=message):
        encode(bad)


def test_arrays_changed_after_hashing_are_not_written() -> None:
    good = sample()
    with pytest.raises(RecordError, match="science hash"):
        encode(Record(good.spec, changed_log(), good.state, good.manifest))


def test_objects_are_not_written() -> None:
    log = {"x": np.array([object()], dtype=object)}
    good = sample()
    with pytest.raises(RecordError, match="not a numeric array"):
        encode(Record(good.spec, log, good.state, good.manifest))


def test_a_specification_that_could_not_be_read_is_not_written() -> None:
    # Structs built in Python are not validated by msgspec: the reader's check must catch this.
    bad = Record.make(
        msgspec.structs.replace(sample().spec, seed=-1),
        sample_log(),
        sample_state(),
        source={},
        runtime={},
        rule=None,
        started=STARTED,
        seconds=0.0,
    )
    with pytest.raises(RecordError, match="seed"):
        encode(bad)


@pytest.mark.parametrize("name", records.FILES)
def test_every_flipped_bit_is_detected(name: str) -> None:
    record = sample()
    files = encode(record)
    content = files[name]
    for bit in range(0, 8 * len(content), 5):  # 5 and 8 share no factor: all places in a byte
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamageError):
            decode(record.spec.id, files | {name: bytes(flipped)})


@pytest.mark.parametrize("name", records.FILES)
def test_every_truncation_is_detected(name: str) -> None:
    record = sample()
    files = encode(record)
    # (The last byte of the manifest is a line end, which carries nothing.)
    for length in range(0, len(files[name]) - 1, 7):
        with pytest.raises(DamageError):
            decode(record.spec.id, files | {name: files[name][:length]})


def test_files_of_another_run_are_detected() -> None:
    files, others = encode(sample(0)), encode(sample(1, log=changed_log()))
    with pytest.raises(DamageError, match="is that of run"):
        decode(sample(0).spec.id, others)
    with pytest.raises(DamageError, match=r"log\.npz"):
        decode(sample(0).spec.id, files | {"log.npz": others["log.npz"]})


def with_checksum(**changes: Any) -> dict[str, bytes]:
    """Return the sample's files with a changed manifest and its valid checksum."""
    files = encode(sample())
    plain = msgspec.json.decode(files["manifest.json"])
    plain.pop("checksum")
    return files | {"manifest.json": records._encode_manifest(plain | changes)}


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(DamageError, match="mood"):
        decode(sample().spec.id, with_checksum(mood="good"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 3}, "schema 3"),
        ({"spec": {"iterations": 61}}, "another meaning"),
        ({"spec": {"gone": 1}}, "another meaning"),
    ],
)
def test_other_versions_are_not_treated_as_damage(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordError, match=message) as caught:
        decode(sample().spec.id, with_checksum(**changes))
    assert not isinstance(caught.value, DamageError)


def test_fields_added_since_are_allowed() -> None:
    spec = expanded(sample().spec)
    del spec["scale"], spec["learner"]["conventions"]["retrace"]
    assert decode(sample().spec.id, with_checksum(spec=spec)).spec == sample().spec
