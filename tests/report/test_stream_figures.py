"""Figures of streams and behaviour: whole and in part, readable, and true to the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from named_rows import rows
from report.figure_checks import draw_checked, said, words
from report.stream_samples import (
    CONFIGURATIONS,
    alone,
    as_printed,
    breakout_results,
    few,
    horizon_results,
    replay_results,
    staircase_results,
    whole,
)
from rulescope.assays import ASSAYS, published
from rulescope.assays.figures import FIGURES
from rulescope.assays.results import Results
from rulescope.render.arm_styles import arm_name, arm_style
from rulescope.render.style import save
from rulescope.stats import Estimate

Sample = Callable[[], Mapping[str, Results]]
FED_BY = {
    "v5:fig:app-streams": {"exposure", "E-A3c", "masking"},
    "synthetic-terminals": {"exposure", "synthetic"},
    "fig:behavior": {"F2", "E-A3c", "exposure", "E-A4m", "E-A5"},
    "orig:behavior": {"E3", "E-A3c", "exposure", "E-A4m", "E-A5"},
}


@cache
def drawn(label: str, sample: Sample) -> Figure:
    return FIGURES[label](sample())


def only_tracking() -> Mapping[str, Results]:
    results = as_printed("exposure")
    kept = {key: e for key, e in results.estimates.items() if "/natural/" in key}
    return {
        "exposure": Results(
            "exposure",
            results.budget,
            {},
            18,
            rows("exposure", kept, results.series),
            (),
            results.series,
        )
    }


@pytest.mark.parametrize("label", FED_BY)
@pytest.mark.parametrize("sample", [whole, few, alone, only_tracking, dict])
def test_no_words_clash_whatever_was_run(label: str, sample: Sample) -> None:
    figure = draw_checked(FIGURES[label], sample())
    if figure is None:
        assert sample is not whole
        return
    assert figure.get_figwidth() == pytest.approx(7.2)
    complete = FED_BY[label] <= set(sample())
    assert ("not run" in said(figure).lower()) != complete or sample is only_tracking


@pytest.mark.parametrize("label", FED_BY)
def test_the_assays_that_feed_a_figure_ask_for_it(label: str) -> None:
    asking = {assay.id for assay in ASSAYS.values() if label in assay.figures}
    assert asking == FED_BY[label]


def test_n_and_the_kind_of_interval_are_said_below() -> None:
    streams = said(drawn("v5:fig:app-streams", whole))
    assert "n = 12–18 seeds a cell; intervals: pointwise 95%" in streams
    assert "Wilson" not in streams
    assert "masked minus episodic within each seed" in streams
    behavior = said(drawn("fig:behavior", whole))
    assert "n = 12–18 seeds a cell; intervals: pointwise 95% (bootstrap over seeds), or" in behavior
    assert "95% (Wilson)" in behavior
    integrated = said(drawn("orig:behavior", whole))
    assert "adjusted for a family of 11" in integrated
    small = said(drawn("fig:behavior", few))
    assert "the lowest and the highest of 2 lifetimes" in small


def test_a_budget_that_nothing_is_drawn_from_is_not_mentioned() -> None:
    episodic = {
        key: e
        for key, e in as_printed("exposure").estimates.items()
        if key.startswith("score/episodic")
    }
    results = {
        "exposure": Results("exposure", "some budget", {}, 18, rows("exposure", episodic), ()),
        "E-A5": staircase_results(),
    }
    assert "some budget" not in said(FIGURES["fig:behavior"](results))
    assert "some budget" in said(FIGURES["v5:fig:app-streams"](results))


def points(axes: Axes, arm: str) -> list[tuple[float, float]]:
    """Return the single points in the colour and with the marker of ``arm``."""
    return [
        (float(np.asarray(line.get_xdata())[0]), float(np.asarray(line.get_ydata())[0]))
        for line in axes.lines
        if to_hex(line.get_color()) == to_hex(arm_style(arm).colour)
        and line.get_marker() == arm_style(arm).marker
        and len(np.asarray(line.get_xdata())) == 1
        and line.get_transform() == axes.transData
    ]


def test_final_scores_stand_beside_the_learning_curves() -> None:
    figure, known = drawn("v5:fig:app-streams", whole), published.estimates("exposure")
    for place, condition in ((0, "episodic"), (2, "masked"), (4, "natural")):
        curves, ends = figure.axes[place], figure.axes[place + 1]
        assert curves.get_ylim() == ends.get_ylim()
        for turn, arm in enumerate(("rule", "a2c", "ppo", "dqn")):
            expected = known[f"score/{condition}/{arm}"].value
            assert points(ends, arm) == [(turn, expected)]
            (line,) = [
                line
                for line in curves.lines
                if to_hex(line.get_color()) == arm_style(arm).colour.lower()
            ]
            assert np.asarray(line.get_ydata())[-1] == pytest.approx(expected, rel=1e-3)
            assert np.asarray(line.get_xdata())[-1] == 348.0


def test_effects_are_told_in_numbers_too() -> None:
    figure = drawn("v5:fig:app-streams", whole)
    assert "−4.2 [−5.6, −1.1]" in words(figure)
    axes = figure.axes[8]
    assert points(axes, "rule") == [(-0.0041612, 0.0)]
    assert points(axes, "dqn") == [(-0.002365, -3.0)]


def test_a_learner_that_never_gets_there_is_counted() -> None:
    said_so = words(drawn("synthetic-terminals", whole))
    assert said_so.count("(0/18)") == 2
    steps = drawn("synthetic-terminals", whole).axes[1]
    assert [round(y) for _, y in points(steps, "a2c")] == [33_640, 33_640, 103_470]


def test_some_that_get_there_are_counted_above_their_time() -> None:
    found = {
        "score/masked/rule": Estimate(0.7, 0.6, 0.8, 18, 1000),
        "steps/masked/rule": Estimate(200_000, 150_000, 250_000, 18, 1000),
        "fraction/masked/rule": Estimate(0.5, 0.3, 0.7, 18, method="wilson"),
    }
    figure = FIGURES["synthetic-terminals"](
        {"exposure": Results("exposure", "", {}, 18, rows("exposure", found), ())}
    )
    assert "(9/18)" in words(figure)


def test_level_and_pace_have_their_own_axes() -> None:
    axes = FIGURES["fig:behavior"]({"F2": horizon_results()}).axes[0]
    for arm, (endpoint, mastery) in CONFIGURATIONS.items():
        assert points(axes, arm) == [(1000 * mastery, endpoint)]
        names = [text for text in axes.texts if text.get_text() == arm_name(arm, "Disco103")]
        assert [text.get_color() for text in names] == [arm_style(arm).ink]
    axes.get_figure(root=True).draw_without_rendering()  # type: ignore[union-attr]
    assert "400" in [tick.get_text() for tick in axes.get_xticklabels()]


def test_only_the_flip_is_shown_of_breakout() -> None:
    axes = FIGURES["fig:behavior"]({"E-A4m": breakout_results()}).axes[0]
    assert [y for _, y in points(axes, "rule")] == [9.8, 8.8]
    assert [y for _, y in points(axes, "ppo")] == [5.1, 5.3]


def test_the_staircase_is_solved_as_deep_as_the_results_say() -> None:
    axes = FIGURES["orig:behavior"]({"E-A5": staircase_results()}).axes[0]
    lines = {
        (line.get_marker(), to_hex(line.get_color())): np.asarray(line.get_ydata())
        for line in axes.lines
        if len(np.asarray(line.get_xdata())) == 5
    }
    a2c = lines[arm_style("a2c").marker, arm_style("a2c").colour.lower()]
    assert a2c.tolist() == pytest.approx([1, 1, 11 / 15, 0, 0])
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["8", "10", "12", "14", "16"]


def test_replay_memories_stand_in_rows_with_their_contrasts() -> None:
    figure = FIGURES["orig:behavior"]({"E3": replay_results()})
    areas, differences = figure.axes[:2]
    assert points(areas, "rule") == [(0.565, 0.0)]
    assert points(differences, "rule") == []
    assert points(areas, "dqn-cleared") == [(0.881, -3.0)]
    assert points(differences, "dqn-cleared") == [(-0.3154, -3.0)]
    assert areas.get_ylim() == differences.get_ylim()


@pytest.mark.parametrize("label", FED_BY)
def test_the_same_results_give_the_same_bytes(label: str, tmp_path: Path) -> None:
    one, two = (save(FIGURES[label](alone()), tmp_path / f"{name}.svg") for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
