"""Figures of the baselines' own sensitivities: learning rates (E-LR) and reward scale (E-POP)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.assays.figure_data import (
    Curve,
    caption,
    cell,
    cells,
    curve_along,
    curves_by_arm,
    evidence,
    reach,
)
from rulescope.assays.horizon.learning_rate import ARMS, usual_rate
from rulescope.assays.panels import (
    SCORE,
    THRESHOLD,
    draw_curves_beside,
    set_log_axis,
    set_scale_axis,
    set_score_axis,
    with_styles,
)
from rulescope.render.arm_styles import arm_style
from rulescope.render.line_labels import name_ends
from rulescope.render.palette import BLACK, GREY
from rulescope.render.style import SMALL, Page, absent, styled

if TYPE_CHECKING:
    from rulescope.assays.results import Results

WORDS = (
    "A–C: Catch 24×24, on one zoomed axis. Rings: the learning rate that a baseline has"
    " everywhere else. Numbers: the best trimmed mean, selected on the same seeds."
)


@styled
def draw_baselines(results: Mapping[str, Results]) -> Figure:
    """``v5:fig:app-baselines``: scores by learning rate (A-C) and with PopArt by scale (D)."""
    rates, scales = results.get("E-LR"), results.get("E-POP")
    words = evidence([*cells(rates, "score"), *cells(scales, "score")])
    page = Page(2.3, caption([rates, scales], words, WORDS if cells(rates, "score") else ""))
    lines = {arm: curve_along(rates, "score", "rate", arm=arm) for arm in ARMS}
    curves = {arm: line for arm, line in lines.items() if line is not None}
    for turn, arm in enumerate(ARMS):
        box = (0.58 + turn * 1.3, 0.35, 1.18, 1.5)
        axes = page.panel("ABC"[turn], arm_style(arm).name, box, 0.14 if turn else 0.42)
        if rates is None or arm not in curves:
            absent(axes)
            continue
        _draw_rates(axes, rates, arm, curves[arm])
        _set_axes(axes, list(curves.values()))
        if arm == next(iter(curves)):
            axes.set_ylabel(SCORE)
        else:
            axes.tick_params(axis="y", labelleft=False)
    box = (5.0, 0.35, 1.3, 1.5) if curves else (5.0, 0.35, 3.6, 1.5)  # with all the room, if alone
    _draw_scales(page.panel("D", "Catch by reward scale", box), scales)
    return page.finish()


def _draw_rates(axes: Axes, results: Results, arm: str, line: Curve) -> None:
    """Draw scores over learning rates: a ring at the usual rate, the number of the best above."""
    draw_curves_beside(axes, [(arm_style(arm), line)])
    at = np.isclose(line.x, usual_rate(arm))
    axes.plot(line.x[at], line.y[at], "o", color=BLACK, ms=9, mfc="none", mew=0.9, zorder=4)
    rate, score = cell(results, "rate", arm=arm), cell(results, "selected", arm=arm)
    if rate is None or score is None:
        return
    top = max(reach([score]))
    axes.annotate(
        f"{score.value:.3f}",
        (rate.value, top),
        xytext=(0, 6),
        textcoords="offset points",
        ha="center",
        size=SMALL,
        color=arm_style(arm).ink,
    )


def _set_axes(axes: Axes, curves: Sequence[Curve]) -> None:
    """Give every panel the same axes: learning rates; scores that there are, and the optimum."""
    rates = np.unique(np.concatenate([line.x for line in curves])).tolist()
    ticks = {rate: f"{rate * 1e4:g}" for rate in rates}
    set_log_axis(axes, ticks, (rates[0] / 1.5, rates[-1] * 1.5))
    parts = [part for line in curves for part in (line.y, line.low, line.high)]
    ends = np.concatenate([*parts, *(reach(line.cells) for line in curves)])
    low, high = float(np.nanmin([*ends, 1.0])), float(np.nanmax([*ends, 1.0]))
    room = 0.1 * (high - low) or 0.05
    axes.set(xlabel="learning rate × 10⁴", ylim=(low - room, high + 1.6 * room))
    axes.locator_params(axis="y", nbins=5)
    axes.grid(axis="y")
    axes.axhline(1.0, color=GREY, lw=0.6, ls=THRESHOLD, zorder=0)


def _draw_scales(axes: Axes, results: Results | None) -> None:
    """Draw A2C with and without PopArt over reward scale."""
    curves = curves_by_arm(results, "score")
    ends = draw_curves_beside(axes, with_styles(curves))
    if curves:
        set_scale_axis(axes, [line.x for line in curves.values()])
        set_score_axis(axes, curves.values())
        name_ends(axes, ends)
