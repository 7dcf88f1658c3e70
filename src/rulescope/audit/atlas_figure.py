"""The atlas as a picture: a panel for each measure, a line for each rule, single lifetimes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.lines import Line2D

from rulescope.assays.figure_data import Cell
from rulescope.assays.panels import draw_estimate, name_rows
from rulescope.audit.atlas_rows import OTHER_BUDGET, OTHER_UNIT, UNKNOWN_BUDGET, Atlas, AtlasRow
from rulescope.audit.atlas_tables import headlines
from rulescope.audit.profile import ProfileValue
from rulescope.render.arm_styles import ARMS, ArmStyle
from rulescope.render.palette import DARK, GREY, PALE, TITLE
from rulescope.render.style import SMALL, WIDTH, Page, absent, styled
from rulescope.stats import COMPETENT

COLUMNS = 3
LEFT, RIGHT, BETWEEN = 1.25, 0.15, 0.22
"""Inches: room for the names of the rules, at the right, and between two panels."""
TOP, HEAD, ROW, BELOW = 0.35, 0.42, 0.24, 0.3
"""Inches: room for the legend, for a title, of a rule, and for an axis."""
TITLE_LETTERS = 34
NAME_LETTERS = 20
LIVE, WITHOUT = ARMS["live"], ARMS["pin"]
MARKED = (OTHER_BUDGET, OTHER_UNIT, UNKNOWN_BUDGET)
BOUNDED = ("score", "share", "return")
CAPTION = (
    "Dots: estimates with 95 % intervals over seeds (without a line: too few seeds); faint dots: "
    "single lifetimes. Hollow: another budget than the reference's, not comparable. Without its "
    "history: pinned, or frozen before a change."
)


@styled
def picture(atlas: Atlas) -> Picture:
    """Draw the measures of the short table, every rule with and without its history."""
    rows = [row for row in headlines(atlas) if row.value.value is not None]
    lines = list(dict.fromkeys(row.line for row in rows))
    names = [rule.label for rule in atlas.rules]
    deep = HEAD + ROW * len(names) + BELOW
    page = Page(TOP + deep * max(math.ceil(len(lines) / COLUMNS), 1), CAPTION)
    width = (WIDTH - LEFT - RIGHT - BETWEEN * (COLUMNS - 1)) / COLUMNS
    for turn, line in enumerate(lines):
        down, across = divmod(turn, COLUMNS)
        axes = page.axes(
            LEFT + across * (width + BETWEEN), TOP + down * deep + HEAD, width, ROW * len(names)
        )
        found = [row for row in rows if row.line == line]
        _draw(axes, found, names, named=across == 0)
        title = textwrap.fill(found[0].title, TITLE_LETTERS, max_lines=2, placeholder="…")
        axes.set_title(title, loc="left", size=7.5, color=TITLE, pad=4)
    if not lines:
        absent(page.axes(LEFT, TOP, WIDTH - LEFT - RIGHT, ROW * len(names)))
    _legend(page)
    return page.figure


def _draw(axes: Axes, rows: Sequence[AtlasRow], names: Sequence[str], *, named: bool) -> None:
    """Draw one measure; a rule without it leaves its line empty."""
    for row in rows:
        place = -names.index(row.rule)
        hollow = row.note in MARKED
        draw_estimate(axes, place + 0.16, cell_of(row.value), _style(LIVE, hollow), across=True)
        if row.without is not None and row.without.value is not None:
            how = _style(WITHOUT, hollow)
            draw_estimate(axes, place - 0.18, cell_of(row.without), how, across=True, size=3.8)
    name_rows(axes, [(_shorten(name, NAME_LETTERS), DARK) for name in names])
    if not named:
        axes.set_yticklabels([])
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    for place in range(1, len(names)):
        axes.axhline(0.5 - place, color=PALE, lw=0.5, zorder=0)
    low, high = axes.get_xlim()
    if rows[0].unit in BOUNDED:
        axes.set_xlim(min(low - 0.03, -0.06), max(high + 0.03, 1.06))
        if rows[0].unit == "score":
            axes.axvline(COMPETENT, color=GREY, lw=0.8, ls=(0, (2, 2)), zorder=1)
    else:
        axes.set_xlim(min(low, 0.0), max(high, 1.0))
    axes.tick_params(axis="x", labelsize=SMALL)


def _style(how: ArmStyle, hollow: bool) -> ArmStyle:
    return how._replace(filled=not hollow)


def cell_of(found: ProfileValue) -> Cell:
    """Return a value with the values of its lifetimes, as figures draw it.

    A range over few seeds is no interval: its lifetimes show it.
    """
    one = found.estimate()
    bounds = (one.low, one.high) if one.method in ("bootstrap", "wilson") else (math.nan,) * 2
    seeds = tuple(value for value in found.seeds if value is not None)
    return Cell(one.value, *bounds, one.n, family=one.family, method=one.method, seeds=seeds)


def _shorten(text: str, letters: int) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1].rstrip(' ,')}…"


def _legend(page: Page) -> None:
    handles = [
        Line2D([], [], color=how.colour, marker=how.marker, lw=1.3, ms=4.4)
        for how in (LIVE, WITHOUT)
    ]
    handles.append(Line2D([], [], color=GREY, lw=0.8, ls=(0, (2, 2))))
    page.figure.legend(
        handles,
        ["the rule as it is", "without its history", f"competent: {COMPETENT:g}"],
        loc="upper left",
        bbox_to_anchor=(0.05 / page.width, 1 - 0.05 / page.height),
        ncols=3,
        frameon=False,
        fontsize=7.5,
        handlelength=1.8,
        columnspacing=1.6,
    )
