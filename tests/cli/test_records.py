"""``rulescope records`` from the outside."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from made_up_records import made_up
from rulescope.cli import records_transfer
from rulescope.cli.main import app
from rulescope.core.errors import RecordError
from rulescope.records import Record, Store
from rulescope.spec.run_spec import RunSpec, Transplant

DONOR = RunSpec(iterations=100, seed=0)
HEIR = RunSpec(
    iterations=100,
    seed=1,
    interventions=(Transplant(carrier="recurrent", donor=DONOR, mode="natural"),),
)


def invoke(*arguments: str | Path, code: int = 0, text: str | None = None) -> Any:
    words = ["records", *map(str, arguments)]
    result = CliRunner().invoke(app, words, catch_exceptions=False, input=text)
    assert result.exit_code == code, result.output
    return result


def heir() -> Record:
    plain = made_up(HEIR)
    return Record.make(
        HEIR,
        plain.log,
        plain.state,
        source=plain.manifest.source,
        runtime={"evil": "\x1b[31m[bold]red"},
        rule=None,
        started=datetime(2026, 1, 1, tzinfo=UTC),
        seconds=1.0,
        inherited={DONOR.id: "c" * 64},
    )


@pytest.fixture
def store(tmp_path: Path) -> Path:
    keep = Store(tmp_path / "store")
    keep.commit(made_up(DONOR))
    keep.commit(heir())
    return keep.root


def test_query_as_table_json_csv_and_file(store: Path, tmp_path: Path) -> None:
    sql = "SELECT seed, scale, interventions, count(*) AS n FROM runs JOIN logs USING (id) "
    sql += "GROUP BY ALL ORDER BY seed"
    table = invoke("query", sql, "--store", store).stdout.splitlines()
    assert table[0].split() == ["seed", "scale", "interventions", "n"]
    assert table[1].split() == ["0", "1", "5"]
    found = json.loads(invoke("query", sql, "--store", store, "--json").stdout)
    assert [row["n"] for row in found] == [5, 5]
    assert found[1]["interventions"].startswith("transplant(recurrent, donor=")
    text = invoke("query", sql, "--store", store, "--csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["seed"] for row in rows] == ["0", "1"]
    path = tmp_path / "out.parquet"
    done = invoke("query", "FROM logs", "--store", store, "--export", path)
    assert (done.stdout, "10 rows" in done.stderr) == ("", True)
    assert path.read_bytes()[:4] == b"PAR1"


def test_query_without_rows_and_with_too_many(store: Path) -> None:
    assert invoke("query", "FROM runs WHERE false", "--store", store, "--json").stdout == "[]\n"
    assert "no rows" in invoke("query", "FROM runs WHERE false", "--store", store).stderr
    many = invoke("query", "FROM range(200)", "--store", store, "--rows", "7")
    assert len(many.stdout.splitlines()) == 8
    assert "only the first 7 rows" in many.stderr


@pytest.mark.parametrize("sql", ["COPY runs TO 'x.csv'", "SELECT * FROM read_csv('/etc/passwd')"])
def test_query_errors_are_for_people(store: Path, sql: str) -> None:
    with pytest.raises(RecordError, match=r"^query: "):
        invoke("query", sql, "--store", store)


def test_query_options_exclude_one_another(store: Path) -> None:
    with pytest.raises(RecordError, match="exclude"):
        invoke("query", "FROM runs", "--store", store, "--json", "--csv")
    with pytest.raises(RecordError, match=r"\.parquet or \.csv"):
        invoke("query", "FROM runs", "--store", store, "--export", "x.txt")


def test_query_warns_of_what_it_does_not_see(store: Path) -> None:
    (Store(store).folder(HEIR.id) / "log.npz").write_bytes(b"")
    done = invoke("query", "SELECT count(*) FROM runs", "--store", store, "--csv", code=1)
    assert done.stdout.splitlines()[1] == "1"
    assert "left out" in done.stderr


def test_help_teaches_by_examples() -> None:
    text = invoke("query", "--help").stdout
    assert text.count('rulescope records query "') == 3


def test_show_by_a_beginning(store: Path) -> None:
    text = invoke("show", HEIR.id[:8], "--store", store, "--rows", "2").stdout
    assert HEIR.id in text
    assert f"transplant(recurrent, donor={DONOR.id[:12]}, natural)" in text
    assert "[bold]red" in text
    assert "\x1b" not in text
    assert ["iteration", "80", "100"] in [line.split() for line in text.splitlines()]
    said = json.loads(invoke("show", HEIR.id, "--store", store, "--json", "--rows", "1").stdout)
    assert said["manifest"]["parents"] == [DONOR.id]
    assert said["log"]["iteration"] == [100.0]
    with pytest.raises(RecordError, match="not the beginning"):
        invoke("show", "../x", "--store", store)


def test_size_by_part_and_kind(store: Path) -> None:
    (store / "tmp" / "rubbish").write_bytes(b"0" * 1234)
    said = json.loads(invoke("size", "--store", store, "--json").stdout)
    assert said["parts"]["tmp"]["bytes"] == 1234
    [group] = said["records"]
    assert (group["learner"], group["environment"], group["entries"]) == ("disco", "catch", 2)
    assert group["bytes"] == said["parts"]["runs"]["bytes"]
    assert "1.2 kB" in invoke("size", "--store", store).stdout


def test_export_and_import(store: Path, tmp_path: Path) -> None:
    archive, other = tmp_path / "x.tar.gz", tmp_path / "other"
    done = invoke("export", archive, "--where", "seed = 1", "--store", store)
    assert "1 record," in done.stdout
    assert "1 new record," in invoke("import", archive, "--store", other).stdout
    said = json.loads(invoke("import", store, "--store", other, "--json").stdout)
    assert (said["new"], said["same"]) == ([DONOR.id], 1)
    invoke("export", tmp_path / "y.zip", DONOR.id[:9], "--store", store)
    assert (
        "0 new records, 1 already" in invoke("import", tmp_path / "y.zip", "--store", other).stdout
    )


def test_a_conflict_is_told_with_a_code(store: Path, tmp_path: Path) -> None:
    other = Store(tmp_path / "other")
    plain = made_up(DONOR)
    log = dict(plain.log) | {"score": plain.log["score"] + 1}
    other.commit(
        Record.make(
            DONOR,
            log,
            plain.state,
            source={},
            runtime={},
            rule=None,
            started=datetime(2026, 1, 1, tzinfo=UTC),
            seconds=1.0,
        )
    )
    done = invoke("import", store, "--store", other.root, code=1)
    assert f"conflict: {DONOR.id}" in done.stderr
    assert other.read(DONOR.id).log["score"].tolist() == log["score"].tolist()


def test_deletion_needs_a_word(store: Path) -> None:
    with pytest.raises(RecordError, match=r"would delete 1 record of .*--yes"):
        invoke("delete", DONOR.id, "--store", store)
    with pytest.raises(RecordError, match="name records, or"):
        invoke("delete", "--yes", "--store", store)
    with pytest.raises(RecordError, match="not both"):
        invoke("delete", DONOR.id, "--where", "true", "--yes", "--store", store)
    assert len(list(Store(store).ids())) == 2


def test_deletion_warns_of_heirs(store: Path) -> None:
    done = invoke("delete", DONOR.id[:10], "--yes", "--store", store)
    assert "1 other record started from the state" in done.stderr
    assert "deleted 1 record of" in done.stdout
    assert list(Store(store).ids()) == [HEIR.id]
    alone = invoke("delete", "--where", "seed = 1", "--yes", "--store", store)
    assert "warning" not in alone.stderr
    assert list(Store(store).ids()) == []
    assert "no such records" in invoke("delete", "--where", "true", "--store", store).stdout


@pytest.mark.parametrize(("answer", "left"), [("y\n", 1), ("n\n", 2), ("", 2)])
def test_deletion_asks_on_a_terminal(
    store: Path, monkeypatch: pytest.MonkeyPatch, answer: str, left: int
) -> None:
    class Terminal:
        def __getattr__(self, name: str) -> Any:
            return (lambda: True) if name == "isatty" else getattr(sys.stdin, name)

    class System:
        stdin, stderr = Terminal(), sys.stderr

    monkeypatch.setattr(records_transfer, "sys", System)
    invoke("delete", DONOR.id, "--store", store, text=answer, code=0 if left == 1 else 1)
    assert len(list(Store(store).ids())) == left


def test_tensorboard_folders(store: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    done = invoke("tensorboard", tmp_path / "tb", "--store", store)
    assert "2 records written, 0 already there" in done.stdout
    assert len(list((tmp_path / "tb").glob("*/events.out.tfevents.*"))) == 2


def test_what_takes_long_to_import_is_imported_late() -> None:
    heavy = {"duckdb", "tensorboardX", "wandb", "torch"}
    code = f"import sys, rulescope.cli.main; print(*({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_relative_store_can_be_asked(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(store.parent)
    for _ in range(2):
        done = invoke("query", "SELECT count(*) AS n FROM logs", "--store", "store", "--csv")
        assert done.stdout == "n\n10\n"
