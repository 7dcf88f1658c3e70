"""Panels that figures are composed of: curves, forests, heat maps, shares; and their axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from rulescope.assays.figure_data import (
    Cell,
    Curve,
    Floats,
    bounds,
    count_words,
    interval_text,
    is_range,
    reach,
)
from rulescope.render import palette
from rulescope.render.arm_styles import ArmStyle, arm_style
from rulescope.render.line_labels import End, inches, name_apart, name_ends
from rulescope.render.palette import DARK, GREY, PALE
from rulescope.render.style import SMALL, TINY, absent, explain

if TYPE_CHECKING:
    from rulescope.stats import Estimate

SCORE = "score (0 random, 1 optimal)"
THRESHOLD = (0, (2, 2))
"""The line style of thresholds."""
FEW_LINE = (0, (1, 1.6))
"""The line style of a range of too few lifetimes, which is no interval."""
BESIDE = 0.06
"""Inches from the middle of a mark to single lifetimes on one side, the published on the other."""
LANE = 0.026
"""Inches from one lane of single lifetimes to the next."""
LANES = 5
CAP = 3.2
"""Points: half the width of the ends of an interval."""
DIAMOND = (4, 0, 0)
"""The marker of published values: no arm has it."""
DOTS = "Faint dots: single lifetimes"
PATHS = "Thin lines: single lifetimes"
RANGES = "Dotted bars: the lowest and the highest of 2 lifetimes, which are too few for an interval"
ALONE = "Marks without a bar and without dots: one lifetime"
PRINTED = "Small hollow diamonds: published values with their intervals"
FRAMED = "Framed marks are bimodal cells, whose mean no lifetime had"


# Curves


def draw_curves(
    axes: Axes,
    lines: Sequence[tuple[ArmStyle, Curve]],
    *,
    band: bool = True,
    markers: bool = True,
    lifetimes: bool = True,
) -> list[End]:
    """Draw lines with their bands; return where they end. Axes without lines are left out.

    Points without neighbours have a bar for their interval; so has, dotted, the range of too few
    lifetimes, which is no band.
    """
    if not lines:
        absent(axes)
    steps = _lane_starts(axes, lines)
    for start, (how, line) in zip(steps, lines, strict=True):
        _draw_paths(axes, how, line)
        _draw_line(axes, how, line, markers=markers)
        if band:
            _draw_band(axes, how, line)
        _draw_cells_along(axes, how, line, start, lifetimes=lifetimes)
    return [line_end(line, how) for how, line in lines]


def _lane_starts(axes: Axes, lines: Sequence[tuple[ArmStyle, Curve]]) -> list[float]:
    """Return how many inches beside its points the lifetimes of each line begin."""
    points = max((len(line.x) for _, line in lines), default=1)
    room = 0.42 * inches(axes)[0] / max(points, 1) - BESIDE
    step = min(2 * LANE, max(room, LANE) / max(len(lines), 1))
    return [BESIDE + step * turn for turn in range(len(lines))]


def _draw_paths(axes: Axes, how: ArmStyle, line: Curve) -> None:
    """Draw the curve of every lifetime, thin."""
    if line.paths is None or len(line.paths) < 2:
        return
    points = line.paths.shape[1]
    drawn = LineCollection(
        [np.column_stack([line.x[:points], path]) for path in line.paths],
        colors=how.colour,
        linewidths=0.4,
        alpha=max(0.14, 0.55 / np.sqrt(len(line.paths))),
        zorder=2.2,
    )
    explain(drawn, PATHS)
    axes.add_collection(drawn)


def _draw_band(axes: Axes, how: ArmStyle, line: Curve) -> None:
    """Draw intervals as a band, of points that stand alone as bars; ranges as dotted bars."""
    enough = ~line.few
    axes.fill_between(line.x, line.low, line.high, where=enough, color=how.colour, alpha=0.16, lw=0)
    if line.paths is not None:
        return
    known = np.concatenate([[False], np.isfinite(line.y) & enough, [False]])
    alone = known[1:-1] & ~known[:-2] & ~known[2:]
    for at in np.flatnonzero(alone | line.few):
        ends = float(line.low[at]), float(line.high[at])
        draw_bar(axes, float(line.x[at]), ends, how.colour, few=bool(line.few[at]))


def draw_curves_beside(
    axes: Axes,
    lines: Sequence[tuple[ArmStyle, Curve]],
    apart: float = 0.0,
    *,
    log: bool = False,
    lifetimes: bool = True,
) -> list[End]:
    """Draw lines with bars for intervals, beside each other where many would hide one another.

    ``apart`` is the step from one line to the next, in decades on a ``log`` axis. Return where
    the lines end. Axes without lines are left out.
    """
    if not lines:
        absent(axes)
    ends = []
    steps = _lane_starts(axes, lines)
    for turn, (start, (how, line)) in enumerate(zip(steps, lines, strict=True)):
        shift = apart * (turn - (len(lines) - 1) / 2)
        moved = line._replace(x=line.x * 10**shift if log else line.x + shift)
        for x, low, high, few in zip(moved.x, moved.low, moved.high, moved.few, strict=True):
            draw_bar(axes, float(x), (float(low), float(high)), how.colour, few=bool(few))
        _draw_line(axes, how, moved, ms=3.6, lw=1.2 if how.filled else 0.8)
        first = 0.6 * BESIDE if apart else start
        _draw_cells_along(axes, how, moved, first, lifetimes=lifetimes)
        ends.append(line_end(moved, how))
    return ends


def _draw_line(
    axes: Axes,
    how: ArmStyle,
    line: Curve,
    *,
    markers: bool = True,
    lw: float = 1.5,
    ms: float = 4.2,
) -> None:
    (drawn,) = axes.plot(
        line.x,
        line.y,
        color=how.colour,
        ls=how.line,
        lw=lw,
        marker=how.marker if markers else "",
        mfc=how.face,
        ms=ms,
        mew=0.9,
        zorder=3,
    )
    if any(one.n == 1 for one in line.cells):
        explain(drawn, ALONE)


def draw_scores_over_scale(
    axes: Axes,
    curves: Mapping[str, Curve],
    *,
    band: bool = True,
    thresholds: Sequence[float] = (0.8,),
) -> list[End]:
    """Draw the score of every arm over reward scale; return where the lines end."""
    ends = draw_curves(axes, with_styles(curves), band=band)
    if curves:
        set_scale_axis(axes, [line.x for line in curves.values()])
        set_score_axis(axes, curves.values(), thresholds)
    return ends


def with_styles(curves: Mapping[str, Curve]) -> list[tuple[ArmStyle, Curve]]:
    """Return the curve of each arm with the arm's style."""
    return [(arm_style(arm), line) for arm, line in curves.items()]


def line_end(line: Curve, how: ArmStyle) -> End:
    """Return where a line ends, with the name of its style."""
    return End(how.name, how, *line.last, line.level)


def _draw_cells_along(
    axes: Axes, how: ArmStyle, line: Curve, start: float, *, lifetimes: bool
) -> None:
    """Draw what stands beside the points of a line: lifetimes, published values, frames."""
    for place, one in zip(line.x, line.cells, strict=False):
        if one.missing:
            continue
        if lifetimes:
            draw_lifetimes(axes, float(place), one.seeds, how, start=start, lanes=2)
        _draw_beside(axes, float(place), one, how, start=start)


# Marks


def draw_bar(
    axes: Axes,
    place: float,
    ends: tuple[float, float],
    colour: str,
    *,
    few: bool = False,
    across: bool = False,
) -> None:
    """Draw an interval with caps, so that it shows however narrow; or, dotted, a range."""
    if not np.isfinite(ends).all():
        return
    x, y = (ends, (place, place)) if across else ((place, place), ends)
    (bar,) = axes.plot(
        *(x, y),
        color=colour,
        lw=1.2,
        alpha=0.75,
        ls=FEW_LINE if few else "-",
        marker="" if few else ("|" if across else "_"),
        ms=2 * CAP,
        mew=0.8,
        solid_capstyle="butt",
        dash_capstyle="butt",
        zorder=2.5,
    )
    if few:
        explain(bar, RANGES)


def _draw_beside(
    axes: Axes, place: float, found: Cell, how: ArmStyle, *, start: float, across: bool = False
) -> None:
    """Draw the published value of a cell, opposite to its lifetimes; frame a bimodal cell."""
    if found.bimodal:
        at = (found.value, place) if across else (place, found.value)
        (frame,) = axes.plot(
            *([at[0]], [at[1]]),
            marker="s",
            ms=8.5,
            mfc="none",
            color=DARK,
            mew=0.6,
            ls="",
            zorder=4,
        )
        explain(frame, FRAMED, found.bimodal)
    figure = axes.get_figure(root=True)
    if found.published is None or figure is None:
        return
    value, low, high, *_ = found.published
    inches_ = (0.0, start) if across else (-start, 0.0)
    moved = axes.transData + ScaledTranslation(*inches_, figure.dpi_scale_trans)
    for reached, marker in (((low, high), ""), ((value,), DIAMOND)):
        fixed = [place] * len(reached)
        x, y = (reached, fixed) if across else (fixed, reached)
        (drawn,) = axes.plot(
            *(x, y),
            color=how.colour,
            lw=0.8,
            ls="-",
            marker=marker,
            ms=3.6,
            mfc=palette.WHITE,
            mew=0.8,
            zorder=2.4,
            transform=moved,
            clip_on=False,
        )
        known = [end for end in reached if np.isfinite(end)]
        axes.update_datalim([(k, place) if across else (place, k) for k in known] or [(0, 0)][:0])
        explain(drawn, PRINTED)
    axes.autoscale_view()


def draw_lifetimes(
    axes: Axes,
    place: float,
    values: Sequence[float],
    how: ArmStyle,
    *,
    across: bool = False,
    start: float = BESIDE,
    lanes: int = LANES,
) -> None:
    """Draw the values of single lifetimes beside ``place``: right of it, or (``across``) below.

    They begin ``start`` inches from it, clear of its mark, in as many lanes as they need. A cell
    whose lifetimes fall into two groups must not look like its mean. (The places of the dots
    follow from their order alone, so that a figure is the same every time.)
    """
    figure = axes.get_figure(root=True)
    if len(values) < 2 or figure is None:
        return
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    used = max(min(lanes, len(ordered)), 1)
    for turn in range(used):
        some = ordered[turn::used]
        offset = start + LANE * turn
        x, y = (some, np.full(len(some), place)) if across else (np.full(len(some), place), some)
        inches_ = (0.0, -offset) if across else (offset, 0.0)
        moved = axes.transData + ScaledTranslation(*inches_, figure.dpi_scale_trans)
        dots = axes.scatter(
            *(x, y),
            s=5.0 if len(ordered) <= 20 else 3.2,
            color=how.colour,
            alpha=0.6,
            lw=0,
            zorder=4,
            transform=moved,
            clip_on=False,
        )
        explain(dots, DOTS)
        axes.update_datalim(np.column_stack([x, y]))  # limits do not see what is moved aside
    axes.autoscale_view()


# Forests


class Row(NamedTuple):
    """A row of a forest: its name, and estimates that stand beside each other."""

    name: str
    marks: Sequence[tuple[ArmStyle, Estimate | None]]
    ink: str = DARK
    """The colour of its name."""


def arm_row(how: ArmStyle, found: Estimate | None, name: str | None = None) -> Row:
    """Return the row of one arm, in its colour; its name is that of its style, or ``name``."""
    return Row(how.name if name is None else name, [(how, found)], how.ink)


def draw_forest(
    axes: Axes,
    rows: Sequence[Row],
    *,
    upright: bool = False,
    apart: float = 0.3,
    size: float = 4.6,
    labelsize: float | None = 6.8,
    least: int = 0,
    between: str | None = "\n",
) -> bool:
    """Draw estimates with their intervals: a row each from the top, named at the left.

    If ``upright``, a column each from the left, named below. Estimates of one row stand ``apart``.
    There is room for at least so many rows. Names tell the number of lifetimes where one has too
    few for an interval, after ``between`` unless that is None. Return whether there are any
    estimates; axes without any are left out.
    """
    if all(one is None for row in rows for _, one in row.marks):
        absent(axes)
        return False
    most = max(len(row.marks) for row in rows)
    step = inches(axes)[0 if upright else 1] / max(len(rows), least)
    room = step * (apart if most > 1 else 0.9)
    for turn, row in enumerate(rows):
        for rank, (how, one) in enumerate(row.marks):
            place = turn + apart * (rank - (len(row.marks) - 1) / 2)
            at = place if upright else -place
            draw_estimate(axes, at, one, how, across=not upright, size=size, room=room)
    name = name_columns if upright else name_rows
    name(axes, [(_name_with_count(row, between), row.ink) for row in rows])
    if least > len(rows) and not upright:
        axes.set_ylim(0.4 - least, 0.6)
    if labelsize is not None:
        axes.tick_params(axis="x" if upright else "y", labelsize=labelsize)
    return True


def _name_with_count(row: Row, between: str | None) -> str:
    """Return the name of a row, with the number of its lifetimes if they are few."""
    count = count_words(one for _, one in row.marks)
    return row.name if between is None or not (count and row.name) else row.name + between + count


def draw_estimate(
    axes: Axes,
    place: float,
    found: Estimate | None,
    how: ArmStyle,
    *,
    across: bool = False,
    size: float = 4.6,
    room: float = 1.0,
) -> None:
    """Draw an estimate with its interval, upright or (``across``) lying; or nothing for None.

    Its lifetimes and the published value stand beside it, within ``room`` inches.
    """
    if found is None:
        return
    draw_bar(axes, place, bounds(found), how.colour, few=is_range(found), across=across)
    if isinstance(found, Cell):
        start = max(min(BESIDE, 0.4 * room), 0.03)
        lanes = int(np.clip((room / 2 - start) / LANE + 1, 1, LANES))
        draw_lifetimes(axes, place, found.seeds, how, across=across, start=start, lanes=lanes)
        _draw_beside(axes, place, found, how, start=start, across=across)
    at = (found.value, place) if across else (place, found.value)
    (mark,) = axes.plot(
        *([at[0]], [at[1]]),
        marker=how.marker,
        color=how.colour,
        mfc=how.face,
        mew=1.0,
        ms=size,
        ls="",
        zorder=3,
    )
    if found.n == 1:
        explain(mark, ALONE)


def name_rows(axes: Axes, rows: Sequence[tuple[str, str]]) -> None:
    """Name the rows of ``axes`` from the top at 0, -1, …: names and their colours."""
    axes.set_yticks([-turn for turn in range(len(rows))], [name for name, _ in rows])
    _colour_names(axes.yaxis, [ink for _, ink in rows])
    axes.set_ylim(-len(rows) + 0.4, 0.6)


def name_columns(axes: Axes, columns: Sequence[tuple[str, str]]) -> None:
    """Name the columns of ``axes`` from the left at 0, 1, …: names and their colours."""
    axes.set_xticks(range(len(columns)), [name for name, _ in columns])
    _colour_names(axes.xaxis, [ink for _, ink in columns])
    axes.set_xlim(-0.6, len(columns) - 0.4)


def _colour_names(axis: Axis, inks: Sequence[str]) -> None:
    for tick, ink in zip(axis.get_ticklabels(), inks, strict=True):
        tick.set_color(ink)
    axis.set_tick_params(length=0)


def write_beside(axes: Axes, words: Sequence[str]) -> None:
    """Write words right of ``axes``, beside each of its rows from the top."""
    for row, text in enumerate(words):
        axes.annotate(
            text,
            (1.0, -row),
            xycoords=axes.get_yaxis_transform(),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            size=SMALL,
        )


def note_not_run(axes: Axes, names: Iterable[str]) -> None:
    """Have the caption say which of the cells of a panel were not run, if any."""
    listed = ", ".join(" ".join(name.split()) for name in names)
    if listed:
        explain(axes.patch, "Not run", listed)


def write_not_run(axes: Axes, place: float, words: str = "not run") -> None:
    """Write at a horizontal ``place`` of ``axes`` why there is nothing."""
    below = axes.get_xaxis_transform()
    axes.text(place, 0.5, words, transform=below, ha="center", size=SMALL, color=GREY)


# Heat maps


class ColourScale(NamedTuple):
    """A colour map of matplotlib, and the values at its ends."""

    colours: str
    low: float = 0.0
    high: float = 1.0

    def shade(self, value: float) -> tuple[float, float, float]:
        """Return red, green and blue of a value."""
        red, green, blue, _ = mpl.colormaps[self.colours](0.08 + 0.84 * self.share(value))
        return red, green, blue

    def share(self, value: float) -> float:
        """Return how far a value is from the low to the high end, from 0 to 1."""
        return float(np.clip((value - self.low) / (self.high - self.low), 0, 1))


def draw_heatmap(
    axes: Axes,
    rows: Sequence[tuple[ArmStyle, Sequence[Estimate | None]]],
    columns: Sequence[tuple[float, str]],
    scale: ColourScale,
) -> None:
    """Draw estimates as coloured numbers, a row for each style, at the places of ``columns``.

    None is a cell that was not planned: grey. What could not be estimated is a dash. Lifetimes are
    dots along the scale. Axes without any estimate are left out.
    """
    if all(one is None or one.missing for _, found in rows for one in found):
        absent(axes)
        return
    for turn, (_, found) in enumerate(rows):
        for (place, _), one in zip(columns, found, strict=True):
            _draw_heat_cell(axes, place, -turn, one, scale)
    name_rows(axes, [(how.name, how.ink) for how, _ in rows])
    axes.set(xlim=(-0.02, columns[-1][0] + 1.02), ylim=(-len(rows) + 0.48, 0.52))
    axes.set_xticks([place + 0.5 for place, _ in columns], [name for _, name in columns])
    axes.tick_params(axis="x", length=0, labelsize=TINY, pad=1)
    axes.tick_params(axis="y", labelsize=TINY, pad=2)
    axes.spines[:].set_visible(False)


def _draw_heat_cell(
    axes: Axes, left: float, middle: float, found: Estimate | None, scale: ColourScale
) -> None:
    fill, words, ink = palette.UNPLANNED, "", DARK
    if found is not None:
        fill, words, ink = palette.WHITE, "—", GREY
    if found is not None and not found.missing:
        shade = scale.shade(found.value)
        fill, words = palette.hex_colour(shade), interval_text(found, "{:.2f}".format)
        ink = palette.WHITE if palette.luminance(shade) < 0.45 else palette.TITLE
        count = count_words([found])
        words = words.replace(" ", "\n", 1) + (f"\n{count}" if count else "")
    axes.add_patch(Rectangle((left + 0.02, middle - 0.46), 0.96, 0.92, fc=fill, ec=PALE, lw=0.4))
    axes.text(
        *(left + 0.5, middle + 0.16),
        words,
        ha="center",
        va="center",
        size=SMALL,
        color=ink,
        linespacing=1.0,
    )
    if isinstance(found, Cell):
        share = np.array([scale.share(value) for value in found.seeds])
        lanes = middle - 0.3 - 0.05 * (np.arange(len(share)) % 3)
        axes.scatter(
            *(left + 0.08 + 0.84 * np.sort(share), lanes), s=3.0, color=ink, alpha=0.6, lw=0
        )
        if found.published is not None:
            theirs = scale.share(found.published.value)
            draw_published_point(axes, left + 0.08 + 0.84 * theirs, middle - 0.16, ink)


def draw_published_point(axes: Axes, x: float, y: float, colour: str) -> None:
    """Draw a published value without its interval, where another mark stands for ours."""
    (drawn,) = axes.plot(
        [x], [y], marker=DIAMOND, ms=3.6, color=colour, mfc=palette.WHITE, mew=0.8, ls=""
    )
    explain(drawn, PRINTED)


def draw_colour_bar(axes: Axes, scale: ColourScale, label: str) -> None:
    """Draw the colours of a heat map with their values, upright."""
    shades = [[scale.shade(value)] for value in np.linspace(scale.high, scale.low, 128)]
    axes.imshow(shades, aspect="auto", extent=(0, 1, scale.low, scale.high))
    axes.set_xticks([])
    axes.yaxis.tick_right()
    axes.locator_params(axis="y", nbins=3)
    axes.tick_params(axis="y", labelsize=TINY, pad=1)
    axes.set_ylabel(label, labelpad=3, size=TINY)
    axes.yaxis.set_label_position("right")
    axes.spines[:].set_visible(False)


# Shares of lifetimes


def draw_shares(
    axes: Axes,
    lines: Sequence[tuple[ArmStyle, Curve]],
    apart: float,
    *,
    threshold: float | None = 0.5,
    lifetimes: bool = False,
    label: str = "share of lifetimes",
) -> list[End]:
    """Draw shares of lifetimes (solved, found, …) with their bounds, learners side by side.

    (Many have the same share.) ``threshold`` has a dotted line. Return where the lines end.
    """
    ends = draw_curves_beside(axes, lines, apart, lifetimes=lifetimes)
    if lines:
        tops = np.concatenate([part for _, line in lines for part in (line.y, line.high)])
        set_share_axis(axes, float(np.nanmax(tops)), label)
        if threshold is not None:
            axes.axhline(threshold, color=GREY, lw=0.6, ls=THRESHOLD, zorder=0)
    return ends


def set_share_axis(axes: Axes, highest: float = 1.0, label: str = "share") -> None:
    """Make the vertical axis one of shares, with 0, 1 and ``highest`` in sight."""
    axes.set(ylim=(-0.06, max(1.06, highest + 0.04)), ylabel=label)
    axes.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0", "", "0.5", "", "1"])
    draw_levels(axes, 0.0, 1.0)


# Axes


def draw_levels(axes: Axes, *levels: float, across: bool = False) -> None:
    """Draw pale lines at heights to compare with (``across``: upright lines)."""
    for level in levels:
        (axes.axvline if across else axes.axhline)(level, color=PALE, lw=0.8, zorder=0)


def set_scale_axis(axes: Axes, scales: Sequence[Floats]) -> None:
    """Make the horizontal axis one of reward scales: logarithmic, with powers of ten as ticks."""
    every = np.unique(np.concatenate(list(scales)))
    low, high = float(every[0]), float(every[-1])
    tens = [e for e in range(-12, 13) if low * 0.999 <= 10.0**e <= high * 1.001]
    if tens:
        step = _choose_step(tens, int(np.ceil(0.33 * len(tens) / inches(axes)[0])))
        ticks = {10.0**e: power(e) if e % step == 0 else "" for e in tens}
    else:
        ticks = {float(scale): f"{scale:g}" for scale in every}
    set_log_axis(axes, ticks, (low / 1.8, high * 1.8))
    axes.set_xlabel("reward scale")


def set_log_axis(axes: Axes, ticks: Mapping[float, str], limits: tuple[float, float]) -> None:
    """Make the horizontal axis logarithmic, with names at ``ticks`` and nowhere else."""
    axes.set(xscale="log", xlim=limits)
    fix_ticks(axes.xaxis, ticks)


def fix_ticks(axis: Axis, ticks: Mapping[float, str]) -> None:
    """Put names at ``ticks`` of a logarithmic axis, and nothing between them."""
    axis.set_major_locator(FixedLocator(list(ticks)))
    axis.set_major_formatter(FixedFormatter(list(ticks.values())))
    axis.set_minor_locator(NullLocator())


def _choose_step(exponents: Sequence[int], least: int) -> int:
    """Return how many powers of ten one name is for: ``least``, or more if it names both ends.

    (Names stand at multiples of the step, so unit scale always has one.)
    """
    for step in (least, least + 1):
        if exponents[0] % step == 0 and exponents[-1] % step == 0:
            return step
    return least


def power(exponent: int) -> str:
    """Return a power of ten as it is printed at an axis."""
    return f"$10^{{{exponent}}}$"


def scale_text(scale: float) -> str:
    """Return a reward scale as it is printed: a power of ten if it is one."""
    exponent = round(float(np.log10(scale)))
    return power(exponent) if np.isclose(scale, 10.0**exponent) else f"{scale:g}"


def set_score_axis(
    axes: Axes, curves: Iterable[Curve], thresholds: Sequence[float] = (), label: str = SCORE
) -> None:
    """Make the vertical axis one of scores: never clipped, 0 and 1 always in sight."""
    lines = list(curves)
    ends = [part[np.isfinite(part)] for line in lines for part in (line.y, line.low, line.high)]
    ends += [np.array(reach(line.cells)) for line in lines]
    ends += [line.paths[np.isfinite(line.paths)] for line in lines if line.paths is not None]
    values = np.concatenate([*ends, [0.0, 1.0]])
    low, high = float(values.min()), float(values.max())
    axes.set_ylim(min(-0.06, low - 0.04), max(1.06, high + 0.04))
    steps = np.arange(-50, 51) / 5
    axes.set_yticks([tick for tick in steps if axes.get_ylim()[0] <= tick <= axes.get_ylim()[1]])
    if len(axes.get_yticks()) > 12:
        axes.set_yticks(np.unique(np.round(axes.get_yticks())))
    draw_levels(axes, 0.0, 1.0)
    for threshold in thresholds:
        axes.axhline(threshold, color=GREY, lw=0.6, ls=THRESHOLD, zorder=0)
    axes.set_ylabel(label)


def set_score_axis_across(
    axes: Axes, rows: Iterable[Row], thresholds: Sequence[float] = (), label: str = SCORE
) -> None:
    """Make the horizontal axis of a forest one of scores, with 0, 1 and all of it in sight."""
    ends = [0.0, 1.0, *reach(one for row in rows for _, one in row.marks)]
    axes.set(xlim=(min(ends) - 0.05, max(ends) + 0.05), xlabel=label)
    axes.set_xticks([0, 0.5, 1.0], ["0", "0.5", "1"])
    draw_levels(axes, 0.0, 0.5, 1.0, across=True)
    for threshold in thresholds:
        axes.axvline(threshold, color=GREY, lw=0.6, ls=THRESHOLD, zorder=0)


def set_difference_axis(
    panels: Sequence[Axes], label: str, *, room: float = 0.08, least: float = 0.1, ticks: int = 4
) -> None:
    """Give panels of differences that lie across one horizontal axis, with zero in sight.

    ``room`` is the share of the axis that stays free at either end, ``least`` its least width:
    what is nearly nothing must not look like much.
    """
    ends = [
        x
        for axes in panels
        for line in axes.lines
        if line.get_transform() not in (axes.get_yaxis_transform("grid"), axes.transAxes)
        for x in np.ravel(line.get_xdata())
    ]
    ends += [
        x
        for axes in panels
        for dots in axes.collections
        for x in np.asarray(dots.get_offsets(), dtype=np.float64)[:, 0]
    ]
    known = np.array([*ends, 0.0], dtype=np.float64)
    low, high = float(np.nanmin(known)), float(np.nanmax(known))
    free = max(room * (high - low), (least - (high - low)) / 2)
    for axes in panels:
        axes.axvline(0.0, color=GREY, lw=0.8, zorder=1)
        axes.set(xlim=(low - free, high + free), xlabel=label)
        axes.locator_params(axis="x", nbins=ticks)
        axes.grid(axis="x")


def set_decades_axis(axes: Axes, top: float) -> None:
    """Give whole decades their lines on the vertical axis."""
    highest = int(np.ceil(top))
    axes.set_ylim(-0.35, highest + 0.35)
    axes.set_yticks(range(highest + 1) if highest <= 8 else range(0, highest + 1, 2))
    axes.grid(axis="y")


def set_level_axis(axes: Axes, label: str, room: float = 1.05) -> None:
    """Make the vertical axis one of levels that begin at zero, all marks in sight."""
    axes.set_ylim(min(0.0, axes.get_ylim()[0]), room * axes.get_ylim()[1])
    axes.locator_params(axis="y", nbins=5)
    axes.grid(axis="y")
    axes.set_ylabel(label)


def finish_row(
    panels: Sequence[Axes],
    drawn: Sequence[tuple[Axes, list[End]]],
    set_axis: Callable[[Axes], None],
) -> None:
    """Give panels side by side one vertical axis by ``set_axis``; names stand at the last."""
    for turn, (axes, ends) in enumerate(drawn):
        set_axis(axes)
        if turn:
            axes.set_ylabel("")
            axes.tick_params(axis="y", labelleft=False)
        if turn == len(drawn) - 1:
            name_last(panels[-1], axes, ends)


def name_last(last: Axes, axes: Axes, ends: list[End]) -> None:
    """Name lines of ``axes`` right of ``last``, the last panel of a row, which may be another."""
    name_ends(axes, ends) if axes is last else name_apart(last, ends)


def name_marks(axes: Axes, styles: Iterable[ArmStyle]) -> None:
    """Name the styles of marks right of ``axes``, from the top."""
    name_apart(axes, [End(how.name, how, 0.0, 0.0, -turn) for turn, how in enumerate(styles)])
