"""E1: published scores in, published windows out; and against plain loops."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import printed_tables
from rulescope.assays import ASSAYS, Selection, narrowed, published
from rulescope.assays.comparison import compare
from rulescope.assays.frame import Floats
from rulescope.assays.published_agreement import JUDGED
from rulescope.assays.results import Results, scale_label
from rulescope.assays.scale.scale import CRITERIA, SCALES, TASKS, analyse
from rulescope.stats import Estimate

from .frames import axes_of, bounds, constant_frame, drawn_seeds, trim, widest

ARMS = ("live", "pin", "hold", "both")
TAUS = {name: tau for name, tau in CRITERIA.items() if tau is not None}


@pytest.fixture(scope="module")
def printed() -> Results:
    """The analysis of lifetimes that all score what the published tables print for their cell."""
    known = published.estimates("E1")
    axes = axes_of(ASSAYS["E1"], ASSAYS["E1"].budget("paper"))
    values = np.empty((3, 4, 7, 12))
    for (i, task), (j, arm), (k, scale) in product(
        enumerate(TASKS), enumerate(ARMS), enumerate(SCALES)
    ):
        values[i, j, k] = known[f"score/{task}/{arm}/{scale_label(scale)}"].value
    return analyse(constant_frame(axes, values))


def test_published_scores_give_every_published_width(printed: Results) -> None:
    known = published.estimates("E1")
    widths = {key: value for key, value in known.items() if key.startswith("width/")}
    assert len(widths) == 3 * 4 * 4
    for key, value in widths.items():
        assert printed.estimates[key].value == pytest.approx(value.value), key


def test_published_scores_give_every_published_threshold(printed: Results) -> None:
    for task, arm in product(TASKS, ARMS):
        key = f"threshold/{task}/{arm}"
        # half of a printed score, itself rounded to three decimals
        expected = published.estimates("E1")[key].value
        assert printed.estimates[key].value == pytest.approx(expected, abs=0.00075 + 1e-12), key


def test_published_scores_give_every_published_contrast(printed: Results) -> None:
    contrasts = {
        key: value
        for key, value in published.estimates("E1").items()
        if key.startswith("contrast/")
    }
    assert len(contrasts) == 6
    for key, value in contrasts.items():
        ours = printed.estimates[key]
        assert ours.value == pytest.approx(value.value), key
        assert ours.family == value.family == 11


def test_published_scores_come_back_as_they_are(printed: Results) -> None:
    for key, value in published.estimates("E1").items():
        if key.startswith("score/"):
            ours = printed.estimates[key]
            assert (ours.value, ours.low, ours.high) == pytest.approx((value.value,) * 3)
            assert (ours.n, ours.draws) == (12, 10_000)
    assert printed.notes == ()


@pytest.mark.parametrize(
    "label",
    [
        "tab:e1-all",
        "v5:tab:app-scale-widths",
        "tab:unified-scale-relative",
        "tab:unified-scores-catch",
        "tab:unified-scores-catchdense",
        "tab:unified-scores-catchlong",
        "v5:tab:app-scale-references",
    ],
)
def test_tables_have_the_published_rows_and_numbers(printed: Results, label: str) -> None:
    (ours,) = (table for table in printed.tables if table.label == label)
    theirs = printed_tables.tables()[label]
    assert len(ours.rows) == len(theirs.rows)
    for row, known in zip(ours.rows, theirs.rows, strict=True):
        assert len(row) == len(ours.columns)
        for value, number in zip(row, known, strict=False):
            if isinstance(value, Estimate):
                expected = number[0] if isinstance(number, list) else number
                assert value.value == pytest.approx(expected, abs=0.00076)
            elif isinstance(value, float):
                assert value == pytest.approx(number)


def test_notes_below_tables_say_what_the_numbers_rest_on(printed: Results) -> None:
    notes = {table.label: table.note for table in printed.tables}
    for label, note in notes.items():
        if label != "v5:tab:app-scale-references":
            assert "disco103, agent published, 2,000 iterations (116,000 inter" in note
            assert "10,000 seed-block draws" in note
    assert "family of 11" in notes["tab:e1-all"]
    assert "pointwise" in notes["v5:tab:app-scale-widths"]


def noisy(seed: int, seeds: int = 5) -> Floats:
    """Scores [task, arm, scale, seed] near the thresholds, so that windows differ by draw."""
    generator = np.random.default_rng(seed)
    return generator.uniform(0.3, 1.05, size=(1, 2, 3, seeds))


def half(curve: list[float]) -> float:
    """Return the threshold of a curve: half of its best, if that is competent."""
    return max(curve) / 2 if max(curve) >= 0.8 else math.inf


AXES = {"task": ("catch",), "arm": ("live", "pin"), "scale": (0.1, 1.0, 100.0)}


def test_scores_windows_and_contrasts_are_those_of_plain_loops() -> None:
    scores, scales = noisy(1), [0.1, 1.0, 100.0]
    results = analyse(constant_frame(AXES, scores, iterations=200)).estimates
    draws = list(drawn_seeds(5))
    curves = {
        arm: [[trim([row[i] for i in block]) for row in scores[0, j]] for block in draws]
        for j, arm in enumerate(("live", "pin"))
    }
    points = {arm: [trim(row) for row in scores[0, j]] for j, arm in enumerate(("live", "pin"))}
    for arm in ("live", "pin"):
        for k, label in enumerate(("0.1", "1", "100")):
            ours = results[f"score/catch/{arm}/{label}"]
            assert ours.value == pytest.approx(points[arm][k])
            assert (ours.low, ours.high) == pytest.approx(bounds([c[k] for c in curves[arm]]))
        for name, tau in TAUS.items():
            ours = results[f"width/catch/{arm}/{name}"]
            assert ours.value == pytest.approx(widest(scales, points[arm], tau))
            every = [widest(scales, curve, tau) for curve in curves[arm]]
            assert (ours.low, ours.high) == pytest.approx(bounds(every))
        assert results[f"best/catch/{arm}"].value == pytest.approx(max(points[arm]))
        best = results[f"best/catch/{arm}"]
        assert (best.low, best.high) == pytest.approx(bounds([max(c) for c in curves[arm]]))
        threshold = results[f"threshold/catch/{arm}"]
        tau = half(points[arm])
        assert threshold.value == pytest.approx(tau if tau < 1 else math.nan, nan_ok=True)
        assert threshold.method == "none"
    for name in ("half-best", "0.8"):
        every = [
            widest(scales, live, TAUS.get(name, half(live)))
            - widest(scales, pin, TAUS.get(name, half(pin)))
            for live, pin in zip(curves["live"], curves["pin"], strict=True)
        ]
        assert len(set(every)) > 1
        ours = results[f"contrast/catch/{name}"]
        assert (ours.low, ours.high) == pytest.approx(bounds(every, family=11))
        assert (ours.n, ours.family) == (5, 11)


def test_the_score_of_a_lifetime_is_the_mean_of_rows_1600_to_2000() -> None:
    frame = constant_frame(AXES, noisy(2))
    log = frame.columns["score"]
    log[..., frame.iteration < 1600] = 99.0
    log[..., frame.iteration == 1600] += 21.0
    ours = analyse(frame).estimates["score/catch/pin/1"]
    assert ours.value == pytest.approx(trim(noisy(2)[0, 1, 1]) + 1.0)


def test_a_narrowed_grid_makes_smaller_tables_and_keeps_the_planned_contrasts() -> None:
    scores = noisy(3)[:, :1]
    axes = {**AXES, "task": ("catch-long",), "arm": ("live",)}
    results = analyse(constant_frame(axes, scores))
    for task, name in product(TASKS, ("half-best", "0.8")):
        planned = results.estimates[f"contrast/{task}/{name}"]
        assert math.isnan(planned.value)
        assert planned.family == 11
    tables = {table.label: table for table in results.tables}
    assert "tab:unified-scores-catch" not in tables
    assert len(tables["tab:unified-scores-catchlong"].rows) == 3
    assert [c.heading for c in tables["tab:e1-all"].columns] == [
        "Task",
        "Criterion",
        "Live",
        "Live: scales",
    ]
    assert "v5:tab:app-scale-state" not in tables
    assert results.axes["task"] == ("catch-long",)


def test_control_arms_stand_beside_the_published_ones() -> None:
    assay = ASSAYS["E1"]
    budget = narrowed(
        assay, assay.budget("quick"), Selection(seeds=3, arms=["live", "placebo", "null"])
    )
    axes = axes_of(assay, budget)
    results = analyse(constant_frame(axes, np.full((1, 3, 4, 3), 0.85)))
    assert results.estimates["width/catch/null/half-best"].value == pytest.approx(6)
    scores = next(t for t in results.tables if t.label == "tab:unified-scores-catch")
    assert [c.heading for c in scores.columns] == ["Scale", "Live", "Placebo", "Null rule"]


def test_missing_lifetimes_are_left_out_and_noted() -> None:
    scores = noisy(4)
    scores[0, 0, 1, 2] = np.nan
    results = analyse(constant_frame(AXES, scores))
    rest = [score for i, score in enumerate(scores[0, 0, 1]) if i != 2]
    ours = results.estimates["score/catch/live/1"]
    assert ours.n == 4
    assert ours.value == pytest.approx(trim(rest))
    every = [
        trim([scores[0, 0, 1, i] for i in block if i != 2])
        for block in drawn_seeds(5)
        if set(block) != {2}
    ]
    assert (ours.low, ours.high) == pytest.approx(bounds(every))
    assert results.estimates["width/catch/live/0.8"].n == 4
    assert results.estimates["width/catch/pin/0.8"].n == 5
    assert results.estimates["contrast/catch/0.8"].n == 4
    assert results.notes[0].startswith("1 of 30 lifetimes are missing")


@pytest.mark.parametrize("lived", [0, 1, 2])
def test_a_scale_with_few_lifetimes_is_left_out_of_the_windows(lived: int) -> None:
    scores = noisy(5)
    scores[0, 1, 0, lived:] = np.nan
    results = analyse(constant_frame(AXES, scores))
    found = results.estimates
    assert found["score/catch/pin/0.1"].n == lived
    assert found["width/catch/pin/0.8"].n == 5
    assert found["width/catch/live/0.8"].n == 5
    narrow = {**AXES, "scale": AXES["scale"][1:]}
    alone = analyse(constant_frame(narrow, scores[:, :, 1:])).estimates
    for key in ("width/catch/pin/0.8", "contrast/catch/0.8", "contrast/catch/half-best"):
        assert found[key] == alone[key], key  # as if that scale had never been planned
    assert any("windows of catch/pin are over the scales 1, 100" in note for note in results.notes)


def test_an_arm_without_any_lifetime_has_no_window() -> None:
    scores = noisy(5)
    scores[0, 1] = np.nan
    found = analyse(constant_frame(AXES, scores)).estimates
    for key in ("width/catch/pin/0.8", "threshold/catch/pin", "contrast/catch/0.8"):
        assert math.isnan(found[key].value), key
        assert found[key].n == 0


def test_windows_over_other_scales_than_the_published_are_marked() -> None:
    results = analyse(constant_frame(AXES, noisy(5)))
    assert {"width/catch/live/0.8", "contrast/catch/half-best"} <= results.other_grid
    assert not any(key.startswith("score/") for key in results.other_grid)
    compared = {row.key: row for row in compare(results)}
    assert compared["width/catch/live/0.8"].verdict == "other grid"
    assert not compared["width/catch/live/0.8"].same_grid
    assert compared["score/catch/live/1"].verdict in JUDGED


def test_two_seeds_have_a_range_and_widths_no_interval() -> None:
    scores = noisy(6, seeds=2)
    results = analyse(constant_frame(AXES, scores))
    ours = results.estimates["score/catch/live/100"]
    assert (ours.low, ours.high) == pytest.approx(tuple(sorted(scores[0, 0, 2])))
    assert (ours.method, ours.n) == ("range", 2)
    width = results.estimates["width/catch/live/0.8"]
    assert (width.method, math.isnan(width.low), width.n) == ("none", True, 2)
    assert "too few seeds" in results.tables[0].note


def test_an_arm_that_never_beats_random_play_has_no_window() -> None:
    results = analyse(constant_frame(AXES, np.full((1, 2, 3, 4), -0.1))).estimates
    assert results["width/catch/live/half-best"].value == 0.0
    assert math.isnan(results["threshold/catch/live"].value)


LADDER = {**AXES, "scale": (0.1, 1.0, 10.0, 100.0)}


def arms(live: list[float], pin: list[float], seeds: int = 8, noise: float = 0.02) -> Results:
    """Return the analysis of two arms with these scores, give or take some noise."""
    draws = np.random.default_rng(0).normal(0.0, noise, (1, 2, 4, seeds))
    return analyse(constant_frame(LADDER, np.array([live, pin])[None, :, :, None] + draws))


def test_a_dead_arm_has_no_window_and_does_not_narrow_the_other() -> None:
    """Noise above zero used to pass half of its own best at every scale."""
    results = arms(live=[0.05, 0.95, 0.05, 0.05], pin=[0.06, 0.07, 0.06, 0.08])
    for criterion in CRITERIA:
        width = results.estimates[f"width/catch/pin/{criterion}"]
        assert (width.value, width.low, width.high) == (0.0, 0.0, 0.0)
        assert results.windows[f"width/catch/pin/{criterion}"].kind == "none"
        live = results.windows[f"width/catch/live/{criterion}"]
        assert live == (0.0, 1.0, 1.0, "singleton")
    assert results.estimates["contrast/catch/half-best"].value == 0.0  # was -3 [-3, -3]
    assert math.isnan(results.estimates["threshold/catch/pin"].value)
    assert results.estimates["best/catch/pin"].value == pytest.approx(0.08, abs=0.02)
    assert any("no window for catch/pin: the best score" in note for note in results.notes)


def test_two_dead_arms_have_no_contrast() -> None:
    results = arms(live=[0.1] * 4, pin=[0.05] * 4)
    for criterion in ("half-best", "0.8"):
        contrast = results.estimates[f"contrast/catch/{criterion}"]
        assert (math.isnan(contrast.value), contrast.method, contrast.n) == (True, "none", 8)


def test_a_pinned_arm_that_is_competent_alone_shows_a_burden() -> None:
    results = arms(live=[0.1] * 4, pin=[0.95, 0.95, 0.95, 0.1])
    contrast = results.estimates["contrast/catch/0.8"]
    assert (contrast.value, contrast.low, contrast.high) == pytest.approx((-2.0, -2.0, -2.0))


def test_the_floor_holds_in_every_draw() -> None:
    """An arm near the floor is competent in some draws, and its interval says so."""
    results = arms(live=[0.8] * 4, pin=[0.1] * 4, noise=0.05)
    width = results.estimates["width/catch/live/half-best"]
    assert (width.low, width.high) == (0.0, 3.0)


def test_every_published_arm_is_competent(printed: Results) -> None:
    """The floor leaves the published windows as they are."""
    for task, arm in product(TASKS, ARMS):
        assert printed.estimates[f"best/{task}/{arm}"].value > 0.95


def test_windows_have_their_class_and_ends_in_results_and_tables(printed: Results) -> None:
    widths = {key for key in printed.estimates if key.startswith("width/")}
    assert set(printed.windows) == widths
    for key, window in printed.windows.items():
        assert printed.estimates[key].value == pytest.approx(window.width)
    assert printed.windows["width/catch/pin/0.8"] == (3.0, 1.0, 1e3, "interval")
    tables = {table.label: table for table in printed.tables}
    assert tables["tab:e1-all"].rows[1][-4:] == (
        "interval 0.001 to 1000",
        "interval 1 to 1000",
        "interval 0.1 to 1000",
        "interval 1 to 1000",
    )
    assert tables["v5:tab:app-scale-widths"].rows[1][-3:] == ("interval 1 to 1000",) * 3
    assert tables["tab:unified-scale-relative"].rows[0][-1] == "interval 0.001 to 1000"
