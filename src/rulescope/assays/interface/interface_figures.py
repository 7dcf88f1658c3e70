"""Figures of the categorical value interface (E-IF, P1): measured and analytic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from rulescope.assays.analysis import FEWEST
from rulescope.assays.figure_data import (
    INTERFACES,
    Floats,
    arms_run,
    caption,
    cell,
    cells,
    evidence,
    family_of,
    labels_run,
    reach,
)
from rulescope.assays.panels import (
    THRESHOLD,
    Row,
    draw_forest,
    fix_ticks,
    name_marks,
    note_not_run,
    power,
    scale_text,
)
from rulescope.render.arm_styles import ArmStyle, arm_style
from rulescope.render.palette import (
    BLUE,
    DARK,
    GREY,
    NOTE,
    PALE,
    PALE_BLUE,
    VERMILION,
    readable,
)
from rulescope.render.style import SMALL, Page, absent, styled

if TYPE_CHECKING:
    from rulescope.assays.results import Results

MEASURED = ArmStyle("measured", DARK, "o")


def hyperbolic(x: Floats) -> Floats:
    """Return h(x), the transform of the default interface."""
    return np.asarray(np.sign(x) * (np.sqrt(np.abs(x) + 1) - 1) + 1e-3 * x, dtype=np.float64)


def draw_measured(axes: Axes, results: Results | None, quantity: str) -> None:
    """Draw a measured quantity for each interface, on an axis that zooms in on it."""
    found = {arm: cell(results, quantity, arm=arm) for arm in arms_run(results, quantity)}
    rows = [Row(arm_style(arm).name, [(MEASURED, one)]) for arm, one in found.items()]
    if not draw_forest(axes, rows, upright=True, size=3.6, labelsize=None):
        return
    note_not_run(axes, (arm_style(arm).name for arm in INTERFACES if arm not in found))
    ends = reach(found.values())
    low, high = min(ends), max(ends)
    room = 0.15 * (high - low) or 0.05 * max(abs(high), 1.0)
    label = {"score": "score", "bins": "effective bins"}[quantity]
    axes.set(ylim=(low - room, high + room), ylabel=label)
    axes.locator_params(axis="y", nbins=5)
    axes.grid(axis="y")


@styled
def draw_interface(results: Mapping[str, Results]) -> Figure:
    """``v5:fig:app-interface``: transform, projection, measurements and the path of a target."""
    found = results.get("E-IF")
    words = evidence([*cells(found, "score"), *cells(found, "bins")])
    text = "A, B and E are analytic; B shows exact interpolation. C has a zoomed axis."
    page = Page(6.25, caption([found], text, words))
    title = "Transform of the target (odd; x > 0 shown)"
    _draw_transform(page.panel("A", title, (0.62, 0.35, 2.45, 1.6), data=False))
    _draw_projection(
        page.panel("B", "Two-hot projection of 0.35", (4.3, 0.35, 2.75, 1.6), data=False)
    )
    for letter, left, quantity, title in (
        ("C", 0.62, "score", "Score at reward scale 1"),
        ("D", 4.3, "bins", "Effective bins at reward scale 1"),
    ):
        draw_measured(page.panel(letter, title, (left, 2.65, 2.75, 1.25)), found, quantity)
    box = (0.62, 4.5, 6.43, 1.55)
    draw_path(page.panel("E", "Path of a target and of a prediction", box, data=False))
    return page.finish()


def _draw_transform(axes: Axes) -> None:
    x = np.logspace(-3, 4, 300)
    linear, curved = np.minimum(x, 300.0), hyperbolic(x)
    axes.plot(x, linear, color=GREY, ls="--", lw=1.2)
    axes.plot(x, curved, color=BLUE)
    for bound, users in ((30.0, "support 30"), (300.0, "default, linear")):
        axes.axhline(bound, color=GREY, lw=0.6, ls=THRESHOLD, zorder=0)
        axes.annotate(
            f"M = {bound:g} ({users})",
            (1.4e-3, bound),
            xytext=(0, 1.5),
            textcoords="offset points",
            size=6.4,
            color=NOTE,
        )
    axes.set(xscale="log", yscale="log", xlim=(1e-3, 1e4), ylim=(3e-4, 2e3))
    for axis, exponents in ((axes.xaxis, range(-3, 5)), (axes.yaxis, range(-3, 4))):
        fix_ticks(axis, {10.0**e: power(e) for e in exponents})
    for name, height, ink in (("linear", 300.0, NOTE), ("h(x)", float(curved[-1]), BLUE)):
        at = (1.4e4, height)
        axes.annotate(name, at, annotation_clip=False, size=SMALL, color=ink, va="center")
    axes.set(xlabel="x (scalar target)", ylabel="transformed, clipped at ±M")


def _draw_projection(axes: Axes) -> None:
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
    axes.plot([target, target], [0, 0.9], color=VERMILION, lw=1.0, ls=(0, (3, 2)))
    axes.plot([target], [0.9], marker="v", color=VERMILION, ms=6)
    axes.text(target + 0.1, 0.92, "target 0.35", color=readable(VERMILION), va="center", size=SMALL)
    axes.text(2.5, 0.66, "0.65 × 0 + 0.35 × 1\n= 0.35", ha="right", va="center", size=SMALL)
    axes.set(xlim=(-1.5, 2.5), ylim=(0, 1.08), xticks=atoms, yticks=[0, 0.5, 1.0])
    axes.set(xticklabels=["−1", "0", "1", "2"], xlabel="atom of the support", ylabel="weight")


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
        _draw_box(axes, turn * step, 1.05, wide, high, words, PALE_BLUE)
        if turn:
            _draw_arrow(axes, (turn * step - step + wide, 1.27), (turn * step, 1.27))
    for turn, words in enumerate(PREDICTION_PATH):
        _draw_box(axes, turn * step, 0.1, wide, high, words, PALE)
        if turn:
            _draw_arrow(axes, (turn * step, 0.32), (turn * step - step + wide, 0.32))
    loss = 3 * step
    _draw_arrow(axes, (loss + wide / 2, 1.05), (loss + wide / 2, 0.54), both=True)
    axes.text(loss + wide / 2 + 0.1, 0.795, "cross-entropy loss", size=SMALL, va="center")
    axes.text(
        loss - 0.1,
        0.795,
        "readout: mean first, inverse after",
        size=SMALL,
        va="center",
        ha="right",
        color=NOTE,
    )


def _draw_box(
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


def _draw_arrow(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], *, both: bool = False
) -> None:
    style = {
        "arrowstyle": "<|-|>" if both else "-|>",
        "color": NOTE,
        "lw": 0.9,
        "shrinkA": 1,
        "shrinkB": 1,
        "mutation_scale": 8,
    }
    axes.annotate("", xy=end, xytext=start, arrowprops=style)


@styled
def draw_interface_state(results: Mapping[str, Results]) -> Figure:
    """``interface-state``: the effect of the state under each interface and scale (P1)."""
    found = results.get("P1")
    effects, changes = cells(found, "effect"), cells(found, "interaction")
    words, family = evidence(effects), family_of([*effects, *changes])
    thin = f"Thin lines: {family}." if family else ""
    page = Page(2.85, caption([found], EFFECT, CHANGE if changes else "", words, thin))
    axes = page.panel("A", "Live minus pin under each interface", (0.62, 0.35, 2.75, 2.1))
    _draw_state(axes, found, "effect")
    axes = page.panel("B", "That effect, minus the default's", (4.75, 0.35, 1.5, 2.1), 0.5)
    _draw_state(axes, found, "interaction")
    return page.finish()


EFFECT = "A: score of live minus pin, within seeds."
CHANGE = "B: the same under an interface, less that under the default."


def _draw_state(axes: Axes, found: Results | None, quantity: str) -> None:
    """Draw a difference over reward scale, an interface beside the other."""
    arms = [arm for arm in arms_run(found, quantity) if cells(found, quantity, arm=arm)]
    scales = sorted(labels_run(found, quantity, "scale"))
    if not arms:
        absent(axes)
        return
    apart = 0.8 / max(len(arms), 2)
    rows = [
        Row(
            scale_text(scale),
            [(arm_style(arm), cell(found, quantity, arm=arm, scale=scale)) for arm in arms],
        )
        for scale in scales
    ]
    draw_forest(axes, rows, upright=True, apart=apart, labelsize=None)
    gone = [arm for arm in INTERFACES if arm not in arms and (arm, quantity) != DEFAULT_CHANGE]
    note_not_run(axes, (arm_style(arm).name for arm in gone))
    ends = [0.0, *reach(one for row in rows for _, one in row.marks)]
    for place, scale in enumerate(scales):
        for turn, arm in enumerate(arms):
            wide = cell(found, quantity, arm=arm, scale=scale, level="family")
            if wide is not None and wide.n >= FEWEST:
                at = place + apart * (turn - (len(arms) - 1) / 2)
                axes.vlines(at, wide.low, wide.high, color=arm_style(arm).colour, lw=0.6, zorder=1)
                ends += [end for end in (wide.low, wide.high) if np.isfinite(end)]
    name_marks(axes, map(arm_style, arms))
    axes.axhline(0.0, color=GREY, lw=0.7, zorder=1)
    room = 0.05 * max(max(ends) - min(ends), 0.5)
    axes.set(ylim=(min(ends) - room, max(ends) + room))
    axes.set(xlabel="reward scale", ylabel="score difference")
    axes.grid(axis="y")


DEFAULT_CHANGE = ("default", "interaction")
"""An interface does not differ from itself."""
