"""Panels that figures are composed of: curves, forests, heat maps, shares; and their axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from rulescope.assays.figure_data import Cell, Curve, Floats, reach, signed
from rulescope.render import palette
from rulescope.render.arm_styles import ArmStyle, arm_style
from rulescope.render.line_labels import End, inches, name_apart, name_ends
from rulescope.render.palette import DARK, GREY, PALE
from rulescope.render.style import SMALL, TINY, absent

if TYPE_CHECKING:
    from rulescope.stats import Estimate

ASIDE = (0.0, 0.035, -0.035, 0.07, -0.07)
"""Inches by which single lifetimes of a cell stand beside its place, in turn."""
SINGLE = 5.0
"""Square points: the size of a single lifetime's dot."""
SCORE = "score (0 random, 1 optimal)"
THRESHOLD = (0, (2, 2))
"""The line style of thresholds."""


# Curves


def draw_curves(
    axes: Axes,
    lines: Sequence[tuple[ArmStyle, Curve]],
    *,
    band: bool = True,
    markers: bool = True,
    lifetimes: bool = True,
) -> list[End]:
    """Draw lines with their bands; return where they end. Axes without lines say "not run".

    A point without neighbours gets a bar for its interval.
    """
    if not lines:
        absent(axes)
    for how, line in lines:
        _draw_line(axes, how, line, markers=markers)
        if lifetimes:
            _draw_lifetimes_along(axes, how, line)
        if band:
            axes.fill_between(line.x, line.low, line.high, color=how.colour, alpha=0.16, lw=0)
            known = np.concatenate([[False], np.isfinite(line.y), [False]])
            alone = known[1:-1] & ~known[:-2] & ~known[2:]
            axes.vlines(line.x[alone], line.low[alone], line.high[alone], color=how.colour, lw=1.0)
    return [line_end(line, how) for how, line in lines]


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
    the lines end. Axes without lines say "not run".
    """
    if not lines:
        absent(axes)
    ends = []
    for turn, (how, line) in enumerate(lines):
        shift = apart * (turn - (len(lines) - 1) / 2)
        moved = line._replace(x=line.x * 10**shift if log else line.x + shift)
        axes.vlines(moved.x, line.low, line.high, color=how.colour, lw=0.9, alpha=0.45)
        _draw_line(axes, how, moved, ms=3.6, lw=1.2 if how.filled else 0.8)
        if lifetimes:
            _draw_lifetimes_along(axes, how, moved)
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
    axes.plot(
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


def _draw_lifetimes_along(axes: Axes, how: ArmStyle, line: Curve) -> None:
    for place, values in zip(line.x, line.seeds, strict=False):
        draw_lifetimes(axes, float(place), values, how)


def draw_lifetimes(
    axes: Axes, place: float, values: Sequence[float], how: ArmStyle, *, across: bool = False
) -> None:
    """Draw the values of single lifetimes at ``place``, faintly and beside each other.

    A cell whose lifetimes fall into two groups must not look like its mean. (The places of the
    dots follow from their order alone, so that a figure is the same every time.)
    """
    figure = axes.get_figure(root=True)
    if len(values) < 2 or figure is None:
        return
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    for turn, offset in enumerate(ASIDE):
        some = ordered[turn :: len(ASIDE)]
        if not len(some):
            continue
        x, y = (some, np.full(len(some), place)) if across else (np.full(len(some), place), some)
        inches_ = (0.0, offset) if across else (offset, 0.0)
        moved = axes.transData + ScaledTranslation(*inches_, figure.dpi_scale_trans)
        axes.scatter(
            *(x, y),
            s=SINGLE,
            color=how.colour,
            alpha=0.45,
            lw=0,
            zorder=3.2,
            transform=moved,
            clip_on=False,
        )
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
) -> bool:
    """Draw estimates with their intervals: a row each from the top, named at the left.

    If ``upright``, a column each from the left, named below. Estimates of one row stand ``apart``.
    Return whether there are any; axes without any say "not run".
    """
    if all(one is None for row in rows for _, one in row.marks):
        absent(axes)
        return False
    for turn, row in enumerate(rows):
        for rank, (how, one) in enumerate(row.marks):
            place = turn + apart * (rank - (len(row.marks) - 1) / 2)
            draw_estimate(
                axes, place if upright else -place, one, how, across=not upright, size=size
            )
    name = name_columns if upright else name_rows
    name(axes, [(row.name, row.ink) for row in rows])
    if labelsize is not None:
        axes.tick_params(axis="x" if upright else "y", labelsize=labelsize)
    return True


def draw_estimate(
    axes: Axes,
    place: float,
    found: Estimate | None,
    how: ArmStyle,
    *,
    across: bool = False,
    size: float = 4.6,
) -> None:
    """Draw an estimate with its interval and lifetimes, upright or (``across``) lying; or None."""
    if found is None:
        return
    known = np.isfinite(found.low) and np.isfinite(found.high)
    ends = [found.low, found.high] if known else [found.value, found.value]
    x, y = (ends, [place, place]) if across else ([place, place], ends)
    axes.plot(x, y, color=how.colour, lw=1.3, alpha=0.75, solid_capstyle="butt", zorder=2)
    if isinstance(found, Cell):
        draw_lifetimes(axes, place, found.seeds, how, across=across)
    at = (found.value, place) if across else (place, found.value)
    axes.plot(
        *([at[0]], [at[1]]),
        marker=how.marker,
        color=how.colour,
        mfc=how.face,
        mew=1.0,
        ms=size,
        ls="",
        zorder=3,
    )


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
        place = float(np.clip((value - self.low) / (self.high - self.low), 0, 1))
        red, green, blue, _ = mpl.colormaps[self.colours](0.08 + 0.84 * place)
        return red, green, blue


def draw_heatmap(
    axes: Axes,
    rows: Sequence[tuple[ArmStyle, Sequence[Estimate | None]]],
    columns: Sequence[tuple[float, str]],
    scale: ColourScale,
) -> None:
    """Draw estimates as coloured numbers, a row for each style, at the places of ``columns``.

    None is a cell that was not planned: grey. What could not be estimated is a dash. Without any
    estimate the axes say "not run".
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
        fill, words = palette.hex_colour(shade), signed(f"{found.value:.2f}")
        ink = palette.WHITE if palette.luminance(shade) < 0.45 else palette.TITLE
    axes.add_patch(Rectangle((left + 0.02, middle - 0.46), 0.96, 0.92, fc=fill, ec=PALE, lw=0.4))
    axes.text(left + 0.5, middle, words, ha="center", va="center", size=SMALL, color=ink)


def draw_colour_bar(axes: Axes, scale: ColourScale, label: str) -> None:
    """Draw the colours of a heat map with their values."""
    shades = [[scale.shade(value) for value in np.linspace(scale.low, scale.high, 128)]]
    axes.imshow(shades, aspect="auto", extent=(scale.low, scale.high, 0, 1))
    axes.set_yticks([])
    axes.locator_params(axis="x", nbins=3)
    axes.tick_params(axis="x", labelsize=TINY, pad=1)
    axes.set_xlabel(label, labelpad=1, size=TINY)
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
    set_log_axis(axes, ticks, (low / 1.45, high * 1.45))
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
    ends += [np.array(values) for line in lines for values in line.seeds]
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
    ends = [x for axes in panels for line in axes.lines for x in np.ravel(line.get_xdata())]
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
