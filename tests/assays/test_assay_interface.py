"""E-IF and P1: published cells, marginal and paired differences, and the family of fifteen."""

from __future__ import annotations

import math

import numpy as np
import pytest

import printed_tables
from rulescope.assays import published
from rulescope.assays.comparison_families import INTERFACE_STATE
from rulescope.assays.frame import Frame
from rulescope.assays.interface.interface import ARMS, analyse
from rulescope.assays.interface.interface_state import ARMS as STATE_ARMS
from rulescope.assays.interface.interface_state import SCALES
from rulescope.assays.interface.interface_state import analyse as analyse_state
from rulescope.stats import Estimate

from .frames import Axes, bounds, constant_frame, drawn_seeds, trim

AXES: Axes = {"arm": ARMS, "scale": (1.0,)}
STATE_AXES: Axes = {"arm": STATE_ARMS, "scale": SCALES}


def test_published_interfaces_come_back_as_they_are() -> None:
    known = published.estimates("E-IF")
    scores, bins = (
        np.array([[[known[f"{kind}/{arm}"].value] * 12] for arm in ARMS])
        for kind in ("score", "bins")
    )
    results = analyse(constant_frame(AXES, scores, bins=bins))
    for key, value in known.items():
        assert results.estimates[key].value == pytest.approx(value.value, abs=1.1e-5), key
        assert results.estimates[key].n == 12
    (table,) = results.tables
    theirs = printed_tables.tables()[table.label]
    assert [row[0] for row in table.rows] == [row[0] for row in theirs.rows]
    assert "1,000 seed-block draws" in table.note


def test_differences_are_between_trimmed_means_from_common_draws() -> None:
    scores = np.random.default_rng(0).uniform(size=(3, 1, 6))
    results = analyse(constant_frame(AXES, scores, bins=scores)).estimates
    default, linear = scores[0, 0], scores[2, 0]
    ours = results["difference/linear"]
    assert ours.value == pytest.approx(trim(linear) - trim(default))
    every = [
        trim([linear[i] for i in block]) - trim([default[i] for i in block])
        for block in drawn_seeds(6, draws=1000)
    ]
    assert (ours.low, ours.high) == pytest.approx(bounds(every))
    assert results["difference/default"].value == 0.0
    assert results["score/linear"].draws == 1000


def test_a_lifetime_is_read_by_the_finite_ones_of_its_last_rows() -> None:
    ones = np.ones((3, 1, 4))
    frame = constant_frame(AXES, ones, bins=ones)
    bins = frame.columns["effective_bins"]
    bins[..., :-15] = 99.0  # 15 % of 100 rows
    bins[..., -15] = 3.0
    bins[..., -14:-1] = np.nan
    results = analyse(frame).estimates
    assert results["bins/default"].value == pytest.approx(2.0)


def test_other_scales_are_told_in_the_key() -> None:
    axes: Axes = {"arm": ("support30",), "scale": (0.1, 1.0)}
    scores = np.full((1, 2, 3), 0.5)
    results = analyse(constant_frame(axes, scores, bins=scores))
    assert {"score/support30/0.1", "score/support30"} <= set(results.estimates)
    assert not [key for key in results.estimates if key.startswith("difference")]
    assert results.tables[0].rows[0][-1] is None


def published_states() -> Frame:
    """Pinned arms at 0, live ones at the published effect."""
    known = published.estimates("P1")
    values = np.zeros((6, 3, 12))
    for i, arm in enumerate(STATE_ARMS):
        for j, label in enumerate(("0.001", "1", "1000")):
            if not arm.endswith("-pin"):
                values[i, j] = known[f"effect/{arm}/{label}"].value
    return constant_frame(STATE_AXES, values)


def test_published_effects_come_back_as_they_are() -> None:
    results = analyse_state(published_states())
    for key, value in published.estimates("P1").items():
        ours = results.estimates[key]
        if key.startswith("effect"):
            assert ours.value == pytest.approx(value.value)
        assert ours.family == value.family
    table = results.tables[0]
    theirs = printed_tables.tables()[table.label]
    assert len(table.rows) == len(theirs.rows) == INTERFACE_STATE.size
    for row, printed in zip(table.rows, theirs.rows, strict=True):
        assert isinstance(row[2], Estimate)
        if "−" not in str(row[0]):
            assert row[2].value == pytest.approx(printed[2])
        assert float(str(row[1])) == printed[1]


def test_effects_and_interactions_are_those_of_plain_loops() -> None:
    scores = np.random.default_rng(1).uniform(size=(6, 3, 5))
    results = analyse_state(constant_frame(STATE_AXES, scores)).estimates
    default = [scores[0, 2, i] - scores[1, 2, i] for i in range(5)]
    linear = [scores[4, 2, i] - scores[5, 2, i] for i in range(5)]
    more = [linear[i] - default[i] for i in range(5)]
    for name, each in (("effect/linear/1000", linear), ("interaction/linear/1000", more)):
        every = [trim([each[i] for i in block]) for block in drawn_seeds(5)]
        for key, family in ((name, 1), (f"{name}/family", 15)):
            ours = results[key]
            assert ours.value == pytest.approx(trim(each))
            assert (ours.low, ours.high) == pytest.approx(bounds(every, family))
            assert (ours.family, ours.n) == (family, 5)
    assert results["score/support30-pin/1"].value == pytest.approx(trim(scores[3, 1]))


def test_thin_tails_of_the_family_are_noted_once() -> None:
    notes = analyse_state(published_states()).notes
    assert len([note for note in notes if "beyond each bound of a family of 15" in note]) == 1


def test_the_family_stays_whole_when_the_grid_is_narrowed() -> None:
    axes: Axes = {"arm": ("default", "support30", "support30-pin"), "scale": (0.001, 0.01)}
    results = analyse_state(constant_frame(axes, np.full((3, 2, 4), 0.5)))
    for member in INTERFACE_STATE.members:
        key = member.removeprefix("P1:")
        assert results.estimates[f"{key}/family"].family == 15
        ran = key == "effect/support30/0.001"
        assert math.isnan(results.estimates[key].value) is not ran
    assert results.estimates["effect/support30/0.01/family"].family == 15
    assert [row[:2] for row in results.tables[0].rows] == [("Δ S30", "0.001"), ("Δ S30", "0.01")]


def test_a_table_without_rows_is_left_out() -> None:
    axes: Axes = {"arm": ("default", "linear"), "scale": (1.0,)}
    results = analyse_state(constant_frame(axes, np.full((2, 1, 4), 0.5)))
    assert [table.label for table in results.tables] == ["tab:p1-scores"]
