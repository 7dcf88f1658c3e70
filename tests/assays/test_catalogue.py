"""The tables of the design say what the assays and the specification say."""

from __future__ import annotations

import re
from typing import get_args

import printed_tables
from rulescope.assays import ASSAYS
from rulescope.assays.design_tables import AXES, LABELS, tables
from rulescope.assays.results import Table
from rulescope.run_spec import Intervention

EVERY = list(ASSAYS.values())


def made(label: str) -> Table:
    (found,) = (table for table in tables(EVERY) if table.label == label)
    return found


def test_the_static_tables_of_the_published_audit_are_made() -> None:
    assert tuple(table.label for table in tables(EVERY)) == LABELS
    assert set(LABELS) == {"tab:axes", "tab:state-operations", "v5:tab:app-matrices"}
    for table in tables(EVERY):
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.columns)}


def test_matrices_have_the_printed_sizes() -> None:
    ours = {row[0]: row for row in made("v5:tab:app-matrices").rows}
    assert set(ours) == set(ASSAYS)
    printed = printed_tables.tables()["v5:tab:app-matrices"]
    assert len(printed.rows) == 10
    for theirs in printed:
        _, grid, seeds, iterations, lifetimes = ours[theirs["Assay"]]
        assert seeds == str(theirs["Seeds"])
        last = str(theirs["Iterations"]).replace(",", "").split("--")[-1]
        assert str(iterations).replace(",", "").endswith(last)
        if theirs["Assay"] != "E-POP":  # where 12 lifetimes are also watched at every update
            cells = eval_product(str(theirs["Conditions"]))
            assert lifetimes == cells * int(theirs["Seeds"])
            assert eval_product(str(grid)) == cells


def eval_product(words: str) -> int:
    """Return the number of cells that words such as ``3 tasks x 7 scales`` or ``27 cells`` name."""
    product = 1
    for part in re.findall(r"\d+(?= )", words.split(" cells")[0] + " "):
        product *= int(part)
    return product


def test_every_operation_of_a_specification_has_a_row_and_says_where_it_is_used() -> None:
    rows = {str(row[0]): row for row in made("tab:state-operations").rows}
    operations = {str(kind.__struct_config__.tag) for kind in get_args(Intervention)}
    assert {name.partition(",")[0] for name in rows} == {"live", *operations}
    assert "zero after every iteration" in str(rows["pin"][1])
    assert "E1" in str(rows["pin"][4])
    assert "rule-freeze-40" in str(rows["freeze"][5])
    for way in ("natural", "clamp"):
        assert rows[f"transplant, {way}"][2] == "a new learner's, updated as usual"
        assert rows[f"transplant, {way}"][4] == "E2, normalised-inheritance"
    assert str(rows["transplant, clamp"][1]).endswith("again after every later iteration")
    assert "OPEN" in str(rows["reset"][4])
    assert rows["ablate, natural"][4] is None


def test_an_assay_is_on_one_axis_or_about_all_of_them() -> None:
    named = [name for axis in AXES for name in axis.assays]
    assert len(named) == len(set(named))
    assert set(ASSAYS) - set(named) == {"OPEN", "conventions", "agent-identity"}
    rows = made("tab:axes").rows
    assert [row[0] for row in rows] == [axis.name for axis in AXES]
    assert rows[0][-1] == 84 + 144 + 1296
