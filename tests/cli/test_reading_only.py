"""Commands that only read leave the store as it is, to the byte and to the last folder."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from command_line import invoke, invoke_json
from learners.small import small_spec
from made_up_records import fill
from rulescope.assays import ASSAYS
from rulescope.core.errors import RecordError
from rulescope.engine.heartbeat import CampaignStatus
from rulescope.records import Store
from rulescope.records.index import Index

SPECS = [small_spec(seed=seed, iterations=4, log_every=2) for seed in range(3)]
COUNT = "SELECT count(*) AS n FROM runs"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    fill(store, SPECS)
    campaigns = store.root / "campaigns"
    campaigns.mkdir()
    gone = CampaignStatus("elsewhere", 1, started=0.0, updated=0.0)
    (campaigns / "gone.json").write_bytes(msgspec.json.encode(gone))
    (store.root / "tmp").rmdir()
    return store


def everything(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return every path below ``root`` with the time of its last change and its content."""
    return {
        str(path.relative_to(root)): (
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted([root, *root.rglob("*")])
    }


READING = [
    ["records", "query", COUNT],
    ["records", "query", COUNT, "--export", "OUT/found.csv"],
    ["records", "size"],
    ["records", "hashes"],
    ["records", "show", SPECS[0].id[:12]],
    ["records", "export", "OUT/records.zip", "--where", "seed = 1"],
    ["status"],
    ["status", "E1"],
    ["claims", "--no-check", "--claims", "clamping-amplifies-mismatch"],
    ["replicate", "--why", "--claims", "clamping-amplifies-mismatch"],
    ["report", "--out", "OUT/report", "--results", "OUT/results"],
    ["verify"],
    ["verify", "--read-only"],
]


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_command_that_only_reads_writes_nothing_into_the_store(
    command: list[str], store: Store, tmp_path: Path
) -> None:
    before = everything(store.root)
    words = [word.replace("OUT", str(tmp_path / "out")) for word in command]
    invoke(*words, "--store", store.root)
    assert everything(store.root) == before


def test_a_comparison_writes_nothing_into_the_store(store: Store, tmp_path: Path) -> None:
    scale = ASSAYS["E1"]
    fill(store, [run for cell in scale.grid(scale.budget("smoke")) for run in cell.runs])
    before = everything(store.root)
    words = ["compare", "E1", "--preset", "smoke", "--save-draws", "--out", str(tmp_path / "out")]
    invoke(*words, "--store", store.root)
    assert everything(store.root) == before


@pytest.mark.parametrize(
    "command", [["records", "query", COUNT], ["records", "hashes"], ["verify", "--read-only"]]
)
def test_damage_is_reported_and_left_in_place(command: list[str], store: Store) -> None:
    (store.folder(SPECS[1].id) / "log.npz").write_bytes(b"rubbish")
    before = everything(store.root)
    result = invoke(*command, "--store", store.root, code=1)
    assert "`rulescope verify` moves it into quarantine" in result.stderr
    assert everything(store.root) == before
    invoke("verify", "--store", store.root, code=1)
    assert len(store.quarantined()) == 1


def test_a_query_reads_the_index_and_the_records_that_are_not_in_it(store: Store) -> None:
    assert "3 records" in invoke("records", "index", "--store", store.root).stdout
    fill(store, [small_spec(seed=9, iterations=4, log_every=2)])
    before = everything(store.root)
    assert invoke_json("records", "query", COUNT, "--store", store.root) == [{"n": 4}]
    assert everything(store.root) == before
    with Index(Store(store.root, read_only=True)) as index:
        folders = index.refresh()
        assert [folder.is_relative_to(store.root.resolve()) for folder in folders] == [True, False]


def test_a_store_opened_to_be_read_refuses_to_be_written(store: Store) -> None:
    reading = Store(store.root, read_only=True)
    record = reading.read(SPECS[0].id)
    store.delete(SPECS[0].id)
    with pytest.raises(RecordError, match="read only"):
        reading.commit(record)
    with pytest.raises(RecordError, match="read only"):
        reading.save_checkpoint(SPECS[0].id, {})
    with pytest.raises(RecordError, match="read only"):
        reading.delete(SPECS[1].id)
    with pytest.raises(RecordError, match="read only"):
        reading.drop_checkpoint(SPECS[1].id)


def test_outputs_are_refused_before_any_work(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    blocked = str(tmp_path / "file" / "below")
    commands = [
        ["records", "query", COUNT, "--export", f"{blocked}/found.csv"],
        ["records", "export", f"{blocked}/records.zip"],
        ["records", "tensorboard", blocked],
        ["records", "wandb", blocked],
        ["report", "--out", blocked],
        ["mechanism", "targets", "--rule", "random:0", "--out", blocked],
        ["audit", "sprout", "--preset", "smoke", "--out", blocked],
        ["run", "E1", "--rule", "random:0", "--preset", "smoke", "--out", blocked],
        ["discover", "smoke", "--tensorboard", blocked],
    ]
    before = everything(store.root)
    for command in commands:
        with pytest.raises(RecordError, match="cannot be written") as caught:
            invoke(*command, "--store", store.root)
        assert str(tmp_path / "file") in str(caught.value), command
    assert everything(store.root) == before
