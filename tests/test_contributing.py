"""The worked examples of CONTRIBUTING.md run, and keep the contracts that the page names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rulescope.assays import Assay, Selection, narrowed
from rulescope.assays.plan import Plan
from rulescope.assays.subject import make_subject
from rulescope.records import Store
from rulescope.runner import find_or_make

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"


def section(title: str) -> str:
    """Return the part of the page below a heading."""
    return PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]


def run_blocks(title: str) -> dict[str, Any]:
    """Run the Python blocks below a heading, one after the other; return the names they define."""
    names: dict[str, Any] = {"__name__": "example"}
    blocks = re.findall(r"```python\n(.*?)```", section(title), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, names)
    return names


def test_the_assay_is_planned_run_and_analysed(tmp_path: Path) -> None:
    assay: Assay = run_blocks("Add an assay")["ASSAY"]
    store = Store(tmp_path / "store")
    budget = narrowed(assay, assay.budget("smoke"), Selection(subject=make_subject("sprout")))
    plan = Plan.of(assay, budget, store)
    assert len(plan.runs) == 3
    for run in plan.runs.values():
        find_or_make(run, store)
    results = Plan.of(assay, budget, store).analyse(store)
    assert results.estimates.keys() == {"score/rule", "score/rule-pin", "score/a2c", "difference"}
    live, pinned = (results.estimates[f"score/{arm}"].value for arm in ("rule", "rule-pin"))
    assert results.estimates["difference"].value == pytest.approx(live - pinned)
    [table] = results.tables
    assert [row[0] for row in table.rows] == ["rule", "rule-pin", "a2c"]


@pytest.mark.parametrize("title", ["Add a learner", "Add a world"])
def test_the_learner_and_the_world_keep_their_contracts(title: str) -> None:
    run_blocks(title)  # the last block of each section runs the shipped check


def test_every_file_that_the_page_names_exists() -> None:
    text = re.sub(r"```python\n.*?```", "", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    named = set(re.findall(r"`((?:src|tests|scripts|docs)/[\w./-]+)`", text))
    examples = {"tracking_history.py", "action_means.py", "lights.py"}
    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == [
        name for name in sorted(named) if Path(name).name in examples
    ]
