"""The Python blocks of docs/tour.md and README.md run, in their order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def run_blocks(page: str) -> dict[str, Any]:
    """Run the Python blocks of a page, one after the other; return the names they define."""
    text = (ROOT / page).read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "example"}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block.replace("iterations=600", "iterations=40"), names)
    return names


def test_the_tour_runs_one_lifetime_three_interventions_and_an_assay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_blocks("docs/tour.md")
    runs = [names[name] for name in ("live", "pinned", "placebo", "recipient", "donor")]
    store = names["rs"].Store(tmp_path / "store")
    assert all(run.id in store for run in runs)
    assert len({run.id for run in runs}) == 5
    assert names["results"].estimates["score/catch/live/1"].n == 1


def test_the_example_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    record = run_blocks("README.md")["record"]
    assert record.manifest.id in capsys.readouterr().out
