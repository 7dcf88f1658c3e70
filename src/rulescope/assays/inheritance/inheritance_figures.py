"""Figures of the inheritance assay (E2), and the main figure of E1, E2 and E-IF together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.assays.figure_data import (
    Cell,
    adjusted,
    arms_run,
    caption,
    cell,
    cells,
    count_words,
    curves_by_arm,
    evidence,
    explain_arms,
    labels_run,
    point,
    signed,
    trajectories,
)
from rulescope.assays.inheritance.inheritance import SCALES
from rulescope.assays.interface.interface_figures import draw_measured
from rulescope.assays.panels import (
    arm_row,
    draw_curves,
    draw_estimate,
    draw_forest,
    draw_scores_over_scale,
    note_not_run,
    scale_text,
    set_score_axis,
    set_score_axis_across,
    with_styles,
)
from rulescope.assays.scale.scale_figures import THRESHOLD, draw_windows
from rulescope.render.arm_styles import arm_style
from rulescope.render.display_names import CATCH_NAMES
from rulescope.render.line_labels import End, name_ends
from rulescope.render.palette import DARK
from rulescope.render.style import SMALL, Page, absent, styled

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
    " history once (natural) or after each iteration (clamp); live: the recipient's own history."
)


@styled
def draw_scale(results: Mapping[str, Results]) -> Figure:
    """``fig:scale``: scores over scale, windows, inheritance at low scale, the interface."""
    e2 = results.get("E2")
    low = next(iter(recipient_scales(e2)), None)  # where the donor's history can matter
    page = _make_page(results, [] if low is None else [low])
    title = f"Donor state, recipient at {_name_scale(low)}"
    _draw_donors(page.panel("C", title, (0.62, 2.95, 2.55, 1.95)), e2, low)
    _draw_interface(page, results.get("E-IF"))
    return page.finish()


@styled
def draw_integrated_scale(results: Mapping[str, Results]) -> Figure:
    """``orig:scale``: as ``fig:scale``, with inheritance at both recipient scales."""
    e2 = results.get("E2")
    scales = recipient_scales(e2)
    extremes = list(dict.fromkeys([*scales[:1], *scales[-1:]]))
    page = _make_page(results, extremes)
    known = [e for scale in extremes for arm in FIVE if (e := _score(e2, scale, arm)) is not None]
    for turn, scale in enumerate(extremes or [None]):
        box = (0.62 + 1.74 * turn, 2.95, 1.12, 1.8)
        axes = page.panel("" if turn else "C", f"Donor, {_name_scale(scale)}", box)
        _draw_donors(axes, e2, scale, beside=known)
        if turn:
            axes.set_yticklabels([])
            axes.set_ylabel("")
    _draw_interface(page, results.get("E-IF"))
    return page.finish()


def _make_page(results: Mapping[str, Results], scales: Sequence[float]) -> Page:
    """Return the page of a scale figure with panels A and B; donors are shown at ``scales``."""
    e1, e2, interface = (results.get(name) for name in ("E1", "E2", "E-IF"))
    found = [_score(e2, scale, arm) for scale in scales for arm in FIVE]
    used = [
        *cells(e1, "score", task="catch"),
        *(e for kind in ("score", "bins", "difference") for e in cells(interface, kind)),
        *(e for e in found if e is not None),
    ]
    arms = explain_arms(["E1"], arms_run(e1, "score"))
    words = [evidence(used), THRESHOLD if e1 else "", arms, WORDS if scales else ""]
    page = Page(5.45, caption([e1, e2, interface], *words))
    curves = page.panel("A", "Catch: final score over reward scale", (0.62, 0.35, 2.55, 1.95))
    name_ends(curves, draw_scores_over_scale(curves, curves_by_arm(e1, "score", task="catch")))
    windows = page.panel("B", "Usable window (score at least 0.8)", (4.45, 0.35, 2.1, 1.95))
    draw_windows(windows, e1, CATCH_NAMES, {"0.8": ""}, label="decades")
    return page


def _draw_interface(page: Page, interface: Results | None) -> None:
    """Draw panel D: what was measured of each value interface."""
    scores = page.panel("D", "Value interface at reward scale 1", (4.45, 2.95, 2.6, 0.85))
    draw_measured(scores, interface, "score")
    draw_measured(page.axes(4.45, 3.98, 2.6, 0.92), interface, "bins")
    if interface is not None:
        scores.set_xticklabels([])
        scores.set_ylabel("score (zoomed)")


FOUR = ("match-natural", "match-clamp", "cross-natural", "cross-clamp")
FIVE = (*FOUR, "live")


def recipient_scales(results: Results | None) -> list[float]:
    """Return the recipient scales that have scores, ascending."""
    return sorted(labels_run(results, "score", "scale"))


def _name_scale(scale: float | None, unknown: str = "low scale") -> str:
    return unknown if scale is None else f"scale {scale_text(scale)}"


def _score(results: Results | None, scale: float | None, arm: str) -> Estimate | None:
    return None if scale is None else cell(results, "score", scale=scale, arm=arm)


def _draw_donors(
    axes: Axes,
    results: Results | None,
    scale: float | None,
    *,
    beside: Sequence[Estimate] | None = None,
) -> None:
    """Draw the two-by-two of donors and transplants, and beside it the recipient's own state.

    The interaction of the two-by-two is printed below.

    ``beside`` are the scores of panels that share the vertical axis; such a panel is narrow, so
    its words are shorter and the interval of the interaction has a line of its own.
    """
    narrow = beside is not None
    found = {arm: _score(results, scale, arm) for arm in FIVE}
    if all(e is None for e in found.values()):
        absent(axes)
        return
    ends: list[End] = []
    shifts = {"match": -0.14, "cross": 0.14}
    draw_estimate(axes, 2, found["live"], arm_style("live"), size=5.5, room=0.3)
    for donor, shift in shifts.items():
        pair = [found[f"{donor}-{way}"] for way in ("natural", "clamp")]
        how = arm_style(f"{donor}-clamp")
        if pair[0] is not None and pair[1] is not None:
            heights = [pair[0].value, pair[1].value]
            axes.plot([shift, 1 + shift], heights, color=how.colour, lw=1.0, alpha=0.55, zorder=1)
        for place, way in enumerate(("natural", "clamp")):
            draw_estimate(
                axes,
                place + shift,
                found[f"{donor}-{way}"],
                arm_style(f"{donor}-{way}"),
                size=5.5,
                room=0.16 if narrow else 0.24,
            )
        for place, e in enumerate(pair):
            if e is not None:
                end = End(donor, how, place + shift, e.value, e.value)
                ends = [kept for kept in ends if kept.text != donor] + [end]
    known = [e for e in found.values() if e is not None] if beside is None else beside
    set_score_axis(axes, [point(e) for e in known])
    axes.set_xlim(-0.45, 2.4)
    ways = ["nat.", "clamp", "own"] if narrow else ["natural", "clamp", "own"]
    pairs = [[found[f"{donor}-{way}"] for donor in shifts] for way in ("natural", "clamp")]
    counts = [count_words(each) for each in (*pairs, [found["live"]])]
    axes.set_xticks([0, 1, 2], [f"{w}\n{n}" if n else w for w, n in zip(ways, counts, strict=True)])
    known_live = found["live"]
    if known_live is not None:
        how = arm_style("live")
        ends.append(End(how.name, how, 2.0, known_live.value, known_live.value))
    axes.tick_params(axis="x", length=0)
    name_ends(axes, ends)
    interaction = None if scale is None else cell(results, "interaction", scale=scale)
    if interaction is not None:
        # where an axis has its name, so that no point can be behind it
        words = f"interaction {adjusted(interaction)}"
        lines = [re.sub(r" (?=[\[(])", "\n", words) if narrow else words]
        lines += _published_words(interaction)
        axes.set_xlabel("\n".join(lines), labelpad=3)
    gone = [arm.replace("-", ", ") for arm in FIVE if found[arm] is None]
    note_not_run(axes, (f"{_name_scale(scale)} {arm}" for arm in gone))


def _published_words(found: Estimate) -> list[str]:
    """Return the published value of an estimate in words, if there is one to compare with."""
    theirs = found.published if isinstance(found, Cell) else None
    if theirs is None:
        return []
    value, *ends = (signed(f"{end:.3f}") for end in theirs[:3])
    return [f"published {value} [{', '.join(ends)}]"]


@styled
def draw_inheritance_detail(results: Mapping[str, Results]) -> Figure:
    """``fig:detail-inheritance``: trajectories and final scores at each recipient scale."""
    e2 = results.get("E2")
    scales = recipient_scales(e2) or SCALES
    arms = arms_run(e2, "score")
    donors = any(arm.startswith(("match", "cross")) for arm in arms)
    words = [evidence(cells(e2, "score")), WORDS if donors else "", explain_arms(["E2"], arms)]
    page = Page(0.0, caption([e2], *words))
    for turn, scale in enumerate(scales):
        high = max(1.85, 0.34 * len(arms_run(e2, "score", scale=scale)))
        top, letters = page.extend(high + 0.81), "ABCDEFGHIJKL"[3 * turn :]
        where = _name_scale(scale)
        natural = page.panel(letters[0], f"{where}: natural", (0.62, top, 1.45, 1.85))
        box = (2.82, top, 1.45, 1.85)
        clamped = page.panel(letters[1], f"{where}: clamped or frozen", box, 0.25)
        final = page.panel(letters[2], f"{where}: final score", (5.85, top, 1.2, high), 0.95)
        _draw_trajectories({natural: NATURAL, clamped: CLAMPED}, e2, scale)
        _draw_finals(final, e2, scale)
    return page.finish()


def _draw_trajectories(
    panels: Mapping[Axes, Sequence[str]], results: Results | None, scale: float
) -> None:
    """Draw learning curves of the arms of each panel with their bands, on one vertical axis."""
    drawn = {axes: trajectories(results, arms, scale) for axes, arms in panels.items()}
    every = [line for lines in drawn.values() for line in lines.values()]
    for turn, (axes, lines) in enumerate(drawn.items()):
        ends = draw_curves(axes, with_styles(lines), markers=False)
        if not lines:
            continue
        axes.set(xlim=(0, max(float(line.x[-1]) for line in lines.values())), xlabel="iteration")
        axes.locator_params(axis="x", nbins=3)
        set_score_axis(axes, every)
        name_ends(axes, ends, offset=0.1)
        if turn and all(drawn.values()):
            axes.set_ylabel("")
            axes.tick_params(axis="y", labelleft=False)


def _draw_finals(axes: Axes, results: Results | None, scale: float) -> None:
    """Draw the final score of every arm, a row each, and print the interaction below."""
    rows = [
        arm_row(arm_style(arm), _score(results, scale, arm), arm.replace("-", ", "))
        for arm in arms_run(results, "score", scale=scale)
    ]
    if draw_forest(axes, rows):
        set_score_axis_across(axes, rows, label="")
    interaction = cell(results, "interaction", scale=scale)
    if interaction is not None:
        axes.annotate(
            "\n".join([f"interaction {adjusted(interaction)}", *_published_words(interaction)]),
            (1.0, 0.0),
            xycoords="axes fraction",
            xytext=(0, -19.5),
            textcoords="offset points",
            ha="right",
            va="top",
            size=SMALL,
            color=DARK,
        )
