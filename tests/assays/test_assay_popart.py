"""E-POP: printed scores, their window, and the floor of the deviation at every update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import printed_tables
from rulescope.assays import ASSAYS, published
from rulescope.assays.frame import Floats
from rulescope.assays.results import scale_label
from rulescope.assays.scale.popart import CONDITIONS, analyse
from rulescope.core.errors import RulescopeError, SpecError
from rulescope.envs.references import catch_references
from rulescope.envs.world_config import WORLDS
from rulescope.stats import Estimate

from .lives import Labels, lived

ASSAY = ASSAYS["E-POP"]
PAPER = ASSAY.budget("paper")


def as_printed(labels: Labels, seed: int, rows: Floats) -> Mapping[str, Floats]:
    """Score what is printed in the last 15 of 100 rows; every third lifetime touches the floor."""
    score = published.estimates("E-POP")[
        f"score/{labels['arm']}/{scale_label(float(labels['scale']))}"
    ].value
    touched = (rows == 777) & (seed % 3 == 0)  # between two rows of a log of every 20
    return {
        "score": np.where(rows > 1700, score, 9.0),
        "floor_margin": np.where(touched, 0.0, 1e-5),
    }


def test_published_scores_come_back_as_they_are() -> None:
    results = analyse(lived(ASSAY, PAPER, as_printed))
    for key, value in published.estimates("E-POP").items():
        if key.startswith("score/"):
            assert results.estimates[key].value == pytest.approx(value.value), key
            assert results.estimates[key].draws == 1000
    table = results.tables[0]
    printed = printed_tables.tables()[table.label]
    assert [(row[0], float(str(row[1])), row[2]) for row in table.rows] == [
        row[:3] for row in printed.rows
    ]


def test_the_floor_is_looked_at_after_every_update() -> None:
    frame = lived(ASSAY, PAPER, as_printed)
    assert len(frame.part(condition="floor").iteration) == 2000
    assert len(frame.part(condition="score").iteration) == 100
    results = analyse(frame)
    above = results.estimates["floor/a2c-popart/0.001"]
    assert above.value == pytest.approx(8 / 12)
    assert (above.n, above.method) == (12, "wilson")
    assert results.tables[1].rows[0][2] == "8/12"
    assert [key for key in results.estimates if key.startswith("floor/")] == [
        "floor/a2c-popart/0.001"
    ]


def test_a_missing_lifetime_is_not_one_at_the_floor() -> None:
    def two(labels: Labels, seed: int, rows: Floats) -> Mapping[str, Floats] | None:
        return as_printed(labels, seed, rows) if seed in (1, 2) else None

    above = analyse(lived(ASSAY, PAPER, two)).estimates["floor/a2c-popart/0.001"]
    assert (above.value, above.n) == (1.0, 2)


def test_lifetimes_of_the_floor_differ_in_their_log_only() -> None:
    cells = {tuple(cell.labels.values()): cell.runs for cell in ASSAY.grid(PAPER)}
    assert sum(len(runs) for key, runs in cells.items() if key[0] == "score") == 72
    assert len(cells) == 7
    scored = cells["score", "a2c-popart", 0.001][0]
    floor = cells["floor", "a2c-popart", 0.001][0]
    assert floor.log_every == 1
    assert scored.log_every == 20
    assert (floor.learner, floor.seed, floor.scale) == (scored.learner, scored.seed, scored.scale)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_either_question_can_be_asked_alone(condition: str) -> None:
    results = analyse(lived(ASSAY, replace(PAPER, conditions=(condition,)), as_printed))
    assert {key.partition("/")[0] for key in results.estimates} == {condition}
    assert len(results.tables) == 1


def test_the_floor_has_one_scale() -> None:
    with pytest.raises(SpecError, match=r"a2c-popart at scale 0\.001"):
        ASSAY.grid(replace(PAPER, conditions=("floor",), scales=(1.0,)))


def test_printed_scores_are_of_sizes_that_the_window_allows() -> None:
    """Six of twelve seeds are kept, of 15 rows each, of returns that move by 0.02."""
    references = catch_references(WORLDS["catch"])
    step = 0.02 / (references.oracle_return - references.random_return) / (6 * 15)
    for row in printed_tables.tables()["v5:tab:app-popart"]:
        value = row["Score [95% CI]"][0]
        assert value == pytest.approx(step * round(value / step), abs=6e-6)


def test_a_count_stands_beside_its_share() -> None:
    results = analyse(lived(ASSAY, replace(PAPER, seeds=3), as_printed))
    share = results.tables[1].rows[0][3]
    assert isinstance(share, Estimate)
    assert share.low < share.value < share.high


def test_lifetimes_with_different_logs_are_no_part_of_a_frame() -> None:
    frame = lived(ASSAY, PAPER, as_printed)
    with pytest.raises(RulescopeError, match="differ in interval"):
        frame.part(arm="a2c-popart", scale=0.001)
    both = frame.part(arm="a2c-popart", scale=0.001, condition="floor")
    assert both.iteration.tolist() == list(range(1, 2001))
    assert np.isfinite(both.log("floor_margin")).all()
