"""Panels that several figures share: curves, forests of estimates, widths, and their axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from rulescope.assays.figure_data import Cell, Curve, Floats, reach
from rulescope.render.line_labels import End, inches
from rulescope.render.style import GREY, PALE, SMALL, Look, in_order, look

if TYPE_CHECKING:
    from rulescope.stats import Estimate

ASIDE = (0.0, 0.035, -0.035, 0.07, -0.07)
"""Inches by which single lifetimes of a cell stand beside its place, in turn."""
SINGLE = 5.0
"""Square points: the size of a single lifetime's dot."""


def score_curves(
    axes: Axes,
    curves: Mapping[str, Curve],
    *,
    bands: bool = True,
    thresholds: Sequence[float] = (0.8,),
) -> list[End]:
    """Draw the score of every arm over reward scale; return where the lines end."""
    for arm, line in curves.items():
        draw_curve(axes, line, look(arm), band=bands)
    scale_axis(axes, [line.x for line in curves.values()])
    score_axis(axes, curves.values(), thresholds)
    return [line_end(line, look(arm)) for arm, line in curves.items()]


def line_end(line: Curve, how: Look) -> End:
    """Return where a line ends, with the name of its look."""
    return End(how.name, how, *line.last, line.level)


def draw_curve(axes: Axes, line: Curve, how: Look, *, dots: bool = True, band: bool = True) -> None:
    """Draw a line with its band; a point without neighbours gets a bar for its interval."""
    axes.plot(
        line.x,
        line.y,
        color=how.colour,
        ls=how.line,
        marker=how.marker if dots else "",
        mfc=how.face,
        mew=0.9,
        zorder=3,
    )
    for x, values in zip(line.x, line.seeds, strict=False):
        single(axes, float(x), values, how)
    if not band:
        return
    axes.fill_between(line.x, line.low, line.high, color=how.colour, alpha=0.16, lw=0)
    known = np.concatenate([[False], np.isfinite(line.y), [False]])
    alone = known[1:-1] & ~known[:-2] & ~known[2:]
    axes.vlines(line.x[alone], line.low[alone], line.high[alone], color=how.colour, lw=1.0)


def curves_beside(
    axes: Axes,
    lines: Sequence[tuple[Look, Curve]],
    apart: float,
    *,
    log: bool = False,
    seeds: bool = False,
) -> list[End]:
    """Draw lines with their intervals beside each other, because many would hide one another.

    ``apart`` is the step from one line to the next, in decades on a ``log`` axis. Return where
    the lines end.
    """
    ends = []
    for turn, (how, line) in enumerate(lines):
        shift = apart * (turn - (len(lines) - 1) / 2)
        moved = line._replace(x=line.x * 10**shift if log else line.x + shift)
        axes.vlines(moved.x, line.low, line.high, color=how.colour, lw=0.9, alpha=0.45)
        axes.plot(
            moved.x,
            line.y,
            color=how.colour,
            ls=how.line,
            lw=1.2 if how.filled else 0.8,
            marker=how.marker,
            mfc=how.face,
            ms=3.6,
            mew=0.8,
            zorder=3,
        )
        for place, values in zip(moved.x, line.seeds if seeds else (), strict=False):
            single(axes, float(place), values, how)
        ends.append(line_end(moved, how))
    return ends


def single(
    axes: Axes, place: float, values: Sequence[float], how: Look, *, across: bool = False
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


def scale_axis(axes: Axes, scales: Sequence[Floats]) -> None:
    """Make the horizontal axis logarithmic, with powers of ten for its ticks."""
    every = np.unique(np.concatenate(list(scales)))
    low, high = float(every[0]), float(every[-1])
    axes.set_xscale("log")
    axes.set_xlim(low / 1.45, high * 1.45)
    tens = [e for e in range(-12, 13) if low * 0.999 <= 10.0**e <= high * 1.001]
    if tens:
        step = _step(tens, int(np.ceil(0.33 * len(tens) / inches(axes)[0])))
        names = [power(e) if e % step == 0 else "" for e in tens]
        axes.xaxis.set_major_locator(FixedLocator([10.0**e for e in tens]))
        axes.xaxis.set_major_formatter(FixedFormatter(names))
    else:
        axes.xaxis.set_major_locator(FixedLocator(list(every)))
        axes.xaxis.set_major_formatter(FixedFormatter([f"{s:g}" for s in every]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("reward scale", labelpad=2)


def _step(exponents: Sequence[int], least: int) -> int:
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


def score_axis(axes: Axes, curves: Iterable[Curve], thresholds: Sequence[float] = ()) -> None:
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
    for reference in (0.0, 1.0):
        axes.axhline(reference, color=PALE, lw=0.8, zorder=0)
    for threshold in thresholds:
        axes.axhline(threshold, color=GREY, lw=0.6, ls=(0, (2, 2)), zorder=0)
    axes.set_ylabel("score (0 random, 1 optimal)", labelpad=2)


def score_axis_across(axes: Axes, found: Iterable[Estimate | None]) -> None:
    """Make the horizontal axis one of scores, with 0, 1 and all of ``found`` in sight."""
    ends = [0.0, 1.0, *reach(found)]
    axes.set_xlim(min(ends) - 0.05, max(ends) + 0.05)
    axes.set_xticks([0, 0.5, 1.0], ["0", "0.5", "1"])
    for reference in (0.0, 0.5, 1.0):
        axes.axvline(reference, color=PALE, lw=0.6 if reference == 0.5 else 0.8, zorder=0)


def dots(
    axes: Axes,
    places: Sequence[float],
    found: Sequence[Estimate | None],
    how: Look,
    *,
    across: bool = False,
    size: float = 4.6,
) -> None:
    """Draw estimates with their intervals at ``places``, upright or (``across``) lying."""
    for place, e in zip(places, found, strict=True):
        if e is None:
            continue
        ends = (e.low, e.high) if np.isfinite(e.low) and np.isfinite(e.high) else (e.value, e.value)
        x, y = ([*ends], [place, place]) if across else ([place, place], [*ends])
        axes.plot(x, y, color=how.colour, lw=1.3, alpha=0.75, solid_capstyle="butt", zorder=2)
        if isinstance(e, Cell):
            single(axes, place, e.seeds, how, across=across)
        at = (e.value, place) if across else (place, e.value)
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


def forest(
    axes: Axes, rows: Sequence[tuple[str, Look, Estimate | None]], *, labelsize: float = 6.8
) -> None:
    """Draw estimates with their intervals, a row each from the top, named at the left."""
    for turn, (_, how, one) in enumerate(rows):
        dots(axes, [-float(turn)], [one], how, across=True)
    name_rows(axes, [(name, how) for name, how, _ in rows])
    axes.tick_params(axis="y", labelsize=labelsize)


def widths(
    axes: Axes,
    groups: Sequence[tuple[str, Mapping[str, Estimate | None]]],
    *,
    label: str = "usable window (decades)",
) -> None:
    """Draw window widths: a group for each name, an arm beside the other within it."""
    arms = in_order({arm for _, found in groups for arm, e in found.items() if e is not None})
    step = min(0.19, 0.8 / max(len(arms), 1))
    for turn, arm in enumerate(arms):
        shift = (turn - (len(arms) - 1) / 2) * step
        places = [group + shift for group in range(len(groups))]
        dots(axes, places, [found.get(arm) for _, found in groups], look(arm))
    for group, (_, found) in enumerate(groups):
        if all(e is None for e in found.values()):
            words = "no estimate" if found else "not run"
            axes.text(group, 0.25, words, ha="center", color=GREY, size=SMALL)
    tops = [
        max(e.value, e.high) if np.isfinite(e.high) else e.value
        for _, found in groups
        for e in found.values()
        if e is not None
    ]
    decades_axis(axes, max([1.0, *tops]))
    axes.set_xticks(range(len(groups)), [name for name, _ in groups])
    axes.set_xlim(-0.55, len(groups) - 0.45)
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel(label, labelpad=2)


def decades_axis(axes: Axes, top: float) -> None:
    """Give whole decades their lines on the vertical axis."""
    highest = int(np.ceil(top))
    axes.set_ylim(-0.35, highest + 0.35)
    axes.set_yticks(range(highest + 1) if highest <= 8 else range(0, highest + 1, 2))
    axes.grid(axis="y")


def name_rows(axes: Axes, rows: Sequence[tuple[str, Look]]) -> None:
    """Name the rows of ``axes`` from the top at 0, -1, …, each in the colour of its look."""
    axes.set_yticks([-turn for turn in range(len(rows))], [name for name, _ in rows])
    for tick, (_, how) in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_color(how.ink)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-len(rows) + 0.4, 0.6)


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


def difference_axis(
    panels: Sequence[Axes], label: str, *, room: float = 0.08, least: float = 0.1, ticks: int = 3
) -> None:
    """Give panels of differences that lie across one horizontal axis, with zero in sight.

    ``room`` is the share of the axis that stays free at its ends, ``least`` the room if all
    differences are zero.
    """
    ends = [x for axes in panels for line in axes.lines for x in np.ravel(line.get_xdata())]
    known = np.array([*ends, 0.0], dtype=np.float64)
    low, high = float(np.nanmin(known)), float(np.nanmax(known))
    free = room * (high - low) or least
    for axes in panels:
        axes.axvline(0.0, color=GREY, lw=0.8, zorder=1)
        axes.set_xlim(low - free, high + free)
        axes.locator_params(axis="x", nbins=ticks)
        axes.grid(axis="x")
        axes.set_xlabel(label, labelpad=2)
