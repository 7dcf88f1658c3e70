"""Figures of the DeepSea assays: the staircase (E-A5, ladder) and its conventions (F1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.assays.estimates import count_text
from rulescope.assays.figure_data import (
    Floats,
    arms_run,
    caption,
    cell,
    cells,
    curves_by_arm,
    evidence,
    labels_run,
)
from rulescope.assays.panels import curves_beside, dots, name_rows
from rulescope.render.line_labels import End, inches, name_ends
from rulescope.render.style import GREY, PALE, SMALL, Page, absent, look, styled, subject

if TYPE_CHECKING:
    from rulescope.assays.results import Results

CONVENTIONS = {"legacy": "disco-legacy", "reference": "disco"}
"""The arm of each convention."""
SOLVED = 0.495
READOUTS = ("solved", "goal-in-log", "return")
LEFT, RIGHT, WIDE, HIGH = 0.62, 3.78, 2.4, 1.75
"""Inches: where the panels of a page stand, and how large they are."""
DEFINITIONS = (
    "Solved: mean return of at least 0.495 over the last fifth of a lifetime (C). Goal in the log: "
    "a logged mean return ever above 0, which misses goals between log rows. Points of one depth "
    "stand side by side."
)


@styled
def app_exploration(results: Mapping[str, Results]) -> Figure:
    """``v5:fig:app-exploration``: solved, goals in the log, final returns; two conventions."""
    stairs, pairs = results.get("E-A5"), results.get("F1")
    differences = cells(pairs, "difference")
    used = [e for readout in READOUTS for e in cells(stairs, readout)] + differences
    gaps = (
        f"D: difference of returns within seeds; below, how many lifetimes of {subject()} solve it."
    )
    words = [DEFINITIONS if stairs else "", gaps if differences else ""]
    page = Page(4.95, caption([stairs, pairs], evidence(used), *words))
    _stairs(page, stairs)
    axes = page.axes(RIGHT, 2.72, WIDE, HIGH - 0.15)
    page.heading(axes, "D", f"{subject()} minus A2C by convention")
    conventions(axes, pairs)
    return page.figure


@styled
def ladder(results: Mapping[str, Results]) -> Figure:
    """``ladder``: the staircase from depth 4 to 30, and the deepest majority of each learner."""
    stairs = results.get("ladder")
    used = [e for readout in READOUTS for e in cells(stairs, readout)]
    page = Page(4.95, caption([stairs], evidence(used), DEFINITIONS if stairs else ""))
    _stairs(page, stairs)
    axes = page.axes(RIGHT + 0.45, 2.72, WIDE - 0.45, HIGH)
    page.heading(axes, "D", "Deepest sea that a majority solves", indent=0.87)
    _deepest(axes, stairs)
    return page.figure


def _stairs(page: Page, results: Results | None) -> None:
    """Draw the three readouts of a staircase as panels A to C; names stand at B."""
    for letter, quantity, title, left, top in (
        ("A", "solved", "Solved in the end", LEFT, 0.35),
        ("B", "goal-in-log", "Goal in the log", RIGHT, 0.35),
        ("C", "return", "Final return", LEFT, 2.72),
    ):
        axes = page.axes(left, top, WIDE, HIGH)
        page.heading(axes, letter, title)
        ends = depth_curves(axes, results, quantity)
        if letter == "B":
            axes.set_ylabel("")
            name_ends(axes, ends)


def depth_curves(axes: Axes, results: Results | None, quantity: str) -> list[End]:
    """Draw a readout of every learner over depth; return where the lines end.

    ``quantity`` is one of ``READOUTS``. Learners stand side by side at each depth, because many
    have the same share there.
    """
    curves = curves_by_arm(results, quantity, "depth")
    if not curves:
        absent(axes)
        return []
    depths = np.unique(np.concatenate([line.x for line in curves.values()]))
    apart = float(np.diff(depths).min(initial=4.0)) * min(0.1, 0.6 / len(curves))
    lines = [(look(arm), line) for arm, line in curves.items()]
    ends = curves_beside(axes, lines, apart, seeds=True)
    depth_axis(axes, depths)
    tops = [line.high for line in curves.values()] + [line.y for line in curves.values()]
    axes.set_ylim(-0.06, max(1.06, float(np.nanmax(np.concatenate(tops))) + 0.04))
    axes.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0", "", "0.5", "", "1"])
    for reference in (0.0, 1.0):
        axes.axhline(reference, color=PALE, lw=0.8, zorder=0)
    if quantity != "goal-in-log":
        half = SOLVED if quantity == "return" else 0.5
        axes.axhline(half, color=GREY, lw=0.6, ls=(0, (2, 2)), zorder=0)
    axes.set_ylabel("mean return" if quantity == "return" else "share of lifetimes", labelpad=2)
    return ends


def depth_axis(axes: Axes, depths: Floats) -> None:
    """Make the horizontal axis one of depths, each with its name where there is room."""
    low, high = float(depths.min()), float(depths.max())
    room = max(0.06 * (high - low), 1.0)
    axes.set_xlim(low - room, high + room)
    unit = inches(axes)[0] / (high - low + 2 * room)
    names, last = [], -np.inf
    for depth in depths.tolist():
        fits = (depth - last) * unit > 0.19
        names.append(f"{depth:g}" if fits else "")
        last = depth if fits else last
    axes.set_xticks(depths.tolist(), names)
    axes.set_xlabel("depth", labelpad=2)


def conventions(axes: Axes, results: Results | None) -> None:
    """Draw the rule minus A2C at each depth under each convention, with the counts of F1 below."""
    depths = sorted(labels_run(results, "difference", "depth"))
    if results is None or not depths:
        absent(axes)
        return
    places, names = [], []
    for group, depth in enumerate(depths):
        for side, (convention, arm) in enumerate(CONVENTIONS.items()):
            found = cell(results, "difference", convention=convention, depth=depth)
            if found is None:
                continue
            place = 2.6 * group + side
            dots(axes, [place], [found], look(arm), size=5.0)
            places.append(place)
            names.append(f"{convention}\n{_count(results, arm, depth)}")
        axes.annotate(
            f"depth {depth:g} (A2C {_count(results, 'a2c', depth)})",
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
    axes.set_xlim(-0.7, 2.6 * (len(depths) - 1) + 1.7)
    axes.axhline(0.0, color=GREY, lw=0.8, zorder=1)
    axes.grid(axis="y")
    low, high = axes.get_ylim()  # near nothing must not look like much
    axes.set_ylim(min(low, -0.1), max(high, 0.1))
    axes.locator_params(axis="y", nbins=7)
    axes.set_ylabel("difference of returns", labelpad=2)


def _count(results: Results, arm: str, depth: float) -> str:
    found = cell(results, "solved", arm=arm, depth=depth)
    return "–" if found is None else count_text(found) or "–"


def _deepest(axes: Axes, results: Results | None) -> None:
    """Draw the deepest majority of each learner, a row each."""
    arms = arms_run(results, "deepest", planned=True)
    if results is None or not arms:
        absent(axes)
        return
    for turn, arm in enumerate(arms):
        found, how = cell(results, "deepest", arm=arm), look(arm)
        value = 0.0 if found is None else found.value
        axes.plot([0.0, value], [-turn, -turn], color=how.colour, lw=1.3, alpha=0.6)
        if found is not None:
            axes.plot([value], [-turn], marker=how.marker, color=how.colour, mfc=how.face, ls="")
        axes.annotate(
            "none" if found is None else f"{value:g}",
            (value, -turn),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            size=SMALL,
        )
    name_rows(axes, [(look(arm).name, look(arm)) for arm in arms])
    axes.tick_params(axis="y", labelsize=6.8)
    axes.set_xlim(0.0, max(labels_run(results, "solved", "depth")) * 1.1)
    axes.set_xlabel("depth", labelpad=2)
