"""Figure of the replay view: age of replayed experience around a change of the world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.assays.results import Results
from rulescope.mechanism.figure_parts import Floats, full_caption
from rulescope.render.arm_styles import arm_style
from rulescope.render.line_labels import End, name_ends
from rulescope.render.palette import GREY, PALE
from rulescope.render.style import Page, absent, styled

CAPTION = (
    "A, B: share of a learner's replay that was stored before the change of the world. Lines: "
    "expected from first in, first out; dots: measured in the samples for updates (means of 20 "
    "iterations). B: the same in lifetimes of the published length. C: measured age of the stored "
    "experience: thick, the median; thin, the 95% quantile. D: score in the lifetimes of A and C."
)
SMOOTHING = 20
"""Iterations whose samples make one dot."""
TITLES = (
    "Stored before the change",
    "In the published lifetime of 3,000",
    "Age of stored experience",
    "Score",
)


@styled
def draw_replay(results: Mapping[str, Results]) -> Figure:
    """``mechanism-replay``: shares from before a change, ages, and scores."""
    found = results.get("mechanism-replay")
    page = Page(4.4, full_caption(found, CAPTION))
    panels = [
        page.axes(0.6 + 3.05 * (place % 2), 0.35 + 2.1 * (place // 2), 2.4, 1.45)
        for place in range(4)
    ]
    for letter, title, axes in zip("ABCD", TITLES, panels, strict=True):
        page.heading(axes, letter, title, indent=0.4)
    if found is None:
        for axes in panels:
            absent(axes)
        return page.finish()
    arms = [str(arm) for arm in found.axes["arm"]]
    change = float(found.series["switch"][0])
    since = found.series["iteration"] - change
    _draw_measured_share(panels[0], found, arms, since)
    name_ends(panels[1], _draw_published_share(panels[1], found, arms))
    _draw_ages(panels[2], found, arms, since)
    name_ends(panels[3], _draw_scores(panels[3], found, arms, change))
    for axes in panels:
        axes.axvline(0.0, color=GREY, lw=0.7, zorder=0)
        axes.set_xlabel("iterations since the change")
    return page.finish()


def _set_share_axis(axes: Axes, last: float) -> None:
    axes.set_ylim(-0.03, 1.05)
    axes.set_xlim(-0.12 * last, last)
    axes.grid(axis="y")
    axes.set_ylabel("share from before")


def _draw_measured_share(axes: Axes, found: Results, arms: Sequence[str], since: Floats) -> None:
    after = since > 0
    bins = int(after.sum()) // SMOOTHING
    x = since[after][: bins * SMOOTHING].reshape(bins, SMOOTHING).mean(axis=1)
    for arm in arms:
        how = arm_style(arm)
        axes.plot(since, found.series[f"fifo/{arm}/before"], color=how.colour, ls=how.line, lw=1.2)
        sampled = found.series[f"measured/{arm}/drawn/before"].mean(axis=0)[after]
        sampled = sampled[: bins * SMOOTHING].reshape(bins, SMOOTHING)
        known = np.isfinite(sampled).any(axis=1)  # a cleared replay is not sampled at first
        axes.plot(
            x[known],
            np.nanmean(sampled[known], axis=1),
            how.marker,
            color=how.colour,
            mfc=how.face,
            ms=3.2,
            mew=0.7,
        )
    _set_share_axis(axes, float(since[-1]))


def _draw_published_share(axes: Axes, found: Results, arms: Sequence[str]) -> list[End]:
    iteration = found.series["published"]
    since = iteration - iteration[-1] / 2
    ends = []
    for arm in arms:
        how, line = arm_style(arm), found.series[f"published/{arm}/before"]
        axes.plot(since, line, color=how.colour, ls=how.line, lw=1.4)
        ends.append(_end(arm, since, line))
    _set_share_axis(axes, float(since[-1]))
    return ends


def _end(arm: str, since: Floats, line: Floats) -> End:
    """Return the label at the end of ``line``; its level is the mean after the change."""
    level = float(np.nanmean(line[since > 0]))
    return End(arm_style(arm).name, arm_style(arm), float(since[-1]), float(line[-1]), level)


def _draw_ages(axes: Axes, found: Results, arms: Sequence[str], since: Floats) -> None:
    for arm in arms:
        how = arm_style(arm)
        ages = found.series[f"measured/{arm}/held/quantiles"].mean(axis=0)
        axes.plot(since, ages[:, 2], color=how.colour, ls=how.line, lw=1.4)
        axes.plot(since, ages[:, -1], color=how.colour, ls=how.line, lw=0.6)
    axes.set_xlim(float(since[0]), float(since[-1]))
    axes.set_ylim(bottom=0.0)
    axes.grid(axis="y")
    axes.set_ylabel("age (iterations)")


def _draw_scores(axes: Axes, found: Results, arms: Sequence[str], change: float) -> list[End]:
    since = found.series["logged"] - change
    ends = []
    for arm in arms:
        how, mean = arm_style(arm), found.series[f"measured/{arm}/score"].mean(axis=0)
        axes.plot(since, mean, color=how.colour, ls=how.line, lw=1.3)
        ends.append(_end(arm, since, mean))
    for level in (0.0, 1.0):
        axes.axhline(level, color=PALE, lw=0.8, zorder=0)
    axes.set_xlim(float(since[0]), float(since[-1]))
    axes.set_ylabel("score (0 random, 1 optimal)")
    return ends
