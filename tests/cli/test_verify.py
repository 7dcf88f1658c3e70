"""``rulescope verify``: damage is found, and reruns are bit-identical."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from typer.testing import Result

from command_line import invoke
from learners.small import small_spec
from made_up_records import fill
from rulescope.cli import verify as verifying
from rulescope.core import disk
from rulescope.engine import local_engine
from rulescope.engine.local_engine import Campaign
from rulescope.lifetime import Lifetime
from rulescope.records import Record, Store
from rulescope.records import record as records
from rulescope.run_spec import Pin, RunSpec, Transplant
from rulescope.runner import find_or_make

SPECS = [small_spec(seed=seed, iterations=4, log_every=2) for seed in range(3)]
RECIPIENT = msgspec.structs.replace(
    SPECS[0], interventions=(Transplant(carrier="recurrent", donor=SPECS[1], mode="natural"),)
)


def verify(store: Store, *options: str, code: int = 0) -> Result:
    return invoke("verify", "--store", store.root, *options, code=code)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    fill(store, SPECS)
    return store


def damage(store: Store, run: str, name: str = "state.npz") -> None:
    path = store.folder(run) / name
    path.write_bytes(path.read_bytes()[:-1])


def test_an_intact_store_has_no_problems(store: Store) -> None:
    assert "3 intact records; no problems" in verify(store).stdout
    body = json.loads(verify(store, "--json").stdout)
    assert body == {"records": 3, "rerun": [], "wrong": 0, "findings": []}


def test_damage_is_reported_once_and_the_rest_is_read(store: Store) -> None:
    lost = SPECS[1].id
    damage(store, lost)
    (store.root / "runs" / "stray").touch()
    result = verify(store, code=1)
    assert result.stderr.count(lost) <= 3  # id, place and quarantine, in one line
    assert len(result.stderr.splitlines()) == 2
    assert "2 intact records; 2 problems" in result.stdout
    assert "runs/stray: not a record" in result.stderr
    (store.root / "runs" / "stray").unlink()
    again = verify(store, code=1)  # what is missed is still missed
    assert "in quarantine since it was found damaged" in again.stderr
    fill(store, SPECS)
    healed = verify(store)
    assert "there is an intact record of this run now" in healed.stdout


def test_progress_is_shown_if_it_takes_long(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying, "QUIET_SECONDS", 0.0)
    assert "verify: 0/3" in verify(store).stderr


def test_damaged_checkpoints_and_stray_files_are_reported(store: Store) -> None:
    folder = store.root / "checkpoints"
    folder.mkdir()
    (folder / f"{'0' * 64}.npz").write_text("no checkpoint")
    (store.root / "notes.txt").touch()
    (store.root / "tmp" / "rubbish").mkdir(parents=True)
    result = verify(store, code=1)
    assert "its checkpoint: " in result.stderr
    assert f"; moved to {store.quarantined()[0].path}" in result.stderr
    assert "note: notes.txt: not a part of a store" in result.stdout
    assert "note: tmp: 1 write in progress" in result.stdout


def test_a_run_that_finishes_meanwhile_is_no_damage(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = store.root / "checkpoints" / f"{'0' * 64}.npz"
    real = disk.listed
    monkeypatch.setattr(disk, "listed", lambda at: [path] if at == path.parent else real(at))
    assert "no problems" in verify(store).stdout


def run_here(specs: Any, store: Store, **_: Any) -> Campaign:
    """Run ``specs`` in this process, as the engine would in others."""
    for spec in specs:
        find_or_make(spec, store)
    return Campaign(0)


@pytest.fixture
def rerunnable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store of real records: three lifetimes, one of which inherits from another."""
    monkeypatch.setattr(local_engine, "run_all", run_here)
    store = Store(tmp_path / "rerunnable")
    for spec in (*SPECS[:2], RECIPIENT):
        find_or_make(spec, store)
    return store


def test_reruns_are_bit_identical(rerunnable: Store) -> None:
    body = json.loads(verify(rerunnable, "--rerun", "2", "--seed", "3", "--json").stdout)
    assert len(body["rerun"]) == 2
    assert [each["what"] for each in body["findings"]] == body["rerun"]
    assert {each["about"] for each in body["findings"]} == {"rerun: bit-identical"}
    same = json.loads(verify(rerunnable, "--rerun", "2", "--seed", "3", "--json").stdout)
    assert same["rerun"] == body["rerun"]
    everything = verify(rerunnable, "--rerun", "9").stdout
    assert everything.count("rerun: bit-identical") == 3
    assert "3 of them run again" in everything


def altered(spec: RunSpec, *, state: float = 0.0, **identity: dict[str, Any]) -> Record:
    """Return a record of ``spec`` with a wrong number in it, and perhaps from elsewhere."""
    life = Lifetime(spec)
    life.run()
    record = life.record()
    log = {name: column.copy() for name, column in record.log.items()}
    log["score"][-1] += 1.0
    manifest = record.manifest
    return Record.make(
        spec,
        log,
        {name: array + np.asarray(state, array.dtype) for name, array in record.state.items()},
        source=manifest.source,
        runtime=manifest.runtime | identity.get("runtime", {}),
        rule=manifest.rule,
        started=life._started,
        seconds=1.0,
        inherited=dict(manifest.inherited),
    )


def test_a_record_that_is_not_reproduced_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_engine, "run_all", run_here)
    store = Store(tmp_path / "here")
    store.commit(altered(SPECS[0]))
    result = verify(store, "--rerun", "1", code=1)
    assert "rerun: differs on the same kind of machine" in result.stderr
    elsewhere = Store(tmp_path / "elsewhere")
    elsewhere.commit(altered(SPECS[0], runtime={"cpu": "Abacus 1"}))
    output = verify(elsewhere, "--rerun", "1").stdout
    assert "as it may: it was made with another cpu" in output


def test_a_recipient_may_differ_if_its_donor_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are rerun; the donor was made elsewhere, where it came out differently."""
    monkeypatch.setattr(local_engine, "run_all", run_here)
    store = Store(tmp_path / "here")
    store.commit(altered(SPECS[1], runtime={"cpu": "Abacus 1"}, state=1.0))
    find_or_make(RECIPIENT, store)
    output = verify(store, "--rerun", "2").stdout
    assert f"{SPECS[1].id}: rerun: differs, as it may" in output
    assert f"{RECIPIENT.id}: rerun: differs, as it must" in output
    alone = Store(tmp_path / "alone")
    alone.commit(altered(SPECS[1], state=1.0))
    find_or_make(RECIPIENT, alone)
    assert SPECS[1].id in verify(alone, "--rerun", "2", code=1).stderr


PINNED = msgspec.structs.replace(SPECS[0], interventions=(Pin(carrier="recurrent"),))


def of_version_1(spec: RunSpec, *wrong: str) -> dict[str, bytes]:
    """Return a record as version 1 wrote it: norms read before the interventions."""
    life = Lifetime(spec)
    life.run()
    record = life.record()
    log = {name: column.copy() for name, column in record.log.items()}
    for name in ("hidden_norm", "cell_norm", *wrong):
        log[name][-1] += 0.26
    manifest = msgspec.structs.replace(
        record.manifest, science_hash=records.science_hash(log, record.state)
    )
    files = records.encode(Record(spec, log, record.state, manifest))
    plain = msgspec.json.decode(files["manifest.json"])
    plain = {name: plain[name] for name in plain if name not in ("checksum", "carriers_read")}
    return files | {"manifest.json": records._encode_manifest(plain | {"schema": 1})}


def test_norms_of_older_records_are_not_compared_and_that_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_engine, "run_all", run_here)
    store = Store(tmp_path / "old")
    files = of_version_1(PINNED)
    store.commit_files(PINNED.id, files)
    output = verify(store, "--rerun", "1").stdout
    assert "bit-identical except cell_norm, hidden_norm, which are not compared" in output
    assert store.files(PINNED.id) == files
    find_or_make(PINNED, Store(tmp_path / "new"))
    assert not store.commit_files(PINNED.id, Store(tmp_path / "new").files(PINNED.id)), (
        "no conflict"
    )
    assert store.files(PINNED.id) == files
    wrong = Store(tmp_path / "wrong")
    wrong.commit_files(PINNED.id, of_version_1(PINNED, "loss_value"))
    assert "rerun: differs" in verify(wrong, "--rerun", "1", code=1).stderr


def test_the_program_is_identified_by_its_source_not_by_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_engine, "run_all", run_here)
    outputs: list[str] = []
    sources: list[dict[str, Any]] = [
        {"commit": "0" * 40, "dirty": True},
        {"sha256": "0" * 64},
        {"sha256": None},
    ]
    for number, source in enumerate(sources):
        store = Store(tmp_path / str(number))
        record = altered(SPECS[0])
        made_by = {k: v for k, v in (record.manifest.source | source).items() if v is not None}
        store.commit(
            Record(
                record.spec,
                record.log,
                record.state,
                msgspec.structs.replace(record.manifest, source=made_by),
            )
        )
        outputs.append(verify(store, "--rerun", "1", code=1).stderr)
    same, other, unknown = outputs
    assert "it was made by another" not in same
    assert "it was made by another source of rulescope" in other
    assert "source of rulescope" not in unknown


def test_a_record_that_cannot_be_rerun_is_wrong(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(specs: Any, *_: Any, **__: Any) -> Campaign:
        return Campaign(0, failed={spec.id: "WeightsError: gone" for spec in specs})

    monkeypatch.setattr(local_engine, "run_all", failing)
    assert "WeightsError: gone" in verify(store, "--rerun", "1", code=1).stderr
