"""Figures of changes: readable whatever was run, and numbers where the results say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from assays.change_frames import recovering
from assays.lives import Labels, lived
from made_up_records import fill
from report.figure_checks import draw_checked, said
from rulescope.assays import ASSAYS
from rulescope.assays.figures import FIGURES
from rulescope.assays.frame import Floats
from rulescope.assays.plan import Plan, write
from rulescope.assays.results import Results
from rulescope.records import Store
from rulescope.render.arm_styles import arm_style

FED_BY = {
    "fig:detail-replay": {"E3"},
    "v5:fig:recovery-overview": {"E3", "E-A4x", "E-A4m"},
    "v5:fig:recovery-catch": {"E3"},
    "v5:fig:recovery-mapping": {"E-A4x"},
    "change-streams": {"E3", "E-A4x", "E-A4m"},
}
CONTRASTS = ("100k", "28672", "cleared")


@cache
def results_of(name: str, preset: str, seeds: int, iterations: int) -> Results:
    assay = ASSAYS[name]
    budget = replace(assay.budget(preset), seeds=seeds, iterations=iterations)
    return assay.analyse(lived(assay, budget, recovering))


def whole() -> dict[str, Results]:
    """Return every cell of every assay of a change."""
    return {name: results_of(name, "paper", 4, 800) for name in ("E3", "E-A4x", "E-A4m")}


def few() -> dict[str, Results]:
    """Return some arms under one or two conditions, two seeds each."""
    return {name: results_of(name, "quick", 2, 400) for name in ("E3", "E-A4x")}


def single() -> dict[str, Results]:
    """Return two learners of one seed."""
    return {name: results_of(name, "smoke", 1, 160) for name in ("E-A4x", "E-A4m")}


def apart() -> dict[str, Results]:
    """Return one learner alone, with a lifetime missing where nothing changes."""

    def log(labels: Labels, seed: int, rows: Floats) -> dict[str, Floats] | None:
        gone = labels["condition"] == "none" and labels["task"] == "catch-long"
        return None if gone else recovering(labels, seed, rows)

    assay = ASSAYS["E3"]
    budget = replace(assay.budget("paper"), seeds=3, iterations=400, arms=("rule", "rule-no-aux"))
    return {"E3": assay.analyse(lived(assay, budget, log))}


@cache
def drawn(label: str, sample: Callable[[], Mapping[str, Results]]) -> Figure:
    return FIGURES[label](sample())


@pytest.mark.parametrize("sample", [whole, few, single, apart, dict])
@pytest.mark.parametrize("label", FED_BY)
def test_no_words_clash_whatever_was_run(
    label: str, sample: Callable[[], Mapping[str, Results]]
) -> None:
    figure = draw_checked(FIGURES[label], sample())
    if figure is None:
        assert sample is not whole
        return
    assert figure.get_figwidth() == pytest.approx(7.2)
    assert FED_BY[label] & set(sample())
    assert "n = " in said(figure)
    if sample is whole:
        assert "not run" not in said(figure).lower().replace("grey: not planned or not run", "")


def test_assays_ask_for_the_figures_they_feed() -> None:
    for label, names in FED_BY.items():
        assert {name for name, assay in ASSAYS.items() if label in assay.figures} == names


def lines_of(axes: Axes, arm: str) -> list[tuple[list[float], list[float]]]:
    return [
        (np.asarray(line.get_xdata()).tolist(), np.asarray(line.get_ydata()).tolist())
        for line in axes.lines
        if to_hex(line.get_color()) == to_hex(arm_style(arm).colour)
    ]


def test_streams_are_drawn_row_by_row_with_the_switch() -> None:
    results = whole()["E3"]
    axes = drawn("fig:detail-replay", whole).axes[0]
    for arm in ("rule", "dqn", "dqn-28672", "dqn-cleared"):
        band = results.series[f"trajectory/action-flip/catch/{arm}"]
        assert (results.series["iteration"].tolist(), band[0].tolist()) in lines_of(axes, arm)
    assert any(np.allclose(line.get_xdata(), 400) for line in axes.lines)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "400", "800"]


def test_replay_contrasts_are_printed_with_their_family() -> None:
    results = whole()["E3"]
    figure = drawn("fig:detail-replay", whole)
    text = said(figure)
    assert "B, D: adjusted for a family of 11." in text
    for panel, condition in ((1, "action-flip"), (3, "reward-move")):
        beside = [one.get_text() for one in figure.axes[panel].texts]
        for turn, replay in enumerate(CONTRASTS):
            e = results.estimates[f"contrast/{condition}/{replay}"]
            shown = f"{e.value:.3f} [{e.low:.3f}, {e.high:.3f}]".replace("-", "−")
            assert beside[turn] == shown
    assert "family" not in said(drawn("fig:detail-replay", few))
    alone = FIGURES["fig:detail-replay"]({"E3": results_of("E3", "smoke", 1, 120)})
    assert not any("to" in one.get_text() for one in alone.axes[1].texts)


def cells_of(axes: Axes) -> dict[str, int]:
    """Return how often each fill occurs among the cells of a heat map."""
    fills = [to_hex(p.get_facecolor()) for p in axes.patches if isinstance(p, Rectangle)]
    return {fill: fills.count(fill) for fill in fills}


def test_heat_maps_tell_every_area_and_what_was_not_run() -> None:
    found = whole()
    figure = drawn("v5:fig:recovery-overview", whole)
    maps = figure.axes[0:6:2]  # each has its colour bar beside it
    for axes, name, count in zip(maps, ("E3", "E-A4x", "E-A4m"), (27, 9, 8), strict=True):
        areas = [e for key, e in found[name].estimates.items() if key.startswith("auc/")]
        shown = [one.get_text() for one in axes.texts if one.get_text()]
        assert len(areas) == count
        assert sorted(shown) == sorted(
            f"{e.value:.2f}\n[{e.low:.2f}, {e.high:.2f}]".replace("-", "−") for e in areas
        )
        dots = [len(np.asarray(each.get_offsets())) for each in axes.collections]
        assert dots == [4] * count
    grey = "#d9d9d9"
    assert [cells_of(axes).get(grey, 0) for axes in maps] == [9, 0, 0]
    assert sum(cells_of(figure.axes[0]).values()) == 36


def test_a_condition_without_any_lifetime_is_named_below_and_has_no_column() -> None:
    figure = drawn("v5:fig:recovery-overview", apart)
    assert "Not run: no change 16×16." in said(figure)
    assert sum(cells_of(figure.axes[0]).values()) == 2 * 5


def test_attained_counts_stand_beside_the_times() -> None:
    results = whole()["E3"]
    figure = drawn("v5:fig:recovery-catch", whole)
    for panel, task, arms in ((1, "catch", 6), (3, "catch-long", 3)):
        shown = [one.get_text() for one in figure.axes[panel].texts]
        shares = [
            e
            for key, e in results.estimates.items()
            if key.startswith(f"attained/action-flip/{task}/") and key.endswith("/0.8")
        ]
        assert len(shown) == len(shares) == arms
        assert shown == [f"{round(e.value * e.n)}/{e.n}" for e in shares]
        horizon = results.series["horizon"].item()
        assert any(np.allclose(line.get_xdata(), horizon) for line in figure.axes[panel].lines)


def test_levels_are_drawn_from_before_to_the_end() -> None:
    results = whole()["E-A4x"]
    figure = drawn("v5:fig:recovery-mapping", whole)
    for axes, condition in zip(
        figure.axes, ("observation-flip", "reward-sign", "none"), strict=False
    ):
        for arm in ("rule", "rule-freeze", "a2c"):
            levels = [
                results.estimates[f"{kind}/{condition}/{arm}"].value
                for kind in ("pre", "trough", "endpoint")
            ]
            assert levels in [y for _, y in lines_of(axes, arm)]
    dotted = [np.allclose(line.get_ydata(), 1.5 / 1.75) for line in figure.axes[1].lines]
    assert any(dotted)
    assert "sign of the reward is turned" in said(figure)


def test_lifetimes_too_short_for_a_companion_leave_its_panels_out(tmp_path: Path) -> None:
    """60 iterations have a change in E3, which logs every 20, but none in E-A4m, every 40."""
    assay, store = ASSAYS["E3"], Store(tmp_path / "store")
    budget = replace(assay.budget("smoke"), iterations=60, arms=("rule",))
    fill(store, list(Plan.of(assay, budget).runs.values()))
    plan = Plan.of(assay, budget, store)
    figures = ("v5:fig:recovery-overview",)
    paths = write(plan, plan.analyse(store), store, tmp_path / "out", figures)
    assert "v5-fig-recovery-overview.png" in {path.name for path in paths}
