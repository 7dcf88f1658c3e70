"""The figures of behaviour: time, streams, change and exploration side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from rulescope.assays.estimates import Label
from rulescope.assays.figure_data import (
    arms_run,
    caption,
    cell,
    cells,
    curves_by_arm,
    evidence,
    family_of,
    point,
    reach,
)
from rulescope.assays.panels import curves_beside, dots, forest, score_axis
from rulescope.render.line_labels import End, inches, name_ends, spread
from rulescope.render.style import (
    DARK,
    GREY,
    PALE,
    SMALL,
    Look,
    Page,
    absent,
    look,
    styled,
    subject,
)

if TYPE_CHECKING:
    from rulescope.assays.results import Results
    from rulescope.stats import Estimate

STREAMS: tuple[tuple[str, dict[str, Label], str], ...] = (
    ("E-A3c", {}, "CatchStream"),
    ("exposure", {"condition": "natural"}, "Tracking"),
)
"""Worlds without episodes: assay, labels of its scores besides the arm, name."""
FLIP: dict[str, Label] = {"condition": "action-flip"}
RATES = "B: score of the reward rate; dotted: 0.8."
SHARED: tuple[tuple[str, str, dict[str, Label], str], ...] = (
    *((name, "score", labels, RATES) for name, labels, _ in STREAMS),
    ("E-A4m", "endpoint", FLIP, "C: return before the swap (hollow) and at the end."),
    ("E-A5", "solved", {}, "D: solved with a mean final return of at least 0.495; dotted: half."),
)
"""What the panels of both figures show: assay, quantity, labels, its meaning in words."""
REPLAYS = {"dqn": "100k", "dqn-28672": "28672", "dqn-cleared": "cleared"}
"""Replay memories of DQN, by arm, as the contrasts with the rule label them."""


@styled
def behavior(results: Mapping[str, Results]) -> Figure:
    """``fig:behavior``: endpoint and mastery, streams, Breakout before and after, the staircase."""
    lasting = results.get("F2")
    used = [*cells(lasting, "endpoint"), *cells(lasting, "mastery")]
    text = (
        "A: score at the end, and interactions until it is within a tenth of its final level."
        if used
        else ""
    )
    page = _page(results, lasting, used, text)
    axes = page.axes(0.62, 0.35, 2.75, 1.95)
    page.heading(axes, "A", "CatchBig: level and pace")
    _level_and_pace(axes, lasting)
    _shared(page, results)
    return page.figure


@styled
def integrated_behavior(results: Mapping[str, Results]) -> Figure:
    """``orig:behavior``: as ``fig:behavior``, with the replay memories of E3 in the first panel."""
    change = results.get("E3")
    used = cells(change, "auc", task="catch", **FLIP)
    text = f"A: area under the score after the switch, and {subject()} minus DQN within each seed"
    family = family_of(cells(change, "contrast", **FLIP))
    text += f" ({family})." if family else "."
    page = _page(results, change, used, text if used else "")
    areas = page.axes(0.98, 0.35, 1.15, 1.95)
    page.heading(areas, "A", "Catch after an action flip", indent=0.78)
    differences = page.axes(2.3, 0.35, 1.15, 1.95)
    _replays(areas, differences, change)
    _shared(page, results)
    return page.figure


def _page(
    results: Mapping[str, Results], first: Results | None, used: list[Estimate], text: str
) -> Page:
    """Return the page of a figure whose first panel shows ``used`` of ``first``."""
    words = [text]
    budgets = [first if used else None]
    for name, quantity, labels, meaning in SHARED:
        found = cells(results.get(name), quantity, **labels)
        used = used + found
        budgets += [results[name]] if found else []
        words += [meaning] if found and meaning not in words else []
    return Page(5.35, caption(budgets, evidence(used), *words))


def _shared(page: Page, results: Mapping[str, Results]) -> None:
    """Draw the three panels that both figures have."""
    panels: tuple[tuple[str, str, float, float, Callable[[Axes], None]], ...] = (
        ("B", "Worlds without episodes", 4.3, 0.35, lambda axes: _streams(axes, results)),
        ("C", "Breakout: left and right swapped", 0.62, 2.98, lambda axes: _flip(axes, results)),
        ("D", "DeepSea: solved", 4.3, 2.98, lambda axes: _staircase(axes, results)),
    )
    for letter, title, left, top, draw in panels:
        axes = page.axes(left, top, 2.75 if letter == "B" else 1.88, 1.95)
        page.heading(axes, letter, title)
        draw(axes)


def _level_and_pace(axes: Axes, results: Results | None) -> None:
    """Draw the endpoint of each configuration over the interactions until its mastery."""
    pairs: list[tuple[str, Estimate, Estimate]] = []
    for arm in arms_run(results, "endpoint"):
        level, pace = (cell(results, kind, arm=arm) for kind in ("endpoint", "mastery"))
        if level is not None and pace is not None:
            pairs.append((arm, level, pace))
    if not pairs:
        absent(axes)
        return
    for arm, level, pace in pairs:
        how = look(arm)
        axes.plot([pace.low, pace.high], [level.value] * 2, color=how.colour, lw=1.1, alpha=0.6)
        dots(axes, [pace.value], [level], how)
    paces = [(pace.value, pace.low, pace.high) for _, _, pace in pairs]
    levels = reach(level for _, level, _ in pairs)
    axes.set_xlim(0, float(np.nanmax(paces)) * 1.12)
    low, high = min(levels), max(1.0, *levels)
    axes.set_ylim(low - 0.12 * (high - low) - 0.01, high + 0.06 * (high - low) + 0.005)
    axes.axhline(1.0, color=PALE, lw=0.8, zorder=0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}")
    axes.set_xlabel("interactions until mastery (thousands)", labelpad=2)
    axes.set_ylabel("score at the end", labelpad=2)
    name_points(axes, [(look(arm), pace.value, level.value) for arm, level, pace in pairs])


def name_points(axes: Axes, points: Sequence[tuple[Look, float, float]]) -> None:
    """Write the name of each point beside it, moved up or down where names would meet.

    Call this last: it reads the limits of the axes.
    """
    width, height = inches(axes)
    axes.get_xlim(), axes.get_ylim()  # matplotlib finds limits only when it is asked for them
    flat = axes.transData + axes.transAxes.inverted()
    placed: list[tuple[float, float, Look]] = []
    for how, across, up in points:
        x, y = flat.transform((across, up))
        placed.append((float(x), float(y), how))
    placed.sort(key=lambda place: place[1])
    gap = SMALL * 1.25 / 72 / height
    above = 0.085 / height  # clear of an interval that lies across
    heights = spread([y + above for _, y, _ in placed], gap, gap / 2, 1.0)
    for (x, y, how), at in zip(placed, heights, strict=True):
        left = x > 0.62  # no room to the right
        away = (-0.09 if left else 0.09) / width
        axes.text(
            x + away,
            at,
            how.name,
            transform=axes.transAxes,
            ha="right" if left else "left",
            va="center",
            size=SMALL,
            color=how.ink,
            path_effects=[withStroke(linewidth=1.8, foreground="white")],
            zorder=2.5,  # below the markers, which must not be hidden
        )
        if abs(at - y - above) > gap / 2:
            axes.plot(
                [x, x + 0.8 * away], [y, at], color=how.colour, lw=0.6, transform=axes.transAxes
            )


def _streams(axes: Axes, results: Mapping[str, Results]) -> None:
    """Draw the final reward rate of each arm, world by world, with names below."""
    found = {
        (world, arm): e
        for name, labels, world in STREAMS
        for arm in arms_run(results.get(name), "score", planned=False, **labels)
        if (e := cell(results.get(name), "score", arm=arm, **labels)) is not None
    }
    if not found:
        absent(axes)
        return
    ticks: list[tuple[float, str]] = []
    place = 0.0
    for _, _, world in STREAMS:
        arms = [arm for its, arm in found if its == world]
        for turn, arm in enumerate(arms):
            dots(axes, [place + turn], [found[world, arm]], look(arm))
            ticks.append((place + turn, arm))
        wide = max(len(arms), 2)  # room for the name of the world
        middle = place + (len(arms) - 1 if arms else 1) / 2
        below = axes.get_xaxis_transform()
        axes.text(middle, -0.165, world, transform=below, ha="center", size=7.5, color=DARK)
        if not arms:
            axes.text(middle, 0.5, "not run", ha="center", size=SMALL, color=GREY)
        place += wide + 0.8
    score_axis(axes, [point(e) for e in found.values()], (0.8,))
    axes.set_ylabel("score of the reward rate", labelpad=2)
    axes.set_xlim(-0.7, place - 1.1)
    axes.set_xticks([x for x, _ in ticks], [look(arm).name for _, arm in ticks])
    for tick, (_, arm) in zip(axes.get_xticklabels(), ticks, strict=True):
        tick.set_color(look(arm).ink)
    axes.tick_params(axis="x", length=0)


def _flip(axes: Axes, results: Mapping[str, Results]) -> None:
    """Draw the return of each arm before the actions are flipped, and at the end."""
    found = results.get("E-A4m")
    arms = arms_run(found, "endpoint", planned=False, **FLIP)
    if not arms:
        absent(axes)
        return
    ends: list[End] = []
    tops = [0.0]
    for turn, arm in enumerate(arms):
        how, shift = look(arm), 0.04 * (turn - (len(arms) - 1) / 2)
        before, after = (cell(found, kind, arm=arm, **FLIP) for kind in ("pre", "endpoint"))
        if before is not None and after is not None:
            heights = [before.value, after.value]
            axes.plot([shift, 1 + shift], heights, color=how.colour, ls=how.line, lw=1.1, alpha=0.7)
        dots(axes, [shift], [before], how._replace(filled=False))
        dots(axes, [1 + shift], [after], how)
        tops += reach([before, after])
        if after is not None:
            ends.append(End(how.name, how, 1 + shift, after.value, after.value))
    axes.set_xlim(-0.3, 1.3)
    axes.set_ylim(-0.04 * max(tops), 1.08 * max(tops))
    axes.set_xticks([0, 1], ["before", "at the end"])
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y")
    axes.set_ylabel("return of an episode", labelpad=2)
    name_ends(axes, ends)


def _staircase(axes: Axes, results: Mapping[str, Results]) -> None:
    """Draw the share of lifetimes that solve each depth."""
    curves = curves_by_arm(results.get("E-A5"), "solved", "depth")
    if not curves:
        absent(axes)
        return
    ends = curves_beside(axes, [(look(arm), line) for arm, line in curves.items()], 0.18)
    depths = np.unique(np.concatenate([line.x for line in curves.values()]))
    axes.axhline(0.5, color=GREY, lw=0.6, ls=(0, (2, 2)), zorder=0)
    axes.set_xticks(depths, [f"{depth:g}" for depth in depths])
    axes.set_xlim(depths[0] - 0.9, depths[-1] + 0.9)
    axes.set_ylim(-0.05, 1.06)
    axes.set_xlabel("depth", labelpad=2)
    axes.set_ylabel("share of lifetimes", labelpad=2)
    name_ends(axes, ends)


def _replays(areas: Axes, differences: Axes, results: Results | None) -> None:
    """Draw the area after the switch by arm, and beside it the rule's advantage over each DQN."""
    areas_of = {
        arm: cell(results, "auc", task="catch", arm=arm, **FLIP) for arm in ("disco", *REPLAYS)
    }
    found = {arm: area for arm, area in areas_of.items() if area is not None}
    if not found:
        absent(areas)
        differences.set_axis_off()
        return
    contrasts = {
        arm: cell(results, "contrast", replay=REPLAYS[arm], **FLIP) if arm in REPLAYS else None
        for arm in found
    }
    for axes, estimates in ((areas, found), (differences, contrasts)):
        forest(axes, [(look(arm).name, look(arm), e) for arm, e in estimates.items()])
    areas.set_xlim(*_room(list(found.values()), 0.0, 1.0))
    areas.set_xlabel("area (score)", labelpad=2)
    for reference in (0.0, 1.0):
        areas.axvline(reference, color=PALE, lw=0.8, zorder=0)
    differences.set_yticks([])
    differences.spines["left"].set_visible(False)
    differences.axvline(0.0, color=GREY, lw=0.8, zorder=1)
    differences.set_xlim(*_room(list(contrasts.values()), -0.1, 0.1))
    differences.locator_params(axis="x", nbins=4)
    differences.xaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("-", "−"))
    differences.set_xlabel(f"{subject()} − DQN", labelpad=2)


def _room(found: Sequence[Estimate | None], low: float, high: float) -> tuple[float, float]:
    """Return limits that hold ``low``, ``high`` and all estimates with their intervals."""
    ends = reach(found)
    least, most = min([low, *ends]), max([high, *ends])
    return least - 0.06 * (most - least), most + 0.06 * (most - least)
