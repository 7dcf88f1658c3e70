"""Schematic figures without data: the audited loop, and the interventions on a history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from numpy.typing import NDArray

from rulescope.assays.interface.interface_figures import hyperbolic
from rulescope.assays.panels import draw_levels
from rulescope.render.arm_styles import arm_style
from rulescope.render.palette import BLUE, DARK, GREY, PALE, TITLE, VERMILION, WHITE
from rulescope.render.style import SMALL, Page, styled

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
    "rule": _Box((4.75, 1.9), "Learned rule", "its weights never change", BLUE),
    "state": _Box((4.75, 0.55), "Its history", "recurrent state, averages", VERMILION),
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
def draw_framework(_results: Mapping[str, Results]) -> Figure:
    """``fig:framework``: what learns, where its history is, and along which axes it is asked."""
    page = Page(
        2.5,
        "An audit exchanges the orange part and nothing else: pinned to zero, frozen, or taken "
        "from another lifetime. What changes along the five axes is the effect of that history.",
    )
    axes = _make_canvas(page, page.width, 2.5)
    for box in _LOOP.values():
        _draw_box(axes, box)
    for start, end, words, place in _ARROWS:
        _draw_arrow(axes, start, end)
        axes.text(*place, words, size=SMALL, color=GREY, ha="center", va="center")
    axes.text(5.78, 2.17, "asked along five axes", size=SMALL, color=GREY)
    for turn, (name, question) in enumerate(_AXES):
        height = 1.88 - 0.36 * turn
        axes.text(5.78, height, name, size=8, color=DARK)
        axes.text(5.78, height - 0.145, question, size=SMALL, color=GREY)
    return page.finish()


def _make_canvas(page: Page, width: float, height: float) -> Axes:
    """Return axes in inches, with nothing around them."""
    axes = page.axes(0, 0, width, height)
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.set_axis_off()
    return axes


def _draw_box(axes: Axes, box: _Box) -> None:
    x, y = box.centre
    axes.add_patch(
        FancyBboxPatch(
            (x - WIDE / 2, y - TALL / 2),
            WIDE,
            TALL,
            boxstyle="round,pad=0,rounding_size=0.08",
            facecolor=WHITE,
            edgecolor=box.colour,
            linewidth=1.3,
        )
    )
    lines = box.words.count("\n") + 1
    axes.text(x, y + 0.075 * lines, box.title, size=8.5, color=box.colour, ha="center", va="center")
    axes.text(
        x, y - 0.145, box.words, size=SMALL, color=DARK, ha="center", va="center", linespacing=1.2
    )


def _draw_arrow(axes: Axes, start: Point, end: Point) -> None:
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


class _Row(NamedTuple):
    """One intervention: its name, what is done, and how the number moves under it."""

    title: str
    words: str
    paths: Mapping[str, Callable[[Floats], Floats]]
    """By the arm whose style the line has."""


FREEZE = 0.15
"""When a freeze begins, as a part of a lifetime."""
DONORS = {"match": 0.8, "cross": -0.75}
"""Where the states of donors of the same and of the opposite scale ended."""


def _revised(start: float) -> Callable[[Floats], Floats]:
    """Return how a state moves that begins at ``start`` and is updated from then on."""
    return lambda times: start + (_own(np.ones_like(times)) - start) * (1 - np.exp(-3.0 * times))


def _held(start: float) -> Callable[[Floats], Floats]:
    """Return how a state moves that is brought back to ``start`` after every iteration."""
    return lambda times: np.full_like(times, start)


_STATE = (
    _Row("live", "updated in every iteration", {"live": _own}),
    _Row("pin", "zero after every iteration", {"pin": np.zeros_like}),
    _Row(
        "freeze",
        "its own state of one moment, restored",
        {"freeze": lambda times: _own(np.minimum(times, FREEZE))},
    ),
)
_TRANSPLANT = (
    _Row(
        "transplant, natural",
        "begins with a donor’s state, then updated",
        {f"{donor}-natural": _revised(start) for donor, start in DONORS.items()},
    ),
    _Row(
        "transplant, clamp",
        "a donor’s state, restored after every iteration",
        {f"{donor}-clamp": _held(start) for donor, start in DONORS.items()},
    ),
)


@styled
def draw_interventions(_results: Mapping[str, Results]) -> Figure:
    """``fig:interventions``: its own state, a donor's state, and the path of the value target."""
    page = Page(
        5.75,
        "A, B: one number of the recurrent state through a lifetime, made up for illustration; "
        "pale: left alone. Weights of the rule, seed and world are the same in every row; "
        "everything but the state is updated as usual. Donors were trained at the recipient’s "
        "reward scale (match) or at the opposite extreme (cross). C: the path of a value "
        "target of 12, computed. It is transformed, clipped at ±M and split between the two atoms "
        "next to it (601 of them, from −M to M). Predicted probabilities p are trained towards "
        "these weights by cross-entropy. A value is read from p by the inverse transform of the "
        "mean: mean first, inverse after. Here p is taken to be the weights.",
    )
    _draw_rows(page, 0.38, "A", "A learner’s own state", _STATE)
    _draw_rows(page, 2.38, "B", "A donor’s state in a new learner", _TRANSPLANT)
    for words, place, side in (("start", 3.3, "left"), ("end of a lifetime", 7.0, "right")):
        page.figure.text(
            place / page.width,
            1 - 3.6 / page.height,
            words,
            size=SMALL,
            color=GREY,
            va="center",
            ha=side,
        )
    _draw_value_path(page)
    return page.finish()


TARGET, SUPPORT, SHOWN = 12.0, 300.0, (0, 5)
"""A scalar target, where targets are clipped, and the atoms that are shown."""


def _draw_value_path(page: Page) -> None:
    """Draw what happens to one target: transform, clip, two-hot weights, readout."""
    moved = float(hyperbolic(np.array(TARGET)))
    boxes = [(0.62 + 1.72 * turn, 4.25, 1.2, 1.15) for turn in range(4)]
    titles = ("1  transform", "2  clip", "3  two-hot", "4  readout")
    panels = [
        page.panel("" if turn else "C", title, box, 0.52, data=False)
        for turn, (title, box) in enumerate(zip(titles, boxes, strict=True))
    ]
    _draw_transform(panels[0], moved)
    _draw_clip(panels[1])
    atoms, weights = _two_hot(moved)
    _draw_weights(panels[2], atoms, weights, moved)
    _draw_readout(panels[3], float(atoms @ weights))


def _two_hot(value: float) -> tuple[Floats, Floats]:
    """Return the shown atoms [atoms], one apart, and the weights that ``value`` has on them."""
    atoms = np.arange(SHOWN[0], SHOWN[1] + 1, dtype=np.float64)
    return atoms, np.clip(1 - np.abs(atoms - value), 0, None)


def _draw_transform(axes: Axes, moved: float) -> None:
    scalar = np.linspace(0.0, 20.0, 200)
    axes.plot(scalar, hyperbolic(scalar), color=BLUE)
    axes.plot([TARGET, TARGET, 0], [0, moved, moved], color=VERMILION, lw=0.9, ls=":")
    axes.plot([TARGET], [moved], "o", color=VERMILION)
    words = f"f({TARGET:g}) = {moved:.2f}"
    axes.text(TARGET - 0.6, 0.2, words, size=SMALL, va="bottom", ha="right")
    axes.set(xlim=(0, 20), ylim=(0, 4.2), xlabel="scalar target y", ylabel="f(y)")
    axes.set_xticks([0, TARGET, 20])
    axes.set_yticks([0, 2, 4])


def _draw_clip(axes: Axes) -> None:
    value = np.linspace(-2 * SUPPORT, 2 * SUPPORT, 200)
    axes.plot(value, np.clip(value, -SUPPORT, SUPPORT), color=BLUE)
    ends = [-SUPPORT, 0, SUPPORT]
    axes.set_xticks(ends, ["−M", "0", "M"])
    axes.set_yticks(ends, ["−M", "0", "M"])
    axes.set(ylim=(-1.5 * SUPPORT, 1.5 * SUPPORT), xlabel="f(y)")
    draw_levels(axes, -SUPPORT, SUPPORT)
    axes.text(-1.9 * SUPPORT, 1.15 * SUPPORT, f"M = {SUPPORT:g}", size=SMALL)


def _draw_weights(axes: Axes, atoms: Floats, weights: Floats, moved: float) -> None:
    axes.vlines(atoms, 0, weights, color=DARK, lw=5)
    axes.plot([moved], [0.92], "v", color=VERMILION, ms=5)
    axes.axvline(moved, color=VERMILION, lw=0.9, ls=":", zorder=0)
    for atom, weight in zip(atoms, weights, strict=True):
        if weight > 0:
            side, ha = (-0.3, "right") if atom < moved else (0.3, "left")
            axes.text(atom + side, weight, f"{weight:.2f}", size=SMALL, ha=ha, va="top")
    axes.set(xlim=(SHOWN[0] - 0.5, SHOWN[1] + 0.5), ylim=(0, 1.05), xlabel="atom z, one apart")
    axes.set_xticks(atoms)
    axes.set_yticks([0, 0.5, 1.0], ["0", "", "1"])
    axes.set_ylabel("weight")


def _draw_readout(axes: Axes, mean: float) -> None:
    """Draw the inverse transform of the mean of the atoms, which is found from its graph."""
    scalar = np.linspace(0.0, 20.0, 2001)
    curve = hyperbolic(scalar)
    value = float(np.interp(mean, curve, scalar))
    axes.plot(curve, scalar, color=BLUE)
    axes.plot([mean, mean, 0], [0, value, value], color=VERMILION, lw=0.9, ls=":")
    axes.plot([mean], [value], "o", color=VERMILION)
    words = f"f⁻¹({mean:.2f}) = {value:.1f}"
    axes.text(0.1, value + 0.8, words, size=SMALL, va="bottom", ha="left")
    axes.set(xlim=(0, 4.2), ylim=(0, 20), xlabel="mean Σ p z", ylabel="value")
    axes.set_xticks([0, 2, 4])
    axes.set_yticks([0, TARGET, 20])


def _draw_rows(page: Page, top: float, letter: str, title: str, rows: Sequence[_Row]) -> None:
    """Draw one panel: a row for each intervention, its words on the left."""
    times, step = np.linspace(0, 1, 400), 0.56
    for turn, row in enumerate(rows):
        axes = page.axes(3.3, top + step * turn, 3.7, 0.48)
        axes.plot(times, _own(times), color=PALE, linewidth=2.4)
        axes.axhline(0, color=GREY, linewidth=0.6)
        for arm, path in row.paths.items():
            _draw_line(axes, times, path(times), arm)
        if row.title == "freeze":
            axes.axvline(FREEZE, color=GREY, linewidth=0.7, linestyle=":")
        axes.set(xlim=(0, 1), ylim=(-1.05, 1.25), xticks=[], yticks=[])
        axes.spines[["left", "bottom"]].set_visible(False)
        ink = arm_style(next(iter(row.paths))).ink if len(row.paths) == 1 else DARK
        middle = top + 0.24 + step * turn
        for text, lift, size, colour in (
            (row.title, 0.06, 8.5, ink),
            (row.words, -0.09, SMALL, DARK),
        ):
            page.figure.text(
                0.52 / page.width,
                1 - (middle - lift) / page.height,
                text,
                size=size,
                color=colour,
                va="center",
            )
    place = 1 - (top - 0.13) / page.height
    page.figure.text(0.1 / page.width, place, letter, weight="bold", size=9.5, va="baseline")
    page.figure.text(0.52 / page.width, place, title, size=8, color=TITLE, va="baseline")


def _draw_line(axes: Axes, times: Floats, values: Floats, arm: str) -> None:
    """Draw how the state moves; a donor's begins with a mark and its name."""
    how = arm_style(arm)
    axes.plot(times, values, color=how.colour, linestyle=how.line, linewidth=1.8)
    donor = arm.partition("-")[0]
    if donor in DONORS:
        axes.plot([0], [values[0]], marker=how.marker, color=how.colour, clip_on=False)
        axes.text(-0.025, values[0], donor, color=how.ink, size=SMALL, va="center", ha="right")
