"""Figures of results: whole or in part, readable, and the same bytes every time."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from named_rows import rows
from report.figure_checks import clashes, draw_checked, said
from report.report_samples import (
    MISSING,
    inheritance_results,
    narrow,
    scale_results,
    sparse,
    whole,
    with_controls,
)
from rulescope.assays import ASSAYS
from rulescope.assays.figures import FIGURES, SCHEMATICS, write_figure
from rulescope.assays.panels import draw_lifetimes
from rulescope.assays.results import Results
from rulescope.core.errors import RulescopeError
from rulescope.render.arm_styles import ARMS, arm_style, naming
from rulescope.render.line_labels import End, name_ends, spread
from rulescope.stats import Estimate
from rulescope.stats.scale_windows import Window

STATE = ("E1", "E2", "E-IF", "P1")
"""Assays of this file; figures of the others are tested beside them."""
FED_BY = {
    "fig:scale": {"E1", "E2", "E-IF"},
    "orig:scale": {"E1", "E2", "E-IF"},
    "fig:detail-scale": {"E1"},
    "fig:detail-inheritance": {"E2"},
    "v5:fig:app-scale": {"E1"},
    "v5:fig:app-interface": {"E-IF"},
    "scale-audit": {"E1"},
    "interface-state": {"P1"},
}


@cache
def drawn_once(label: str, sample: Callable[[], Mapping[str, Results]]) -> Figure:
    """Draw a sample, or give the figure that another test had drawn."""
    return FIGURES[label](sample())


def test_every_figure_is_known_and_some_assay_or_the_audit_asks_for_it() -> None:
    asked = {label for assay in ASSAYS.values() for label in assay.figures}
    assert asked <= set(FIGURES)
    assert set(FIGURES) - asked == {"scale-audit", *SCHEMATICS}
    for name in STATE:
        for label in set(ASSAYS[name].figures) & set(FIGURES):
            assert name in FED_BY[label], label


CASES: list[tuple[str, Callable[[], Mapping[str, Results]]]] = [
    *((label, whole) for label in FED_BY),
    *((label, with_controls) for label in ("fig:scale", "orig:scale", "fig:detail-inheritance")),
    *(
        (label, narrow)
        for label in ("fig:scale", "orig:scale", "fig:detail-scale", "v5:fig:app-scale")
    ),
    *((label, sparse) for label in ("fig:detail-inheritance", "scale-audit")),
    *(
        (label, dict)
        for label in ("fig:scale", "orig:scale", "fig:detail-inheritance", "interface-state")
    ),
]


@pytest.mark.parametrize(("label", "sample"), CASES)
def test_no_words_clash_whatever_was_run(
    label: str, sample: Callable[[], Mapping[str, Results]]
) -> None:
    results = sample()
    figure = draw_checked(FIGURES[label], results)
    assert (figure is not None) == bool(FED_BY[label] & set(results))
    if figure is not None:
        assert figure.get_figwidth() == pytest.approx(7.2)
        assert "n = " in said(figure)
        assert "not run" in said(figure).lower() or FED_BY[label] <= set(results)


@pytest.mark.parametrize("label", SCHEMATICS)
def test_a_schematic_needs_no_results_and_its_words_do_not_clash(label: str) -> None:
    assert clashes(FIGURES[label]({})) == []


def test_interventions_are_shown_on_state_on_donors_and_on_the_target() -> None:
    figure = FIGURES["fig:interventions"]({})
    letters = [text.get_text() for text in figure.texts if text.get_fontweight() == "bold"]
    assert letters == ["A", "B", "C"]
    rows = {text.get_text(): text.get_position()[1] for text in figure.texts}
    assert rows["freeze"] > rows["transplant, natural"] > rows["transplant, clamp"]
    paired = [
        axes
        for axes in figure.axes
        if {"match", "cross"} <= {text.get_text() for text in axes.texts}
    ]
    assert len(paired) == 2  # natural and clamp
    for axes in paired:
        colours = {to_hex(line.get_color()) for line in axes.lines}
        assert {to_hex(arm_style(arm).colour) for arm in ("match-clamp", "cross-clamp")} <= colours
    titles = [text.get_text() for text in figure.texts]
    for number, step in enumerate(("transform", "clip", "two-hot", "readout"), start=1):
        assert f"{number}  {step}" in titles
    transform, _, weights, readout = figure.axes[-4:]
    # 12 under the transform, the two atoms beside it, and 12 again from their mean
    assert "f(12) = 2.62" in [text.get_text() for text in transform.texts]
    assert [text.get_text() for text in weights.texts] == ["0.38", "0.62"]
    assert "f⁻¹(2.62) = 12.0" in [text.get_text() for text in readout.texts]


def test_what_was_run_is_said_below() -> None:
    assert "n = 12 seeds a cell; intervals: pointwise 95%" in said(drawn_once("fig:scale", whole))
    few = said(drawn_once("scale-audit", narrow))
    assert "n = 2 seeds a cell." in few
    assert "Dotted bars: the lowest and the highest of 2 lifetimes" in few
    assert "E1: 2 seeds, 400 iterations" in few
    assert "95%" not in few
    assert "hold:" not in few


def test_the_main_figure_prints_the_interaction() -> None:
    text = said(drawn_once("fig:scale", whole))
    assert "interaction 0.393 [0.093, 0.693], family of 11" in text
    few = {"E2": inheritance_results(n=2)}
    assert "interaction 0.393 (0.093 to 0.693)" in said(FIGURES["fig:detail-inheritance"](few))


def test_the_integrated_figure_shows_both_recipient_scales() -> None:
    samples = whole()
    figure = drawn_once("orig:scale", whole)
    headings = [text.get_text() for text in figure.texts]
    assert any("scale $10^{-3}$" in heading for heading in headings)
    assert any("scale $10^{3}$" in heading for heading in headings)
    low, high = figure.axes[2:4]
    for axes, scale in ((low, "0.001"), (high, "1000")):
        for donor in ("match", "cross"):
            (_, heights), *_ = lines(axes, f"{donor}-clamp", 2)
            expected = [
                samples["E2"].estimates[f"score/{scale}/{donor}-{way}"].value
                for way in ("natural", "clamp")
            ]
            assert heights == expected
        interaction = samples["E2"].estimates[f"interaction/{scale}"]
        assert f"{interaction.value:.3f}" in " ".join(axes.get_xlabel().split())
    alone = [text.get_text() for text in drawn_once("fig:scale", whole).texts]
    assert not any("scale $10^{3}$" in heading for heading in alone)


def lines(axes: Axes, arm: str, points: int) -> list[tuple[object, list[float]]]:
    """Return the marker and heights of every line in the colour of ``arm`` with so many points."""
    drawn = [
        (line.get_marker(), np.asarray(line.get_ydata(), dtype=float).tolist())
        for line in axes.lines
        if to_hex(line.get_color()) == to_hex(arm_style(arm).colour)
    ]
    return [(marker, heights) for marker, heights in drawn if len(heights) == points]


def test_an_arm_has_one_style_in_every_figure() -> None:
    table = list(ARMS)
    families = [table[: table.index("null") + 1], table[table.index("rule") :]]
    assert {"live", "cross-clamp"} <= set(families[0])
    assert {"rule", "open", "random"} <= set(families[1])
    for arms in (*families, *(assay.arms for assay in ASSAYS.values())):
        with naming("rule", arms):
            styles = [arm_style(arm)._replace(name="") for arm in arms]
        assert len(set(styles)) == len(styles), arms
    for label in ("fig:scale", "fig:detail-scale"):
        axes = drawn_once(label, with_controls).axes[0]
        for arm in ("live", "pin", "hold", "both", "placebo", "null"):
            found = [marker for marker, _ in lines(axes, arm, 7)]
            assert found == [arm_style(arm).marker], (label, arm)
            names = [t for t in axes.texts if t.get_text().split(":")[0] == arm_style(arm).name]
            assert [t.get_color() for t in names] == [arm_style(arm).ink], (label, arm)


def test_scores_and_intervals_are_where_the_results_say() -> None:
    scales = (0.001, 1.0, 1000.0)
    results = scale_results(("live", "pin"), scales, ("catch",))
    axes = FIGURES["fig:scale"]({"E1": results}).axes[0]
    bands = [
        {(float(x), float(y)) for x, y in np.asarray(path.vertices)}
        for band in axes.collections
        for path in band.get_paths()
    ]
    for arm in ("live", "pin"):
        expected = [results.estimates[f"score/catch/{arm}/{scale:g}"] for scale in scales]
        assert [y for _, y in lines(axes, arm, 3)] == [[e.value for e in expected]]
        pairs = zip(scales, expected, strict=True)
        corners = {(scale, end) for scale, e in pairs for end in (e.low, e.high)}
        assert any(corners <= band for band in bands), arm


def test_seeds_are_drawn_where_they_are_known() -> None:
    results = narrow()["E1"]
    seeds = {"seeds/score/catch/live/1": np.array([0.25, 0.75])}
    with_seeds = Results(
        "E1", results.budget, {}, 2, rows("E1", results.estimates, seeds), (), seeds
    )
    for label in ("scale-audit", "fig:scale", "fig:detail-scale"):
        figure = FIGURES[label]({"E1": with_seeds})
        assert sorted(single_lifetimes(figure.axes[0], "live")) == [(1.0, 0.25), (1.0, 0.75)]
        assert "Faint dots" in said(figure)
        assert single_lifetimes(drawn_once(label, narrow).axes[0], "live") == []
        assert "Faint dots" not in said(drawn_once(label, narrow))


def test_a_single_lifetime_of_a_cell_is_no_faint_dot() -> None:
    results = narrow()["E1"]
    seeds = {"seeds/score/catch/live/1": np.array([0.25])}
    alone = Results("E1", results.budget, {}, 1, rows("E1", results.estimates, seeds), (), seeds)
    figure = FIGURES["scale-audit"]({"E1": alone})
    assert single_lifetimes(figure.axes[0], "live") == []
    assert "Faint dots" not in said(figure)


def test_arms_that_are_not_competent_have_no_contrast_but_were_run() -> None:
    results = narrow()["E1"]
    without = {
        key: replace(MISSING, n=2) if key.startswith("contrast/") else found
        for key, found in results.estimates.items()
    }
    text = said(
        FIGURES["fig:detail-scale"]({"E1": replace(results, estimates=rows("E1", without))})
    )
    assert "no estimate: neither arm is competent" in text
    assert "not run" not in text


def test_the_class_of_a_window_stands_beside_the_name_of_its_arm() -> None:
    results = narrow()["E1"]
    arms = sorted(key.split("/")[2] for key in results.estimates if key.startswith("width/catch/"))
    assert {"live", "pin"} <= set(arms)
    windows = {
        "width/catch/live/0.8": Window(0.0, math.nan, math.nan, "none"),
        "width/catch/pin/0.8": Window(2.0, 0.1, 10.0, "interval"),
    }
    text = said(
        FIGURES["scale-audit"](
            {"E1": replace(results, estimates=rows("E1", results.estimates, windows=windows))}
        )
    )
    assert "live: none" in text
    assert "pin: interval 0.1 to 10" in text
    assert "decades" not in text


def single_lifetimes(axes: Axes, arm: str) -> list[tuple[float, float]]:
    """Return where single lifetimes of an arm are drawn, in units of the axes."""
    colour = to_rgb(arm_style(arm).colour)
    return [
        (float(x), float(y))
        for dots in axes.collections
        if isinstance(dots, PathCollection)
        and tuple(np.asarray(dots.get_facecolor())[0, :3].tolist()) == colour
        for x, y in np.asarray(dots.get_offsets())
    ]


def test_single_lifetimes_of_a_cell_stand_beside_each_other_the_same_every_time() -> None:
    values, places = [0.0, 1.0, 0.5, 0.5, 0.5], []
    for _ in range(2):
        axes = Figure(figsize=(6, 4)).add_axes((0.1, 0.1, 0.6, 0.8))
        axes.set(xlim=(0, 2), ylim=(-1, 2))
        draw_lifetimes(axes, 1.0, values, arm_style("live"))
        places.append(
            [
                tuple(map(float, dots.get_offset_transform().transform(at)))
                for dots in axes.collections
                for at in np.asarray(dots.get_offsets())
            ]
        )
    assert places[0] == places[1]
    assert len(set(places[0])) == len(values)  # no dot hides another
    heights = sorted(round(float(axes.transData.inverted().transform(p)[1]), 6) for p in places[0])
    assert heights == sorted(values)


def test_a_two_humped_cell_is_named_below_the_figure() -> None:
    results = narrow()["E1"]
    humped = {"seeds/score/catch/live/1": np.array([0.0, 0.01, 0.99, 0.98, 1.0])}
    figure = FIGURES["scale-audit"](
        {
            "E1": Results(
                "E1", results.budget, {}, 5, rows("E1", results.estimates, humped), (), humped
            )
        }
    )
    assert "whose mean no lifetime had: E1 score/catch/live/1 (3 of 5 learned)" in said(figure)


@pytest.mark.parametrize(
    ("label", "assay", "key"),
    [
        ("fig:detail-inheritance", "E2", "score/0.001/live"),
        ("v5:fig:recovery-catch", "E3", "auc/action-flip/catch/dqn"),
        ("fig:behavior", "F2", "endpoint/a2c"),
        ("fig:behavior", "E-A3c", "score/a2c"),
        ("v5:fig:app-exploration", "E-A5", "return/a2c/12"),
        ("deepsea-discovery", "discovery", "success/a2c/12"),
        ("v5:fig:app-baselines", "E-POP", "score/a2c/1"),
        ("v5:fig:app-interface", "E-IF", "score/default"),
        ("open-carry", "OPEN", "rate/gymnax-breakout/live/1"),
        ("minatar-context", "minatar-context", "rate/gymnax-breakout/open/1"),
    ],
)
def test_every_panel_of_cells_shows_its_lifetimes_within_its_axes(
    label: str, assay: str, key: str
) -> None:
    seeds = np.array([0.125, 0.25, 0.875])
    found = {key: Estimate(0.5, 0.4, 0.6, 3, 1000)}
    if assay == "F2":
        found["mastery/a2c"] = Estimate(1e5, 9e4, 1.2e5, 3, 1000)
    if assay == "discovery":
        found["found/a2c/12"] = Estimate(1.0, 0.5, 1.0, 3, method="wilson")
    series = {f"seeds/{key}": seeds, "horizon": np.array([87.0])}
    figure = FIGURES[label](
        {assay: Results(assay, "", {}, 3, rows(assay, found, series), (), series)}
    )
    drawn = []
    for axes in figure.axes:
        for dots in axes.collections:
            if isinstance(dots, PathCollection):
                drawn += np.asarray(dots.get_offsets()).tolist()
                low, high = (sorted(limits) for limits in (axes.get_xlim(), axes.get_ylim()))
                for x, y in np.asarray(dots.get_offsets()):
                    assert low[0] <= x <= low[1]
                    assert high[0] <= y <= high[1]
    assert {0.125, 0.25, 0.875} <= {value for at in drawn for value in at}


def test_scales_are_powers_of_ten() -> None:
    axes = drawn_once("fig:detail-scale", whole).axes[0]
    assert axes.get_xscale() == "log"
    names = [text.get_text() for text in axes.get_xticklabels()]
    assert names == [f"$10^{{{e}}}$" for e in range(-3, 4)]


def test_a_name_is_tied_to_the_end_of_its_line() -> None:
    axes = Figure(figsize=(6, 4)).add_axes((0.1, 0.1, 0.6, 0.8))
    axes.plot([0, 50, 100], [0.0, 1.0, 0.5])
    axes.margins(x=0.1)  # limits that are not worked out until they are needed
    name_ends(axes, [End("live", arm_style("live"), 100.0, 0.5, 0.5)])
    leader = axes.lines[1]
    start = leader.get_transform().transform(np.asarray(leader.get_xydata())[0])
    assert start == pytest.approx(axes.transData.transform((100.0, 0.5)))


def test_labels_are_moved_apart_but_no_further() -> None:
    assert spread([0.1, 0.5, 0.9], 0.1, 0.0, 1.0) == pytest.approx([0.1, 0.5, 0.9])
    assert spread([0.5, 0.5], 0.1, 0.0, 1.0) == pytest.approx([0.45, 0.55])
    assert spread([1.0, 1.0, 1.0], 0.1, 0.0, 1.0) == pytest.approx([0.8, 0.9, 1.0])
    found = spread([0.0, 0.01, 0.02, 0.7], 0.1, 0.0, 1.0)
    assert found == pytest.approx([0.0, 0.1, 0.2, 0.7])
    assert spread([], 0.1, 0.0, 1.0) == []


def test_an_unknown_label_is_an_error_that_helps(tmp_path: Path) -> None:
    with pytest.raises(RulescopeError, match="fig:scale"):
        write_figure("fig:scal", {}, tmp_path)


SCRIPT = """
import sys
from pathlib import Path
from report.report_samples import whole
from rulescope.assays.figures import write_figure
assert "torch" not in sys.modules, "the report draws without torch"
write_figure("fig:scale", whole(), Path(sys.argv[1]))
"""


def test_another_process_draws_the_same_bytes(tmp_path: Path) -> None:
    here = Path(__file__).parent
    places = [str(here.parent), str(here.parents[1] / "src")]
    mine = write_figure("fig:scale", whole(), tmp_path / "mine")
    # Another order of hashing and another user's settings must not show.
    (tmp_path / "matplotlibrc").write_text("axes.facecolor: red\naxes.xmargin: 0.3\n")
    surroundings = {"PYTHONPATH": os.pathsep.join(places), "PYTHONHASHSEED": "7"}
    surroundings["MATPLOTLIBRC"] = str(tmp_path / "matplotlibrc")
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "theirs")]
    subprocess.run(command, check=True, env={**os.environ, **surroundings}, timeout=120)
    assert {path.suffix for path in mine} == {".pdf", ".svg", ".png"}
    for path in mine:
        assert path.read_bytes() == (tmp_path / "theirs" / path.name).read_bytes(), path.name
        assert len(path.read_bytes()) > 5000
