"""The figure of the discovery assay: finding a goal, and keeping to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from rulescope.assays.estimates import join_labels
from rulescope.assays.figure_data import arms_run, caption, cell, cells, evidence, labels_run
from rulescope.assays.panels import dots
from rulescope.render.line_labels import End, name_ends
from rulescope.render.style import DARK, GREY, PALE, SMALL, Page, absent, look, styled
from rulescope.stats import random_discovery

if TYPE_CHECKING:
    from rulescope.assays.results import Results

WORDS = (
    "Top: share of lifetimes that have found the goal (reached it in any episode); grey line: "
    "exact for uniformly random play. Bottom, in pairs: that share in the end (left, hollow), and "
    "the share of episodes with a goal over the last fifth of a lifetime (right, filled)."
)
FOUND, KEPT = -0.13, 0.13
"""Where the two stand beside each other."""


@styled
def discovery(results: Mapping[str, Results]) -> Figure:
    """``deepsea-discovery``: when the goal is first found at each depth, and whether it is kept."""
    found = results.get("discovery")
    depths = sorted(labels_run(found, "found", "depth")) or [12.0, 14.0, 16.0]
    used = [*cells(found, "found"), *cells(found, "success")]
    page = Page(4.55, caption([found], evidence(used), WORDS if found else ""))
    step = (7.2 - 0.62 - 0.95) / len(depths)
    ends: list[End] = []
    for turn, depth in enumerate(depths):
        left = 0.62 + turn * step
        above, below = (page.axes(left, top, step - 0.35, 1.6) for top in (0.35, 2.65))
        page.heading(above, "ABCDEF"[turn], f"Depth {depth:g}: found", indent=0.25)
        page.heading(below, "ABCDEF"[len(depths) + turn], f"Depth {depth:g}: kept", indent=0.25)
        ends = _incidence(above, found, depth)
        _outcome(below, found, depth)
        for axes in (above, below):
            if turn:
                axes.set_ylabel("")
                axes.tick_params(axis="y", labelleft=False)
    if ends:
        name_ends(above, ends)
    return page.figure


def _share_axis(axes: Axes) -> None:
    axes.set_ylim(-0.06, 1.06)
    axes.set_yticks([0.0, 0.5, 1.0], ["0", "0.5", "1"])
    for reference in (0.0, 0.5, 1.0):
        axes.axhline(reference, color=PALE, lw=0.8, zorder=0)
    axes.set_ylabel("share", labelpad=2)


def _incidence(axes: Axes, results: Results | None, depth: float) -> list[End]:
    """Draw how many lifetimes had found the goal by each episode; return where the lines end."""
    series = {} if results is None else results.series
    keys = {arm: join_labels("incidence", arm, depth) for arm in arms_run(results, "found")}
    lines = {arm: series[key] for arm, key in keys.items() if key in series}
    if not lines:
        absent(axes)
        return []
    last = max(float(line[0, -1]) for line in lines.values())
    grid = np.linspace(0.0, last, 200)
    chance = [random_discovery(int(depth), int(episodes)) for episodes in grid]
    axes.plot(grid, chance, color=GREY, lw=0.8, zorder=1)
    ends = []
    for arm, (episodes, shares) in lines.items():
        how = look(arm)
        axes.step(episodes, shares, where="post", color=how.colour, ls=how.line, lw=1.3)
        level = float(np.sum(np.diff(episodes) * shares[:-1])) / max(last, 1.0)
        ends.append(End(how.name, how, float(episodes[-1]), float(shares[-1]), level))
    _share_axis(axes)
    axes.set_xlim(0.0, last)
    axes.locator_params(axis="x", nbins=3)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_xlabel("episodes", labelpad=2)
    return ends


def _outcome(axes: Axes, results: Results | None, depth: float) -> None:
    """Draw for each arm the share that found the goal, and how often it is reached in the end."""
    arms = arms_run(results, "found", depth=depth)
    if not arms:
        absent(axes)
        return
    for turn, arm in enumerate(arms):
        how = look(arm)
        found, kept = (cell(results, name, arm=arm, depth=depth) for name in ("found", "success"))
        dots(axes, [turn + FOUND], [found], how._replace(filled=False), size=4.6)
        dots(axes, [turn + KEPT], [kept], how._replace(filled=True), size=4.6)
    _share_axis(axes)
    axes.set_xlim(-0.6, len(arms) - 0.4)
    axes.set_xticks(range(len(arms)), [_short(arm) for arm in arms])
    axes.tick_params(axis="x", length=0, labelsize=SMALL, labelcolor=DARK)


def _short(arm: str) -> str:
    """Return the first word of an arm's name: there is little room below a panel."""
    return look(arm).name.split()[0].rstrip(",")
