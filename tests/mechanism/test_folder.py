"""A results folder: whole, the same every time, and shown by whoever finds it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mechanism.samples import PATHS, seen_paths
from rulescope.core import arrays
from rulescope.core.errors import RecordError
from rulescope.mechanism import trajectory_view
from rulescope.mechanism.view_folder import DATA, content, exhibit, folder_name, folders, write
from rulescope.mechanism.view_request import Inquiry
from rulescope.mechanism.views import VIEWS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("results") / "mechanism-trajectory-random-0"
    seen = seen_paths()
    write(trajectory_view.VIEW, PATHS, trajectory_view.analyse(PATHS, seen), seen, home)
    return home


def test_everything_is_there_and_nothing_else(folder: Path) -> None:
    index = json.loads((folder / "results.json").read_text())
    assert sorted([*index["files"], "results.json"]) == sorted(p.name for p in folder.iterdir())
    assert {"README.md", DATA, "mechanism-trajectory.csv"} <= set(index["files"])
    data = arrays.read(folder / DATA)
    assert index["data"] == arrays.digest(data)
    assert data["path/live/0.1/1"].shape == (160, 3)


def test_the_index_tells_what_made_the_data(folder: Path) -> None:
    made = json.loads((folder / "results.json").read_text())["made"]
    one = made["runs"]["cross/0.001/0"]
    assert one["spec"]["interventions"][0]["operation"] == "transplant"
    assert one["id"] == trajectory_view.stages(PATHS)[1][0].runs["cross/0.001/0"].id
    assert len(made["runs"]) == 10 + 8
    assert made["moments"][-1] == 160
    assert one["source"] == {"version": "made up"}


def test_writing_again_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    seen = seen_paths()
    paths = write(trajectory_view.VIEW, PATHS, trajectory_view.analyse(PATHS, seen), seen, tmp_path)
    for path in paths:
        assert path.read_bytes() == (folder / path.name).read_bytes(), path.name


def test_an_exhibit_has_all_that_is_shown(folder: Path) -> None:
    assert folders(folder.parent) == [folder]
    found = exhibit(folder)
    assert found.title == trajectory_view.VIEW.title
    assert "principal coordinates" in found.caption
    assert [path.suffix for path in found.figures] == [".pdf", ".svg", ".png"]
    assert [path.suffix for path in found.tables] == [".csv", ".md", ".tex"]
    assert all(path.is_file() for path in (*found.figures, *found.tables))


def test_every_file_has_its_hash(folder: Path) -> None:
    index = json.loads((folder / "results.json").read_text())
    assert sorted(index["sha256"]) == index["files"]
    for name, digest in index["sha256"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert sorted(content(exhibit(folder))) == sorted(
        f"mechanism-trajectory.{ending}" for ending in ("pdf", "svg", "png", "csv", "md", "tex")
    )


@pytest.mark.parametrize("name", ["README.md", DATA, "mechanism-trajectory.csv"])
def test_a_file_that_was_changed_or_lost_is_told(name: str, folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    with (copy / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(RecordError, match=f"{name}: not as it was written; run the view again"):
        content(exhibit(copy))
    (copy / name).unlink()
    with pytest.raises(RecordError, match=f"{name}: missing; run the view again"):
        exhibit(copy)


def _cell(index: dict[str, Any]) -> None:
    index["table"]["rows"][0][1] += 1e-9


def _caption(index: dict[str, Any]) -> None:
    index["caption"] = "Something else."


def _hash(index: dict[str, Any]) -> None:
    index["made"]["runs"]["live/1/0"]["science_hash"] = "1" * 64


def _of_before(index: dict[str, Any]) -> None:
    del index["seal"]


@pytest.mark.parametrize("change", [_cell, _caption, _hash, _of_before])
def test_an_index_that_was_changed_is_told(
    change: Callable[[dict[str, Any]], None], folder: Path, tmp_path: Path
) -> None:
    """What a report shows comes from the index: it must be what the files beside it say."""
    copy = shutil.copytree(folder, tmp_path / "copy")
    index = json.loads((copy / "results.json").read_text())
    (copy / "results.json").write_text(json.dumps(index))  # laid out otherwise, it says the same
    assert exhibit(copy).title == exhibit(folder).title
    change(index)
    (copy / "results.json").write_text(json.dumps(index))
    with pytest.raises(RecordError, match=r"results\.json: not as .* looks at nothing twice"):
        exhibit(copy)


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "[]",
        '{"assay": "E1", "files": []}',
        '{"view": "x", "title": "", "question": "", "caption": "", "files": ["../a.png"]}',
    ],
)
def test_what_is_no_such_folder_is_told(text: str, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(RecordError, match=r"results\.json: not the results of a mechanism view"):
        exhibit(tmp_path)


def test_an_empty_folder_shows_nothing(tmp_path: Path) -> None:
    assert folders(tmp_path) == []
    with pytest.raises(RecordError, match="cannot be read"):
        exhibit(tmp_path)


def test_folders_are_named_after_view_and_rule() -> None:
    view = VIEWS["replay"]
    assert folder_name(view, view.default) == "mechanism-replay"
    other = Inquiry("random:0", (1.0,), 1, 80)
    assert folder_name(view, other) == "mechanism-replay-random-0"
