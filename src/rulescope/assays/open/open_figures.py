"""Figures of OPEN: what its carry is worth, and how it stands beside other learners in MinAtar."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.assays.comparison_families import CONTEXT_PAIRS
from rulescope.assays.estimates import label_text
from rulescope.assays.figure_data import (
    Cell,
    arms_run,
    caption,
    cell,
    cells,
    curves_by_arm,
    evidence,
    labels_run,
)
from rulescope.assays.minatar.minatar_context import NAMES
from rulescope.assays.open.open_carry import GAMES
from rulescope.assays.panels import (
    Row,
    arm_row,
    draw_curves,
    draw_forest,
    name_marks,
    set_difference_axis,
    set_level_axis,
    set_scale_axis,
    with_styles,
)
from rulescope.render.arm_styles import ArmStyle, arm_style, subject
from rulescope.render.line_labels import name_ends
from rulescope.render.palette import DARK, GREY, NOTE, PALE
from rulescope.render.style import SMALL, Page, styled

if TYPE_CHECKING:
    from rulescope.assays.results import Results
    from rulescope.stats import Estimate

FEWEST_ROWS = 6
"""There is room for so many, or two would stand far apart."""
ENDPOINTS = {
    "live-minus-zero": ("live − zero", arm_style("zero")),
    "live-minus-zero-update": ("live − zero (u)", arm_style("zero-update")),
    "interaction": ("interaction", ArmStyle("interaction", NOTE, "d")),
    "reset-minus-live": ("reset − live", arm_style("reset")),
}
CAPABILITY = {
    "live-minus-initial": ("live − initial", arm_style("initial")),
    "live-minus-random": ("live − random", arm_style("random")),
}
DIFFERENCE = ArmStyle("difference", DARK, "o")
RATE, GAP = "reward per interaction", "difference × 1,000"
CARRY_WORDS = (
    "Frozen policies on new games, rewards without the multiplier. Zero: the carry is zero in each "
    "step of the optimiser; reset: it is set to zero once, half-way. Interaction: live − zero at a "
    "scale, less that at scale 1. Exact interquartile means, each arm centred on its own."
)
UPDATE_WORDS = "(u): zeroed after each PPO update only."
CONTEXT_WORDS = (
    "Reward per interaction of training, without the multiplier, in the last tenth of the log; "
    "systems differ in network and number of updates too. Trimmed means, each learner centred on "
    "its own."
)


def _describe_families(found: Iterable[Estimate]) -> str:
    """Return for how many the intervals of differences are adjusted."""
    sizes = {one.family for one in found if one.family > 1 and not math.isnan(one.low)}
    return f"Differences: 95% intervals adjusted for a family of {max(sizes)}." if sizes else ""


@styled
def draw_open_carry(results: Mapping[str, Results]) -> Figure:
    """``open-carry``: levels in the end, what was learned at all, and contrasts of the carry."""
    found = results.get("OPEN")
    contrasts = [one for kind in (*ENDPOINTS, *CAPABILITY) for one in cells(found, kind)]
    words = caption(
        [found],
        evidence(cells(found, "rate")),
        _describe_families(contrasts),
        CARRY_WORDS if found is not None else "",
        UPDATE_WORDS if cells(found, "live-minus-zero-update") else "",
    )
    games = _games_run(found)
    page = Page(0.1 + 2.15 * len(games), words)
    for turn, game in enumerate(games):
        top, letters = 0.35 + 2.15 * turn, "ABCDEF"[3 * turn :]
        left = page.panel(letters[0], f"{GAMES[game]}: in the end", (0.55, top, 1.35, 1.4))
        middle = page.panel(letters[1], "What was learned", (3.86, top, 1.05, 1.4), 0.9)
        right = page.panel(letters[2], "What the carry does", (5.92, top, 1.16, 1.4), 0.9)
        _draw_levels(left, found, game)
        _draw_contrasts(middle, found, game, CAPABILITY)
        _draw_contrasts(right, found, game, ENDPOINTS)
    return page.finish()


def _games_run(found: Results | None) -> list[str]:
    """Return the games that have rates; all without any."""
    run = labels_run(found, "rate", "task")
    return [game for game in GAMES if game in run] or list(GAMES)


def _draw_levels(axes: Axes, found: Results | None, game: str) -> None:
    """Draw how each policy fares at each scale."""
    arms = arms_run(found, "rate", task=game)
    rows = [
        Row(
            label_text(scale),
            [
                (arm_style(arm), cell(found, "rate", task=game, arm=arm, scale=scale))
                for arm in arms
            ],
        )
        for scale in sorted(labels_run(found, "rate", "scale", task=game))
    ]
    apart = 0.8 / max(len(arms), 4)
    if draw_forest(axes, rows, upright=True, apart=apart, size=4.0, labelsize=None):
        name_marks(axes, map(arm_style, arms))
        set_level_axis(axes, RATE)
        axes.set_xlabel("reward scale of training")


def _draw_contrasts(
    axes: Axes, found: Results | None, game: str, kinds: Mapping[str, tuple[str, ArmStyle]]
) -> None:
    """Draw contrasts of a game as rows, in thousandths; those of a kind stand together."""
    rows: list[Row] = []
    gaps: list[int] = []
    for kind, (name, how) in kinds.items():
        scales = sorted(labels_run(found, kind, "scale", task=game))
        for scale in scales:
            one = cell(found, kind, task=game, scale=scale)
            rows.append(arm_row(how, _in_thousandths(one), f"{name}, {label_text(scale)}"))
        gaps += [len(rows)] if scales else []
    if draw_forest(axes, rows, size=4.0, labelsize=6.4):
        for gap in gaps[:-1]:
            axes.axhline(0.5 - gap, color=PALE, lw=0.8, zorder=0)
        axes.set_ylim(-max(len(rows), FEWEST_ROWS) + 0.4, 0.6)
        set_difference_axis([axes], GAP, least=0.0)


def _in_thousandths(one: Estimate | None) -> Estimate | None:
    """Return an estimate, and its lifetimes, in thousandths."""
    if one is None:
        return None
    value, low, high = (1000.0 * end for end in (one.value, one.low, one.high))
    scaled = replace(one, value=value, low=low, high=high)
    if isinstance(scaled, Cell):
        return replace(scaled, seeds=tuple(1000.0 * seed for seed in scaled.seeds))
    return scaled


@styled
def draw_minatar_context(results: Mapping[str, Results]) -> Figure:
    """``minatar-context``: rates over reward scale, and differences between learners."""
    found = results.get("minatar-context")
    names = {arm: name.format(subject()) for arm, name in NAMES.items()}
    pairs = {f"{a}-minus-{b}": f"{names[a]} − {names[b]}" for a, b in CONTEXT_PAIRS}
    words = caption(
        [found],
        evidence(cells(found, "rate")),
        _describe_families(one for pair in pairs for one in cells(found, pair)),
        CONTEXT_WORDS if found is not None else "",
    )
    games = _games_run(found)
    page = Page(0.1 + 2.05 * len(games), words)
    for turn, game in enumerate(games):
        top = 0.35 + 2.05 * turn
        title = f"{GAMES[game]}: reward rate"
        _draw_rates(page.panel("AC"[turn], title, (0.55, top, 1.45, 1.3)), found, game)
        panels = []
        for place, (pair, title) in enumerate(pairs.items()):
            box = (3.42 + place * 1.22, top, 1.1, 1.3)
            axes = page.panel("" if place else "BD"[turn], title, box, 0.36)
            panels += [axes] if _draw_differences(axes, found, pair, game) else []
        _share_vertical_axis(panels)
    return page.finish()


def _draw_rates(axes: Axes, found: Results | None, game: str) -> None:
    curves = curves_by_arm(found, "rate", task=game)
    ends = draw_curves(axes, with_styles(curves))
    if curves:
        set_scale_axis(axes, [line.x for line in curves.values()])
        set_level_axis(axes, RATE)
        name_ends(axes, ends)


def _draw_differences(axes: Axes, found: Results | None, pair: str, game: str) -> bool:
    """Draw one pair's differences over reward scale, in thousandths; return if there are any."""
    rows = [
        Row(
            label_text(scale),
            [(DIFFERENCE, _in_thousandths(cell(found, pair, task=game, scale=scale)))],
        )
        for scale in sorted(labels_run(found, pair, "scale", task=game))
    ]
    if not draw_forest(axes, rows, upright=True, size=4.0, labelsize=6.6):
        return False
    axes.axhline(0.0, color=GREY, lw=0.8, zorder=1)
    axes.grid(axis="y")
    axes.set_xlabel("reward scale")
    return True


def _share_vertical_axis(panels: Sequence[Axes]) -> None:
    """Give panels of one game one vertical axis, with zero in sight; the first names it."""
    limits = np.array([axes.get_ylim() for axes in panels] or [(0.0, 0.0)])
    low, high = min(float(limits.min()), 0.0), max(float(limits.max()), 0.0)
    for turn, axes in enumerate(panels):
        axes.set(ylim=(low, high), ylabel="" if turn else GAP)
        axes.locator_params(axis="y", nbins=6)
        axes.tick_params(axis="y", labelleft=not turn, labelsize=SMALL)
