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
    Curve,
    caption,
    cell,
    cells,
    curve_along,
    evidence,
    labels_run,
)
from rulescope.assays.minatar.minatar_context import NAMES
from rulescope.assays.open.open_carry import GAMES
from rulescope.assays.panels import dots, draw_curve, scale_axis
from rulescope.render.line_labels import End, name_apart, name_ends
from rulescope.render.style import (
    DARK,
    GREY,
    PALE,
    SMALL,
    Look,
    Page,
    absent,
    in_order,
    look,
    styled,
    subject,
)

if TYPE_CHECKING:
    from rulescope.assays.results import Results
    from rulescope.stats import Estimate

THOUSANDTHS = 1000.0
FEWEST_ROWS = 6
"""There is room for so many, or two would stand far apart."""
LEVELS = {
    "live": look("live"),
    "zero": look("pin")._replace(name="zero"),
    "zero-update": Look("zero (u)", "#E69F00", "D", filled=False),
    "reset": Look("reset once", "#009E73", "^"),
    "adam": Look("Adam", "#000000", "X"),
    "initial": Look("initial policy", "#6E6E6E", "P"),
    "random": Look("random policy", "#9A9A9A", "x"),
}
ENDPOINTS = {
    "live-minus-zero": ("live − zero", LEVELS["zero"]),
    "live-minus-zero-update": ("live − zero (u)", LEVELS["zero-update"]),
    "interaction": ("interaction", Look("interaction", "#555555", "d")),
    "reset-minus-live": ("reset − live", LEVELS["reset"]),
}
CAPABILITY = {
    "live-minus-initial": ("live − initial", LEVELS["initial"]),
    "live-minus-random": ("live − random", LEVELS["random"]),
}
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


def _families(found: Iterable[Estimate]) -> str:
    """Say for how many the intervals of differences are adjusted."""
    sizes = {one.family for one in found if one.family > 1 and not math.isnan(one.low)}
    return f"Differences: 95% intervals adjusted for a family of {max(sizes)}." if sizes else ""


@styled
def open_carry(results: Mapping[str, Results]) -> Figure:
    """``open-carry``: levels in the end, what was learned at all, and contrasts of the carry."""
    found = results.get("OPEN")
    games = [game for game in GAMES if game in labels_run(found, "rate", "task")] or list(GAMES)
    levels = cells(found, "rate")
    contrasts = [one for kind in (*ENDPOINTS, *CAPABILITY) for one in cells(found, kind)]
    words = caption(
        [found],
        evidence(levels),
        _families(contrasts),
        CARRY_WORDS if found is not None else "",
        UPDATE_WORDS if cells(found, "live-minus-zero-update") else "",
    )
    page = Page(0.1 + 2.15 * len(games), words)
    for turn, game in enumerate(games):
        top = 0.35 + 2.15 * turn
        letters = "ABCDEF"[3 * turn :]
        left = page.axes(0.55, top, 1.35, 1.4)
        middle = page.axes(3.86, top, 1.05, 1.4)
        right = page.axes(5.92, top, 1.16, 1.4)
        page.heading(left, letters[0], f"{GAMES[game]}: in the end")
        page.heading(middle, letters[1], "What was learned", indent=0.9)
        page.heading(right, letters[2], "What the carry does", indent=0.9)
        _levels(left, found, game)
        _forest(middle, found, game, CAPABILITY)
        _forest(right, found, game, ENDPOINTS)
    return page.figure


def _levels(axes: Axes, found: Results | None, game: str) -> None:
    """Draw how each policy fares at each scale."""
    run = labels_run(found, "rate", "arm", task=game)
    arms = [arm for arm in LEVELS if arm in run]
    scales = sorted(
        {s for arm in arms for s in labels_run(found, "rate", "scale", task=game, arm=arm)}
    )
    if not arms:
        absent(axes)
        return
    step = 0.8 / max(len(arms), 4)
    for turn, arm in enumerate(arms):
        shift = (turn - (len(arms) - 1) / 2) * step
        marks = [cell(found, "rate", task=game, arm=arm, scale=scale) for scale in scales]
        dots(axes, [place + shift for place in range(len(scales))], marks, LEVELS[arm], size=4.0)
    name_apart(
        axes, [End(LEVELS[arm].name, LEVELS[arm], 0.0, 0.0, -i) for i, arm in enumerate(arms)]
    )
    axes.set_ylim(min(0.0, axes.get_ylim()[0]), 1.05 * axes.get_ylim()[1])
    axes.set_xticks(range(len(scales)), [label_text(scale) for scale in scales])
    axes.set_xlim(-0.6, len(scales) - 0.4)
    axes.tick_params(axis="x", length=0)
    axes.locator_params(axis="y", nbins=5)
    axes.grid(axis="y", color=PALE)
    axes.set_xlabel("reward scale of training", labelpad=2)
    axes.set_ylabel("reward per interaction", labelpad=2)


def _forest(
    axes: Axes, found: Results | None, game: str, kinds: Mapping[str, tuple[str, Look]]
) -> None:
    """Draw contrasts of a game as rows, in thousandths; those of a kind stand together."""
    rows: list[tuple[str, Look, Estimate]] = []
    gaps: list[int] = []
    for kind, (name, how) in kinds.items():
        scales = sorted(labels_run(found, kind, "scale", task=game))
        for scale in scales:
            one = cell(found, kind, task=game, scale=scale)
            if one is not None:
                rows.append((f"{name}, {label_text(scale)}", how, one))
        gaps += [len(rows)] if scales else []
    if not rows:
        absent(axes)
        return
    for turn, (_, how, one) in enumerate(rows):
        dots(axes, [-float(turn)], [_scaled(one)], how, across=True, size=4.0)
    for gap in gaps[:-1]:
        axes.axhline(0.5 - gap, color=PALE, lw=0.8, zorder=0)
    axes.set_yticks([-turn for turn in range(len(rows))], [name for name, _, _ in rows])
    axes.tick_params(axis="y", length=0, labelsize=6.4)
    for tick, (_, how, _) in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_color(how.ink)
    axes.set_ylim(-max(len(rows), FEWEST_ROWS) + 0.4, 0.6)
    _difference_axis(axes)


def _scaled(one: Estimate) -> Estimate:
    """Return an estimate in thousandths."""
    return replace(
        one,
        value=one.value * THOUSANDTHS,
        low=one.low * THOUSANDTHS,
        high=one.high * THOUSANDTHS,
    )


def _difference_axis(axes: Axes) -> None:
    """Keep zero in sight, and every mark whole."""
    low, high = min(axes.get_xlim()[0], 0.0), max(axes.get_xlim()[1], 0.0)
    room = 0.06 * (high - low)
    axes.set_xlim(low - room, high + room)
    axes.axvline(0.0, color=GREY, lw=0.8, zorder=1)
    axes.grid(axis="x")
    axes.locator_params(axis="x", nbins=4)
    axes.set_xlabel("difference × 1,000", labelpad=2)


@styled
def minatar_context(results: Mapping[str, Results]) -> Figure:
    """``minatar-context``: rates over reward scale, and differences between learners."""
    found = results.get("minatar-context")
    games = [game for game in GAMES if game in labels_run(found, "rate", "task")] or list(GAMES)
    names = {arm: name.format(subject()) for arm, name in NAMES.items()}
    pairs = {f"{a}-minus-{b}": f"{names[a]} − {names[b]}" for a, b in CONTEXT_PAIRS}
    differences = [one for pair in pairs for one in cells(found, pair)]
    words = caption(
        [found],
        evidence(cells(found, "rate")),
        _families(differences),
        CONTEXT_WORDS if found is not None else "",
    )
    page = Page(0.1 + 2.05 * len(games), words)
    for turn, game in enumerate(games):
        top = 0.35 + 2.05 * turn
        left = page.axes(0.55, top, 1.45, 1.3)
        page.heading(left, "AC"[turn], f"{GAMES[game]}: reward rate")
        _curves(left, found, game)
        panels = [page.axes(3.42 + place * 1.22, top, 1.1, 1.3) for place in range(len(pairs))]
        for place, (axes, pair) in enumerate(zip(panels, pairs, strict=True)):
            page.heading(axes, "BD"[turn] if place == 0 else "", pairs[pair], indent=0.36)
            _differences(axes, found, pair, game)
        _share(panels)
    return page.figure


def _curves(axes: Axes, found: Results | None, game: str) -> None:
    arms = in_order(set(labels_run(found, "rate", "arm", task=game)))
    lines = {arm: curve_along(found, "rate", task=game, arm=arm) for arm in arms}
    curves: dict[str, Curve] = {arm: line for arm, line in lines.items() if line is not None}
    if not curves:
        absent(axes)
        return
    for arm, line in curves.items():
        draw_curve(axes, line, look(arm))
    scale_axis(axes, [line.x for line in curves.values()])
    axes.set_ylim(min(0.0, axes.get_ylim()[0]), 1.05 * axes.get_ylim()[1])
    axes.locator_params(axis="y", nbins=5)
    axes.grid(axis="y", color=PALE)
    axes.set_ylabel("reward per interaction", labelpad=2)
    name_ends(axes, [End(look(arm).name, look(arm), *c.last, c.level) for arm, c in curves.items()])


def _differences(axes: Axes, found: Results | None, pair: str, game: str) -> None:
    """Draw one pair's differences over reward scale, in thousandths."""
    scales = sorted(labels_run(found, pair, "scale", task=game))
    if not scales:
        absent(axes)
        return
    marks = [cell(found, pair, task=game, scale=scale) for scale in scales]
    how = Look("difference", DARK, "o")
    dots(axes, list(range(len(scales))), [one and _scaled(one) for one in marks], how, size=4.0)
    axes.axhline(0.0, color=GREY, lw=0.8, zorder=1)
    axes.set_xticks(range(len(scales)), [label_text(scale) for scale in scales])
    axes.tick_params(axis="x", length=0, labelsize=6.6)
    axes.set_xlim(-0.6, len(scales) - 0.4)
    axes.grid(axis="y", color=PALE)
    axes.set_xlabel("reward scale", labelpad=2)


def _share(panels: Sequence[Axes]) -> None:
    """Give panels of one game one vertical axis; the first that has anything names it."""
    filled = [axes for axes in panels if axes.get_yticks().size and axes.lines]
    if not filled:
        return
    limits = np.array([axes.get_ylim() for axes in filled])
    low, high = min(float(limits.min()), 0.0), max(float(limits.max()), 0.0)
    for axes in filled:
        axes.set_ylim(low, high)
        axes.locator_params(axis="y", nbins=6)
        axes.tick_params(axis="y", labelleft=axes is filled[0], labelsize=SMALL)
    filled[0].set_ylabel("difference × 1,000", labelpad=2)
