"""Figure of the replay view: how old what is learned from is, around a change of the world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.assays.figure_data import Floats
from rulescope.mechanism.mechanism_figures import below
from rulescope.render.line_labels import End, name_ends
from rulescope.render.style import GREY, PALE, Page, absent, look, styled

if TYPE_CHECKING:
    from rulescope.assays.results import Results

WORDS = (
    "A, B: share of a learner's replay that was stored before the change of the world. Lines "
    "follow from first in, first out; dots are what was drawn for updates (means of 20 "
    "iterations). B: the same in lifetimes of the published length. C: age of what is stored, as "
    "measured: thick, the median; thin, the age that 95% do not exceed. D: score in the lifetimes "
    "of A and C."
)
SMOOTHED = 20
"""Iterations whose draws make one dot."""


@styled
def replay_ages(results: Mapping[str, Results]) -> Figure:
    """``mechanism-replay``: shares from before a change, ages, and scores."""
    found = results.get("mechanism-replay")
    page = Page(4.4, below(found, WORDS))
    titles = (
        "Stored before the change",
        "In the published lifetime of 3,000",
        "Age of what is stored",
        "Score",
    )
    panels = [
        page.axes(0.6 + 3.05 * (turn % 2), 0.35 + 2.1 * (turn // 2), 2.4, 1.45) for turn in range(4)
    ]
    for letter, title, axes in zip("ABCD", titles, panels, strict=True):
        page.heading(axes, letter, title, indent=0.4)
    if found is None:
        for axes in panels:
            absent(axes)
        return page.figure
    arms = [str(arm) for arm in found.axes["arm"]]
    at = float(found.series["switch"][0])
    since = found.series["iteration"] - at
    _measured_share(panels[0], found, arms, since)
    name_ends(panels[1], _published_share(panels[1], found, arms))
    _ages(panels[2], found, arms, since)
    name_ends(panels[3], _scores(panels[3], found, arms, at))
    for axes in panels:
        axes.axvline(0.0, color=GREY, lw=0.7, zorder=0)
        axes.set_xlabel("iterations since the change", labelpad=2)
    return page.figure


def _name(found: Results, arm: str) -> str:
    """Return what an arm is called: under another rule than the usual one, by its name."""
    return found.rule if arm == "disco" and found.rule != "disco103" else look(arm).name


def _share_axis(axes: Axes, last: float) -> None:
    axes.set_ylim(-0.03, 1.05)
    axes.set_xlim(-0.12 * last, last)
    axes.grid(axis="y")
    axes.set_ylabel("share from before", labelpad=2)


def _measured_share(axes: Axes, found: Results, arms: Sequence[str], since: Floats) -> None:
    for arm in arms:
        how = look(arm)
        axes.plot(since, found.series[f"fifo/{arm}/before"], color=how.colour, ls=how.line, lw=1.2)
        drawn = found.series[f"measured/{arm}/drawn/before"].mean(axis=0)
        after = drawn[since > 0]
        whole = len(after) // SMOOTHED * SMOOTHED
        means = after[:whole].reshape(-1, SMOOTHED)
        known = np.isfinite(means).any(axis=1)  # a replay that was emptied is not drawn from yet
        x = since[since > 0][:whole].reshape(-1, SMOOTHED).mean(axis=1)
        axes.plot(
            x[known],
            np.nanmean(means[known], axis=1),
            how.marker,
            color=how.colour,
            mfc=how.face,
            ms=3.2,
            mew=0.7,
        )
    _share_axis(axes, float(since[-1]))


def _published_share(axes: Axes, found: Results, arms: Sequence[str]) -> list[End]:
    iteration = found.series["published"]
    since = iteration - iteration[-1] / 2
    ends = []
    for arm in arms:
        how, line = look(arm), found.series[f"published/{arm}/before"]
        axes.plot(since, line, color=how.colour, ls=how.line, lw=1.4)
        level = float(np.nanmean(line[since > 0]))
        ends.append(End(_name(found, arm), how, float(since[-1]), float(line[-1]), level))
    _share_axis(axes, float(since[-1]))
    return ends


def _ages(axes: Axes, found: Results, arms: Sequence[str], since: Floats) -> None:
    for arm in arms:
        how = look(arm)
        ages = found.series[f"measured/{arm}/held/quantiles"].mean(axis=0)
        axes.plot(since, ages[:, 2], color=how.colour, ls=how.line, lw=1.4)
        axes.plot(since, ages[:, -1], color=how.colour, ls=how.line, lw=0.6)
    axes.set_xlim(float(since[0]), float(since[-1]))
    axes.set_ylim(bottom=0.0)
    axes.grid(axis="y")
    axes.set_ylabel("age (iterations)", labelpad=2)


def _scores(axes: Axes, found: Results, arms: Sequence[str], at: float) -> list[End]:
    since = found.series["logged"] - at
    ends = []
    for arm in arms:
        how, lines = look(arm), found.series[f"measured/{arm}/score"]
        mean = lines.mean(axis=0)
        axes.plot(since, mean, color=how.colour, ls=how.line, lw=1.3)
        level = float(np.nanmean(mean[since > 0]))
        ends.append(End(_name(found, arm), how, float(since[-1]), float(mean[-1]), level))
    for level in (0.0, 1.0):
        axes.axhline(level, color=PALE, lw=0.8, zorder=0)
    axes.set_xlim(float(since[0]), float(since[-1]))
    axes.set_ylabel("score (0 random, 1 optimal)", labelpad=2)
    return ends
