"""The figures of behaviour: time, streams, change and exploration side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from rulescope.assays.estimates import Label
from rulescope.assays.exploration.exploration_figures import draw_staircase
from rulescope.assays.figure_data import (
    Cell,
    arms_run,
    bounds,
    caption,
    cell,
    cells,
    count_words,
    evidence,
    family_of,
    is_range,
    reach,
    signed,
)
from rulescope.assays.panels import (
    DOTS,
    Row,
    arm_row,
    draw_bar,
    draw_estimate,
    draw_forest,
    draw_levels,
    draw_published_point,
    note_not_run,
    set_difference_axis,
    set_level_axis,
    set_score_axis_across,
)
from rulescope.render.arm_styles import ArmStyle, arm_style, subject
from rulescope.render.line_labels import End, inches, name_ends, spread
from rulescope.render.palette import WHITE
from rulescope.render.style import SMALL, Page, absent, explain, styled

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
def draw_behavior(results: Mapping[str, Results]) -> Figure:
    """``fig:behavior``: endpoint and mastery, streams, Breakout before and after, the staircase."""
    lasting = results.get("F2")
    used = [*cells(lasting, "endpoint"), *cells(lasting, "mastery")]
    text = "A: score at the end, and interactions until it is within a tenth of its final level."
    page = _make_page(results, lasting, used, text if used else "")
    _draw_level_and_pace(
        page.panel("A", "CatchBig: level and pace", (0.62, 0.35, 2.75, 1.95)), lasting
    )
    _draw_shared(page, results)
    return page.finish()


@styled
def draw_integrated_behavior(results: Mapping[str, Results]) -> Figure:
    """``orig:behavior``: as ``fig:behavior``, with the replay memories of E3 in the first panel."""
    change = results.get("E3")
    used = cells(change, "auc", task="catch", **FLIP)
    text = f"A: area under the score after the switch, and {subject()} minus DQN within each seed"
    family = family_of(cells(change, "contrast", **FLIP))
    text += f" ({family})." if family else "."
    page = _make_page(results, change, used, text if used else "")
    areas = page.panel("A", "Catch after an action flip", (0.98, 0.35, 1.15, 1.95), 0.78)
    _draw_replays(areas, page.axes(2.3, 0.35, 1.15, 1.95), change)
    _draw_shared(page, results)
    return page.finish()


def _make_page(
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
    return Page(5.35, caption(budgets, evidence(used), *words), merge=True)


def _draw_shared(page: Page, results: Mapping[str, Results]) -> None:
    """Draw the three panels that both figures have."""
    box = (5.05, 0.35, 2.0, 1.95)
    _draw_streams(page.panel("B", "Worlds without episodes", box, 1.17), results)
    axes = page.panel("C", "Breakout: left and right swapped", (0.62, 2.98, 1.88, 1.95))
    _draw_flip(axes, results.get("E-A4m"))
    axes = page.panel("D", "DeepSea: solved", (4.3, 2.98, 1.88, 1.95))
    name_ends(axes, draw_staircase(axes, results.get("E-A5"), "solved", lifetimes=False))


def _draw_level_and_pace(axes: Axes, results: Results | None) -> None:
    """Draw the endpoint of each configuration over the interactions until its mastery."""
    pairs: list[tuple[ArmStyle, Estimate, Estimate]] = []
    for arm in arms_run(results, "endpoint"):
        level, pace = (cell(results, kind, arm=arm) for kind in ("endpoint", "mastery"))
        if level is not None and pace is not None:
            pairs.append((arm_style(arm), level, pace))
    if not pairs:
        absent(axes)
        return
    for how, level, pace in pairs:
        draw_bar(axes, level.value, bounds(pace), how.colour, few=is_range(pace), across=True)
        _draw_point(axes, level, pace, how)
    paces = reach(pace for _, _, pace in pairs)
    levels = reach(level for _, level, _ in pairs)
    low, high = min(levels), max(1.0, *levels)
    axes.set(
        xlim=(0, max(paces) * 1.12),
        ylim=(low - 0.12 * (high - low) - 0.01, high + 0.06 * (high - low) + 0.005),
        xlabel="interactions until mastery (thousands)",
        ylabel="score at the end",
    )
    draw_levels(axes, 1.0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}")
    _name_points(axes, [(how, pace.value, level.value) for how, level, pace in pairs])


def _draw_point(axes: Axes, level: Estimate, pace: Estimate, how: ArmStyle) -> None:
    """Draw a level at its pace; lifetimes and the published pair where both are known."""
    if isinstance(level, Cell) and isinstance(pace, Cell):
        if len(level.seeds) == len(pace.seeds) > 1:
            dots = axes.scatter(
                *(pace.seeds, level.seeds), s=5.0, color=how.colour, alpha=0.6, lw=0, zorder=4
            )
            explain(dots, DOTS)
            level = replace(level, seeds=())
        if level.published is not None and pace.published is not None:
            draw_published_point(axes, pace.published.value, level.published.value, how.colour)
        level = replace(level, published=None)
    draw_estimate(axes, pace.value, level, how)


def _name_points(axes: Axes, points: Sequence[tuple[ArmStyle, float, float]]) -> None:
    """Write the name of each point beside it, moved up or down where names would meet.

    Call this last: it reads the limits of the axes.
    """
    width, height = inches(axes)
    axes.get_xlim(), axes.get_ylim()  # matplotlib computes limits when they are read
    flat = axes.transData + axes.transAxes.inverted()
    placed: list[tuple[float, float, ArmStyle]] = []
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
            path_effects=[withStroke(linewidth=1.8, foreground=WHITE)],
            zorder=2.5,  # below the markers, which must not be hidden
        )
        if abs(at - y - above) > gap / 2:
            axes.plot(
                [x, x + 0.8 * away], [y, at], color=how.colour, lw=0.6, transform=axes.transAxes
            )


def _draw_streams(axes: Axes, results: Mapping[str, Results]) -> None:
    """Draw the final reward rate of each arm, a row each below the name of its world."""
    rows: list[Row] = []
    gone: list[str] = []
    for name, labels, world in STREAMS:
        arms = arms_run(results.get(name), "score", planned=False, **labels)
        rows += [Row(world, ())] if arms else []
        gone += [] if arms else [world]
        rows += [
            arm_row(arm_style(arm), cell(results.get(name), "score", arm=arm, **labels))
            for arm in arms
        ]
    if not rows:
        absent(axes)
    elif draw_forest(axes, rows, between=", "):
        note_not_run(axes, gone)
        set_score_axis_across(axes, rows, (0.8,), "score of the reward rate")


def _draw_flip(axes: Axes, results: Results | None) -> None:
    """Draw the return of each arm before the actions are flipped, and at the end."""
    arms = arms_run(results, "endpoint", planned=False, **FLIP)
    if not arms:
        absent(axes)
        return
    ends: list[End] = []
    for turn, arm in enumerate(arms):
        how, shift = arm_style(arm), 0.09 * (turn - (len(arms) - 1) / 2)
        before, after = (cell(results, kind, arm=arm, **FLIP) for kind in ("pre", "endpoint"))
        if before is not None and after is not None:
            heights = [before.value, after.value]
            axes.plot([shift, 1 + shift], heights, color=how.colour, ls=how.line, lw=1.1, alpha=0.7)
        draw_estimate(axes, shift, before, how._replace(filled=False), room=0.1)
        draw_estimate(axes, 1 + shift, after, how, room=0.1)
        if after is not None:
            ends.append(End(how.name, how, 1 + shift, after.value, after.value))
    axes.set_xlim(-0.3, 1.3)
    count = count_words(cells(results, "endpoint", **FLIP))
    axes.set_xticks([0, 1], ["\n".join(filter(None, [w, count])) for w in ("before", "at the end")])
    axes.tick_params(axis="x", length=0)
    set_level_axis(axes, "return of an episode")
    name_ends(axes, ends)


def _draw_replays(areas: Axes, differences: Axes, results: Results | None) -> None:
    """Draw the area after the switch by arm, and beside it the rule's advantage over each DQN."""
    areas_of = {
        arm: cell(results, "auc", task="catch", arm=arm, **FLIP) for arm in ("rule", *REPLAYS)
    }
    found = {arm: area for arm, area in areas_of.items() if area is not None}
    rows = [arm_row(arm_style(arm), area) for arm, area in found.items()]
    if not rows:
        absent(areas)
        return
    draw_forest(areas, rows)
    set_score_axis_across(areas, rows, label="area (score)")
    contrasts = {
        arm: cell(results, "contrast", replay=REPLAYS[arm], **FLIP) if arm in REPLAYS else None
        for arm in found
    }
    draw_forest(differences, [arm_row(arm_style(arm), e, "") for arm, e in contrasts.items()])
    differences.set_yticks([])
    differences.spines["left"].set_visible(False)
    set_difference_axis([differences], f"{subject()} − DQN", room=0.06)
    differences.xaxis.set_major_formatter(lambda value, _: signed(f"{value:g}"))
