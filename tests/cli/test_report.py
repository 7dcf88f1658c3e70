"""``rulescope report``: from the command line to a folder of pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import invoke
from made_up_records import fill
from report.site_samples import profile
from rulescope import assays
from rulescope.assays.plan import Plan
from rulescope.core.errors import RecordError, SpecError
from rulescope.records import Store

MINATAR = assays.ASSAYS["M1"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with all of one assay at its smallest."""
    folder = tmp_path / "store"
    fill(Store(folder), list(Plan.of(MINATAR, MINATAR.budget("smoke")).runs.values()))
    return folder


def test_a_store_becomes_a_report(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = invoke("report", "--store", store, "--out", out, "--json")
    body = json.loads(result.stdout)
    assert body["front"] == str(out / "index.html")
    assert body["assays"]["M1"]["done"] == body["assays"]["M1"]["runs"] == 4
    assert (out / body["assays"]["M1"]["page"]).is_file()
    files = [path for path in out.rglob("*") if path.is_file() and path.name[0] != "."]
    assert body["files"] == len(files)
    assert body["bytes"] == sum(path.stat().st_size for path in files)
    for stage in ("reading: 4/4", "drawing: ", "writing: "):
        assert stage in result.stderr


def test_bad_input_is_refused_before_anything_is_written(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for error, arguments in (
        (SpecError, ("--store", store, "--preset", "quik")),
        (RecordError, ("--store", tmp_path / "nowhere")),
    ):
        with pytest.raises(error, match=r"quik.*nearest: 'quick'|no such store"):
            invoke("report", "--out", out, *arguments)
    assert not out.exists()


def test_a_folder_with_other_things_in_it_is_refused_at_once(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    with pytest.raises(RecordError, match="no report"):
        invoke("report", "--store", store, "--out", out)
    assert [path.name for path in out.iterdir()] == ["notes.txt"]


def test_a_damaged_record_is_a_warning(store: Path, tmp_path: Path) -> None:
    run = next(Store(store).ids())
    (Store(store).folder(run) / "log.npz").write_bytes(b"rubbish")
    out = tmp_path / "out"
    result = invoke("report", "--store", store, "--out", out, "--json")
    assert f"warning: run {run[:12]} left out" in result.stderr
    assert list(json.loads(result.stdout)["problems"]) == [run]
    assert run[:12] in (out / "provenance.html").read_text()


def test_a_file_that_is_no_profile_is_a_warning(store: Path, tmp_path: Path) -> None:
    results, out = tmp_path / "results", tmp_path / "out"
    for name, content in (("bad", b"{}"), ("good", profile().to_json())):
        (results / name).mkdir(parents=True)
        (results / name / "profile.json").write_bytes(content)
    result = invoke("report", "--store", store, "--out", out, "--results", results, "--json")
    assert "warning: bad left out: bad/profile.json: not a profile" in result.stderr
    body = json.loads(result.stdout)
    assert body["profiles"] == ["good"]
    assert list(body["damaged"]) == ["bad"]
    assert "bad/profile.json: not a profile" in (out / "provenance.html").read_text()


def test_a_damaged_mechanism_folder_is_a_warning(store: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results" / "mechanism-targets"
    folder.mkdir(parents=True)
    (folder / "results.json").write_text('{"view": "targets"')
    out = tmp_path / "out"
    words = ("report", "--store", store, "--out", out, "--results", tmp_path / "results", "--json")
    result = invoke(*words)
    assert "warning: mechanism-targets left out: mechanism-targets/results.json" in result.stderr
    body = json.loads(result.stdout)
    assert list(body["damaged"]) == ["mechanism-targets"]
    assert body["views"] == {}
    assert "mechanism-targets" in (out / "provenance.html").read_text()
