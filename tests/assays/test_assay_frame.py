"""Frames: records gathered along the axes of their cells, and what is asked of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from made_up_records import made_up
from rulescope.assays import ASSAYS, gather
from rulescope.assays.analysis import note_missing
from rulescope.assays.frame import Frame
from rulescope.assays.grid import Arm, Cell, make_runs
from rulescope.core.errors import RulescopeError
from rulescope.records import Record, RuleIdentity
from rulescope.run_spec import RunSpec

ASSAY = ASSAYS["E1"]
CELLS = ASSAY.grid(replace(ASSAY.budget("smoke"), seeds=2))
RUNS = {run.id: run for cell in CELLS for run in cell.runs}


def record_of(run: RunSpec) -> Record:
    """A record whose numbers tell which run it is of."""
    mark = run.scale + 10 * run.seed + 100 * len(run.interventions)
    return Record.make(
        run,
        {"iteration": np.array([20, 40, 60]), "score": mark + np.array([np.nan, 0.1, 0.2])},
        {"recurrent/h": np.full((1, 3), mark, np.float32), "averages/x": np.zeros(2)},
        source={},
        runtime={},
        rule=RuleIdentity(name="disco103", sha256="a" * 64, digest="b" * 64),
        started=datetime(2026, 1, 1, tzinfo=UTC),
        seconds=1.0,
    )


@pytest.fixture
def frame() -> Frame:
    gone = CELLS[1].runs[0].id  # live at scale 1, seed 0
    return gather(CELLS, lambda run: None if run == gone else record_of(RUNS[run]))


def test_lifetimes_stand_at_their_labels(frame: Frame) -> None:
    assert frame.axes == {"task": ("catch",), "arm": ("live", "pin"), "scale": (1e-3, 1.0)}
    assert frame.seeds == (0, 1)
    assert frame.iteration.tolist() == [20, 40, 60]
    assert (frame.iterations, frame.interactions) == (60, 3480)
    assert frame.log("score", task="catch", arm="pin", scale=1.0)[1, 2] == pytest.approx(111.2)
    assert frame.log("score", arm="live").shape == (1, 2, 2, 3)
    assert frame.state("recurrent/h", arm="pin", scale=1e-3)[0, 1].tolist() == pytest.approx(
        [110.001] * 3
    )


def test_what_is_missing_is_nan(frame: Frame) -> None:
    scores = frame.log("score", task="catch", arm="live", scale=1.0)
    assert np.isnan(scores[0]).all()
    assert np.isfinite(scores[1, 1:]).all()
    assert np.isnan(frame.state("recurrent/h", arm="live", scale=1.0)[0, 0]).all()
    assert np.isnan(frame.log("effective_bins")).all()  # a column that no record has
    assert "recurrent/c" not in frame.states


def test_a_gathered_frame_can_be_analysed(frame: Frame) -> None:
    results = ASSAY.analyse(frame)
    assert results.estimates["score/catch/live/1"].n == 1
    assert results.estimates["score/catch/pin/1"].value == pytest.approx(106.2)
    assert results.iterations == 60
    assert "1 of 8 lifetimes are missing" in results.notes[0]


def test_nothing_at_all_can_be_analysed_too() -> None:
    for assay in ASSAYS.values():
        cells = assay.grid(assay.budget("smoke"))
        nothing = gather(cells, lambda _: None, columns=assay.columns, states=assay.states)
        results = assay.analyse(nothing)
        known = [key for key, found in results.estimates.items() if not np.isnan(found.value)]
        assert all(key.startswith("chance/") for key in known)  # which is exact
        assert "lifetimes are missing" in results.notes[0]


def test_questions_without_an_answer_name_the_nearest(frame: Frame) -> None:
    with pytest.raises(RulescopeError, match="no 'scores' in the frame; nearest: 'score'"):
        frame.log("scores")
    with pytest.raises(RulescopeError, match="no axis 'scales'; nearest: 'scale'"):
        frame.log("score", scales=1.0)
    with pytest.raises(
        RulescopeError, match=r"no scale 2\.0 in the frame; there are: 0\.001, 1\.0"
    ):
        frame.log("score", scale=2.0)


def ragged() -> Frame:
    """Two worlds of different length; one arm is not planned in the second, one has more seeds."""
    budget = replace(ASSAY.budget("smoke"), seeds=2, episodes=500, iterations=1)
    cells = [
        Cell({"task": task, "arm": arm}, make_runs(replace(budget, seeds=n), Arm(arm), task=task))
        for task, arm, n in (
            ("deep-sea-8", "a2c", 2),
            ("deep-sea-12", "a2c", 2),
            ("deep-sea-12", "random", 3),
        )
    ]
    runs = {run.id: run for cell in cells for run in cell.runs}
    return gather(cells, lambda run: made_up(runs[run]), columns=("mean_return",), states=())


def test_cells_may_differ_in_seeds_and_length_and_leave_holes() -> None:
    frame = ragged()
    assert frame.seeds == (0, 1, 2)
    assert frame.lengths.tolist() == [[69, 0], [103, 103]]
    assert frame.counts.tolist() == [[2, 0], [2, 3]]
    assert frame.planned.sum() == 7
    assert frame.iteration.tolist() == [20, 40, 60, 80, 100]
    assert np.isnan(frame.log("mean_return", task="deep-sea-8", arm="a2c")[:, 3:]).all()
    assert note_missing(frame) == []


def test_planned_cells_have_labels_and_places(frame: Frame) -> None:
    assert list(ragged().cells()) == [
        ({"task": "deep-sea-8", "arm": "a2c"}, (0, 0)),
        ({"task": "deep-sea-12", "arm": "a2c"}, (1, 0)),
        ({"task": "deep-sea-12", "arm": "random"}, (1, 1)),
    ]
    cell = {"task": "catch", "arm": "pin", "scale": 0.001}
    assert (cell, (0, 1, 0)) in list(frame.cells())


def test_a_part_ends_where_its_lifetimes_do() -> None:
    short = ragged().part(task="deep-sea-8")
    assert short.axes == {"arm": ("a2c", "random")}
    assert short.iteration.tolist() == [20, 40, 60]
    assert (short.iterations, short.interactions) == (69, 69 * 58)
    assert short.log("mean_return", arm="a2c").shape == (3, 3)
    assert np.isfinite(short.log("mean_return", arm="a2c")[:2]).all()
    with pytest.raises(RulescopeError, match="differ in length"):
        ragged().part(arm="a2c")
