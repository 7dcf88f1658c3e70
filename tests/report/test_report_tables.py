"""Tables: numbers as they should be read, in every format, and files that are never half there."""

from __future__ import annotations

import csv
import io
import math
import re
from pathlib import Path

import pytest
from rich.console import Console

from named_rows import rows
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.core import disk
from rulescope.render import tables
from rulescope.stats import Estimate

NAN = math.nan
LIVE = Estimate(0.8281, 0.5531, 0.9312, 12, 10_000)
PIN = Estimate(-0.1314, -0.1832, -0.0004, 12, 10_000)


def table(
    *rows: tuple[Value, ...], columns: tuple[Column, ...] | None = None, **more: str
) -> Table:
    wide = len(rows[0]) if rows else 0
    return Table(
        label=more.get("label", "tab:e1-all"),
        title=more.get("title", "A title"),
        columns=columns or tuple(Column(f"c{i}") for i in range(wide)),
        rows=rows,
        note=more.get("note", "A note."),
    )


@pytest.mark.parametrize(
    ("value", "column", "shown"),
    [
        (LIVE, Column("x"), "0.828 [0.553, 0.931]"),
        (LIVE, Column("x", 2), "0.83 [0.55, 0.93]"),
        (LIVE, Column("x", interval=False), "0.828"),
        (PIN, Column("x"), "−0.131 [−0.183, 0.000]"),
        (Estimate(3.0, 2.0, 3.0, 12, 10_000, 11), Column("x", 0), "3 [2, 3]"),
        (Estimate(0.83, 0.8, 0.86, 2, method="range"), Column("x", 2), "0.83 (0.80 to 0.86)"),
        (Estimate(0.83, 0.83, 0.83, 1, method="range"), Column("x", 2), "0.83"),
        (Estimate(0.83, NAN, NAN, 1, method="none"), Column("x"), "0.830"),
        (Estimate(NAN, NAN, NAN, 0), Column("x"), "—"),
        (Estimate(0.25, 0.1, 0.5, 8, method="wilson"), Column("x"), "0.250 [0.100, 0.500]"),
        (None, Column("x"), "—"),
        (NAN, Column("x"), "—"),
        (-math.inf, Column("x"), "−∞"),
        (-0.0004, Column("x"), "0.000"),
        (-3, Column("x"), "−3"),
        (12, Column("x"), "12"),
        (6.0, Column("x", 0), "6"),
        ("0.001", Column("x"), "0.001"),
    ],
)
def test_a_cell_is_read_as_it_was_meant(value: Value, column: Column, shown: str) -> None:
    assert tables.cell(value, column) == shown


def test_markdown_has_a_row_for_every_row_and_its_marks_escaped() -> None:
    made = table(
        ("a|b_c*d", LIVE), ("<b>\\", None), columns=(Column("The | arm"), Column("Score", 3))
    )
    lines = tables.markdown(made).splitlines()
    assert lines == [
        "**A title** (`tab:e1-all`)",
        "",
        r"| The \| arm | Score |",
        "| --- | ---: |",
        r"| a\|b\_c\*d | 0.828 [0.553, 0.931] |",
        r"| &lt;b>\\ | — |",
        "",
        "n = 12 seeds; A note.",
    ]
    cells = [len(re.findall(r"(?<!\\)\|", line)) for line in lines[2:6]]
    assert cells == [3, 3, 3, 3]


def test_a_line_break_in_a_cell_does_not_break_the_table() -> None:
    made = table(("one\ntwo", 1))
    assert "| one two | 1 |" in tables.markdown(made)
    assert "one two & 1" in tables.latex(made)


def test_latex_is_escaped_and_minus_is_a_sign() -> None:
    made = table(
        ("50 % of #1 & a_b ~ {x} ^ $ \\", PIN),
        ("S ≥ 0.8, 10⁻³ × Δ", None),
        columns=(Column("Arm_1 (%)"), Column("live − pin")),
        label="v5:tab:app-a_b",
    )
    text = tables.latex(made)
    assert (
        r"50 \% of \#1 \& a\_b \textasciitilde{} \{x\} \textasciicircum{} \$ \textbackslash{}"
        r" & $-0.131$ [$-0.183$, 0.000] \\" in text
    )
    assert r"S $\geq$ 0.8, 10$^{-3}$ $\times$ $\Delta$ & --- \\" in text
    assert r"\textbf{Arm\_1 (\%)} & \textbf{live $-$ pin} \\" in text
    assert r"\label{v5:tab:app-a_b}" in text
    assert r"\begin{tabular}{@{}lr@{}}" in text
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    for rule in ("toprule", "midrule", "bottomrule"):
        assert text.count(rf"\{rule}") == 1
    assert "−" not in text


def test_a_latex_row_never_begins_with_a_bracket() -> None:
    # LaTeX would take it for the optional argument of the \\ before it.
    assert "\n{}[x] & 1" in tables.latex(table(("a", 1), ("[x]", 1)))


def test_csv_gives_back_every_number_exactly() -> None:
    third = Estimate(1 / 3, -1e-17, 2.0, 12, 10_000, 11)
    made = table(
        ('say "a, b"', third, 3, 0.1),
        ("line\nbreak", None, None, NAN),
        ("c", Estimate(NAN, NAN, NAN, 0, method="none"), -1, 5.0),
        columns=(Column("Arm"), Column("Width", 0), Column("n"), Column("t")),
    )
    text = tables.comma_separated(made)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == [
        "Arm",
        "Width value",
        "Width low",
        "Width high",
        "Width n",
        "Width interval",
        "n",
        "t",
    ]
    assert [row["Arm"] for row in rows] == ['say "a, b"', "line\nbreak", "c"]
    first = rows[0]
    assert [float(first[f"Width {p}"]) for p in ("value", "low", "high")] == [1 / 3, -1e-17, 2.0]
    assert (first["Width n"], first["Width interval"]) == ("12", "bootstrap, family of 11")
    assert (first["n"], float(first["t"])) == ("3", 0.1)
    assert set(rows[1].values()) == {"line\nbreak", ""}
    assert (rows[2]["Width value"], rows[2]["Width n"], rows[2]["n"]) == ("", "0", "-1")


def test_ranges_are_explained_only_where_they_stand() -> None:
    ranged = Estimate(0.8, 0.7, 0.9, 2, method="range")
    for text in (tables.markdown, tables.latex):
        assert "lowest and highest" in text(table((ranged,)))
        assert "lowest and highest" not in text(table((LIVE,)))
        hidden = table((ranged,), columns=(Column("x", interval=False),))
        assert "lowest and highest" not in text(hidden)


def test_the_terminal_shows_brackets_and_all() -> None:
    console = Console(width=100, file=io.StringIO(), force_terminal=False)
    made = table(("[bold]live[/]", LIVE), columns=(Column("arm [x]"), Column("score")))
    console.print(tables.terminal(made))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    for words in ("[bold]live[/]", "0.828 [0.553, 0.931]", "arm [x]", "A title", "A note."):
        assert words in text


def test_files_are_named_after_labels_and_the_same_every_time(tmp_path: Path) -> None:
    made = (table(("a", LIVE)), table(("b", PIN), label="v5:tab:app-x"))
    results = Results("E1", "4 seeds", {}, 4, rows("E1", {}), made)
    written = tables.write_tables(results.tables, tmp_path / "new")
    names = [f"{n}.{e}" for n in ("tab-e1-all", "v5-tab-app-x") for e in ("md", "csv", "tex")]
    assert [path.name for path in written] == names
    before = [path.read_bytes() for path in written]
    assert [
        path.read_bytes() for path in tables.write_tables(results.tables, tmp_path / "new")
    ] == before
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(names)
    assert all(content.endswith(b"\n") and b"\r" not in content for content in before)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = disk.write_whole(tmp_path / "a.md", b"old")

    def full(*_: object) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(KeyboardInterrupt):
        disk.write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.md"]
