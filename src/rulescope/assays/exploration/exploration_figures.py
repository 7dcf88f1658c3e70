"""Figures of the DeepSea assays: the staircase (E-A5, ladder) and its conventions (F1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.assays.estimates import count_text
from rulescope.assays.figure_data import (
    Cell,
    Curve,
    Floats,
    arms_run,
    caption,
    cell,
    cells,
    curve_along,
    curves_by_arm,
    evidence,
    labels_run,
)
from rulescope.assays.panels import draw_estimate, draw_shares, name_rows, with_styles
from rulescope.render.arm_styles import arm_style, subject
from rulescope.render.line_labels import End, inches, name_ends
from rulescope.render.palette import GREY, WHITE
from rulescope.render.style import SMALL, Page, absent, styled

if TYPE_CHECKING:
    from rulescope.assays.results import Results
    from rulescope.stats import Estimate

CONVENTIONS = {"legacy": "rule-legacy", "reference": "rule"}
"""The arm of each convention."""
MAJORITY = 0.5
THRESHOLDS = {"solved": MAJORITY, "goal-in-log": None, "return": 0.495}
"""The readouts of a staircase, and the dotted line of each: a majority, and a solved sea."""
LEFT, RIGHT, WIDE, HIGH = 0.62, 3.78, 2.4, 1.75
"""Inches: where the panels of a page stand, and how large they are."""
DEFINITIONS = (
    "Solved: mean return of at least 0.495 over the last fifth of a lifetime (C). Goal in the log: "
    "a logged mean return ever above 0, which misses goals between log rows. Points of one depth "
    "stand side by side."
)

LADDER = "D: depths that were run, filled where at least half of the lifetimes solve them."


@styled
def draw_exploration(results: Mapping[str, Results]) -> Figure:
    """``v5:fig:app-exploration``: solved, goals in the log, final returns; two conventions."""
    stairs, pairs = results.get("E-A5"), results.get("F1")
    differences = cells(pairs, "difference")
    used = [e for readout in THRESHOLDS for e in cells(stairs, readout)] + differences
    gaps = (
        f"D: difference of returns within seeds; below, how many lifetimes of {subject()} solve it."
    )
    words = [DEFINITIONS if stairs else "", gaps if differences else ""]
    page = Page(4.95, caption([stairs, pairs], evidence(used), *words))
    _draw_stairs(page, stairs)
    title = f"{subject()} minus A2C by convention"
    _draw_conventions(page.panel("D", title, (RIGHT, 2.72, WIDE, HIGH - 0.15)), pairs)
    return page.finish()


@styled
def draw_ladder(results: Mapping[str, Results]) -> Figure:
    """``ladder``: the staircase from depth 4 to 30, and the deepest majority of each learner."""
    stairs = results.get("ladder")
    used = [e for readout in THRESHOLDS for e in cells(stairs, readout)]
    words = (DEFINITIONS, LADDER) if stairs else ()
    page = Page(4.95, caption([stairs], evidence(used), *words))
    _draw_stairs(page, stairs)
    box = (RIGHT + 0.45, 2.72, WIDE - 0.75, HIGH)
    _draw_deepest(page.panel("D", "Deepest sea that half of them solve", box, 0.87), stairs)
    return page.finish()


def _draw_stairs(page: Page, results: Results | None) -> None:
    """Draw the three readouts of a staircase as panels A to C; names stand at B."""
    for letter, quantity, title, left, top in (
        ("A", "solved", "Solved in the end", LEFT, 0.35),
        ("B", "goal-in-log", "Goal in the log", RIGHT, 0.35),
        ("C", "return", "Final return", LEFT, 2.72),
    ):
        axes = page.panel(letter, title, (left, top, WIDE, HIGH))
        ends = draw_staircase(axes, results, quantity)
        if letter == "B":
            name_ends(axes, ends)


def draw_staircase(
    axes: Axes, results: Results | None, quantity: str, *, lifetimes: bool = True
) -> list[End]:
    """Draw a readout of every learner over depth; return where the lines end.

    ``quantity`` is one of ``THRESHOLDS``.
    """
    curves = curves_by_arm(results, quantity, "depth")
    depths = np.unique([x for line in curves.values() for x in line.x])
    apart = float(np.diff(depths).min(initial=4.0)) * min(0.16, 0.8 / max(len(curves), 1))
    label = "mean return" if quantity == "return" else "share of lifetimes"
    ends = draw_shares(
        axes,
        with_styles(curves),
        apart,
        threshold=THRESHOLDS[quantity],
        lifetimes=lifetimes,
        label=label,
    )
    if curves:
        set_depth_axis(axes, depths)
    return ends


def set_depth_axis(axes: Axes, depths: Floats) -> None:
    """Make the horizontal axis one of depths, each with its name where there is room."""
    low, high = float(depths.min()), float(depths.max())
    room = max(0.06 * (high - low), 1.0)
    axes.set(xlim=(low - room, high + room), xlabel="depth")
    unit = inches(axes)[0] / (high - low + 2 * room)
    names, last = [], -np.inf
    for depth in depths.tolist():
        fits = (depth - last) * unit > 0.19
        names.append(f"{depth:g}" if fits else "")
        last = depth if fits else last
    axes.set_xticks(depths.tolist(), names)


def _draw_conventions(axes: Axes, results: Results | None) -> None:
    """Draw the rule minus A2C at each depth under each convention, with the counts of F1 below."""
    depths = sorted(labels_run(results, "difference", "depth"))
    if results is None or not depths:
        absent(axes)
        return
    places, names = [], []
    for group, depth in enumerate(depths):
        for side, (convention, arm) in enumerate(CONVENTIONS.items()):
            found = cell(results, "difference", convention=convention, depth=depth)
            if found is not None:
                places.append(2.6 * group + side)
                names.append(f"{convention}\n{_solved(results, arm, depth)}")
                draw_estimate(axes, places[-1], found, arm_style(arm), size=5.0)
        axes.annotate(
            f"depth {depth:g} (A2C {_solved(results, 'a2c', depth)})",
            (2.6 * group + 0.5, 0.0),
            xycoords=axes.get_xaxis_transform(),
            xytext=(0, -26),
            textcoords="offset points",
            ha="center",
            va="top",
            size=SMALL,
        )
    axes.set_xticks(places, names)
    axes.tick_params(axis="x", length=0, labelsize=6.8)
    axes.axhline(0.0, color=GREY, lw=0.8, zorder=1)
    axes.grid(axis="y")
    low, high = axes.get_ylim()  # what is nearly nothing must not look like much
    axes.set(
        xlim=(-0.7, 2.6 * (len(depths) - 1) + 1.7),
        ylim=(min(low, -0.1), max(high, 0.1)),
        ylabel="difference of returns",
    )
    axes.locator_params(axis="y", nbins=7)


def _solved(results: Results, arm: str, depth: float) -> str:
    """Return how many lifetimes solved a depth, as a count of all."""
    found = cell(results, "solved", arm=arm, depth=depth)
    return "–" if found is None else count_text(found) or "–"


def _draw_deepest(axes: Axes, results: Results | None) -> None:
    """Draw the deepest majority of each learner, a row each, over the depths that it was run at.

    A ring is a depth, filled where at least half of the lifetimes solve it.
    """
    arms = arms_run(results, "deepest", planned=True)
    if results is None or not arms:
        absent(axes)
        return
    depths: set[float] = set()
    for turn, arm in enumerate(arms):
        how = arm_style(arm)
        line = curve_along(results, "solved", "depth", arm=arm)
        if line is None:
            continue
        depths |= set(line.x.tolist())
        for majority in (False, True):
            at = line.x[(line.y >= MAJORITY) == majority]
            axes.plot(
                *(at, np.full(len(at), -turn)),
                marker=how.marker,
                color=how.colour,
                mfc=how.colour if majority else WHITE,
                ms=4.2,
                ls="",
            )
        found = cell(results, "deepest", arm=arm)
        words = _say_deepest(found, line)
        axes.annotate(
            words,
            (1.0, -turn),
            xycoords=axes.get_yaxis_transform(),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            size=SMALL,
        )
    name_rows(axes, [(arm_style(arm).name, arm_style(arm).ink) for arm in arms])
    axes.tick_params(axis="y", labelsize=6.8)
    set_depth_axis(axes, np.array(sorted(depths)))


def _say_deepest(found: Cell | Estimate | None, line: Curve) -> str:
    """Return the deepest sea that half of the lifetimes solve, and how many of them did."""
    if found is None:
        return "none"
    at = np.flatnonzero(line.x == found.value)
    count = count_text(line.cells[int(at[0])]) if len(at) else None
    more = ", or deeper" if found.value == line.x[-1] else ""
    theirs = found.published if isinstance(found, Cell) else None
    printed = f"; published {theirs.value:g}" if theirs is not None else ""
    return f"{found.value:g} ({count}){more}{printed}"
