"""Records of other versions: older ones are read, newer ones refused, none is changed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rulescope.core.errors import RecordError
from rulescope.records import Store, migration
from rulescope.records import record as records
from rulescope.records.migration import NewerError, upgrade

from .sample_record import sample

FIXTURES = Path(__file__).parent / "fixtures"
RELEASED = {
    1: (
        "f2b95c33d2753bdd9de053574a6a6fc88518561a16934d8646133d58e351f376",
        "3c38eff3d4e0dacc69456fb57951965bf653983153399d5f94a388d08b8c2183",
    ),
    2: (
        "f2b95c33d2753bdd9de053574a6a6fc88518561a16934d8646133d58e351f376",
        "3c38eff3d4e0dacc69456fb57951965bf653983153399d5f94a388d08b8c2183",
    ),
}
"""The id and science hash of a record of every version that was ever written."""
RUN = sample().spec.id


@pytest.mark.parametrize("version", RELEASED)
def test_a_record_of_every_version_can_be_read(version: int, tmp_path: Path) -> None:
    run, science = RELEASED[version]
    shutil.copytree(FIXTURES / f"v{version}", tmp_path / "store")
    store = Store(tmp_path / "store")
    record = store.read(run)
    assert record.manifest.science_hash == science
    assert record.manifest.schema == migration.SCHEMA
    assert record.spec.seed == 7
    assert record.log["iteration"].tolist() == [2.0, 4.0, 6.0]
    assert record.state["params/flat"].shape == (108,)
    assert store.verify() == []


def test_every_version_has_a_fixture_and_a_migration() -> None:
    assert sorted(RELEASED) == list(range(1, migration.SCHEMA + 1))
    assert sorted(migration.MIGRATIONS) == list(range(1, migration.SCHEMA))
    assert sorted(path.name for path in FIXTURES.iterdir()) == [f"v{n}" for n in RELEASED]


def written_as(store: Store, **changes: Any) -> dict[str, bytes]:
    """Put the sample into ``store`` with another manifest, properly sealed."""
    files = records.encode(sample())
    plain = msgspec.json.decode(files["manifest.json"])
    plain.pop("checksum")
    for name, value in changes.items():
        if value is None:
            plain.pop(name)
        else:
            plain[name] = value
    files["manifest.json"] = records._encode_manifest(plain)
    folder = store.folder(RUN)
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return files


def version_zero(plain: dict[str, Any]) -> dict[str, Any]:
    """Migrate from a version in which ``seconds`` was ``minutes``."""
    return {name: value for name, value in plain.items() if name != "minutes"} | {
        "seconds": plain["minutes"] * 60.0
    }


def test_an_older_version_is_migrated_in_memory(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = written_as(store, schema=0, seconds=None, minutes=2.0)
    with pytest.raises(RecordError, match="no version of rulescope wrote"):
        store.read(RUN)
    monkeypatch.setattr(migration, "MIGRATIONS", {0: version_zero, **migration.MIGRATIONS})
    assert store.read(RUN).manifest.seconds == 120.0
    assert store.read(RUN).manifest.schema == migration.SCHEMA
    assert store.verify() == []
    assert store.commit(sample()) == RUN  # the same result, so the old record stays
    assert (store.folder(RUN) / "manifest.json").read_bytes() == files["manifest.json"]


def test_an_old_manifest_that_lacks_a_migrated_field_is_damage(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "MIGRATIONS", {0: version_zero, **migration.MIGRATIONS})
    written_as(store, schema=0)
    with pytest.raises(RecordError, match=r"manifest\.json: 'minutes'.*quarantine"):
        store.read(RUN)


def test_a_newer_version_is_refused_and_left_alone(store: Store) -> None:
    files = written_as(store, schema=3, mood="good")
    with pytest.raises(NewerError, match=r"schema 3; this version of rulescope reads up to 2"):
        store.read(RUN)
    with pytest.raises(RecordError, match="newer"):
        store.commit(sample())
    assert [problem.id for problem in store.verify()] == [RUN]
    assert store.quarantined() == []
    for name, content in files.items():
        assert (store.folder(RUN) / name).read_bytes() == content


@pytest.mark.parametrize("version", [None, "1", 1.0, True, [], -1, 10**30])
def test_invalid_versions_are_refused(version: Any) -> None:
    with pytest.raises(RecordError, match="schema"):
        upgrade({"schema": version})
