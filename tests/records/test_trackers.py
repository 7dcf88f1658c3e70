"""Exports to TensorBoard and Weights & Biases, read back by their own libraries."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rulescope.core.errors import RecordError
from rulescope.records import Store, trackers

from .sample_record import STARTED, sample

LOG = {
    "iteration": np.array([20.0, 40.0, 60.0]),
    "score": np.array([0.25, np.nan, 0.75]),
    "policy": np.array([[0.0, 1.0], [2.0, 3.0], [4.0, np.inf]]),
    "note": np.array(["a", "b", "c"]),
}
EXPECTED = {
    20: {"score": 0.25, "policy/0": 0.0, "policy/1": 1.0},
    40: {"policy/0": 2.0, "policy/1": 3.0},
    60: {"score": 0.75, "policy/0": 4.0},
}


@pytest.fixture
def filled(store: Store) -> Store:
    store.commit(sample(0, log=LOG))
    store.commit(sample(1))
    return store


def crc(content: bytes) -> int:
    """Return the masked CRC-32C of TensorBoard's records, bit by bit."""
    value = 0xFFFFFFFF
    for byte in content:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def events(path: Path) -> Iterator[Any]:
    """Yield the events of a file, checking its framing."""
    protos = importlib.import_module("tensorboardX.proto.event_pb2")
    content = path.read_bytes()
    place = 0
    while place < len(content):
        [length] = struct.unpack_from("<Q", content, place)
        head, body = content[place : place + 8], content[place + 12 : place + 12 + length]
        assert struct.unpack_from("<I", content, place + 8) == (crc(head),)
        assert struct.unpack_from("<I", content, place + 12 + length) == (crc(body),)
        yield protos.Event.FromString(body)
        place += 16 + length


def test_tensorboard_reads_what_was_logged(filled: Store, tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    run, out = sample(0).spec.id, tmp_path / "out"
    assert trackers.to_tensorboard(filled, [run], out) == (1, 0, [])
    [folder] = out.iterdir()
    assert folder.name == f"disco-catch-seed0-{run[:12]}"
    [path] = folder.glob("events.out.tfevents.*")
    first, *rest = events(path)
    assert first.file_version == "brain.Event:2"
    found = {
        event.step: {value.tag: value.simple_value for value in event.summary.value}
        for event in rest
    }
    assert found == EXPECTED
    times = [event.wall_time - STARTED.timestamp() for event in rest]
    assert times == pytest.approx([1.25 / 3, 2.5 / 3, 1.25], abs=1e-6)
    assert run.encode() in (folder / "record.json").read_bytes()


def test_a_repeated_export_adds_only_missing_records(filled: Store, tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    out = tmp_path / "out"
    runs = list(filled.ids())
    trackers.to_tensorboard(filled, runs[:1], out)
    assert trackers.to_tensorboard(filled, runs, out) == (1, 1, [])
    (filled.folder(runs[0]) / "log.npz").write_bytes(b"")
    made, kept, problems = trackers.to_tensorboard(filled, runs, out)
    assert (made, kept, [problem.id for problem in problems]) == (0, 1, [runs[0]])


def test_an_interrupted_export_leaves_no_partial_folder(
    filled: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboardX")

    def stop(_: Any) -> Any:
        yield 20, {"score": 1.0}
        raise KeyboardInterrupt

    monkeypatch.setattr(trackers, "points", stop)
    with pytest.raises(KeyboardInterrupt):
        trackers.to_tensorboard(filled, filled.ids(), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def wandb_records(path: Path) -> Iterator[Any]:
    """Yield the records of an offline run: LevelDB's log format around protocol buffers."""
    protos = importlib.import_module("wandb.proto.wandb_internal_pb2")
    content = path.read_bytes()
    assert content[:4] == b":W&B"
    place, gathered = 7, b""
    while place < len(content):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        _, length, kind = struct.unpack_from("<IHB", content, place)
        piece = content[place + 7 : place + 7 + length]
        place += 7 + length
        gathered = piece if kind in (1, 2) else gathered + piece
        if kind in (1, 4):
            yield protos.Record.FromString(gathered)


@pytest.mark.filterwarnings("ignore")
def test_wandb_reads_what_was_logged(filled: Store, tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    run, out = sample(0).spec.id, tmp_path / "out"
    assert trackers.to_wandb(filled, [run], out, "audit") == (1, 0, [])
    assert trackers.to_wandb(filled, [run], out, "audit") == (0, 1, [])
    [folder] = (out / "wandb").iterdir()
    assert folder.name == f"offline-run-20260504_030201-{run[:20]}"
    [path] = folder.iterdir()
    assert path.name == f"run-{run[:20]}.wandb"
    found = {}
    for record in wandb_records(path):
        if record.WhichOneof("record_type") == "run":
            assert (record.run.run_id, record.run.project) == (run[:20], "audit")
            assert not record.run.host
            config = {item.key: item.value_json for item in record.run.config.update}
            assert config["id"] == f'"{run}"'
            assert '"seed":0' in config["spec"].replace(" ", "")
        if record.WhichOneof("record_type") == "history":
            values = {"/".join(item.nested_key): item.value_json for item in record.history.item}
            found[record.history.step.num] = {
                name: float(text)
                for name, text in values.items()
                if not name.startswith("_") and name != "iteration"
            }
    assert found == EXPECTED


@pytest.mark.parametrize(
    ("export", "module", "extra"),
    [
        (trackers.to_tensorboard, "tensorboardX", "tensorboard"),
        (trackers.to_wandb, "wandb", "wandb"),
    ],
)
def test_the_error_for_a_missing_extra_says_what_to_install(
    filled: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    export: Any,
    module: str,
    extra: str,
) -> None:
    real = importlib.import_module

    def find(name: str) -> Any:
        if name.partition(".")[0] == module:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
        return real(name)

    monkeypatch.setattr(importlib, "import_module", find)
    with pytest.raises(RecordError, match=rf"pip install 'rulescope\[{extra}\]'"):
        export(filled, filled.ids(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_rows_of_logs_without_an_axis_are_numbered() -> None:
    assert [step for step, _ in trackers.points({"score": np.zeros(3)})] == [0, 1, 2]
    nowhere = {"iteration": np.array([np.nan, 2.0]), "x": np.array([1.0, 2.0])}
    assert list(trackers.points(nowhere)) == [(0, {"x": 1.0}), (2, {"iteration": 2.0, "x": 2.0})]
    assert list(trackers.points({})) == []
