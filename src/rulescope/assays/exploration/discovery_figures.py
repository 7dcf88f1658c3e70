"""The figure of the discovery assay: finding a goal, and keeping to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from rulescope.assays.analysis import FEWEST
from rulescope.assays.estimates import join_labels
from rulescope.assays.figure_data import (
    Floats,
    arms_run,
    caption,
    cell,
    cells,
    evidence,
    labels_run,
)
from rulescope.assays.panels import Row, draw_forest, draw_levels, set_share_axis
from rulescope.render.arm_styles import ArmStyle, arm_style
from rulescope.render.line_labels import End, name_apart
from rulescope.render.palette import GREY
from rulescope.render.style import SMALL, Page, absent, styled
from rulescope.stats import random_discovery, wilson

if TYPE_CHECKING:
    from rulescope.assays.results import Results
    from rulescope.stats import Estimate

CHANCE = ArmStyle("random, exact", GREY, "_")
WORDS = (
    "Top: share of lifetimes that have found the goal (reached it in any episode), with Wilson "
    "intervals; random, exact: the share for uniformly random play. Bottom, in pairs: that share "
    "in the end (left, hollow), and the share of episodes with a goal over the last fifth of a "
    "lifetime (right, filled)."
)


@styled
def draw_discovery(results: Mapping[str, Results]) -> Figure:
    """``deepsea-discovery``: when the goal is first found at each depth, and whether it is kept."""
    found = results.get("discovery")
    depths = sorted(labels_run(found, "found", "depth")) or [12.0, 14.0, 16.0]
    used = [*cells(found, "found"), *cells(found, "success")]
    page = Page(4.55, caption([found], evidence(used), WORDS if found else ""))
    step = (7.2 - 0.62 - 0.95) / len(depths)
    ends: dict[str, End] = {}
    for turn, depth in enumerate(depths):
        left, wide = 0.62 + turn * step, step - 0.35
        letters = "ABCDEF"[turn], "ABCDEF"[len(depths) + turn]
        above = page.panel(letters[0], f"Depth {depth:g}: found", (left, 0.35, wide, 1.6), 0.25)
        below = page.panel(letters[1], f"Depth {depth:g}: kept", (left, 2.65, wide, 1.6), 0.25)
        ends = {end.text: end for end in _draw_incidence(above, found, depth)} | ends
        _draw_outcome(below, found, depth)
        for axes in (above, below) if turn else ():
            axes.set_ylabel("")
            axes.tick_params(axis="y", labelleft=False)
    name_apart(above, list(ends.values()))
    return page.finish()


def _draw_incidence(axes: Axes, results: Results | None, depth: float) -> list[End]:
    """Draw how many lifetimes had found the goal by each episode; return where the lines end."""
    series = {} if results is None else results.series
    keys = {arm: join_labels("incidence", arm, depth) for arm in arms_run(results, "found")}
    lines = {arm: series[key] for arm, key in keys.items() if key in series}
    if not lines:
        absent(axes)
        return []
    counts = {arm: cell(results, "found", arm=arm, depth=depth) for arm in lines}
    last = max(float(line[0, -1]) for line in lines.values())
    grid = np.linspace(0.0, last, 200)
    chance = [random_discovery(int(depth), int(episodes)) for episodes in grid]
    axes.plot(grid, chance, color=GREY, lw=0.8, zorder=1)
    ends = [End(CHANCE.name, CHANCE, last, chance[-1], -1.0)]
    for arm, (episodes, shares) in lines.items():
        how = arm_style(arm)
        axes.step(episodes, shares, where="post", color=how.colour, ls=how.line, lw=1.3)
        _draw_band(axes, episodes, shares, counts[arm], how)
        level = float(np.sum(np.diff(episodes) * shares[:-1])) / max(last, 1.0)
        ends.append(End(how.name, how, float(episodes[-1]), float(shares[-1]), level))
    set_share_axis(axes)
    draw_levels(axes, 0.5)
    axes.set(xlim=(0.0, last), xlabel="episodes")
    axes.locator_params(axis="x", nbins=3)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    return ends


def _draw_band(
    axes: Axes, episodes: Floats, shares: Floats, found: Estimate | None, how: ArmStyle
) -> None:
    """Draw the interval of a share of lifetimes at each episode, if there are enough of them."""
    if found is None or found.n < FEWEST:
        return
    each = [wilson(round(share * found.n), found.n) for share in shares.tolist()]
    low, high = [one.low for one in each], [one.high for one in each]
    axes.fill_between(episodes, low, high, step="post", color=how.colour, alpha=0.12, lw=0)


def _draw_outcome(axes: Axes, results: Results | None, depth: float) -> None:
    """Draw for each arm the share that found the goal, and how often it is reached in the end."""
    rows = []
    for arm in arms_run(results, "found", depth=depth):
        found, kept = (cell(results, name, arm=arm, depth=depth) for name in ("found", "success"))
        how = arm_style(arm)
        pair = [(how._replace(filled=False), found), (how._replace(filled=True), kept)]
        # the first word of its name: there is little room below a panel
        rows.append(Row(how.name.split()[0].rstrip(","), pair))
    if draw_forest(axes, rows, upright=True, apart=0.4, labelsize=SMALL):
        set_share_axis(axes)
        draw_levels(axes, 0.5)
