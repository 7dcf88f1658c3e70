"""The figure of the baselines: every point where the results say, whatever was run."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D

from named_rows import rows
from report.figure_checks import draw_checked, said
from report.report_samples import MISSING, around
from rulescope.assays.figures import FIGURES
from rulescope.assays.horizon.learning_rate import ARMS, RATES, usual_rate
from rulescope.assays.results import Results
from rulescope.assays.scale.popart import ARMS as NORMALISED
from rulescope.assays.scale.popart import SCALES
from rulescope.render.arm_styles import arm_style
from rulescope.stats import Estimate

DRAW = FIGURES["v5:fig:app-baselines"]
SCORES = {
    "a2c": (0.55, 0.9, 0.965, 0.979),
    "ppo": (0.86, 0.885, 0.82, 0.7),
    "dqn": (0.913, 0.88, 0.8, 0.74),
}
POPART = {"a2c": (0.008, 0.993, 0.002), "a2c-popart": (0.005, 0.975, 0.996)}


def rates(arms: Collection[str] = ARMS, chosen: Collection[str] = RATES, n: int = 12) -> Results:
    """Return results of E-LR."""
    found: dict[str, Estimate] = {}
    for arm in arms:
        scores = {
            rate: around(score, n, spread=0.02)
            for rate, score in zip(RATES, SCORES[arm], strict=True)
            if rate in chosen
        }
        best = max(scores, key=lambda rate: scores[rate].value)
        found |= {f"score/{arm}/{rate}": score for rate, score in scores.items()}
        found[f"rate/{arm}"] = around(float(best), n, spread=0.0)
        found[f"selected/{arm}"] = scores[best]
    return Results("E-LR", f"{n} seeds", {}, n, rows("E-LR", found), ())


def scales(arms: Collection[str] = NORMALISED, n: int = 12) -> Results:
    """Return results of E-POP."""
    found = {
        f"score/{arm}/{scale:g}": around(score, n, spread=0.01)
        for arm in arms
        for scale, score in zip(SCALES, POPART[arm], strict=True)
    }
    return Results("E-POP", f"{n} seeds", {}, n, rows("E-POP", found), ())


def gaps() -> dict[str, Results]:
    """Return a campaign in progress: one baseline is missing, another has one rate."""
    some = rates(("a2c", "ppo"), RATES[:2], n=2)
    found = {**some.estimates, "score/ppo/0.0001": MISSING}
    return {
        "E-LR": Results("E-LR", "2 seeds", {}, 2, rows("E-LR", found), ()),
        "E-POP": scales(("a2c",), n=1),
    }


@pytest.mark.parametrize(
    "results",
    [
        {"E-LR": rates(), "E-POP": scales()},
        {"E-LR": rates(n=2)},
        {"E-POP": scales()},
        gaps(),
        {},
    ],
    ids=["whole", "rates", "scales", "gaps", "nothing"],
)
def test_no_words_clash_whatever_was_run(results: Mapping[str, Results]) -> None:
    figure = draw_checked(DRAW, results)
    assert (figure is None) == (not results)
    if figure is not None:
        panels = (
            {key.split("/")[1] for key in results["E-LR"].estimates} if "E-LR" in results else ()
        )
        whole = {*ARMS} <= {*panels} and "E-POP" in results
        assert ("not run" in said(figure)) is not whole


def marks(line: Line2D) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in np.asarray(line.get_xydata())]


def points(axes: Axes, arm: str) -> dict[float, float]:
    """Return the points of the line in the colour of ``arm``."""
    colour = to_hex(arm_style(arm).colour)
    lines = [
        marks(line)
        for line in axes.lines
        if to_hex(line.get_color()) == colour and line.get_marker() == arm_style(arm).marker
    ]
    return dict(next(line for line in lines if len(line) > 1))


def rings(axes: Axes) -> list[tuple[float, float]]:
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "none"]
    return [mark for line in hollow for mark in marks(line)]


def test_points_rings_and_numbers_are_where_the_results_say() -> None:
    figure = DRAW({"E-LR": rates(), "E-POP": scales()})
    best = {"a2c": "0.979", "ppo": "0.885", "dqn": "0.913"}
    for axes, arm in zip(figure.axes, ARMS, strict=False):
        assert points(axes, arm) == dict(zip(map(float, RATES), SCORES[arm], strict=True))
        default = SCORES[arm][RATES.index(f"{usual_rate(arm):g}")]
        assert rings(axes) == [(usual_rate(arm), default)]
        assert [text.get_text() for text in axes.texts] == [best[arm]]
    for arm, heights in POPART.items():
        assert points(figure.axes[3], arm) == dict(zip(SCALES, heights, strict=True))
    limits = [axes.get_ylim() for axes in figure.axes[:3]]
    assert limits[0] == limits[1] == limits[2]


def test_a_rate_that_is_not_usual_has_no_ring() -> None:
    assert rings(DRAW({"E-LR": rates(("a2c",), RATES[:2])}).axes[0]) == []


def test_what_was_run_is_said_below() -> None:
    text = said(DRAW({"E-LR": rates(), "E-POP": scales()}))
    assert "n = 12 seeds a cell; intervals: pointwise 95%" in text
    assert "Rings: the learning rate" in text
    assert "Rings" not in said(DRAW({"E-POP": scales()}))
