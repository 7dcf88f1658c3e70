"""Figures: drawn, labelled, and the same bytes every time."""

from __future__ import annotations

from pathlib import Path

import pytest

from rulescope.assays import lifetime_figures
from rulescope.learners.disco_config import AgentSizes, Disco
from rulescope.lifetime import Lifetime
from rulescope.records import Record
from rulescope.run_spec import Pin, RunSpec


@pytest.fixture(scope="module")
def record() -> Record:
    learner = Disco(rule="random:20240", agent=AgentSizes(hidden=(16, 16), model=8, head=8))
    pins = (Pin(carrier="recurrent"),)
    lifetime = Lifetime(
        RunSpec(learner=learner, iterations=8, log_every=2, scale=0.1, interventions=pins)
    )
    lifetime.run()
    return lifetime.record()


def test_a_record_is_described_by_what_was_done_to_it(record: Record) -> None:
    assert (
        lifetime_figures.describe(record) == "random:20240, pin recurrent, Catch 8×8, reward ×0.1"
    )


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_drawing_twice_gives_the_same_bytes(ending: str, record: Record, tmp_path: Path) -> None:
    paths = [tmp_path / name / f"curve.{ending}" for name in ("one", "two")]
    for path in paths:
        lifetime_figures.learning_curve(record, path)
        lifetime_figures.arms(
            {"live": [record], "pinned": [record]}, path.with_stem("arms"), "both"
        )
    for name in ("curve", "arms"):
        one, two = (path.with_stem(name).read_bytes() for path in paths)
        assert one == two
        assert len(one) > 2000
