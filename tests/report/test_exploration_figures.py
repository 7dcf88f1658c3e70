"""Figures of the DeepSea assays: whole and in part, and every point where the results say."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from numpy.typing import NDArray

from named_rows import rows
from report.figure_checks import draw_checked, said, words
from report.report_samples import MISSING
from rulescope.assays import published
from rulescope.assays.figures import FIGURES
from rulescope.assays.published import Published
from rulescope.assays.results import Results
from rulescope.render.arm_styles import arm_style
from rulescope.stats import Estimate, random_discovery, wilson

LABELS = {
    "v5:fig:app-exploration": {"E-A5", "F1"},
    "ladder": {"ladder"},
    "deepsea-discovery": {"discovery"},
}


def estimate(value: Published, n: int) -> Estimate:
    if math.isnan(value.low):
        return wilson(round(value.value * n), n)
    if n < 3:
        return Estimate(value.value, value.low, value.high, n, method="range")
    return Estimate(value.value, value.low, value.high, n, 1000)


def printed(
    assay: str, n: int = 15, arms: Collection[str] = (), depths: Collection[str] = ()
) -> dict[str, Estimate]:
    """Return the printed values of ``assay`` as our estimates, or those of some of its cells."""
    found: dict[str, Estimate] = {}
    for key, value in published.estimates(assay).items():
        kind, arm, *depth = key.split("/")
        if (not arms or arm in arms) and (not depths or not depth or depth[0] in depths):
            deepest = Estimate(value.value, math.nan, math.nan, n, method="none")
            found[key] = deepest if kind == "deepest" else estimate(value, n)
    return found


def made(
    assay: str, found: dict[str, Estimate], series: dict[str, NDArray[np.float64]] | None = None
) -> Results:
    return Results(
        assay,
        "15 seeds, 2,483 iterations a lifetime",
        {},
        15,
        rows(assay, found, series or {}),
        (),
        series or {},
    )


def first_goals(found: dict[str, Estimate]) -> dict[str, NDArray[np.float64]]:
    """Return when lifetimes found the goal: evenly spread over 12,000 episodes."""
    lines = {}
    for key, share in found.items():
        if key.startswith("found/"):
            count = round(share.value * share.n)
            when = np.linspace(0.0, 12_000.0, count + 2)
            steps = np.append(np.arange(count + 1), count) / share.n
            lines[key.replace("found/", "incidence/")] = np.stack([when, steps])
    return lines


def whole() -> dict[str, Results]:
    stairs, events = printed("E-A5"), printed("discovery")
    ladder = {**stairs, "deepest/dqn": MISSING}
    for arm in ("rule", "a2c", "ppo"):
        for depth in (4, 6, 20, 24, 30):
            for kind in ("solved", "goal-in-log"):
                ladder[f"{kind}/{arm}/{depth}"] = wilson(15 if depth < 8 else 0, 15)
    return {
        "E-A5": made("E-A5", stairs),
        "F1": made("F1", printed("F1")),
        "ladder": made("ladder", ladder),
        "discovery": made("discovery", events, first_goals(events)),
    }


def part() -> dict[str, Results]:
    stairs = printed("E-A5", 2, ("rule", "ppo"), ("8", "10"))
    stairs["return/ppo/10"] = MISSING
    events = printed("discovery", 2, ("a2c", "random"), ("14",))
    pairs = {k: e for k, e in printed("F1", 2).items() if "legacy" not in k and "12" in k}
    return {
        "E-A5": made("E-A5", stairs),
        "F1": made("F1", pairs),
        "ladder": made("ladder", stairs),
        "discovery": made("discovery", events, first_goals(events)),
    }


def single() -> dict[str, Results]:
    stairs = printed("E-A5", 1, ("rule-entropy",), ("16",))
    return {"E-A5": made("E-A5", stairs), "ladder": made("ladder", stairs)}


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("sample", [whole, part, single, dict])
def test_no_words_clash_whatever_was_run(
    label: str, sample: Callable[[], dict[str, Results]]
) -> None:
    results = sample()
    figure = draw_checked(FIGURES[label], results)
    assert (figure is not None) == bool(LABELS[label] & set(results))
    if figure is not None:
        assert "n = " in said(figure)
        assert ("not run" in said(figure)) == (not LABELS[label] <= set(results))


def points(axes: Axes, arm: str) -> list[tuple[float, float]]:
    """Return the points that are drawn in the colour, the line and the marker of ``arm``."""
    how = arm_style(arm)
    return [
        (float(x), float(y))
        for line in axes.lines
        if to_hex(line.get_color()) == to_hex(how.colour) and line.get_marker() == how.marker
        for x, y in np.asarray(line.get_xydata(), dtype=float)
        if line.get_transform() == axes.transData
    ]


def panels(figure: Figure) -> list[Axes]:
    return list(figure.axes)


def test_every_learner_stands_at_its_depth() -> None:
    results = whole()["E-A5"]
    solved, logged, returns = panels(FIGURES["v5:fig:app-exploration"]({"E-A5": results}))
    for axes, kind in ((solved, "solved"), (logged, "goal-in-log"), (returns, "return")):
        for arm in ("rule", "rule-entropy", "a2c", "ppo", "dqn"):
            drawn = points(axes, arm)
            depths = (8, 10, 12, 14, 16)
            heights = [results.estimates[f"{kind}/{arm}/{depth}"].value for depth in depths]
            assert [y for _, y in drawn] == heights
            assert [round(x / 2) * 2 for x, _ in drawn] == list(depths)
        firsts = sorted(points(axes, arm)[0][0] for arm in ("rule", "a2c", "ppo", "dqn"))
        assert len(set(firsts)) == 4  # none hides another


def test_conventions_have_their_differences_and_counts() -> None:
    figure = FIGURES["v5:fig:app-exploration"](whole())
    axes = panels(figure)[3]
    values = whole()["F1"].estimates
    for arm, convention in (("rule-legacy", "legacy"), ("rule", "reference")):
        drawn = [y for _, y in points(axes, arm)]
        for depth in (12, 14):
            assert values[f"difference/{convention}/{depth}"].value in drawn
    names = [tick.get_text() for tick in axes.get_xticklabels()]
    assert names == ["legacy\n12/15", "reference\n10/15", "legacy\n6/15", "reference\n4/15"]
    assert "depth 14 (A2C 0/15)" in words(figure)


def test_who_solves_no_depth_is_named_all_the_same() -> None:
    axes = panels(FIGURES["ladder"](whole()))[3]
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    said_beside = [text.get_text() for text in axes.texts]
    assert dict(zip(names, said_beside, strict=True)) == {
        "Disco103": "12 (12/15)",
        "Disco103, entropy": "10 (13/15)",
        "A2C": "12 (11/15)",
        "PPO": "8 (11/15)",
        "DQN": "none",
    }


def test_discovery_is_beside_what_chance_finds() -> None:
    results = whole()["discovery"]
    figure = FIGURES["deepsea-discovery"]({"discovery": results})
    axes = panels(figure)
    top = axes[0::2]
    assert len(top) == 3
    for panel, depth in zip(top, (12, 14, 16), strict=True):
        curves = [np.asarray(line.get_xydata(), dtype=float) for line in panel.lines]
        assert any(
            len(curve) == 200 and curve[-1, 1] == pytest.approx(random_discovery(depth, 12_000))
            for curve in curves
        )
        goals = results.series[f"incidence/a2c/{depth}"]
        assert any(np.array_equal(curve.T, goals) for curve in curves)
    for panel, depth in zip(axes[1::2], (12, 14, 16), strict=True):
        heights = [y for _, y in points(panel, "a2c")]
        assert heights == [
            results.estimates[f"{kind}/a2c/{depth}"].value for kind in ("found", "success")
        ]
