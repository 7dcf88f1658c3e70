"""The figures of OPEN: every mark where the results say, whatever was run."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from named_rows import rows
from report.figure_checks import draw_checked, said
from report.report_samples import MISSING, around
from rulescope.assays.comparison_families import CONTEXT_PAIRS
from rulescope.assays.figures import FIGURES
from rulescope.assays.minatar import minatar_context
from rulescope.assays.open import open_carry
from rulescope.assays.results import Results
from rulescope.render.arm_styles import arm_style
from rulescope.stats import Estimate

CARRY, CONTEXT = FIGURES["open-carry"], FIGURES["minatar-context"]
SCALES = ("0.1", "1", "10")
HEIGHTS = {"gymnax-breakout": 0.085, "gymnax-freeway": 0.0115}
LEVEL = {"live": 1.0, "zero": 0.97, "zero-update": 0.98, "reset": 0.99, "adam": 1.1}


def carry(
    arms: Collection[str] = open_carry.PUBLISHED,
    games: Collection[str] = open_carry.TASKS,
    scales: Collection[str] = SCALES,
    n: int = 8,
) -> Results:
    """Return results of the carry audit."""
    found: dict[str, Estimate] = {}
    for game in games:
        top = HEIGHTS[game]
        spread = 0.02 * top
        for scale in scales:
            end = f"{game}/{{}}/{scale}"
            for arm in arms:
                if arm != "adam" or scale == "1":
                    found[f"rate/{end.format(arm)}"] = around(top * LEVEL[arm], n, spread=spread)
            for policy in ("initial", "random"):
                found[f"rate/{end.format(policy)}"] = around(0.4 * top, n, spread=spread)
            found[f"early-reset/{game}/{scale}"] = MISSING
            for kind, (first, second) in open_carry.CONTRASTS.items():
                pair = {first, second} - {"initial", "random"}
                if pair <= set(arms):
                    gap = LEVEL[first] - LEVEL.get(second, 0.4)
                    one = around(top * gap, n, family=34, spread=spread)
                    found[f"{kind}/{game}/{scale}"] = one
            if scale != "1" and "zero" in arms:
                found[f"interaction/{game}/{scale}"] = around(0.0, n, family=34, spread=spread)
    return Results("OPEN", f"{n} seeds", {}, n, rows("OPEN", found), ())


def context(
    arms: Collection[str] = minatar_context.PUBLISHED,
    games: Collection[str] = open_carry.TASKS,
    scales: Collection[str] = ("0.01", *SCALES, "100"),
    n: int = 8,
) -> Results:
    """Return results of the comparison in MinAtar."""
    found: dict[str, Estimate] = {}
    for game in games:
        for scale in scales:
            for turn, arm in enumerate(arms):
                height = HEIGHTS[game] * (1 - turn / 20)
                found[f"rate/{game}/{arm}/{scale}"] = around(height, n, spread=height / 30)
            for first, second in CONTEXT_PAIRS:
                both = {first, second} <= set(arms)
                key = f"{first}-minus-{second}/{game}/{scale}"
                found[key] = around(-0.002, n, family=30, spread=0.003) if both else MISSING
    return Results("minatar-context", f"{n} seeds", {}, n, rows("minatar-context", found), ())


BREAKOUT = open_carry.TASKS[:1]


@pytest.mark.parametrize(
    "results",
    [
        carry(),
        carry(open_carry.ARMS),
        carry(("live", "zero"), BREAKOUT, ("1",), n=1),
        carry(("zero",), n=2),
        None,
    ],
    ids=["whole", "control", "one", "zero", "nothing"],
)
def test_no_words_clash_in_the_audit_whatever_was_run(results: Results | None) -> None:
    figure = draw_checked(CARRY, {} if results is None else {"OPEN": results})
    assert (figure is None) == (results is None)
    if figure is not None and results is not None:
        contrasted = "live-minus-zero/gymnax-breakout/1" in results.estimates
        assert ("Left out, not run" in said(figure)) is not contrasted


@pytest.mark.parametrize(
    "results",
    [
        context(),
        context(minatar_context.ARMS),
        context(("open", "open-adam"), BREAKOUT, ("1", "10"), n=2),
        context(("rule",), scales=("1",), n=1),
        None,
    ],
    ids=["whole", "control", "without Disco", "Disco", "nothing"],
)
def test_no_words_clash_in_the_comparison_whatever_was_run(results: Results | None) -> None:
    figure = draw_checked(CONTEXT, {} if results is None else {"minatar-context": results})
    assert (figure is None) == (results is None)
    if figure is not None and results is not None:
        complete = {"rule", "open", "open-adam"} <= {
            str(row.labels.get("arm")) for row in results.estimates.rows
        }
        assert ("Not run" in said(figure)) is not complete


def marks(axes: Axes, colour: str) -> list[tuple[float, float]]:
    """Return the single points of a colour, those of the legend aside."""
    return [
        (float(x), float(y))
        for line in axes.lines
        if to_hex(line.get_color()) == to_hex(colour) and line.get_transform() == axes.transData
        for x, y in np.asarray(line.get_xydata())
        if len(np.asarray(line.get_xydata())) == 1
    ]


def test_levels_and_contrasts_are_where_the_results_say() -> None:
    figure = CARRY({"OPEN": carry()})
    levels, capability, forest = figure.axes[3:]
    top = HEIGHTS["gymnax-freeway"]
    zero = arm_style("zero").colour
    assert [x for x, _ in marks(levels, zero)] == pytest.approx([0.97 * top] * 3)
    assert [x for x, _ in marks(forest, zero)] == pytest.approx([30 * top] * 3)
    assert [x for x, _ in marks(forest, arm_style("reset").colour)] == pytest.approx(
        [-10 * top] * 3
    )
    assert len(marks(capability, arm_style("initial").colour)) == 3
    names = [tick.get_text() for tick in forest.get_yticklabels()]
    assert names[:4] == [
        "live − zero, 0.1",
        "live − zero, 1",
        "live − zero, 10",
        "interaction, 0.1",
    ]
    for axes in (forest, capability):
        low, high = axes.get_xlim()
        assert low < 0.0 < high


def test_differences_between_learners_share_an_axis() -> None:
    figure = CONTEXT({"minatar-context": context()})
    rates, *panels = figure.axes[:4]
    assert len({axes.get_ylim() for axes in panels}) == 1
    for axes in panels:
        assert [y for _, y in marks(axes, "#333333")] == pytest.approx([-2.0] * 5)
    drawn = {to_hex(line.get_color()) for line in rates.lines}
    assert {to_hex(arm_style(arm).colour) for arm in minatar_context.PUBLISHED} <= drawn


def test_what_was_run_is_said_below() -> None:
    results: Mapping[str, Results] = {"OPEN": carry(), "minatar-context": context()}
    text = said(CARRY(results))
    assert "n = 8 seeds a cell; intervals: pointwise 95%" in text
    assert "adjusted for a family of 34" in text
    assert "(u):" not in text
    assert "(u): zeroed" in said(CARRY({"OPEN": carry(open_carry.ARMS)}))
    assert "adjusted for a family of 30" in said(CONTEXT(results))
