"""Figures of the mechanism views: no text overlaps, nothing is missing, the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from mechanism.sample_observations import (
    all_results,
    replay_observations,
    targets_observations,
    trajectory_observations,
)
from report.figure_checks import clashes, is_empty, said
from rulescope.assays.results import Results
from rulescope.mechanism import replay_view, targets_view, trajectory_view
from rulescope.mechanism.trajectory_figure import RING_UPDATES, scale_style
from rulescope.mechanism.view_request import ViewRequest
from rulescope.mechanism.views import VIEWS
from rulescope.render.palette import WHITE
from rulescope.render.style import NothingToDrawError, save

DRAW = {view.label: view.draw for view in VIEWS.values()}


@cache
def whole() -> Mapping[str, Results]:
    return all_results()


@cache
def alone() -> Mapping[str, Results]:
    """One seed, and no scale with an opposite."""
    one = ViewRequest("random:0", (1.0,), 1, 80)
    return {
        "mechanism-trajectory": trajectory_view.analyse(one, trajectory_observations(one)),
        "mechanism-targets": targets_view.analyse(one, targets_observations(one)),
        "mechanism-replay": replay_view.analyse(one, replay_observations(one)),
    }


@cache
def many() -> Mapping[str, Results]:
    """More scales than there are columns."""
    scales = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3)
    wide, long = (ViewRequest("random:0", scales, seeds, n) for seeds, n in ((1, 60), (3, 2000)))
    return {
        "mechanism-trajectory": trajectory_view.analyse(wide, trajectory_observations(wide)),
        "mechanism-targets": targets_view.analyse(long, targets_observations(long)),
    }


CASES = [(label, sample) for label in DRAW for sample in (whole, alone, many, dict)]


@pytest.mark.parametrize(("label", "sample"), CASES)
def test_no_texts_overlap(label: str, sample: Callable[[], Mapping[str, Results]]) -> None:
    results = sample()
    if label not in results:
        with pytest.raises(NothingToDrawError):
            DRAW[label](results)
        return
    figure = DRAW[label](results)
    assert clashes(figure) == []
    assert [axes for axes in figure.axes if is_empty(axes)] == []
    assert figure.get_figwidth() == pytest.approx(7.2)
    assert "random:0, agent published, Catch" in said(figure)


@pytest.mark.parametrize("label", DRAW)
def test_drawing_twice_gives_the_same_bytes(label: str, tmp_path: Path) -> None:
    one, two = (save(DRAW[label](alone()), tmp_path / f"{name}.svg") for name in "ab")
    assert one.read_bytes() == two.read_bytes()


def test_a_trajectory_is_drawn_from_the_initial_state_to_the_end() -> None:
    results = whole()["mechanism-trajectory"]
    plane = DRAW["mechanism-trajectory"](whole()).axes[0]
    path = results.series["path/live/1000/0"]
    drawn = [np.column_stack(line.get_data()) for line in plane.lines]
    assert any(len(line) > 50 and np.allclose(line[-1], path[-1, :2]) for line in drawn)
    assert any(np.allclose(line, results.series["birth"][:2]) for line in drawn)
    first = f"{results.series['explained'][0]:.0%} of the variance"
    assert first in plane.get_xlabel()


@pytest.mark.parametrize(("rule", "iterations"), [("sprout-random:0", 2400), ("random:0", 3000)])
def test_a_long_lifetime_has_all_its_rings_and_its_transplant(rule: str, iterations: int) -> None:
    """Not every state of a long lifetime is read, but these are."""
    long = ViewRequest(rule, (0.1, 10.0), 1, iterations)
    results = trajectory_view.analyse(long, trajectory_observations(long))
    figure = DRAW["mechanism-trajectory"]({"mechanism-trajectory": results})
    plane, crossed = figure.axes[0], figure.axes[3]
    rings = [line for line in plane.lines if line.get_markerfacecolor() == WHITE]
    assert [len(np.column_stack(line.get_data())) for line in rings] == [len(RING_UPDATES)] * 2
    donors = [line for line in crossed.lines if line.get_marker() == "x"]
    before = np.flatnonzero(results.series["iteration"] == long.first_update - 1)
    for scale, donor in zip(("0.1", "10"), donors, strict=True):
        path = results.series[f"path/cross/{scale}/0"]
        assert np.column_stack(donor.get_data()) == pytest.approx(path[before, :2])
        drawn = [np.column_stack(line.get_data()) for line in crossed.lines]
        assert any(len(d) > 300 and np.allclose(d[0], path[before, :2]) for d in drawn)


def test_a_transplant_is_drawn_without_states_from_before_the_first_update() -> None:
    results = whole()["mechanism-trajectory"]
    first = int(results.series["first"][0]) - 1
    every = len(results.series["iteration"])
    later = {k: v[first:] if len(v) == every else v for k, v in results.series.items()}
    found = {"mechanism-trajectory": replace(results, series=later)}
    crossed = DRAW["mechanism-trajectory"](found).axes[3]
    path = later["path/cross/10/0"][:, :2]
    drawn = [np.column_stack(line.get_data()) for line in crossed.lines]
    assert any(len(line) == every - first and np.allclose(line, path) for line in drawn)


def test_axes_of_transplanted_states_have_no_shares_of_variance() -> None:
    plane, *_, crossed, along = DRAW["mechanism-trajectory"](whole()).axes
    assert "%" in plane.get_xlabel() + plane.get_ylabel()
    assert "%" not in crossed.get_xlabel() + crossed.get_ylabel()
    off = whole()["mechanism-trajectory"].series["off/0.1/0"]
    drawn = [np.column_stack(line.get_data()) for line in along.lines]
    assert any(np.allclose(line[-1, 1], off[-1]) for line in drawn)


def test_missing_arms_are_marked() -> None:
    assert "no scale has an opposite" in said(DRAW["mechanism-trajectory"](alone()))
    assert "cross" not in " ".join(
        text.get_text() for axes in DRAW["mechanism-targets"](alone()).axes for text in axes.texts
    )
    assert "Scales not shown: 4." in said(DRAW["mechanism-targets"](many()))


def test_scales_differ_in_colour_and_marker() -> None:
    scales = (1e-3, 0.1, 1.0, 10.0, 1e3)
    styles = [scale_style(scale, scales) for scale in scales]
    assert len({how.colour for how in styles}) == len({how.marker for how in styles}) == 5
    assert [how.name for how in styles] == ["×0.001", "×0.1", "×1", "×10", "×1000"]
    assert scale_style(1.0, (1.0,)).colour == styles[2].colour
