"""Tables show the subject's own name, and the learning rate that its learner had."""

from __future__ import annotations

import re

import numpy as np
import pytest
from msgspec.structs import replace

from named_rows import rows
from rulescope.assays import ASSAYS, Selection, narrowed
from rulescope.assays.frame import Floats
from rulescope.assays.results import Results, Table
from rulescope.assays.subject import DISCO103, Subject, make_subject
from rulescope.learners.disco_config import driven_by
from rulescope.render.display_names import UNKNOWN, rate_label, subject_name, subject_of

from .lives import Labels, lived

TABULATED = sorted(
    name for name, assay in ASSAYS.items() if any("rule" in arm for arm in assay.arms)
)


def analysed(name: str, subject: Subject) -> Results:
    """Return the results of a rule whose lifetimes logged the same everywhere."""
    assay = ASSAYS[name]
    arms = [arm for arm in assay.arms if "legacy" not in arm]
    budget = narrowed(assay, assay.budget("smoke"), Selection(subject=subject, arms=arms))

    def log(_: Labels, __: int, rows: Floats) -> dict[str, Floats]:
        levels = dict.fromkeys(assay.columns, np.full(len(rows), 0.5))
        return levels | {"episodes": 8 * rows, "steps": 58 * rows}

    return assay.analyse(lived(assay, budget, log))


def texts(table: Table) -> str:
    cells = (str(cell) for row in table.rows for cell in row)
    headings = (column.heading for column in table.columns)
    return " | ".join([table.title, table.note, *headings, *cells])


@pytest.mark.parametrize("name", TABULATED)
def test_no_table_of_another_rule_is_of_disco(name: str) -> None:
    results = analysed(name, make_subject("sprout"))
    said = " | ".join([*map(texts, results.tables), *results.notes])
    for word in ("the assay discovery", "discount", "Discount"):
        said = said.replace(word, "")
    assert "disco" not in said.lower()
    ours = analysed(name, DISCO103)
    assert "Sprout" not in " | ".join(map(texts, ours.tables))
    if results.tables:
        assert "Sprout" in said


def test_the_rate_in_a_label_is_that_of_the_run() -> None:
    slower = Subject(replace(driven_by("sprout"), learning_rate=3e-3), None)
    said = " | ".join(map(texts, analysed("F2", slower).tables))
    assert set(re.findall(r"Sprout lr\S+", said)) == {"Sprout lr3e-3", "Sprout lr3e-4"}
    published = " | ".join(map(texts, analysed("F2", DISCO103).tables))
    assert set(re.findall(r"Disco103 lr\S+", published)) == {"Disco103 lr1e-2", "Disco103 lr3e-4"}


def test_names_of_rules_and_rates() -> None:
    assert [subject_name(rule) for rule in ("disco103", "sprout", "random:0", "mine")] == [
        "Disco103",
        "Sprout",
        "random:0",
        "mine",
    ]
    assert subject_name("sha256:" + "0123456789abcdef" * 4) == "sha256:0123456789ab"
    assert [rate_label(rate) for rate in (1e-2, 3e-4, 0.003, 1.5e-3, 1.0)] == [
        "1e-2",
        "3e-4",
        "3e-3",
        "1.5e-3",
        "1e0",
    ]


def test_the_subject_of_a_figure_is_the_rule_that_arms_are_named_after() -> None:
    base = Results("E-POP", "", {"arm": ("a2c",)}, 1, rows("E-POP", {}), ())
    mine = Results("E3", "", {"arm": ("rule", "dqn")}, 1, rows("E3", {}), (), rule="mine")
    assert subject_of([base, mine]) == "mine"
    assert subject_of([base]) == "Disco103"
    assert subject_of([]) == UNKNOWN
