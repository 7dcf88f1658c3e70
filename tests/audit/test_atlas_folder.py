"""The atlas as tables, data, a figure and a folder."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from audit.made_up_profiles import ASSET, BURDEN, DEAD, NEITHER, made_up
from audit.test_atlas import atlas_of, one_line
from rulescope.audit import profile
from rulescope.audit.atlas import label_profiles, make_atlas
from rulescope.audit.atlas_figure import picture
from rulescope.audit.atlas_folder import read_profiles, shortest_names, summary, write_atlas
from rulescope.audit.atlas_rows import Atlas
from rulescope.audit.atlas_tables import (
    SORTS,
    data_table,
    headlines,
    histories_table,
    measures_table,
    sort_atlas,
)
from rulescope.core.errors import RecordError, SpecError
from rulescope.render.tables import comma_separated, markdown


@pytest.fixture(scope="module")
def atlas() -> Atlas:
    return atlas_of(
        made_up("mine", ASSET, seed=1),
        made_up("few", BURDEN, 2, seed=2),
        made_up("longer", ASSET, seed=3, budget="2,000 iterations"),
        made_up("a2c", NEITHER, history=False, seed=4),
    )


def test_the_answers_come_first_in_one_table(atlas: Atlas) -> None:
    table = histories_table(atlas)
    heads = [column.heading for column in table.columns]
    assert heads == ["Rule", "Preset", "History", "Competence", "Reward scale", "Streams"]
    cells = {str(row[0]): row[2:] for row in table.rows}
    assert cells["a2c"] == ("no history",) * 4
    assert cells["few"] == ("undecided", *("undecided (too few seeds)",) * 3)
    assert cells["mine"][0] == "asset"
    assert str(cells["mine"][1]).startswith("asset: 0.")
    assert str(cells["mine"][2]).startswith("asset at ")


def test_few_seeds_have_a_range_and_no_interval(atlas: Atlas) -> None:
    scores = [row for row in atlas.rows if row.unit != "share"]  # shares have Wilson's interval
    lines = markdown(measures_table(atlas, scores, "")).splitlines()
    few = [line for line in lines if "| few |" in line]
    assert few
    assert not any("[" in line for line in few)
    assert any(" to " in line for line in few)


def test_unlike_budgets_and_missing_histories_are_said_in_words(atlas: Atlas) -> None:
    text = markdown(measures_table(atlas, atlas.rows, ""))
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    rows = [row for row in cells if len(row) == 8]
    assert {row[5] for row in rows if row[2] == "longer"} == {"not comparable: other budget"}
    assert {row[6] for row in rows if row[2] == "a2c"} == {"no history"}
    assert {row[5] for row in rows if row[2] == "a2c"} == {"(reference)"}


def test_the_short_table_leaves_out_single_scales(atlas: Atlas) -> None:
    keys = {row.key for row in headlines(atlas)}
    assert {"score", "best", "0.8", "masked", "natural"} <= keys
    assert not any(key.startswith("score/") for key in keys)


def test_rows_are_sorted_by_any_column_with_missing_entries_last(atlas: Atlas) -> None:
    for column, entry in SORTS.items():
        rows = sort_atlas(atlas, column).rows
        assert sorted(map(repr, rows)) == sorted(map(repr, atlas.rows))
        entries = [entry(row) for row in rows]
        known = [one for one in entries if one is not None]
        assert entries[: len(known)] == known
        numbers = [one for one in known if isinstance(one, float)]
        words = [one for one in known if isinstance(one, str)]
        assert numbers == sorted(numbers, reverse=True)
        assert words == sorted(words)
    assert sort_atlas(atlas, None) is atlas
    with pytest.raises(SpecError, match="--sort: no column 'wort'; nearest: 'worth'"):
        sort_atlas(atlas, "wort")


def test_the_csv_has_a_column_for_every_number_whatever_is_missing(atlas: Atlas) -> None:
    text = comma_separated(data_table(atlas))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(atlas.rows)
    for read, row in zip(rows, atlas.rows, strict=True):
        assert read["rule"] == row.rule
        assert read["value"] == ("" if row.value.value is None else repr(row.value.value))
        assert read["difference"] == ("" if row.difference is None else repr(row.difference.value))
        assert [int(seed) for seed in read["seeds"].split()] == list(row.seeds)
        values = [float(value) for value in read["by_seed"].split()]
        np.testing.assert_array_equal(values, [v for v in row.value.seeds if v is not None])
    alone = comma_separated(data_table(atlas_of(one_line("a2c", [0.5]))))
    assert alone.splitlines()[0] == text.splitlines()[0]


def test_the_figure_draws_every_rule_with_and_without_its_history(atlas: Atlas) -> None:
    drawn = picture(atlas)
    panels = [axes for axes in drawn.axes if axes.get_title(loc="left")]
    assert len(panels) == len({row.line for row in headlines(atlas)})
    score = panels[0]
    names = [label.get_text() for label in score.get_yticklabels()]
    assert names == ["mine", "few", "longer", "a2c"]
    marks = {
        marker: sorted(
            float(np.asarray(line.get_xdata())[0])
            for line in score.lines
            if line.get_marker() == marker
        )
        for marker in ("o", "s")
    }
    rows = [row for row in atlas.rows if row.key == "score"]
    assert marks["o"] == pytest.approx(sorted(row.value.value or 0.0 for row in rows))
    without = [row.without.value or 0.0 for row in rows if row.without is not None]
    assert marks["s"] == pytest.approx(sorted(without))
    assert len(without) == 3
    lifetimes = sum(np.shape(points.get_offsets())[0] for points in score.collections)
    assert lifetimes == sum(len(row.seeds) for row in rows) + 6 + 2 + 6  # pinned ones too
    hollow = [
        line
        for line in score.lines
        if line.get_marker() == "o" and line.get_markerfacecolor() == "#FFFFFF"
    ]
    assert len(hollow) == 1  # the rule with another budget


def test_a_folder_has_a_page_tables_data_and_a_figure_the_same_every_time(
    atlas: Atlas, tmp_path: Path
) -> None:
    paths = write_atlas(atlas, tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"atlas.{end}" for end in ("md", "csv", "tex", "json", "png", "svg", "pdf")}
    page = paths[0].read_text()
    assert page.startswith("# Atlas of mine, few, longer and a2c")
    assert all(sentence in page for sentence in atlas.sentences)
    assert page.index("What the history of each rule is worth") < page.index("Every measure")
    data = json.loads((tmp_path / "atlas.json").read_bytes())
    assert data["reference"] == "a2c"
    assert len(data["rows"]) == len(atlas.rows)
    before = {path: path.read_bytes() for path in paths}
    write_atlas(atlas, tmp_path)
    assert before == {path: path.read_bytes() for path in paths}
    write_atlas(atlas, tmp_path, "worth")
    first = json.loads((tmp_path / "atlas.json").read_bytes())["rows"][0]
    assert first["worth"]["value"] == max(
        row.worth.value for row in atlas.rows if row.worth and row.worth.value
    )


def test_the_terminal_has_answers_sentences_and_the_short_table(atlas: Atlas) -> None:
    from rich.console import Console

    screen = Console(width=400, record=True, file=io.StringIO())
    for one in summary(atlas):
        screen.print(one)
    text = screen.export_text()
    assert text.index("What the history of each rule") < text.index("The history is an asset for")
    assert text.index("The history is an asset for") < text.index("Final score, Catch 8×8   ")


def test_profiles_are_read_from_files_folders_and_results_each_once(tmp_path: Path) -> None:
    for name in ("audit-one", "audit-two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / profile.FILE).write_bytes(one_line(name, [0.5]).to_json())
    assert list(read_profiles([tmp_path])) == ["audit-one", "audit-two"]
    chosen = [tmp_path / "audit-two", tmp_path / "audit-one" / profile.FILE, tmp_path]
    assert list(read_profiles(chosen)) == ["audit-two", "audit-one"]
    with pytest.raises(RecordError, match=r"audit-three: does not exist"):
        read_profiles([tmp_path / "audit-three"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecordError, match=r"empty: no profile\.json in it"):
        read_profiles([tmp_path / "empty"])
    assert make_atlas(read_profiles([tmp_path])).reference == "audit-one"


def test_folders_of_one_name_are_told_apart_by_the_shortest_end(tmp_path: Path) -> None:
    for place in ("here/results/audit-mine", "there/results/audit-mine", "there/audit-other"):
        folder = tmp_path / place
        folder.mkdir(parents=True)
        made = made_up("mine", DEAD if "other" in place else ASSET, 2)
        (folder / profile.FILE).write_bytes(made.to_json())
    found = read_profiles([tmp_path / "here", tmp_path / "there"])
    names = ["audit-other", "here/results/audit-mine", "there/results/audit-mine"]
    assert sorted(found) == names
    assert sorted(label_profiles(found).values()) == [f"mine ({name})" for name in names]
    assert (
        shortest_names([tmp_path, tmp_path / "mine" / tmp_path.name])[1] == f"mine/{tmp_path.name}"
    )
