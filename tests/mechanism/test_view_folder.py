"""A results folder is complete, reproducible, and refused once it was changed."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mechanism.sample_observations import TRAJECTORY, trajectory_observations
from rulescope.core import arrays
from rulescope.core.errors import RecordError
from rulescope.mechanism import trajectory_view
from rulescope.mechanism.view_folder import (
    DATA,
    folder_name,
    read_files,
    read_view,
    view_folders,
    write_view,
)
from rulescope.mechanism.view_request import ViewRequest
from rulescope.mechanism.views import VIEWS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("results") / "mechanism-trajectory-random-0"
    observations = trajectory_observations()
    write_view(
        trajectory_view.VIEW,
        TRAJECTORY,
        trajectory_view.analyse(TRAJECTORY, observations),
        observations,
        home,
    )
    return home


def test_the_folder_has_the_indexed_files_and_no_others(folder: Path) -> None:
    index = json.loads((folder / "results.json").read_text())
    assert sorted([*index["files"], "results.json"]) == sorted(p.name for p in folder.iterdir())
    assert {"README.md", DATA, "mechanism-trajectory.csv"} <= set(index["files"])
    data = arrays.read(folder / DATA)
    assert index["data"] == arrays.digest(data)
    assert data["path/live/0.1/1"].shape == (160, 3)


def test_the_index_names_the_lifetimes_behind_the_data(folder: Path) -> None:
    made = json.loads((folder / "results.json").read_text())["made"]
    one = made["runs"]["cross/0.001/0"]
    assert one["spec"]["interventions"][0]["operation"] == "transplant"
    assert one["id"] == trajectory_view.stages(TRAJECTORY)[1][0].runs["cross/0.001/0"].id
    assert len(made["runs"]) == 10 + 8
    assert made["moments"][-1] == 160
    assert one["source"] == {"version": "made up"}


def test_writing_again_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    observations = trajectory_observations()
    paths = write_view(
        trajectory_view.VIEW,
        TRAJECTORY,
        trajectory_view.analyse(TRAJECTORY, observations),
        observations,
        tmp_path,
    )
    for path in paths:
        assert path.read_bytes() == (folder / path.name).read_bytes(), path.name


def test_a_stored_view_has_title_caption_figures_and_tables(folder: Path) -> None:
    assert view_folders(folder.parent) == [folder]
    found = read_view(folder)
    assert found.title == trajectory_view.VIEW.title
    assert "principal coordinates" in found.caption
    assert [path.suffix for path in found.figures] == [".pdf", ".svg", ".png"]
    assert [path.suffix for path in found.tables] == [".csv", ".md", ".tex"]
    assert all(path.is_file() for path in (*found.figures, *found.tables))


def test_views_that_were_stored_by_earlier_versions_are_read() -> None:
    """In the replay view of the replication, the arm of the rule is still called ``disco``."""
    folders = view_folders(Path(__file__).parents[2] / "replication" / "results")
    found = {path.name: read_view(path) for path in folders}
    assert set(found) == {"mechanism-replay", "mechanism-targets", "mechanism-trajectory"}
    assert found["mechanism-replay"].table.rows[0][0] == "disco"
    assert all(read_files(view) for view in found.values())


def test_every_file_has_its_hash(folder: Path) -> None:
    index = json.loads((folder / "results.json").read_text())
    assert sorted(index["sha256"]) == index["files"]
    for name, digest in index["sha256"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert sorted(read_files(read_view(folder))) == sorted(
        f"mechanism-trajectory.{ending}" for ending in ("pdf", "svg", "png", "csv", "md", "tex")
    )


@pytest.mark.parametrize("name", ["README.md", DATA, "mechanism-trajectory.csv"])
def test_a_changed_or_missing_file_is_an_error(name: str, folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    with (copy / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(
        RecordError, match=f"{name}: changed since it was written; run the view again"
    ):
        read_files(read_view(copy))
    (copy / name).unlink()
    with pytest.raises(RecordError, match=f"{name}: missing; run the view again"):
        read_view(copy)


def _cell(index: dict[str, Any]) -> None:
    index["table"]["rows"][0][1] += 1e-9


def _caption(index: dict[str, Any]) -> None:
    index["caption"] = "Something else."


def _hash(index: dict[str, Any]) -> None:
    index["made"]["runs"]["live/1/0"]["science_hash"] = "1" * 64


def _without_seal(index: dict[str, Any]) -> None:
    del index["seal"]


@pytest.mark.parametrize("change", [_cell, _caption, _hash, _without_seal])
def test_a_changed_index_is_an_error(
    change: Callable[[dict[str, Any]], None], folder: Path, tmp_path: Path
) -> None:
    """A report shows the content of the index, so it must agree with the files beside it."""
    copy = shutil.copytree(folder, tmp_path / "copy")
    index = json.loads((copy / "results.json").read_text())
    (copy / "results.json").write_text(json.dumps(index))  # another layout, the same content
    assert read_view(copy).title == read_view(folder).title
    change(index)
    (copy / "results.json").write_text(json.dumps(index))
    with pytest.raises(RecordError, match=r"results\.json: changed, .* observations are reused"):
        read_view(copy)


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "[]",
        '{"assay": "E1", "files": []}',
        '{"view": "x", "title": "", "question": "", "caption": "", "files": ["../a.png"]}',
    ],
)
def test_other_results_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(RecordError, match=r"results\.json: not the results of a mechanism view"):
        read_view(tmp_path)


def test_an_empty_folder_has_no_view(tmp_path: Path) -> None:
    assert view_folders(tmp_path) == []
    with pytest.raises(RecordError, match="cannot be read"):
        read_view(tmp_path)


def test_folders_are_named_after_view_and_rule() -> None:
    view = VIEWS["replay"]
    assert folder_name(view, view.default_request) == "mechanism-replay"
    other = ViewRequest("random:0", (1.0,), 1, 80)
    assert folder_name(view, other) == "mechanism-replay-random-0"
