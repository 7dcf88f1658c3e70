"""``rulescope records``."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import command_line
from made_up_records import made_up
from rulescope.cli import records_transfer
from rulescope.core.errors import RecordError
from rulescope.records import Record, Store
from rulescope.run_spec import RunSpec, Transplant

DONOR = RunSpec(iterations=100, seed=0)
RECIPIENT = RunSpec(
    iterations=100,
    seed=1,
    interventions=(Transplant(carrier="recurrent", donor=DONOR, mode="natural"),),
)


def invoke(*arguments: str | Path, code: int = 0, text: str | None = None) -> Result:
    return command_line.invoke("records", *arguments, code=code, text=text)


def invoke_json(*arguments: str | Path) -> Any:
    return command_line.invoke_json("records", *arguments)


def recipient() -> Record:
    plain = made_up(RECIPIENT)
    return Record.make(
        RECIPIENT,
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
    keep.commit(recipient())
    return keep.root


def test_query_as_table_json_csv_and_file(store: Path, tmp_path: Path) -> None:
    sql = "SELECT seed, scale, interventions, count(*) AS n FROM runs JOIN logs USING (id) "
    sql += "GROUP BY ALL ORDER BY seed"
    table = invoke("query", sql, "--store", store).stdout.splitlines()
    assert table[0].split() == ["seed", "scale", "interventions", "n"]
    assert table[1].split() == ["0", "1", "5"]
    found = invoke_json("query", sql, "--store", store)
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
def test_query_errors_are_one_line(store: Path, sql: str) -> None:
    with pytest.raises(RecordError, match=r"^query: "):
        invoke("query", sql, "--store", store)


def test_query_options_exclude_one_another(store: Path) -> None:
    with pytest.raises(RecordError, match="exclude"):
        invoke("query", "FROM runs", "--store", store, "--json", "--csv")
    with pytest.raises(RecordError, match=r"\.parquet, \.csv or \.json"):
        invoke("query", "FROM runs", "--store", store, "--export", "x.txt")


@pytest.fixture
def results(store: Path, tmp_path: Path) -> Path:
    """A results folder made from the two records of the store, one of which has changed since."""
    scale = {"quantity": "score", "low": 0.1, "high": 0.4, "n": 2, "draws": 100, "family": 1}
    scale |= {"method": "bootstrap", "seeds": [0.1, None], "other_grid": False}
    estimates = {
        f"score/catch/{arm}/1": scale
        | {"labels": {"task": "catch", "arm": arm, "scale": 1.0}, "value": value}
        for arm, value in (("live", 0.25), ("made-up", None))
    }
    body = {"assay": "E1", "rule": "random:0", "agent": "published", "iterations": 100}
    keep = Store(store)
    runs = {DONOR.id: keep.read(DONOR.id).manifest.science_hash, RECIPIENT.id: "f" * 64}
    folder = tmp_path / "results" / "E1-random-0"
    folder.mkdir(parents=True)
    (folder / "results.json").write_text(json.dumps(body | {"estimates": estimates, "runs": runs}))
    return folder.parent


def test_a_query_joins_estimates_with_the_records_behind_them(store: Path, results: Path) -> None:
    sql = """SELECT arm, value, published_value, count(*) AS runs, sum(seconds) AS seconds
        FROM estimates JOIN estimate_runs USING (folder, assay) JOIN runs USING (id, scale)
        GROUP BY ALL ORDER BY arm"""
    found = invoke_json("query", sql, "--store", store, "--results", results)
    seconds = sum(Store(store).read(each.id).manifest.seconds for each in (DONOR, RECIPIENT))
    common = {"runs": 2, "seconds": seconds}
    assert found == [
        {"arm": "live", "value": 0.25, "published_value": 0.994} | common,
        {"arm": "made-up", "value": None, "published_value": None} | common,
    ]


def test_queries_in_the_documentation_work(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "store.md").read_text(encoding="utf-8")
    block = r'^    rulescope (records query "[^"]*[^\n]*)$'
    commands = re.findall(block, page, flags=re.MULTILINE)
    assert len(commands) == 6
    monkeypatch.chdir(results.parent)  # where the folders have their usual names
    for command in commands:
        invoke(*shlex.split(command)[1:])
    [row] = json.loads(invoke(*shlex.split(commands[-1])[1:], "--json").stdout)
    assert row == {"folder": "E1-random-0", "used": 2, "in_store": 2, "differ": 1}


def test_results_are_read_only_for_a_query_that_needs_them(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = results / "E1-random-0" / "results.json"
    path.write_text("{}")
    monkeypatch.chdir(results.parent)
    assert invoke("query", "SELECT count(*) FROM runs", "--csv").stdout.splitlines()[1] == "2"
    with pytest.raises(
        RecordError, match=r"^--results: .*results\.json: not the results of an assay"
    ):
        invoke("query", "FROM estimates")
    with pytest.raises(RecordError, match=r"^--results: .*: not the results of an assay"):
        invoke("query", "FROM runs", "--results", "results")


def test_a_query_for_estimates_without_results_names_the_option(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # without a folder of the usual name
    for table in ("estimates", "estimate_runs"):
        with pytest.raises(RecordError, match=r"no estimates: .* with --results DIR"):
            invoke("query", f"FROM {table}", "--store", store)
    with pytest.raises(RecordError, match=r"^--results: nowhere: no such folder"):
        invoke("query", "FROM estimates", "--results", "nowhere")


def test_estimates_are_exported_as_json(store: Path, results: Path, tmp_path: Path) -> None:
    sql, path = "SELECT arm, value, seeds FROM estimates ORDER BY arm", tmp_path / "found.json"
    done = invoke("query", sql, "--store", store, "--results", results, "--out", path)
    assert "2 rows" in done.stderr
    assert json.loads(path.read_text()) == [
        {"arm": "live", "value": 0.25, "seeds": [0.1, None]},
        {"arm": "made-up", "value": None, "seeds": [0.1, None]},
    ]
    invoke("query", "FROM runs WHERE false", "--store", store, "--out", path)
    assert json.loads(path.read_text()) == []


def test_query_warns_of_records_that_are_left_out(store: Path) -> None:
    (Store(store).folder(RECIPIENT.id) / "log.npz").write_bytes(b"")
    done = invoke("query", "SELECT count(*) FROM runs", "--store", store, "--csv", code=1)
    assert done.stdout.splitlines()[1] == "1"
    assert "left out" in done.stderr


def test_help_has_examples() -> None:
    text = invoke("query", "--help").stdout
    assert text.count('rulescope records query "') == 4


def test_show_takes_the_beginning_of_an_id(store: Path) -> None:
    text = invoke("show", RECIPIENT.id[:8], "--store", store, "--rows", "2").stdout
    assert RECIPIENT.id in text
    assert f"transplant(recurrent, donor={DONOR.id[:12]}, natural)" in text
    assert "[bold]red" in text
    assert "\x1b" not in text
    assert ["iteration", "80", "100"] in [line.split() for line in text.splitlines()]
    body = invoke_json("show", RECIPIENT.id, "--store", store, "--rows", "1")
    assert body["manifest"]["parents"] == [DONOR.id]
    assert body["log"]["iteration"] == [100.0]
    with pytest.raises(RecordError, match="not the beginning"):
        invoke("show", "../x", "--store", store)


def test_size_by_part_and_kind(store: Path) -> None:
    (store / "tmp" / "rubbish").write_bytes(b"0" * 1234)
    body = invoke_json("size", "--store", store)
    assert body["parts"]["tmp"]["bytes"] == 1234
    [group] = body["records"]
    assert (group["learner"], group["environment"], group["entries"]) == ("disco", "catch", 2)
    assert group["bytes"] == body["parts"]["runs"]["bytes"]
    assert "1.2 kB" in invoke("size", "--store", store).stdout


def test_export_and_import(store: Path, tmp_path: Path) -> None:
    archive, other = tmp_path / "x.tar.gz", tmp_path / "other"
    done = invoke("export", archive, "--where", "seed = 1", "--store", store)
    assert "1 record," in done.stdout
    assert "1 new record," in invoke("import", archive, "--store", other).stdout
    body = invoke_json("import", store, "--store", other)
    assert (body["new"], body["same"]) == ([DONOR.id], 1)
    invoke("export", tmp_path / "y.zip", DONOR.id[:9], "--store", store)
    assert (
        "0 new records, 1 already" in invoke("import", tmp_path / "y.zip", "--store", other).stdout
    )


def test_a_conflict_is_reported_with_exit_code_one(store: Path, tmp_path: Path) -> None:
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


def test_deletion_needs_confirmation(store: Path) -> None:
    with pytest.raises(RecordError, match=r"would delete 1 record of .*--yes"):
        invoke("delete", DONOR.id, "--store", store)
    with pytest.raises(RecordError, match="name records, or"):
        invoke("delete", "--yes", "--store", store)
    with pytest.raises(RecordError, match="not both"):
        invoke("delete", DONOR.id, "--where", "true", "--yes", "--store", store)
    assert len(list(Store(store).ids())) == 2


def test_deletion_warns_of_recipients(store: Path) -> None:
    done = invoke("delete", DONOR.id[:10], "--yes", "--store", store)
    assert "1 other record started from the state" in done.stderr
    assert "deleted 1 record of" in done.stdout
    assert list(Store(store).ids()) == [RECIPIENT.id]
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


def test_a_relative_store_can_be_queried(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(store.parent)
    for _ in range(2):
        done = invoke("query", "SELECT count(*) AS n FROM logs", "--store", "store", "--csv")
        assert done.stdout == "n\n10\n"


def test_leftovers_are_listed_and_removed_and_records_stay(store: Path) -> None:
    ids = list(Store(store).ids())
    leftover = store / "tmp" / "0123-dead"
    leftover.mkdir(parents=True, exist_ok=True)
    os.utime(leftover, (0, 0))
    quarantined = store / "quarantine" / f"{'0' * 64}-1"
    quarantined.mkdir(parents=True)
    listed = invoke("clean", "--dry-run", "--store", store).stdout
    assert "1 leftover of 0 B would be removed" in listed
    assert leftover.exists()
    body = invoke_json("clean", "--store", store)
    assert [each["path"] for each in body["leftovers"]] == ["tmp/0123-dead"]
    assert not leftover.exists()
    assert quarantined.exists()
    assert "1 leftover" in invoke("clean", "--quarantine", "--store", store).stdout
    assert not quarantined.exists()
    assert Store(store).verify() == []
    assert list(Store(store).ids()) == ids


def test_cleaning_a_store_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no such store"):
        invoke("clean", "--store", tmp_path / "nowhere")
