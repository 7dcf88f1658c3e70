"""Estimates of results folders as tables, and the reading of foreign folders."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import duckdb
import pytest

from made_up_records import fill
from rulescope.assays import ASSAYS, published, stored_estimates
from rulescope.assays.plan import Plan, write
from rulescope.assays.stored_estimates import (
    ESTIMATE_COLUMNS,
    estimate_columns,
    make_tables,
    read_results,
)
from rulescope.core.errors import RecordError
from rulescope.records import Store

ESTIMATE = {
    "quantity": "score",
    "labels": {"task": "catch", "arm": "live", "scale": 0.001},
    "value": 0.5,
    "low": None,
    "high": None,
    "n": 1,
    "draws": 0,
    "family": 1,
    "method": "none",
    "seeds": None,
    "other_grid": False,
}
NAME = "score/catch/live/0.001"


def body(**changes: Any) -> dict[str, Any]:
    whole = {"assay": "E1", "rule": "sprout", "agent": "published", "iterations": 40}
    return whole | {"estimates": {NAME: ESTIMATE}, "runs": {"a" * 64: "b" * 64}} | changes


def put(root: Path, folder: str, content: str) -> Path:
    path = root / folder / "results.json"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    return path


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a small assay, made from made-up records and written twice."""
    root = tmp_path_factory.mktemp("written")
    assay, store = ASSAYS["E-LR"], Store(root / "store")
    budget = assay.budget("smoke")
    fill(store, list(Plan.of(assay, budget).runs.values()))
    plan = Plan.of(assay, budget, store)
    for name in ("first", "second"):
        write(plan, plan.analyse(store), store, root / name / "E-LR", (), alone=True)
    return root


def test_a_results_folder_has_its_estimates_as_a_typed_table(written: Path) -> None:
    folder = written / "first" / "E-LR"
    data = json.loads((folder / "results.json").read_text())
    found = duckdb.read_parquet(str(folder / "estimates.parquet"))
    types = dict(zip(found.columns, map(str, found.types), strict=True))
    assert (types["value"], types["n"], types["rate"], types["arm"], types["seeds"]) == (
        "DOUBLE",
        "BIGINT",
        "DOUBLE",
        "VARCHAR",
        "DOUBLE[]",
    )
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
    assert [row["name"] for row in rows] == list(data["estimates"])
    printed = published.estimates("E-LR")
    labels = {label for one in data["estimates"].values() for label in one["labels"]}
    assert any(row["published_value"] is not None for row in rows)
    for row in rows:
        one = data["estimates"][row["name"]]
        for key in ("quantity", "value", "low", "high", "n", "draws", "family", "method", "seeds"):
            assert row[key] == one[key]
        assert {label: row[label] for label in labels} == dict.fromkeys(labels) | one["labels"]
        theirs = printed.get(row["name"])
        assert row["published_value"] == (None if theirs is None else theirs.value)


def test_the_same_results_give_the_same_bytes(written: Path) -> None:
    files = [written / name / "E-LR" / "estimates.parquet" for name in ("first", "second")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_tables_hold_all_folders_and_their_runs(written: Path, tmp_path: Path) -> None:
    put(tmp_path, "audit-x/E1", json.dumps(body()))
    put(tmp_path, "mechanism-targets", json.dumps({"view": "targets", "estimates": {}}))
    (tmp_path / "E-LR").mkdir()
    index = written / "first" / "E-LR" / "results.json"
    (tmp_path / "E-LR" / "results.json").write_bytes(index.read_bytes())
    data = json.loads(index.read_text())
    tables = make_tables(tmp_path)
    folders = [row["t:folder"] for row in tables["estimates"].rows]
    assert folders == ["E-LR"] * len(data["estimates"]) + ["audit-x/E1"]
    assert [row["t:id"] for row in tables["estimate_runs"].rows] == [*data["runs"], "a" * 64]
    assert {"arm", "rate", "scale", "task"} <= set(tables["estimates"].columns)


def test_a_folder_without_results_gives_empty_tables(tmp_path: Path) -> None:
    tables = make_tables(tmp_path)
    assert [len(table.rows) for table in tables.values()] == [0, 0]
    assert tuple(tables["estimates"].columns) == ESTIMATE_COLUMNS


def test_a_label_with_the_name_of_another_column_has_a_column_of_its_own(tmp_path: Path) -> None:
    odd = ESTIMATE | {"labels": {"value": "x", "Arm": "y"}}
    put(tmp_path, "E1", json.dumps(body(estimates={"score/x/y": odd})))
    [row] = make_tables(tmp_path)["estimates"].rows
    assert (row["f:value"], row["t:label_value"], row["t:%41;rm"]) == (0.5, "x", "y")


def test_labels_of_published_rows_are_plain_columns() -> None:
    rows = [row for row in published.rows() if row.assay in ASSAYS]
    labels = {label for row in rows for label in row.labels}
    assert not labels & set(ESTIMATE_COLUMNS)
    assert {label.lower() for label in labels} == labels


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not the results of an assay"),
        ("[]", "not the results of an assay"),
        ("[" * 100_000, "not the results of an assay"),
        (
            json.dumps(body(estimates={NAME: ESTIMATE | {"n": "3"}})),
            "estimates.*run the assay again",
        ),
        (json.dumps(body(estimates={NAME: {"value": 1.0}})), "missing required field `quantity`"),
        (json.dumps(body(runs={"../x": "b" * 64})), "matching regex"),
        (json.dumps(body()).replace("0.5", "1e999"), "not the results of an assay"),
    ],
)
def test_a_bad_file_is_an_error_that_names_it(tmp_path: Path, content: str, message: str) -> None:
    path = put(tmp_path, "bad", content)
    with pytest.raises(RecordError, match=message) as caught:
        read_results(tmp_path)
    assert str(caught.value).startswith(f"{path}: ")


def test_links_pipes_and_large_files_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = put(tmp_path, "good/E1", json.dumps(body()))
    link = tmp_path / "linked" / "x" / "results.json"
    link.parent.mkdir(parents=True)
    link.symlink_to(good)
    with pytest.raises(RecordError, match="not a regular file"):
        read_results(tmp_path / "linked")
    link.unlink()
    os.mkfifo(link)
    with pytest.raises(RecordError, match="not a regular file"):
        read_results(tmp_path / "linked")
    monkeypatch.setattr(stored_estimates, "MAX_BYTES", 10)
    with pytest.raises(RecordError, match="too large"):
        read_results(tmp_path / "good")
    monkeypatch.setattr(stored_estimates, "MAX_FOLDERS", 0)
    with pytest.raises(RecordError, match="more than 0 results folders"):
        read_results(tmp_path / "good")


def test_too_many_labels_are_refused(tmp_path: Path) -> None:
    many = ESTIMATE | {"labels": {f"label{i}": 1.0 for i in range(stored_estimates.MAX_LABELS + 1)}}
    put(tmp_path, "E1", json.dumps(body(estimates={NAME: many})))
    with pytest.raises(RecordError, match="different labels: too many"):
        estimate_columns(read_results(tmp_path).values())
