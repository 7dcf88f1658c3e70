"""What docs/assays.md says of the two readings of DQN's start is what was recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import named_rows
import printed_tables
from rulescope.assays import ASSAYS, Selection, narrowed, published
from rulescope.assays.published_agreement import judge, rounding
from rulescope.stats import Estimate

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "replication" / "results" / "dqn-start"
ARMS = {"`stored`": "dqn-cleared", "`interactions`": "dqn-cleared-interactions"}
CONDITIONS = ("action-flip", "reward-move")


def rows(header: str = "| change | start counts |") -> list[list[str]]:
    text = (ROOT / "docs" / "assays.md").read_text(encoding="utf-8")
    table = text[text.index(header) :].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.split("\n")[2:]]


def recorded(condition: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED / f"{condition}.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("row", rows(), ids=lambda row: "-".join(row[:2]))
def test_a_row_of_the_page_is_what_was_recorded_or_published(row: list[str]) -> None:
    condition = row[0].replace(" ", "-")
    if row[1] == "published":
        (line,) = (
            line
            for line in printed_tables.tables()[
                f"tab:unified-recovery-{condition.replace('-', '_')}"
            ]
            if line["Condition"] == "DQN cleared"
        )
        assert row[2:] == ["18", *(shown(line, name, 3) for name in AREAS), *delay(line)]
        return
    estimates, key = recorded(condition)["estimates"], f"{condition}/catch/{ARMS[row[1]]}"
    attained = estimates[f"attained/{key}/0.8"]
    assert row[2:] == [
        str(attained["n"]),
        interval(estimates[f"auc/{key}"], 3),
        interval(estimates[f"final/{key}"], 3),
        interval(estimates[f"rmd/{key}/0.8"], 1),
        f"{round(attained['value'] * attained['n'])}/{attained['n']}",
    ]


AREAS = ("AUC [95% CI]", "Final window [95% CI]")


def shown(line: Any, name: str, digits: int) -> str:
    return interval(dict(zip(("value", "low", "high"), line[name], strict=True)), digits)


def delay(line: Any) -> list[str]:
    return [f"{line['RMD']:,.1f}", str(line["Target"])]


def interval(one: Any, digits: int) -> str:
    value, low, high = (f"{one[part]:.{digits}f}" for part in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


@pytest.mark.parametrize("condition", CONDITIONS)
def test_recorded_lifetimes_are_those_of_the_command(condition: str) -> None:
    assay, found = ASSAYS["E3"], recorded(condition)
    budget = narrowed(
        assay,
        assay.budget("paper"),
        Selection(
            seeds=found["seeds"], tasks=["catch"], conditions=[condition], arms=list(ARMS.values())
        ),
    )
    made = {run.id for cell in assay.grid(budget) for run in cell.runs}
    assert set(found["runs"]) == made
    assert found["command"].endswith(
        f"--conditions {condition} --seeds {found['seeds']} --arms {','.join(ARMS.values())}"
    )


JUDGED = ("auc/{}/catch/{}", "final/{}/catch/{}", "attained/{}/catch/{}/0.8")
"""Keys of what has a published interval or count, in the order of the columns."""


def verdict(key: str, condition: str, arm: str) -> str:
    """Return how the reading of ``arm`` compares with the published cleared replay."""
    printed = published.estimates("E3")
    theirs = key.format(condition, "dqn-cleared")
    kind = key.partition("/")[0]
    same_kind = [value for name, value in printed.items() if name.partition("/")[0] == kind]
    ours = Estimate(**recorded(condition)["estimates"][key.format(condition, arm)])
    row = named_rows.rows("E3", {theirs: ours}).row(theirs)
    return judge("E3", row, printed[theirs], rounding(same_kind)).verdict


@pytest.mark.parametrize("row", rows("| compared after |"), ids=lambda row: "-".join(row[:2]))
def test_the_page_prints_the_words_of_the_agreement_rule(row: list[str]) -> None:
    condition, arm = row[0].replace(" ", "-"), ARMS[row[1]]
    assert row[2:] == [verdict(key, condition, arm) for key in JUDGED]


def test_every_reading_after_every_change_is_judged_on_the_page() -> None:
    shown = [(row[0].replace(" ", "-"), row[1]) for row in rows("| compared after |")]
    assert shown == [(condition, reading) for condition in CONDITIONS for reading in ARMS]


def test_the_reading_that_was_kept_contradicts_nothing_and_the_other_does() -> None:
    words = {
        arm: {verdict(key, condition, arm) for condition in CONDITIONS for key in JUDGED}
        for arm in ARMS.values()
    }
    assert "contradicted" not in words["dqn-cleared"]
    assert "contradicted" in words["dqn-cleared-interactions"]
