"""Figures of the categorical value interface (E-IF, P1): measured and analytic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from rulescope.assays.figure_data import (
    INTERFACES,
    Floats,
    caption,
    cell,
    cells,
    evidence,
    family_of,
    labels_run,
    reach,
)
from rulescope.assays.panels import dots, power, scale_text
from rulescope.render.line_labels import End, name_apart
from rulescope.render.style import DARK, GREY, PALE, SMALL, Look, Page, absent, styled

if TYPE_CHECKING:
    from rulescope.assays.results import Results

MEASURED = Look("measured", DARK, "o")


def hyperbolic(x: Floats) -> Floats:
    """Return h(x), the transform of the default interface."""
    return np.asarray(np.sign(x) * (np.sqrt(np.abs(x) + 1) - 1) + 1e-3 * x, dtype=np.float64)


def interfaces_run(results: Results | None, quantity: str) -> list[str]:
    """Return the interfaces that ``quantity`` was measured for, the known ones first."""
    found = set(labels_run(results, quantity, "arm"))
    return [i for i in INTERFACES if i in found] + sorted(found - set(INTERFACES))


def measured(axes: Axes, results: Results | None, quantity: str) -> None:
    """Draw a measured quantity for each interface, on an axis that zooms in on it."""
    known = interfaces_run(results, quantity)
    if not known:
        absent(axes)
        return
    found = [cell(results, quantity, arm=interface) for interface in known]
    dots(axes, list(range(len(known))), found, MEASURED, size=3.6)
    axes.set_xticks(range(len(known)), [INTERFACES.get(i, i) for i in known])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.6, len(known) - 0.4)
    ends = reach(found)
    low, high = min(ends), max(ends)
    room = 0.15 * (high - low) or 0.05 * max(abs(high), 1.0)
    axes.set_ylim(low - room, high + room)
    axes.locator_params(axis="y", nbins=5)
    axes.grid(axis="y")
    label = {"score": "score", "bins": "effective bins"}[quantity]
    axes.set_ylabel(label, labelpad=2)


@styled
def app_interface(results: Mapping[str, Results]) -> Figure:
    """``v5:fig:app-interface``: transform, projection, measurements and the path of a target."""
    found = results.get("E-IF")
    words = evidence([*cells(found, "score"), *cells(found, "bins")])
    text = "A, B and E are analytic; B shows exact interpolation. C has a zoomed axis."
    page = Page(6.25, caption([found], text, words))
    transform = page.axes(0.62, 0.35, 2.45, 1.6)
    page.heading(transform, "A", "Transform of the target (odd; x > 0 shown)")
    _transform(transform)
    projection = page.axes(4.3, 0.35, 2.75, 1.6)
    page.heading(projection, "B", "Two-hot projection of 0.35")
    _projection(projection)
    for letter, left, quantity, title in (
        ("C", 0.62, "score", "Score at reward scale 1"),
        ("D", 4.3, "bins", "Effective bins at reward scale 1"),
    ):
        axes = page.axes(left, 2.65, 2.75, 1.25)
        page.heading(axes, letter, title)
        measured(axes, found, quantity)
    path = page.axes(0.62, 4.5, 6.43, 1.55)
    page.heading(path, "E", "Path of a target and of a prediction", indent=0.42)
    draw_path(path)
    return page.figure


def _transform(axes: Axes) -> None:
    x = np.logspace(-3, 4, 300)
    linear, curved = np.minimum(x, 300.0), hyperbolic(x)
    axes.plot(x, linear, color=GREY, ls="--", lw=1.2)
    axes.plot(x, curved, color="#0072B2")
    for bound, users in ((30.0, "support 30"), (300.0, "default, linear")):
        axes.axhline(bound, color=GREY, lw=0.6, ls=(0, (2, 2)), zorder=0)
        axes.annotate(
            f"M = {bound:g} ({users})",
            (1.4e-3, bound),
            xytext=(0, 1.5),
            textcoords="offset points",
            size=6.4,
            color="#666666",
        )
    axes.set(xscale="log", yscale="log", xlim=(1e-3, 1e4), ylim=(3e-4, 2e3))
    for axis, exponents in ((axes.xaxis, range(-3, 5)), (axes.yaxis, range(-3, 4))):
        axis.set_major_locator(FixedLocator([10.0**e for e in exponents]))
        axis.set_major_formatter(FixedFormatter([power(e) for e in exponents]))
        axis.set_minor_locator(NullLocator())
    axes.annotate(
        "linear", (1.4e4, 300.0), annotation_clip=False, size=SMALL, color="#555555", va="center"
    )
    axes.annotate(
        "h(x)",
        (1.4e4, float(curved[-1])),
        annotation_clip=False,
        size=SMALL,
        color="#0072B2",
        va="center",
    )
    axes.set_xlabel("x (scalar target)", labelpad=2)
    axes.set_ylabel("transformed, clipped at ±M", labelpad=2)


def _projection(axes: Axes) -> None:
    target = 0.35
    atoms = np.array([-1.0, 0.0, 1.0, 2.0])
    weights = np.clip(1 - np.abs(atoms - target), 0, None)
    axes.vlines(atoms, 0, weights, color=DARK, lw=5)
    axes.plot(atoms, np.zeros(4), "|", color=DARK, ms=9)
    for atom, weight in zip(atoms, weights, strict=True):
        if weight > 0:
            left = atom < target
            side, ha = (-0.09, "right") if left else (0.09, "left")
            axes.text(atom + side, weight - 0.02, f"{weight:.2f}", va="top", ha=ha, size=8)
    axes.plot([target, target], [0, 0.9], color="#D55E00", lw=1.0, ls=(0, (3, 2)))
    axes.plot([target], [0.9], marker="v", color="#D55E00", ms=6)
    axes.text(target + 0.1, 0.92, "target 0.35", color="#B34E00", va="center", size=SMALL)
    axes.text(2.5, 0.66, "0.65 × 0 + 0.35 × 1\n= 0.35", ha="right", va="center", size=SMALL)
    axes.set(xlim=(-1.5, 2.5), ylim=(0, 1.08), xticks=atoms, yticks=[0, 0.5, 1.0])
    axes.set_xticklabels(["−1", "0", "1", "2"])
    axes.set_xlabel("atom of the support", labelpad=2)
    axes.set_ylabel("weight", labelpad=2)


TARGET_PATH = (
    ("target", "scalar y"),
    ("transform", "f(y)"),
    ("clip", "to [−M, M]"),
    ("two-hot", "weights w"),
)
PREDICTION_PATH = (
    ("value", "scalar q"),
    ("inverse", "f⁻¹ of the mean"),
    ("expectation", "Σ p z"),
    ("softmax", "probabilities p"),
    ("logits", "601 atoms z"),
)


def draw_path(axes: Axes) -> None:
    """Draw both paths as boxes: forward above, readout below, meeting in the loss."""
    axes.set(xlim=(-0.01, 6.42), ylim=(0, 1.55))
    axes.set_axis_off()
    wide, high, step = 1.06, 0.44, 1.335
    for turn, words in enumerate(TARGET_PATH):
        _box(axes, turn * step, 1.05, wide, high, words, "#DCEAF4")
        if turn:
            _arrow(axes, (turn * step - step + wide, 1.27), (turn * step, 1.27))
    for turn, words in enumerate(PREDICTION_PATH):
        _box(axes, turn * step, 0.1, wide, high, words, "#F0F0F0")
        if turn:
            _arrow(axes, (turn * step, 0.32), (turn * step - step + wide, 0.32))
    loss = 3 * step
    _arrow(axes, (loss + wide / 2, 1.05), (loss + wide / 2, 0.54), both=True)
    axes.text(loss + wide / 2 + 0.1, 0.795, "cross-entropy loss", size=SMALL, va="center")
    axes.text(
        loss - 0.1,
        0.795,
        "readout: mean first, inverse after",
        size=SMALL,
        va="center",
        ha="right",
        color="#666666",
    )


def _box(
    axes: Axes, left: float, low: float, wide: float, high: float, words: tuple[str, str], fill: str
) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (left + 0.03, low + 0.03),
            wide - 0.06,
            high - 0.06,
            boxstyle="round,pad=0.03",
            fc=fill,
            ec=GREY,
            lw=0.7,
        )
    )
    middle = left + wide / 2
    axes.text(
        middle, low + high * 0.68, words[0], ha="center", va="center", size=7.6, weight="bold"
    )
    axes.text(middle, low + high * 0.29, words[1], ha="center", va="center", size=SMALL)


def _arrow(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], *, both: bool = False
) -> None:
    style = {
        "arrowstyle": "<|-|>" if both else "-|>",
        "color": "#555555",
        "lw": 0.9,
        "shrinkA": 1,
        "shrinkB": 1,
        "mutation_scale": 8,
    }
    axes.annotate("", xy=end, xytext=start, arrowprops=style)


@styled
def interface_state(results: Mapping[str, Results]) -> Figure:
    """``interface-state``: the effect of the state under each interface and scale (P1)."""
    found = results.get("P1")
    effects = cells(found, "effect")
    words, family = evidence(effects), family_of(effects)
    thin = f"Thin lines: {family}." if family else ""
    text = "Effect: score of live minus pin, within seeds."
    page = Page(2.85, caption([found], text, words, thin))
    axes = page.axes(0.62, 0.35, 5.3, 2.1)
    page.heading(axes, "", "Live minus pin under three value interfaces")
    known = interfaces_run(found, "effect")
    if found is None or not known:
        absent(axes)
        return page.figure
    scales = sorted(labels_run(found, "effect", "scale"))
    step, ends = 0.2, [0.0, 1.0]
    names: list[End] = []
    for turn, interface in enumerate(known):
        how = LOOKS.get(interface, MEASURED._replace(name=interface))
        shift = (turn - (len(known) - 1) / 2) * step
        marks = [cell(found, "effect", arm=interface, scale=scale) for scale in scales]
        places = [place + shift for place in range(len(scales))]
        dots(axes, places, marks, how)
        for place, scale in zip(places, scales, strict=True):
            wide = cell(found, "effect", arm=interface, scale=scale, level="family")
            if wide is not None:
                axes.vlines(place, wide.low, wide.high, color=how.colour, lw=0.6, zorder=1)
                ends += [wide.low, wide.high]
        ends += reach(marks)
        names.append(End(how.name, how, 0.0, 0.0, -turn))
    name_apart(axes, names)
    axes.axhline(0.0, color=GREY, lw=0.7, zorder=1)
    axes.set_ylim(float(np.nanmin(ends)) - 0.06, float(np.nanmax(ends)) + 0.06)
    axes.set_xticks(range(len(scales)), [scale_text(scale) for scale in scales])
    axes.set_xlim(-0.6, len(scales) - 0.4)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y", color=PALE)
    axes.set_xlabel("reward scale", labelpad=2)
    axes.set_ylabel("score difference", labelpad=2)
    return page.figure


LOOKS = {
    "default": Look("default", "#0072B2", "o"),
    "support30": Look("support 30", "#009E73", "s"),
    "linear": Look("linear", "#6E6E6E", "D"),
}
