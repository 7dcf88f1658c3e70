"""Figures of the inheritance assay (E2), and the main figure of E1, E2 and E-IF together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.assays.figure_data import (
    TASKS,
    Curve,
    adjusted,
    arm_words,
    arms_run,
    caption,
    cell,
    cells,
    curves_by_arm,
    evidence,
    labels_run,
    point,
)
from rulescope.assays.inheritance.inheritance import SCALES
from rulescope.assays.interface.interface_figures import measured
from rulescope.assays.panels import (
    dots,
    draw_curve,
    forest,
    line_end,
    scale_text,
    score_axis,
    score_axis_across,
    score_curves,
    widths,
)
from rulescope.assays.scale.scale_figures import THRESHOLD, tasks_run, window_groups
from rulescope.render.line_labels import End, name_ends
from rulescope.render.style import DARK, SMALL, Page, absent, look, styled

if TYPE_CHECKING:
    from rulescope.assays.results import Results
    from rulescope.stats import Estimate

NATURAL = (
    "live",
    "match-natural",
    "cross-natural",
    "random-natural",
    "permute-natural",
    "placebo",
    "null",
)
CLAMPED = ("freeze", "match-clamp", "cross-clamp", "random-clamp", "permute-clamp")
WORDS = (
    "Donors trained at the recipient's scale (match) or at the opposite extreme (cross) give their"
    " recurrent state once (natural) or after each iteration (clamp)."
)


@styled
def scale(results: Mapping[str, Results]) -> Figure:
    """``fig:scale``: scores over scale, windows, inheritance at low scale, the interface."""
    low = low_scale(results.get("E2"))
    page = _scale_page(results, [] if low is None else [low])
    donors = page.axes(0.62, 2.95, 2.55, 1.95)
    page.heading(donors, "C", f"Donor state, recipient at {_scale_words(low)}")
    _donors(donors, results.get("E2"), low)
    _interface(page, results.get("E-IF"))
    return page.figure


@styled
def integrated_scale(results: Mapping[str, Results]) -> Figure:
    """``orig:scale``: as ``fig:scale``, with inheritance at both recipient scales."""
    e2 = results.get("E2")
    scales = recipient_scales(e2)
    extremes = list(dict.fromkeys([*scales[:1], *scales[-1:]]))
    page = _scale_page(results, extremes)
    known = [e for scale in extremes for arm in FOUR if (e := _score(e2, scale, arm)) is not None]
    for turn, scale in enumerate([*extremes, None, None][:2]):
        axes = page.axes(0.62 + 1.74 * turn, 2.95, 1.05, 1.8)
        where = _scale_words(scale, "other scale" if turn else "low scale")
        page.heading(axes, "" if turn else "C", f"Donor, {where}")
        _donors(axes, e2, scale, beside=known)
        if turn:
            axes.set_yticklabels([])
            axes.set_ylabel("")
    _interface(page, results.get("E-IF"))
    return page.figure


def _scale_page(results: Mapping[str, Results], scales: Sequence[float]) -> Page:
    """Return the page of a scale figure with panels A and B; donors are shown at ``scales``."""
    e1, e2, interface = (results.get(name) for name in ("E1", "E2", "E-IF"))
    found = [_score(e2, scale, arm) for scale in scales for arm in FOUR]
    used = [
        *cells(e1, "score", task="catch"),
        *(e for kind in ("score", "bins", "difference") for e in cells(interface, kind)),
        *(e for e in found if e is not None),
    ]
    arms = arms_run(e1, "score")
    words = [evidence(used), THRESHOLD if e1 else "", arm_words(arms), WORDS if scales else ""]
    page = Page(5.3, caption([e1, e2, interface], *words))
    curves = page.axes(0.62, 0.35, 2.55, 1.95)
    page.heading(curves, "A", "Catch: final score over reward scale")
    windows = page.axes(4.45, 0.35, 2.6, 1.95)
    page.heading(windows, "B", "Usable window (score at least 0.8)")
    if e1 is not None and "catch" in tasks_run(e1):
        ends = score_curves(curves, curves_by_arm(e1, "score", task="catch"))
        name_ends(curves, ends)
    else:
        absent(curves)
    if e1 is not None and cells(e1, "width"):
        widths(windows, window_groups(e1, TASKS, {"0.8": ""}))
        windows.set_ylabel("decades", labelpad=2)
    else:
        absent(windows)
    return page


def _interface(page: Page, interface: Results | None) -> None:
    """Draw panel D: what was measured of each value interface."""
    scores = page.axes(4.45, 2.95, 2.6, 0.85)
    page.heading(scores, "D", "Value interface at reward scale 1")
    measured(scores, interface, "score")
    bins = page.axes(4.45, 3.98, 2.6, 0.92)
    measured(bins, interface, "bins")
    if interface is not None:
        scores.set_xticklabels([])
        scores.set_ylabel("score (zoomed)")


FOUR = ("match-natural", "match-clamp", "cross-natural", "cross-clamp")


def recipient_scales(results: Results | None) -> list[float]:
    """Return the recipient scales that have scores, ascending."""
    return sorted(labels_run(results, "score", "scale"))


def low_scale(results: Results | None) -> float | None:
    """Return the lowest recipient scale, where the donor's history can matter."""
    return next(iter(recipient_scales(results)), None)


def _scale_words(scale: float | None, unknown: str = "low scale") -> str:
    return unknown if scale is None else f"scale {scale_text(scale)}"


def _score(results: Results | None, scale: float | None, arm: str) -> Estimate | None:
    return None if scale is None else cell(results, "score", scale=scale, arm=arm)


def _donors(
    axes: Axes,
    results: Results | None,
    scale: float | None,
    *,
    beside: Sequence[Estimate] | None = None,
) -> None:
    """Draw the two-by-two of donors and transplants; its interaction is printed below.

    ``beside`` are the scores of panels that share the vertical axis; such a panel is narrow, so
    its words are shorter and the interval of the interaction has a line of its own.
    """
    narrow = beside is not None
    found = {arm: _score(results, scale, arm) for arm in FOUR}
    if all(e is None for e in found.values()):
        absent(axes)
        return
    ends: list[End] = []
    shifts = {"match": -0.03, "cross": 0.03}
    for donor, shift in shifts.items():
        pair = [found[f"{donor}-{way}"] for way in ("natural", "clamp")]
        how = look(f"{donor}-clamp")
        if pair[0] is not None and pair[1] is not None:
            heights = [pair[0].value, pair[1].value]
            axes.plot([shift, 1 + shift], heights, color=how.colour, lw=1.0, alpha=0.55, zorder=1)
        for place, way in enumerate(("natural", "clamp")):
            dots(axes, [place + shift], [found[f"{donor}-{way}"]], look(f"{donor}-{way}"), size=5.5)
        for place, e in enumerate(pair):
            if e is not None:
                end = End(donor, how, place + shift, e.value, e.value)
                ends = [kept for kept in ends if kept.text != donor] + [end]
    known = [e for e in found.values() if e is not None] if beside is None else beside
    score_axis(axes, [point(e) for e in known])
    axes.set_xlim(-0.35, 1.35)
    ways = ["natural", "clamp"] if narrow else ["natural (given once)", "clamp (rewritten)"]
    axes.set_xticks([0, 1], ways)
    axes.tick_params(axis="x", length=0)
    name_ends(axes, ends)
    interaction = None if scale is None else cell(results, "interaction", scale=scale)
    if interaction is not None:
        # where an axis has its name, so that no point can be behind it
        words = f"interaction {adjusted(interaction)}"
        axes.set_xlabel(re.sub(r" (?=[\[(])", "\n", words) if narrow else words, labelpad=3)


@styled
def detail_inheritance(results: Mapping[str, Results]) -> Figure:
    """``fig:detail-inheritance``: trajectories and final scores at each recipient scale."""
    e2 = results.get("E2")
    scales = recipient_scales(e2) or SCALES
    used = cells(e2, "score")
    arms = arms_run(e2, "score")
    donors = any(arm.startswith(("match", "cross")) for arm in arms)
    words = [evidence(used), WORDS if donors else "", arm_words(arms)]
    height = 2.66
    page = Page(height * len(scales) + 0.12, caption([e2], *words))
    for turn, scale in enumerate(scales):
        top = 0.35 + height * turn
        letters = "ABCDEFGHIJKL"[3 * turn : 3 * turn + 3]
        natural = page.axes(0.62, top, 1.45, 1.85)
        clamped = page.axes(2.82, top, 1.45, 1.85)
        final = page.axes(5.85, top, 1.2, 1.85)
        where = _scale_words(scale)
        page.heading(natural, letters[0], f"{where}: natural")
        page.heading(clamped, letters[1], "clamped or frozen", indent=0.25)
        page.heading(final, letters[2], "final score", indent=0.95)
        drawn = [
            _trajectories(a, e2, scale, n) for a, n in ((natural, NATURAL), (clamped, CLAMPED))
        ]
        every = [line for lines, _ in drawn for line in lines]
        for axes, (lines, ends) in zip((natural, clamped), drawn, strict=True):
            if lines:
                score_axis(axes, every)
                name_ends(axes, ends, offset=0.1)
        if all(lines for lines, _ in drawn):
            clamped.set_ylabel("")
            clamped.tick_params(axis="y", labelleft=False)
        _finals(page, final, e2, scale)
    return page.figure


def _trajectories(
    axes: Axes, results: Results | None, scale: float, arms: Sequence[str]
) -> tuple[list[Curve], list[End]]:
    """Draw learning curves with their bands; return them, and where they end."""
    ends: list[End] = []
    lines: list[Curve] = []
    for arm in arms:
        series = {} if results is None else results.series
        band = series.get(f"trajectory/{scale:g}/{arm}")
        if band is None or not np.isfinite(band[0]).any():
            continue
        line = Curve(series["iteration"][: band.shape[1]], band[0], band[1], band[2])
        draw_curve(axes, line, look(arm), dots=False)
        ends.append(line_end(line, look(arm)))
        lines.append(line)
    if not lines:
        absent(axes)
        return [], []
    last = max(float(line.x[-1]) for line in lines)
    axes.set_xlim(0, last)
    axes.locator_params(axis="x", nbins=3)
    axes.set_xlabel("iteration", labelpad=2)
    return lines, ends


def _finals(page: Page, axes: Axes, results: Results | None, scale: float) -> None:
    """Draw the final score of every arm, a row each, and print the interaction below."""
    arms = arms_run(results, "score", scale=scale)
    if not arms:
        absent(axes)
        return
    rows = [(arm.replace("-", ", "), look(arm), _score(results, scale, arm)) for arm in arms]
    forest(axes, rows)
    score_axis_across(axes, [e for _, _, e in rows])
    interaction = cell(results, "interaction", scale=scale)
    if interaction is not None:
        box = axes.get_position()
        page.figure.text(
            box.x1,
            box.y0 - 0.27 / page.height,
            f"interaction {adjusted(interaction)}",
            ha="right",
            va="top",
            size=SMALL,
            color=DARK,
        )
