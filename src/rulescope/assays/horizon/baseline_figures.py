"""Figures of the baselines' own sensitivities: learning rates (E-LR) and reward scale (E-POP)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from rulescope.assays.figure_data import (
    Curve,
    caption,
    cell,
    cells,
    curve_along,
    curves_by_arm,
    evidence,
)
from rulescope.assays.horizon.learning_rate import ARMS, usual_rate
from rulescope.assays.panels import draw_curve, line_end, scale_axis, score_axis
from rulescope.render.line_labels import name_ends
from rulescope.render.style import GREY, PALE, SMALL, Page, absent, look, styled

if TYPE_CHECKING:
    from rulescope.assays.results import Results

RING = "#000000"


@styled
def app_baselines(results: Mapping[str, Results]) -> Figure:
    """``v5:fig:app-baselines``: scores by learning rate (A-C) and with PopArt by scale (D)."""
    rates, scales = results.get("E-LR"), results.get("E-POP")
    words = evidence([*cells(rates, "score"), *cells(scales, "score")])
    text = (
        "A–C: Catch 24×24, on one zoomed axis. Rings: the learning rate that a baseline has"
        " everywhere else. Numbers: the best trimmed mean, selected on the same seeds."
    )
    page = Page(2.3, caption([rates, scales], words, text if cells(rates, "score") else ""))
    panels = [page.axes(0.58 + turn * 1.3, 0.35, 1.18, 1.5) for turn in range(len(ARMS))]
    curves = {arm: curve_along(rates, "score", "rate", arm=arm) for arm in ARMS}
    known = [line for line in curves.values() if line is not None]
    for turn, (axes, arm) in enumerate(zip(panels, ARMS, strict=True)):
        page.heading(axes, "ABC"[turn], look(arm).name, indent=0.42 if turn == 0 else 0.14)
        line = curves[arm]
        if rates is None or line is None:
            absent(axes)
            continue
        _points(axes, line, arm)
        _default(axes, line, arm)
        _best(axes, rates, arm)
        _rate_axis(axes, known)
        _zoom(axes, known)
        first = next(a for a in ARMS if curves[a] is not None)
        if arm == first:
            axes.set_ylabel("score (0 random, 1 optimal)", labelpad=2)
        else:
            axes.tick_params(axis="y", labelleft=False)
    popart = page.axes(5.0, 0.35, 1.3, 1.5)
    page.heading(popart, "D", "Catch by reward scale", indent=0.42)
    _scales(popart, scales)
    return page.figure


def _points(axes: Axes, line: Curve, arm: str) -> None:
    """Draw a line through the settings that were tested, with a bar for each interval."""
    how = look(arm)
    draw_curve(axes, line, how, band=False)
    axes.vlines(line.x, line.low, line.high, color=how.colour, lw=1.2, alpha=0.75, zorder=2)


def _default(axes: Axes, line: Curve, arm: str) -> None:
    """Put a ring around the usual learning rate."""
    at = np.isclose(line.x, usual_rate(arm))
    axes.plot(line.x[at], line.y[at], "o", ms=9, mfc="none", mec=RING, mew=0.9, zorder=4)


def _best(axes: Axes, results: Results, arm: str) -> None:
    """Write the score of the best learning rate above its point."""
    rate, score = cell(results, "rate", arm=arm), cell(results, "selected", arm=arm)
    if rate is None or score is None:
        return
    top = max(score.value, score.high) if np.isfinite(score.high) else score.value
    axes.annotate(
        f"{score.value:.3f}",
        (rate.value, top),
        xytext=(0, 6),
        textcoords="offset points",
        ha="center",
        size=SMALL,
        color=look(arm).ink,
    )


def _rate_axis(axes: Axes, curves: Sequence[Curve]) -> None:
    """Make the horizontal axis one of learning rates, in units of the smallest usual one."""
    every = np.unique(np.concatenate([line.x for line in curves]))
    axes.set_xscale("log")
    axes.set_xlim(every[0] / 1.5, every[-1] * 1.5)
    axes.xaxis.set_major_locator(FixedLocator(every.tolist()))
    axes.xaxis.set_major_formatter(FixedFormatter([f"{rate * 1e4:g}" for rate in every]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("learning rate × 10⁴", labelpad=2)


def _zoom(axes: Axes, curves: Sequence[Curve]) -> None:
    """Give every panel the same vertical axis: the scores that there are, and the optimum."""
    parts_ = [part for line in curves for part in (line.y, line.low, line.high)]
    ends = np.concatenate([*parts_, *(values for line in curves for values in line.seeds)])
    low, high = float(np.nanmin([*ends, 1.0])), float(np.nanmax([*ends, 1.0]))
    room = 0.1 * (high - low) or 0.05
    axes.set_ylim(low - room, high + 1.6 * room)
    axes.locator_params(axis="y", nbins=5)
    axes.grid(axis="y", color=PALE)
    axes.axhline(1.0, color=GREY, lw=0.6, ls=(0, (2, 2)), zorder=0)


def _scales(axes: Axes, results: Results | None) -> None:
    """Draw A2C with and without PopArt over reward scale."""
    curves = curves_by_arm(results, "score")
    if not curves:
        absent(axes)
        return
    for arm, line in curves.items():
        _points(axes, line, arm)
    scale_axis(axes, [line.x for line in curves.values()])
    score_axis(axes, curves.values())
    name_ends(axes, [line_end(line, look(arm)) for arm, line in curves.items()])
