"""What docs/open.md shows can be run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rulescope.run_spec import RunSpec, checked

PAGE = Path(__file__).parents[1] / "docs" / "open.md"


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_three_runs_are_valid_and_count_what_the_page_says() -> None:
    names: dict[str, Any] = {}
    exec(blocks()[0], names)
    runs: list[RunSpec] = [checked(names[name]) for name in ("live", "zero", "reset")]
    assert [run.interactions for run in runs] == [464_000] * 3
    assert len({run.id for run in runs}) == 3


def test_the_optimiser_s_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    example = blocks()[1]
    for old, new in {'"open-multi", 30': '"open-random:0", 2', "2048": "64"}.items():
        assert old in example
        example = example.replace(old, new)
    exec(example, {})
    assert "guessed right" in capsys.readouterr().out
