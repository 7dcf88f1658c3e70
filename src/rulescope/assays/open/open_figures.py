"""Figures of OPEN: what its carry is worth, and how it stands beside other learners in MinAtar."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.assays.comparison_families import CONTEXT_PAIRS
from rulescope.assays.estimates import label_text
from rulescope.assays.figure_data import (
    arms_run,
    caption,
    cell,
    cells,
    count_words,
    curves_by_arm,
    evidence,
    labels_run,
    rescaled,
)
from rulescope.assays.minatar.minatar_context import NAMES
from rulescope.assays.open.open_carry import GAMES
from rulescope.assays.panels import (
    Row,
    arm_row,
    draw_curves,
    draw_forest,
    note_not_run,
    set_difference_axis,
    set_level_axis,
    set_scale_axis,
    with_styles,
)
from rulescope.render.arm_styles import ArmStyle, arm_style, subject
from rulescope.render.line_labels import name_ends
from rulescope.render.palette import DARK, GREY, NOTE, PALE
from rulescope.render.style import SMALL, Page, absent, styled

if TYPE_CHECKING:
    from rulescope.assays.results import Results
    from rulescope.stats import Estimate

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
    page = Page(0.0, words)
    for turn, game in enumerate(_games_run(found)):
        levels = _level_rows(found, game)
        learned, carry = (_contrast_rows(found, game, kinds) for kinds in (CAPABILITY, ENDPOINTS))
        most = max(len(groups) for groups in map(_flat, (levels, learned, carry)))
        top, letters = page.extend(ROW * max(most, 3) + 0.85), "ABCDEF"[3 * turn :]
        for place, (groups, title, label) in enumerate(
            (
                (levels, f"{GAMES[game]}: level", RATE),
                (learned, f"{GAMES[game]}: learned", GAP),
                (carry, f"{GAMES[game]}: carry", GAP),
            )
        ):
            high = ROW * max(len(_flat(groups)), 3)
            box = (LEFTS[place], top, 1.0, high)
            axes = page.panel(letters[place], title, box, INDENTS[place])
            _draw_groups(axes, groups, label)
    return page.finish()


ROW = 0.23
"""Inches of a row."""
LEFTS, INDENTS = (1.38, 3.8, 6.1), (1.28, 1.3, 1.25)
"""Inches: where the panels of a game begin, and how far out their letters stand."""


def _games_run(found: Results | None) -> list[str]:
    """Return the games that have rates."""
    run = labels_run(found, "rate", "task")
    return [game for game in GAMES if game in run]


def _flat(groups: Sequence[Sequence[Row]]) -> list[Row]:
    return [row for group in groups for row in group]


def _level_rows(found: Results | None, game: str) -> list[list[Row]]:
    """Return the rates of the policies in a game, in a group for each scale."""
    groups = []
    for scale in sorted(labels_run(found, "rate", "scale", task=game)):
        rows = []
        for arm in arms_run(found, "rate", task=game):
            one = cell(found, "rate", task=game, arm=arm, scale=scale)
            name = f"{arm_style(arm).name}, {label_text(scale)}"
            rows += [arm_row(arm_style(arm), one, name)] if one is not None else []
        groups += [rows] if rows else []
    return groups


def _contrast_rows(
    found: Results | None, game: str, kinds: Mapping[str, tuple[str, ArmStyle]]
) -> list[list[Row]]:
    """Return contrasts of a game in thousandths, in a group for each kind."""
    groups = []
    for kind, (name, how) in kinds.items():
        rows = []
        for scale in sorted(labels_run(found, kind, "scale", task=game)):
            one = cell(found, kind, task=game, scale=scale)
            if one is not None:
                rows.append(arm_row(how, rescaled(one, 1000.0), f"{name}, {label_text(scale)}"))
        groups += [rows] if rows else []
    return groups


def _draw_groups(axes: Axes, groups: Sequence[Sequence[Row]], label: str) -> None:
    """Draw groups of rows below each other, with a line between them and zero in sight."""
    rows = _flat(groups)
    if not rows:
        absent(axes)
        return
    draw_forest(axes, rows, size=4.0, labelsize=6.4, least=3, between=", ")
    edge = 0.5
    for group in groups[:-1]:
        edge -= len(group)
        axes.axhline(edge, color=PALE, lw=0.8, zorder=0)
    set_difference_axis([axes], label, least=0.0, ticks=3)


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
        shown = [pair for pair in pairs if cells(found, pair, task=game)]
        panels = []
        wide = min(1.1, 3.7 / max(len(shown), 1) - 0.12) if len(shown) > 2 else 1.5
        for place, pair in enumerate(shown):
            box = (3.42 + place * (wide + 0.12), top, wide, 1.3)
            heading = pairs[pair] if len(shown) > 1 else f"{GAMES[game]}: {pairs[pair]}"
            axes = page.panel("" if place else "BD"[turn], heading, box, 0.36)
            panels += [axes] if _draw_differences(axes, found, pair, game) else []
        _share_vertical_axis(panels)
        gone = [name for pair, name in pairs.items() if pair not in shown]
        if page.figure.axes:
            note_not_run(page.figure.axes[-1], (f"{GAMES[game]} {name}" for name in gone))
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
            [(DIFFERENCE, rescaled(one, 1000.0))],
        )
        for scale in sorted(labels_run(found, pair, "scale", task=game))
        if (one := cell(found, pair, task=game, scale=scale)) is not None
    ]
    if not draw_forest(axes, rows, upright=True, size=4.0, labelsize=6.6, between=None):
        return False
    axes.axhline(0.0, color=GREY, lw=0.8, zorder=1)
    axes.grid(axis="y")
    count = count_words(one for row in rows for _, one in row.marks)
    axes.set_xlabel("\n".join(filter(None, ["reward scale", count])))
    return True


def _share_vertical_axis(panels: Sequence[Axes]) -> None:
    """Give panels of one game one vertical axis, with zero in sight; the first names it."""
    limits = np.array([axes.get_ylim() for axes in panels] or [(0.0, 0.0)])
    low, high = min(float(limits.min()), 0.0), max(float(limits.max()), 0.0)
    for turn, axes in enumerate(panels):
        axes.set(ylim=(low, high), ylabel="" if turn else GAP)
        axes.locator_params(axis="y", nbins=6)
        axes.tick_params(axis="y", labelleft=not turn, labelsize=SMALL)
