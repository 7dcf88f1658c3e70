"""SQL queries: their views, their restrictions, and their errors."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from rulescope.core.errors import RecordError
from rulescope.envs.world_config import ActionFlip, Boundary
from rulescope.learners.learner_config import VARIANTS
from rulescope.records import Record, Store, migration, query
from rulescope.records.columns import describe_intervention
from rulescope.run_spec import Freeze, Pin, RunSpec, Transplant

from .sample_record import RULE, STARTED, sample, sample_log

DONOR = RunSpec(iterations=60, seed=5)
HEIR = RunSpec(
    iterations=60,
    scale=0.001,
    seed=6,
    boundary=Boundary(terminals="synthetic", interval=29),
    change=ActionFlip(at=30),
    interventions=(Transplant(carrier="recurrent", donor=DONOR, mode="clamp"),),
)


def made(spec: RunSpec, **log: Any) -> Record:
    return Record.make(
        spec,
        log or sample_log(),
        {},
        source={"version": "0.1.0", "commit": "abc", "dirty": True},
        runtime={"torch": "2.6.0", "threads": 1, "Odd Name": None, "CPU": "x"},
        rule=RULE,
        started=STARTED,
        seconds=1.25,
        inherited={donor.id: "c" * 64 for donor in spec.donors},
    )


@pytest.fixture
def filled(store: Store) -> Store:
    store.commit(sample(0))
    store.commit(made(HEIR))
    store.commit(
        made(
            RunSpec(iterations=60, learner=VARIANTS["a2c"]),
            iteration=np.array([20.0, 40.0]),
            steps=np.array([1160.0, 2320.0]),
            score=np.array([np.inf, -1.0]),
            entropy=np.array([True, False]),
        )
    )
    return store


@pytest.fixture
def ask(filled: Store) -> Iterator[Any]:
    with query.open_database(filled) as database:

        def answer(sql: str) -> list[tuple[Any, ...]]:
            return list(database.query(sql).rows)

        yield answer


def test_runs_has_a_row_for_each_record(ask: Any) -> None:
    [row] = ask(
        "SELECT id, learner, environment, scale, seed, iterations, interventions, change, "
        "change_at, boundary, boundary_interval, rule, source_version, source_commit, "
        "source_dirty, runtime_torch, runtime_threads, seconds, CAST(started AS VARCHAR), "
        "parents, rows, learner_discount, environment_rows, spec_schema, schema, "
        "science_hash, keep FROM runs WHERE seed = 6"
    )
    assert row == (
        HEIR.id,
        "disco",
        "catch",
        0.001,
        6,
        60,
        f"transplant(recurrent, donor={DONOR.id[:12]}, clamp)",
        "action-flip",
        30,
        "synthetic",
        29,
        "disco103",
        "0.1.0",
        "abc",
        True,
        "2.6.0",
        1,
        1.25,
        "2026-05-04 03:02:01",
        [DONOR.id],
        3,
        0.997,
        8,
        1,
        migration.SCHEMA,
        made(HEIR).manifest.science_hash,
        "averages, recurrent",
    )
    assert ask("SELECT count(*), count(change), min(len(parents)) FROM runs") == [(3, 1, 0)]


def test_bytes_are_those_on_the_disk(filled: Store, ask: Any) -> None:
    run = sample(0).spec.id
    [[found]] = ask(f"SELECT bytes FROM runs WHERE id = '{run}'")
    assert found == sum(path.stat().st_size for path in filled.folder(run).iterdir())


def test_logs_is_the_union_of_all_columns(ask: Any) -> None:
    rows = ask(
        "SELECT seed, iteration, logs.steps, score, policy, entropy FROM runs JOIN logs USING (id) "
        "WHERE scale = 1 ORDER BY learner, iteration"
    )
    assert rows == [
        (0, 20, 1160, float("inf"), None, 1.0),
        (0, 40, 2320, -1.0, None, 0.0),
        (0, 20, None, 0.25, [0.0, 1.0], None),
        (0, 40, None, None, [2.0, 3.0], None),  # a NaN is NULL, so that averages leave it out
        (0, 60, None, 0.0, [4.0, 5.0], None),
    ]


def test_an_empty_store_has_empty_views(tmp_path: Path) -> None:
    with query.open_database(Store(tmp_path)) as database:
        assert list(database.query("SELECT * FROM runs").rows) == []
        answer = database.query("SELECT id, iteration, steps FROM logs")
        assert (answer.columns, list(answer.rows)) == (["id", "iteration", "steps"], [])


def test_a_missing_store_is_named(store: Store) -> None:
    with pytest.raises(RecordError, match="no such store"), query.open_database(store):
        pass
    assert not store.root.exists()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_blob('/etc/passwd')",
        "SELECT * FROM read_json_auto('/etc/passwd')",
        "SELECT * FROM read_parquet('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM read_csv('https://example.org/x.csv')",
        "SELECT * FROM read_parquet('s3://bucket/x.parquet')",
    ],
)
def test_a_query_has_no_access_to_files_or_network(
    ask: Any, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "socket", None)
    with pytest.raises(RecordError, match="no files, no network") as caught:
        ask(sql)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "sql",
    [
        "COPY runs TO '{out}'",
        "COPY (SELECT 1) TO '{out}' (FORMAT parquet)",
        "EXPLAIN ANALYZE COPY runs TO '{out}'",
        "EXPORT DATABASE '{out}'",
        "ATTACH '{out}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "FORCE INSTALL httpfs FROM 'http://example.org'",
        "SET memory_limit = '100GB'",
        "RESET memory_limit",
        "SET enable_external_access = true",
        "PRAGMA enable_profiling",
        "DROP TABLE runs",
        "DELETE FROM runs",
        "INSERT INTO runs (id) VALUES ('x')",
        "CREATE TABLE mine AS SELECT 1",
        "CREATE SECRET (TYPE s3)",
        "CALL pragma_version()",
        "PREPARE x AS SELECT 1",
        "BEGIN",
        "SELECT 1; COPY runs TO '{out}'",
        "SELECT 1; SELECT 2",
        "",
        "-- nothing",
    ],
)
def test_a_query_changes_nothing(ask: Any, sql: str, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"only reads|one at a time|no files"):
        ask(sql.format(out=tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    assert ask("SELECT count(*) FROM runs") == [(3,)]


def test_a_query_has_no_access_to_the_program(ask: Any) -> None:
    secret = {"x": np.zeros(3)}
    assert secret
    with pytest.raises(RecordError, match="does not exist"):
        ask("SELECT * FROM secret")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT FROM WHERE", r"syntax error"),
        ("SELECT scoree FROM logs", r"\"scoree\".*Candidate bindings.*\"score\""),
        ("SELECT * FROM runz", r"runz.*Did you mean \"runs\""),
        ("SELECT 1 + 'x' FROM runs", r"STRING_LITERAL"),
        ("SELECT nonsense(1)", r"nonsense"),
        ("SELECT * FROM '/etc/passwd'", r"does not exist"),
    ],
)
def test_errors_are_one_clear_line(ask: Any, sql: str, message: str) -> None:
    with pytest.raises(RecordError, match=message) as caught:
        ask(sql)
    assert "\n" not in str(caught.value)


def test_memory_is_limited(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "MEMORY", "20MB")
    monkeypatch.setattr(query, "DISK", "1MB")
    with (
        query.open_database(filled) as database,
        pytest.raises(RecordError, match=r"more than 20MB|select less"),
    ):
        list(database.query("SELECT list(range) FROM range(20000000)").rows)


def test_conditions_select_records(filled: Store) -> None:
    with query.open_database(filled) as database:
        assert database.ids("scale < 1") == [HEIR.id]
        assert database.ids("seed = 6 -- a comment") == [HEIR.id]
        assert len(database.ids("true")) == 3
        with pytest.raises(RecordError, match="syntax"):
            database.ids("seed =")
        with pytest.raises(RecordError, match="one at a time"):
            database.ids("true); DROP TABLE runs; SELECT (1")


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_an_export_is_written_whole(filled: Store, tmp_path: Path, ending: str) -> None:
    path = tmp_path / "deep" / f"it's.{ending}"
    with query.open_database(filled) as database:
        assert database.export("SELECT id, iteration, score FROM logs", path) == 8
        first = path.read_bytes()
        with pytest.raises(RecordError, match=r"Conversion Error"):
            database.export("SELECT CAST(id AS INTEGER) FROM logs", path)
        assert path.read_bytes() == first
        assert database.export("SELECT 1 WHERE false", path) == 0
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_parquet_export_can_be_read_by_others(filled: Store, tmp_path: Path) -> None:
    import duckdb

    with query.open_database(filled) as database:
        database.export("FROM logs", tmp_path / "x.parquet")
        expected = list(database.query("SELECT count(*), max(score) FROM logs").rows)
    path = tmp_path / "x.parquet"
    found = duckdb.connect().execute(f"SELECT count(*), max(score) FROM '{path}'").fetchall()
    assert found == expected


def test_an_export_has_one_of_three_formats(filled: Store, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"\.parquet, \.csv or \.json"):
        query.export_format(tmp_path / "x.txt")
    with query.open_database(filled) as database:
        path = tmp_path / "x.json"
        rows = database.export("SELECT id, score FROM logs ORDER BY ALL", path)
        expected = list(database.query("SELECT id, score FROM logs ORDER BY ALL").rows)
    found = json.loads(path.read_text())
    assert rows == len(found) == len(expected)
    for row, (run, score) in zip(found, expected, strict=True):
        assert row["id"] == run
        assert row["score"] == (score if score is not None and np.isfinite(score) else None)


def test_a_json_export_that_fails_leaves_the_file_as_it_was(filled: Store, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("before")
    with query.open_database(filled) as database:
        with pytest.raises(RecordError, match=r"^query: "):
            database.export("SELECT if(i > 15000, error('no'), i) FROM range(20000) t(i)", path)
        with pytest.raises(RecordError, match="a query only reads"):
            database.export("COPY runs TO 'x.csv'", path)
    assert path.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir() if each.name.endswith("json")] == ["x.json"]


def test_column_names_that_differ_in_case_stay_distinct(store: Store) -> None:
    odd = {
        "score": np.array([1.0]),
        "Score": np.array([2.0]),
        "SCORE": np.array([3.0]),
        'say "x"; DROP': np.array([4.0]),
        "id": np.array([5.0]),
        "50%": np.array([6.0]),
        "ümlaut": np.array([7.0]),
    }
    store.commit(made(DONOR, **odd))
    with query.open_database(store) as database:
        answer = database.query("SELECT * FROM logs")
        [row] = answer.rows
        found = dict(zip(answer.columns, row, strict=True))
    assert found["id"] == DONOR.id
    numbers = [value for value in found.values() if isinstance(value, float)]
    assert sorted(numbers) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert found['say "x"; DROP'] == 4.0
    assert found["50%"] == 6.0


def test_a_column_of_different_types_becomes_text(store: Store) -> None:
    store.commit(made(DONOR, iteration=np.array([1.0]), note=np.array([2.5])))
    store.commit(made(HEIR, iteration=np.array([1.0]), note=np.array(["hé\ud800"])))
    with query.open_database(store) as database:
        rows = list(database.query("SELECT note FROM logs ORDER BY 1").rows)
    assert rows == [("2.5",), ("hé?",)]


def test_interventions_are_described_in_one_line() -> None:
    assert describe_intervention(Pin(carrier="recurrent")) == "pin(recurrent)"
    assert describe_intervention(Freeze(carrier="averages", at=300)) == "freeze(averages, at=300)"


def test_pandas_and_pyarrow_are_not_needed(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    with query.open_database(filled) as database:
        assert list(database.query("SELECT count(*) FROM logs").rows) == [(8,)]


def test_spec_fields_have_predictable_names(ask: Any) -> None:
    names = {row[0] for row in ask("DESCRIBE runs")}
    fields = {field.name for field in msgspec.structs.fields(RunSpec)} - {"schema"}
    assert fields <= names
    assert {"learner_learning_rate", "learner_conventions_retrace", "environment_drift"} <= names
    assert "signature" not in names
