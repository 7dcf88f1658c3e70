"""E2: published cells, the interaction seed by seed, and learning curves."""

from __future__ import annotations

import math

import numpy as np
import pytest

import printed_tables
from rulescope.assays import ASSAYS, Selection, narrowed, published
from rulescope.assays.frame import Frame
from rulescope.assays.inheritance.inheritance import CROSSED, PUBLISHED, analyse
from rulescope.stats import Estimate

from .frames import Axes, axes_of, bounds, constant_frame, drawn_seeds, trim

AXES: Axes = {"scale": (1e-3, 1e3), "arm": PUBLISHED}


def frame_of(seed: int, seeds: int = 6) -> Frame:
    values = np.random.default_rng(seed).uniform(0, 1, size=(2, 8, seeds))
    return constant_frame(AXES, values, iterations=200)


def interactions(frame: Frame) -> list[float]:
    """Return the interaction of every seed at the first scale."""
    last = frame.columns["score"][0, ..., -1]
    mc, cc, mn, cn = (last[PUBLISHED.index(arm)] for arm in CROSSED)
    return [float((mc[i] - cc[i]) - (mn[i] - cn[i])) for i in range(last.shape[-1])]


def test_published_cells_come_back_as_they_are() -> None:
    known = published.estimates("E2")
    values = np.array(
        [[[known[f"score/{s}/{arm}"].value] * 12 for arm in PUBLISHED] for s in ("0.001", "1000")]
    )
    results = analyse(constant_frame(AXES, values))
    for key, value in known.items():
        if key.startswith("score/"):
            assert results.estimates[key].value == pytest.approx(value.value)
    for label in ("tab:e2-arms", "v5:tab:app-transplant"):
        (ours,) = (table for table in results.tables if table.label == label)
        theirs = printed_tables.tables()[label]
        assert len(ours.rows) == len(theirs.rows)
        for row, printed in zip(ours.rows, theirs.rows, strict=True):
            mine = [cell.value for cell in row if isinstance(cell, Estimate)]
            flat = [cell[0] if isinstance(cell, list) else cell for cell in printed]
            scores = [flat[1], flat[3]] if label == "tab:e2-arms" else [flat[3]]
            assert mine == pytest.approx(scores, abs=6e-5)


def test_the_worked_interaction_is_made_of_seeds_not_of_cells() -> None:
    cells = {
        "match-clamp": [0.95, 0.9, 0.98, 0.7, 0.93, 0.99],
        "cross-clamp": [0.02, 0.05, 0, 0.3, 0.01, 0.1],
        "match-natural": [0.9, 0.95, 0.97, 0.5, 0.88, 0.99],
        "cross-natural": [0.5, 0.9, 0.2, 0.4, 0.6, 0.95],
    }
    axes: Axes = {"scale": (1e-3,), "arm": tuple(cells)}
    values = np.array([list(cells.values())])
    results = analyse(constant_frame(axes, values)).estimates
    assert results["interaction/0.001"].value == pytest.approx(0.5675)
    assert results["interaction/0.001"].family == 11
    assert math.isnan(results["interaction/1000"].value)
    assert results["interaction/1000"].family == 11


def test_interactions_are_those_of_plain_loops() -> None:
    frame = frame_of(1)
    each = interactions(frame)
    results = analyse(frame).estimates
    ours = results["interaction/0.001"]
    assert ours.value == pytest.approx(trim(each))
    every = [trim([each[i] for i in block]) for block in drawn_seeds(6)]
    assert (ours.low, ours.high) == pytest.approx(bounds(every, family=11))
    # of six values the exact middle half is half of the second and fifth, all of third and fourth
    ordered = sorted(each)
    middle = 0.5 * ordered[1] + ordered[2] + ordered[3] + 0.5 * ordered[4]
    assert results["interaction-iqm/0.001"].value == pytest.approx(middle / 3)


def test_trajectories_have_a_band_for_every_log_row() -> None:
    frame = frame_of(2, seeds=5)
    log = frame.columns["score"]
    log += np.linspace(0, 1, log.shape[-1]) * np.arange(5)[:, np.newaxis]
    series = analyse(frame).series
    assert series["iteration"] is frame.iteration
    ours = series["trajectory/1000/cross-clamp"]
    assert ours.shape == (3, 10)
    values = log[1, PUBLISHED.index("cross-clamp"), :, 6]
    every = [trim([values[i] for i in block]) for block in drawn_seeds(5)]
    assert ours[:, 6] == pytest.approx([trim(values), *bounds(every)])


def test_without_all_four_arms_there_is_no_interaction() -> None:
    assay = ASSAYS["E2"]
    budget = narrowed(
        assay, assay.budget("standard"), Selection(arms=["live", "match-clamp", "placebo"])
    )
    axes = axes_of(assay, budget)
    results = analyse(constant_frame(axes, np.full((2, 3, 4), 0.5)))
    assert math.isnan(results.estimates["interaction/0.001"].value)
    labels = [table.label for table in results.tables]
    assert labels == ["tab:e2-arms", "v5:tab:app-transplant"]
    assert [row[0] for row in results.tables[0].rows] == ["Live", "Matched / clamp", "Placebo"]


def test_a_missing_lifetime_takes_its_seed_out_of_the_interaction() -> None:
    frame = frame_of(3)
    frame.columns["score"][0, PUBLISHED.index("cross-natural"), 4] = np.nan
    frame.completed[0, PUBLISHED.index("cross-natural"), 4] = False
    results = analyse(frame)
    rest = [value for i, value in enumerate(interactions(frame)) if i != 4]
    ours = results.estimates["interaction/0.001"]
    assert ours.value == pytest.approx(trim(rest))
    assert ours.n == 5
    assert results.estimates["interaction/1000"].n == 6
    assert "1 of 96 lifetimes are missing" in results.notes[0]


def test_two_seeds_give_a_range() -> None:
    frame = frame_of(4, seeds=2)
    ours = analyse(frame).estimates["interaction/0.001"]
    each = interactions(frame)
    assert ours.method == "range"
    assert (ours.low, ours.high) == pytest.approx((min(each), max(each)))


def test_names_of_arms_tell_when_a_freeze_sets_in() -> None:
    values = np.full((2, 8, 3), 0.5)
    long, short = (
        analyse(constant_frame(AXES, values, iterations=n)).tables[0] for n in (1000, 200)
    )
    assert long.rows[1][0] == "Own freeze at 200"
    assert short.rows[1][0] == "Own freeze at 40"
