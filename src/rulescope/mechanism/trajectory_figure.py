"""Figure of the trajectory view: the path of the state, live and after a transplant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rulescope.assays.results import Results
from rulescope.mechanism.figure_parts import Floats, full_caption, set_update_axis
from rulescope.render.arm_styles import DOTTED, ArmStyle
from rulescope.render.line_labels import End, name_ends
from rulescope.render.palette import COLD, DARK, GREY, PALE, SILVER, VERMILION, WARM, WHITE
from rulescope.render.style import Page, absent, styled

CAPTION = (
    "The hidden half h of the rule's recurrent state, which is the part that the targets of an "
    "update depend on, in the principal coordinates of all live states; a thin line is a lifetime. "
    "A: from the initial state (star); rings: after 1, 3, 10, 30 and 100 updates. C: mean cosine "
    "between the directions of two lifetimes from the initial state, and the share of the variance "
    "that lies between scales. D, E: lifetimes that begin with the terminal state of the opposite "
    "scale (crosses). D: in the coordinates of A. E: solid, the position along the straight line "
    "from the state without the transplant (0) to the donor's (1); dotted, the distance from that "
    "line, in its lengths."
)
RING_UPDATES = (1, 3, 10, 30, 100)
"""Updates after which a trajectory has a ring."""
MARKERS = ("v", "s", "o", "D", "^", "p", "h")


def scale_style(scale: float, scales: Sequence[float]) -> ArmStyle:
    """Return how a reward scale is drawn: blue below one, red above, the further the stronger."""
    reach = max(abs(float(np.log10(s))) for s in scales) or 1.0
    place = float(np.log10(scale)) / reach
    strength = 0.0 if place == 0 else 0.35 + 0.65 * abs(place)
    end, start = np.array(to_rgb(WARM if place > 0 else COLD)), np.array(to_rgb(SILVER))
    colour = DARK if place == 0 else str(to_hex(start + (end - start) * strength))
    marker = MARKERS[list(scales).index(scale) % len(MARKERS)]
    return ArmStyle(f"×{scale:g}", colour, marker)


class _Data(NamedTuple):
    """What the panels draw."""

    series: Mapping[str, Floats]
    styles: Mapping[float, ArmStyle]
    """By scale."""
    updated: NDArray[np.bool_]
    """[moments]: whether there was an update by then."""
    updates: Floats
    """Number of updates at each of the moments after the first one."""

    def of_scale(self, prefix: str, scale: float) -> list[Floats]:
        """Return the arrays [moments, ...] called ``prefix/scale/seed``, of all seeds."""
        start = f"{prefix}/{scale:g}/"
        return [line for key, line in self.series.items() if key.startswith(start)]


@styled
def draw_trajectory(results: Mapping[str, Results]) -> Figure:
    """``mechanism-trajectory``: the path of the state, live and after a transplant."""
    found = results.get("mechanism-trajectory")
    page = Page(5.85, full_caption(found, CAPTION))
    plane = page.axes(0.62, 0.35, 3.1, 2.6)
    first = page.axes(4.5, 0.35, 1.85, 0.98)
    directions = page.axes(4.5, 1.97, 1.85, 0.98)
    crossed = page.axes(0.62, 3.6, 3.1, 1.8)
    line = page.axes(4.5, 3.6, 1.85, 1.8)
    page.heading(plane, "A", "The state of live lifetimes")
    page.heading(first, "B", "Its first coordinate")
    page.heading(directions, "C", "Do lifetimes share a direction?")
    page.heading(crossed, "D", "After a transplant from the opposite scale")
    page.heading(line, "E", "Between live (0) and donor (1)")
    if found is None:
        for axes in (plane, first, directions, crossed, line):
            absent(axes)
        return page.finish()
    scales = [float(scale) for scale in found.axes["scale"]]
    iteration, first_update = found.series["iteration"], float(found.series["first"][0])
    updated = iteration >= first_update
    data = _Data(
        found.series,
        {scale: scale_style(scale, scales) for scale in scales},
        updated,
        iteration[updated] - first_update + 1,
    )
    _draw_plane(plane, data)
    name_ends(first, _draw_first_coordinate(first, data))
    set_update_axis(first, data.updates)
    shared = _draw_directions(directions, data)
    if shared:
        name_ends(directions, shared)
        set_update_axis(directions, data.updates)
    else:
        absent(directions, "of one lifetime")
    if any(key.startswith("along/") for key in found.series):
        _draw_crossed(crossed, data, plane)
        name_ends(line, _draw_line_positions(line, data))
        set_update_axis(line, data.updates)
    else:
        absent(crossed, "no scale has an opposite")
        absent(line, "no scale has an opposite")
    return page.finish()


def _draw_plane(axes: Axes, data: _Data) -> None:
    rings = np.isin(data.updates, RING_UPDATES)
    for scale, style in data.styles.items():
        for path in data.of_scale("path/live", scale):
            x, y = path[data.updated, :2].T
            axes.plot(x, y, color=style.colour, lw=0.9, alpha=0.85, zorder=2)
            axes.plot(x[rings], y[rings], "o", mfc=WHITE, mec=style.colour, ms=2.4, mew=0.6)
            axes.plot(x[-1:], y[-1:], style.marker, color=style.colour, ms=5.0, mec=WHITE, mew=0.5)
    initial = data.series["birth"]
    axes.plot(initial[:1], initial[1:2], "*", color=DARK, ms=9, mec=WHITE, mew=0.6, zorder=4)
    axes.margins(0.07)
    first, second = data.series["explained"][:2]
    axes.set_xlabel(f"first principal coordinate ({first:.0%} of the variance)")
    axes.set_ylabel(f"second ({second:.0%})")
    axes.grid()


def _draw_first_coordinate(axes: Axes, data: _Data) -> list[End]:
    ends = []
    for scale, style in data.styles.items():
        lines = [path[data.updated, 0] for path in data.of_scale("path/live", scale)]
        for line in lines:
            axes.plot(data.updates, line, color=style.colour, lw=0.9, alpha=0.85)
        ends.append(_mean_end(style.name, style, data, lines))
    axes.set_ylabel("first coordinate")
    return ends


def _mean_end(name: str, style: ArmStyle, data: _Data, lines: list[Floats]) -> End:
    """Return the label at the end of the mean of ``lines``, each [updates]."""
    mean = np.mean(lines, axis=0)
    return End(name, style, float(data.updates[-1]), float(mean[-1]), float(mean.mean()))


def _draw_directions(axes: Axes, data: _Data) -> list[End]:
    styles = {
        "same": ArmStyle("same scale", DARK, "o"),
        "other": ArmStyle("other scale", VERMILION, "s"),
        "between": ArmStyle("var. between", GREY, "x", DOTTED),
    }
    ends = []
    for kind, style in styles.items():
        line = data.series[f"{kind}/h"][data.updated]
        known = np.flatnonzero(np.isfinite(line))
        if not len(known):
            continue
        axes.plot(data.updates, line, color=style.colour, ls=style.line, lw=1.3)
        last = int(known[-1])
        level = float(np.nanmean(line))
        ends.append(End(style.name, style, float(data.updates[last]), float(line[last]), level))
    axes.set_ylim(min(-0.05, axes.get_ylim()[0]), 1.05)
    axes.axhline(0.0, color=PALE, lw=0.8, zorder=0)
    axes.axhline(1.0, color=PALE, lw=0.8, zorder=0)
    axes.set_ylabel("cosine, or share")
    return ends


def _draw_crossed(axes: Axes, data: _Data, plane: Axes) -> None:
    # Until the first update the state is the donor's.
    start = max(np.flatnonzero(data.updated)[0] - 1, 0)
    for scale, style in data.styles.items():
        for path in data.of_scale("path/live", scale):
            axes.plot(*path[data.updated, :2].T, color=style.colour, lw=0.7, alpha=0.18, zorder=1)
        for path in data.of_scale("path/cross", scale):
            x, y = path[start:, :2].T
            axes.plot(x, y, color=style.colour, lw=0.9, zorder=2)
            axes.plot(x[:1], y[:1], "x", color=style.colour, ms=4.5, mew=1.1, zorder=3)
            axes.plot(x[-1:], y[-1:], style.marker, color=style.colour, ms=5.0, mec=WHITE, mew=0.5)
    axes.set(xlim=plane.get_xlim())
    axes.margins(y=0.09)
    # No shares: the axes were fitted to live states alone.
    axes.set_xlabel("first principal coordinate of live states")
    axes.set_ylabel("second")
    axes.grid()


def _draw_line_positions(axes: Axes, data: _Data) -> list[End]:
    ends = []
    for scale, style in data.styles.items():
        along, off = (
            [line[data.updated] for line in data.of_scale(kind, scale)] for kind in ("along", "off")
        )
        for line in along:
            axes.plot(data.updates, line, color=style.colour, lw=0.9, alpha=0.85)
        for line in off:
            axes.plot(data.updates, line, color=style.colour, lw=0.8, alpha=0.7, ls=DOTTED)
        if along:
            ends.append(_mean_end(f"into {style.name}", style, data, along))
    for level in (0.0, 1.0):
        axes.axhline(level, color=PALE, lw=0.8, zorder=0)
    axes.set_ylabel("along the line, or off it")
    return ends
