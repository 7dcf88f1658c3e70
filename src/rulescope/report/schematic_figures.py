"""Figures that show no data: what is audited, and what is done to a history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from numpy.typing import NDArray

from rulescope.report.style import DARK, GREY, PALE, SMALL, Page, look, styled

if TYPE_CHECKING:
    from rulescope.assays.results import Results

Floats = NDArray[np.float64]
Point = tuple[float, float]


class _Box(NamedTuple):
    """A part of the loop: where it is, and what stands in it."""

    centre: Point
    title: str
    words: str
    colour: str = DARK


WIDE, TALL = 1.62, 0.74
"""Inches of a box."""
_LOOP = {
    "world": _Box((0.95, 1.9), "World", "reward scale, episode ends,\nchanges"),
    "replay": _Box((2.85, 1.9), "Experience", "recent trajectories, kept"),
    "rule": _Box((4.75, 1.9), "Learned rule", "its weights never change", "#0072B2"),
    "state": _Box((4.75, 0.55), "Its history", "recurrent state, averages", "#D55E00"),
    "agent": _Box((2.85, 0.55), "Agent", "policy and predictions,\nslow copy, moments"),
}
_ARROWS: tuple[tuple[Point, Point, str, Point], ...] = (
    ((1.76, 1.9), (2.04, 1.9), "", (0, 0)),
    ((3.66, 1.9), (3.94, 1.9), "", (0, 0)),
    ((4.45, 1.53), (3.3, 0.92), "targets", (3.55, 1.3)),
    ((2.04, 0.55), (0.95, 1.53), "actions", (1.02, 0.86)),
    ((4.65, 1.53), (4.65, 0.92), "", (0, 0)),
    ((4.85, 0.92), (4.85, 1.53), "", (0, 0)),
)
_AXES = (
    ("horizon", "how long, how far?"),
    ("reward scale", "in what units?"),
    ("streams", "without episodes?"),
    ("change", "when the world turns?"),
    ("exploration", "what is hidden?"),
)


@styled
def framework(_results: Mapping[str, Results]) -> Figure:
    """``fig:framework``: what learns, where its history is, and along which axes it is asked."""
    page = Page(
        2.5,
        "An audit exchanges the orange part and nothing else: pinned to zero, frozen, or taken "
        "from another lifetime. What changes along the five axes is the effect of that history.",
    )
    axes = _canvas(page, page.width, 2.5)
    for box in _LOOP.values():
        _draw(axes, box)
    for start, end, words, place in _ARROWS:
        _arrow(axes, start, end)
        axes.text(*place, words, size=SMALL, color=GREY, ha="center", va="center")
    axes.text(5.78, 2.17, "asked along five axes", size=SMALL, color=GREY)
    for turn, (name, question) in enumerate(_AXES):
        height = 1.88 - 0.36 * turn
        axes.text(5.78, height, name, size=8, color=DARK)
        axes.text(5.78, height - 0.145, question, size=SMALL, color=GREY)
    return page.figure


def _canvas(page: Page, width: float, height: float) -> Axes:
    """Return axes in inches, with nothing around them."""
    axes = page.axes(0, 0, width, height)
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.set_axis_off()
    return axes


def _draw(axes: Axes, box: _Box) -> None:
    x, y = box.centre
    axes.add_patch(
        FancyBboxPatch(
            (x - WIDE / 2, y - TALL / 2),
            WIDE,
            TALL,
            boxstyle="round,pad=0,rounding_size=0.08",
            facecolor="#FFFFFF",
            edgecolor=box.colour,
            linewidth=1.3,
        )
    )
    lines = box.words.count("\n") + 1
    axes.text(x, y + 0.075 * lines, box.title, size=8.5, color=box.colour, ha="center", va="center")
    axes.text(
        x, y - 0.145, box.words, size=SMALL, color=DARK, ha="center", va="center", linespacing=1.2
    )


def _arrow(axes: Axes, start: Point, end: Point) -> None:
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=8,
            color=GREY,
            linewidth=1.0,
            shrinkA=0,
            shrinkB=0,
        )
    )


def _own(times: Floats) -> Floats:
    """Return how a state might move through a lifetime: away from zero, then around a place."""
    return 1 - np.exp(-3.5 * times) + 0.09 * np.sin(17 * times) * np.exp(-0.8 * times)


DONOR, FREEZE = -0.75, 0.15
"""Where a donor's state ended, and when a freeze begins, as a part of a lifetime."""
_ROWS: tuple[tuple[str, str, str, Callable[[Floats], Floats]], ...] = (
    ("live", "live", "left alone", _own),
    ("pin", "pin", "zero after every iteration", np.zeros_like),
    (
        "freeze",
        "freeze",
        "kept as it was at some moment",
        lambda times: _own(np.minimum(times, FREEZE)),
    ),
    (
        "cross-natural",
        "transplant, natural",
        "begins as a donor’s ended, and moves on",
        lambda times: DONOR + (1 - DONOR) * (1 - np.exp(-3.0 * times)),
    ),
    (
        "cross-clamp",
        "transplant, clamp",
        "brought back to the donor’s after every iteration",
        lambda times: np.full_like(times, DONOR),
    ),
)
"""The arm whose look a row has, its name, what is done, and what becomes of the number."""


@styled
def interventions(_results: Mapping[str, Results]) -> Figure:
    """``fig:interventions``: what becomes of a carrier under each of the main interventions."""
    page = Page(
        3.35,
        "One number of a carrier through a lifetime, made up for illustration; the rule’s weights, "
        "the seed and the world are the same in every row. Pale: left alone.",
    )
    times = np.linspace(0, 1, 400)
    for turn, (arm, title, words, path) in enumerate(_ROWS):
        how = look(arm)
        axes = page.axes(3.1, 0.12 + 0.58 * turn, 3.9, 0.5)
        axes.plot(times, _own(times), color=PALE, linewidth=2.4)
        axes.axhline(0, color=GREY, linewidth=0.6)
        axes.plot(times, path(times), color=how.colour, linestyle=how.line, linewidth=1.8)
        if arm == "freeze":
            axes.axvline(FREEZE, color=GREY, linewidth=0.7, linestyle=":")
        if path(times)[0] == DONOR:
            axes.plot([0], [DONOR], marker="o", color=how.colour, clip_on=False)
        axes.set(xlim=(0, 1), ylim=(-1.05, 1.25), xticks=[], yticks=[])
        axes.spines[["left", "bottom"]].set_visible(False)
        middle = 0.37 + 0.58 * turn
        for text, lift, size, colour in (
            (title, 0.06, 8.5, how.ink),
            (words, -0.09, SMALL, DARK),
        ):
            page.figure.text(
                0.1 / page.width,
                1 - (middle - lift) / page.height,
                text,
                size=size,
                color=colour,
                va="center",
            )
    page.figure.text(
        3.1 / page.width, 1 - 3.13 / page.height, "birth", size=SMALL, color=GREY, va="center"
    )
    page.figure.text(
        7.0 / page.width,
        1 - 3.13 / page.height,
        "end of a lifetime",
        size=SMALL,
        color=GREY,
        va="center",
        ha="right",
    )
    return page.figure


SCHEMATICS = {"fig:framework": framework, "fig:interventions": interventions}
"""By label."""
