"""Mechanism views in a report: shown whole, traceable to lifetimes, or left out and listed."""

from __future__ import annotations

import hashlib
import html
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from report.page_parser import Page
from report.site_samples import (
    ASKED,
    ELSEWHERE,
    OTHERWISE,
    RECIPIENT,
    WATCHED,
    gathered,
    stored,
)
from rulescope.render.tables import cell
from rulescope.report import explorer_data, publication, report_inputs, site_builder
from rulescope.report.provenance_page import provenance_page
from rulescope.report.site_model import Site

SLUGS = ["mechanism-trajectory-random-0", "mechanism-trajectory-random-3"]
LABEL = "mechanism-trajectory"


def test_two_rules_of_one_view_are_two_places(found: Site, report: Path) -> None:
    assert [view.slug for view in found.views] == SLUGS
    assert [view.exhibit.rule for view in found.views] == [ASKED.rule, OTHERWISE.rule]
    page = Page(report / "mechanism.html")
    assert [name for name in page.ids if name in SLUGS] == SLUGS
    front = Page(report / "index.html")
    assert [f"mechanism.html#{slug}" in front.links for slug in SLUGS] == [True, True]


def test_folders_whose_names_give_the_same_slug_are_distinguished(
    results: Path, tmp_path: Path
) -> None:
    for name in ("mechanism-a b", "mechanism-a-b"):
        shutil.copytree(results / SLUGS[0], tmp_path / name)
    views, _ = report_inputs.find_views(tmp_path)
    assert [view.slug for view in views] == ["mechanism-a-b", "mechanism-a-b-2"]


def test_a_view_is_shown_with_its_question_figure_table_and_files(
    found: Site, report: Path
) -> None:
    text = html.unescape((report / "mechanism.html").read_text())
    page = Page(report / "mechanism.html")
    for view in found.views:
        what = view.exhibit
        for words in (what.title, what.question, what.caption, what.rule, "0.1, 10", "40"):
            assert words in text
        for ending in ("svg", "pdf", "png", "csv", "md", "tex"):
            assert f"publication/{view.slug}/{LABEL}.{ending}" in page.links
        pairs = [zip(row, what.table.columns, strict=True) for row in what.table.rows]
        rows = [[cell(value, column) for value, column in pair] for pair in pairs]
        assert [[column.heading for column in what.table.columns], *rows] in page.tables


def test_the_table_reads_as_its_markdown_does(found: Site) -> None:
    [view, _] = found.views
    text = view.files[f"{LABEL}.md"].decode()
    for row in view.exhibit.table.rows:
        said = (cell(v, c) for v, c in zip(row, view.exhibit.table.columns, strict=True))
        assert f"| {' | '.join(said)} |" in text


def test_lifetimes_are_linked_where_the_store_has_them(found: Site, report: Path) -> None:
    page = Page(report / "mechanism.html")
    rows = {row[1][:12]: row for table in page.tables for row in table if len(row) == 7}
    for view in found.views:
        for run in view.exhibit.runs:
            here = run.spec.id in (WATCHED.id, ELSEWHERE.id)
            assert (f"runs.html#{run.spec.id}" in page.links) is here
            said = rows[run.spec.id[:12]]
            assert said[0] == run.name
            assert said[4] == run.science_hash[:12]
            assert ("not in this store" in said[1]) is not here
    assert rows[WATCHED.id[:12]][1] == WATCHED.id[:12]
    assert "different result here" in rows[ELSEWHERE.id[:12]][1]
    arms = {row[3] for row in rows.values()}
    assert {"live", "transplant recurrent"} <= arms


def test_a_lifetime_names_the_views_that_observed_it(found: Site) -> None:
    cells = explorer_data.details(found, found.runs[WATCHED.id])["cells"]
    assert [SLUGS[0], f"mechanism.html#{SLUGS[0]}", "live/0.1/0"] in cells
    assert f'runs.html#{WATCHED.id}"' not in provenance_page(found)  # not among those of no page
    assert f'runs.html#{RECIPIENT.id}"' in provenance_page(found)


def test_lifetimes_of_a_view_make_no_assay(found: Site, tmp_path: Path) -> None:
    assert [page.name for page in found.pages] == ["E-POP"]
    unknown = gathered(stored(tmp_path))  # without the views, their purpose is unknown
    assert "E1" in [page.name for page in unknown.pages]


def test_every_file_of_a_view_is_traceable(found: Site, report: Path) -> None:
    said = json.loads((report / "publication" / "figures.json").read_text())
    for view in found.views:
        group = said[view.slug]
        files = {**group["figures"][LABEL]["files"], **group["tables"][LABEL]["files"]}
        assert len(files) == 6
        for name, digest in files.items():
            content = (report / name).read_bytes()
            assert hashlib.sha256(content).hexdigest() == digest
            assert content == view.files[Path(name).name]
        assert group["figures"][LABEL]["made_from"] == [LABEL]
        assert group["runs"][LABEL] == {run.spec.id: run.science_hash for run in view.exhibit.runs}


def test_without_views_there_is_no_page_and_no_link_to_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publication, "write", lambda *_: {})
    site_builder.write(gathered(stored(tmp_path / "store")), tmp_path / "out")
    assert not (tmp_path / "out" / "mechanism.html").exists()
    for path in (tmp_path / "out").glob("*.html"):
        assert "mechanism.html" not in path.read_text()


def _cut(folder: Path) -> None:
    text = (folder / "results.json").read_text()
    (folder / "results.json").write_text(text[: len(text) // 2])


def _of_before(folder: Path) -> None:
    index = json.loads((folder / "results.json").read_text())
    del index["table"]
    (folder / "results.json").write_text(json.dumps(index))


def _other_spec(folder: Path) -> None:
    index = json.loads((folder / "results.json").read_text())
    index["made"]["runs"]["live/0.1/0"]["spec"]["seed"] = 99
    (folder / "results.json").write_text(json.dumps(index))


def _ragged(folder: Path) -> None:
    index = json.loads((folder / "results.json").read_text())
    index["table"]["rows"][0].pop()
    (folder / "results.json").write_text(json.dumps(index))


def _without_picture(folder: Path) -> None:
    (folder / f"{LABEL}.svg").unlink()


def _edited(folder: Path) -> None:
    (folder / f"{LABEL}.csv").write_text("made,up\n")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_cut, "results.json: not the results of a mechanism view"),
        (_of_before, "missing required field `table`"),
        (_other_spec, "made.runs.live/0.1/0: "),
        (_ragged, "the rows of its table"),
        (_without_picture, f"{LABEL}.svg: missing"),
        (_edited, f"{LABEL}.csv: changed since it was written"),
    ],
)
def test_a_damaged_folder_is_listed_and_left_out(
    damage: Callable[[Path], None], message: str, results: Path, tmp_path: Path
) -> None:
    left = shutil.copytree(results, tmp_path / "results")
    damage(left / SLUGS[0])
    views, damaged = report_inputs.find_views(left)
    assert [view.slug for view in views] == SLUGS[1:]
    [(name, reason)] = damaged
    assert name == SLUGS[0]
    assert message in reason
    assert str(tmp_path) not in reason
    shown = provenance_page(Site({}, (), views=views, unreadable=damaged))
    assert "Results that are left out" in shown
