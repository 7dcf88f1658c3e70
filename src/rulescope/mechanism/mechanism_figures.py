"""Figures of two mechanism views: trajectories of the state, and swapped targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from rulescope.assays.figure_data import Floats
from rulescope.render.line_labels import End, name_apart, name_ends
from rulescope.render.style import DARK, GREY, PALE, Look, Page, absent, look, styled

if TYPE_CHECKING:
    from rulescope.assays.results import Results

WORDS = {
    "trajectory": (
        "The hidden half h of the rule's recurrent state, which is all of it that the targets of "
        "an update can see, in the principal coordinates of all live states; a thin line is a "
        "lifetime. A: from birth (star); rings: after 1, 3, 10, 30 and 100 updates. C: mean cosine "
        "between the directions from birth of two lifetimes, and the share of the variation that "
        "lies between scales. D, E: lifetimes that begin with the terminal state of the opposite "
        "scale (crosses). D: in the coordinates of A. E: solid, the place along the straight line "
        "from what the state is without the transplant (0) to the donor's (1); dotted, the "
        "distance off that line, in its lengths."
    ),
    "targets": (
        "One update on one batch of the learner's own replay, made on copies: with the state as "
        "it is, and with another in its place. A to C: KL(with its own state || with the other), "
        "mean over transitions. Pin: zero; match: the state of a lifetime of the same scale and "
        "another seed at the same age; cross: of the opposite scale. Dotted: how far the "
        "learner's outputs are from the targets. D: cosine between the gradients with the two "
        "states. Thin lines: lifetimes; thick: their (in A to C geometric) mean. Targets of values "
        "do not depend on the state."
    ),
}
"""What each figure shows, for the line below it and for whoever puts it into a report."""

TINIEST = 1e-7
"""KL divergences below this are drawn there: they are rounding."""
RINGS = (1, 3, 10, 30, 100)
"""Updates after which a trajectory has a ring."""
COLD, WARM = "#2166AC", "#C2410C"
MARKERS = ("v", "s", "o", "D", "^", "p", "h")
SWAPS = {
    "pin": look("pin"),
    "match": look("match-clamp"),
    "cross": look("cross-clamp"),
}
OUTPUTS = {"kl_policy": "Policy target", "kl_y": "Target of y", "kl_z": "Target of z"}
MOST_COLUMNS = 3


def below(found: Results | None, words: str) -> str:
    """Return the line below a figure: what it shows, and whose lifetimes."""
    return "" if found is None else f"{words} {found.budget}."


def scale_look(scale: float, scales: Sequence[float]) -> Look:
    """Return how a reward scale is drawn: blue below one, red above, the further the stronger."""
    reach = max(abs(float(np.log10(s))) for s in scales) or 1.0
    place = float(np.log10(scale)) / reach
    strength = 0.0 if place == 0 else 0.35 + 0.65 * abs(place)
    end, start = np.array(to_rgb(WARM if place > 0 else COLD)), np.array(to_rgb("#B9B9B9"))
    colour = DARK if place == 0 else str(to_hex(start + (end - start) * strength))
    marker = MARKERS[list(scales).index(scale) % len(MARKERS)]
    return Look(f"×{scale:g}", colour, marker)


@styled
def trajectory(results: Mapping[str, Results]) -> Figure:
    """``mechanism-trajectory``: the path of the state, live and after a transplant."""
    found = results.get("mechanism-trajectory")
    page = Page(5.85, below(found, WORDS["trajectory"]))
    plane = page.axes(0.62, 0.35, 3.1, 2.6)
    time = page.axes(4.5, 0.35, 1.85, 0.98)
    shared = page.axes(4.5, 1.97, 1.85, 0.98)
    crossed = page.axes(0.62, 3.6, 3.1, 1.8)
    left = page.axes(4.5, 3.6, 1.85, 1.8)
    page.heading(plane, "A", "The state of live lifetimes")
    page.heading(time, "B", "Its first coordinate")
    page.heading(shared, "C", "Do lifetimes share a direction?")
    page.heading(crossed, "D", "After a transplant from the opposite scale")
    page.heading(left, "E", "Between live (0) and donor (1)")
    if found is None:
        for axes in (plane, time, shared, crossed, left):
            absent(axes)
        return page.figure
    scales = [float(scale) for scale in found.axes["scale"]]
    updates, learned = _updates(found)
    _plane(plane, found, scales, learned, updates)
    name_ends(time, _coordinate(time, found, scales, learned, updates))
    _log_updates(time, updates)
    name_ends(shared, _directions(shared, found, learned, updates))
    _log_updates(shared, updates)
    if any(key.startswith("along/") for key in found.series):
        _crossed(crossed, found, scales, learned, plane)
        name_ends(left, _left(left, found, scales, learned, updates))
        _log_updates(left, updates)
    else:
        absent(crossed, "no scale has an opposite")
        absent(left, "no scale has an opposite")
    return page.figure


def _updates(found: Results) -> tuple[Floats, Floats]:
    """Return the number of each moment's update [m], and which moments have one [all]."""
    iteration, first = found.series["iteration"], float(found.series["first"][0])
    learned = iteration >= first
    return iteration[learned] - first + 1, learned.astype(np.float64)


def _paths(found: Results, arm: str, scale: float) -> list[Floats]:
    """Return the coordinates [moments, 3] of every lifetime of ``arm`` and ``scale``."""
    start = f"path/{arm}/{scale:g}/"
    return [path for key, path in found.series.items() if key.startswith(start)]


def _plane(
    axes: Axes, found: Results, scales: Sequence[float], learned: Floats, updates: Floats
) -> None:
    rings = np.isin(updates, RINGS)
    for scale in scales:
        how = scale_look(scale, scales)
        for path in _paths(found, "live", scale):
            x, y = path[learned > 0, :2].T
            axes.plot(x, y, color=how.colour, lw=0.9, alpha=0.85, zorder=2)
            axes.plot(x[rings], y[rings], "o", mfc="white", mec=how.colour, ms=2.4, mew=0.6)
            axes.plot(x[-1:], y[-1:], how.marker, color=how.colour, ms=5.0, mec="white", mew=0.5)
    birth = found.series["birth"]
    axes.plot(birth[:1], birth[1:2], "*", color=DARK, ms=9, mec="white", mew=0.6, zorder=4)
    axes.margins(0.07)
    first, second = found.series["explained"][:2]
    axes.set_xlabel(f"first principal coordinate ({first:.0%} of the variation)", labelpad=2)
    axes.set_ylabel(f"second ({second:.0%})", labelpad=2)
    axes.grid()


def _coordinate(
    axes: Axes, found: Results, scales: Sequence[float], learned: Floats, updates: Floats
) -> list[End]:
    ends = []
    for scale in scales:
        how = scale_look(scale, scales)
        lines = [path[learned > 0, 0] for path in _paths(found, "live", scale)]
        for line in lines:
            axes.plot(updates, line, color=how.colour, lw=0.9, alpha=0.85)
        mean = np.mean(lines, axis=0)
        ends.append(End(how.name, how, float(updates[-1]), float(mean[-1]), float(mean.mean())))
    axes.set_ylabel("first coordinate", labelpad=2)
    return ends


def _directions(axes: Axes, found: Results, learned: Floats, updates: Floats) -> list[End]:
    kinds = {
        "same": Look("same scale", DARK, "o"),
        "other": Look("other scale", "#D55E00", "s"),
        "between": Look("var. between", GREY, "x", (0.0, (1.2, 1.4))),
    }
    ends = []
    for kind, how in kinds.items():
        line = found.series[f"{kind}/h"][learned > 0]
        known = np.flatnonzero(np.isfinite(line))
        if not len(known):
            continue
        axes.plot(updates, line, color=how.colour, ls=how.line, lw=1.3)
        last = int(known[-1])
        level = float(np.nanmean(line))
        ends.append(End(how.name, how, float(updates[last]), float(line[last]), level))
    axes.set_ylim(min(-0.05, axes.get_ylim()[0]), 1.05)
    axes.axhline(0.0, color=PALE, lw=0.8, zorder=0)
    axes.axhline(1.0, color=PALE, lw=0.8, zorder=0)
    axes.set_ylabel("cosine, or share", labelpad=2)
    return ends


def _crossed(
    axes: Axes, found: Results, scales: Sequence[float], learned: Floats, plane: Axes
) -> None:
    for scale in scales:
        how = scale_look(scale, scales)
        for path in _paths(found, "live", scale):
            axes.plot(*path[learned > 0, :2].T, color=how.colour, lw=0.7, alpha=0.18, zorder=1)
        for path in _paths(found, "cross", scale):
            # Until the first update the state is the donor's.
            x, y = path[max(np.flatnonzero(learned)[0] - 1, 0) :, :2].T
            axes.plot(x, y, color=how.colour, lw=0.9, zorder=2)
            axes.plot(x[:1], y[:1], "x", color=how.colour, ms=4.5, mew=1.1, zorder=3)
            axes.plot(x[-1:], y[-1:], how.marker, color=how.colour, ms=5.0, mec="white", mew=0.5)
    axes.set(xlim=plane.get_xlim())
    axes.margins(y=0.09)
    # No shares: they are of the live states, and transplanted ones had no part in the axes.
    axes.set_xlabel("first principal coordinate of live states", labelpad=2)
    axes.set_ylabel("second", labelpad=2)
    axes.grid()


def _left(
    axes: Axes, found: Results, scales: Sequence[float], learned: Floats, updates: Floats
) -> list[End]:
    ends = []
    for scale in scales:
        how = scale_look(scale, scales)
        lines, aside = (
            [line[learned > 0] for key, line in found.series.items() if key.startswith(start)]
            for start in (f"along/{scale:g}/", f"off/{scale:g}/")
        )
        for line in lines:
            axes.plot(updates, line, color=how.colour, lw=0.9, alpha=0.85)
        for line in aside:
            axes.plot(updates, line, color=how.colour, lw=0.8, alpha=0.7, ls=(0.0, (1.2, 1.4)))
        if lines:
            mean = np.mean(lines, axis=0)
            name = f"into {how.name}"
            ends.append(End(name, how, float(updates[-1]), float(mean[-1]), float(mean.mean())))
    for level in (0.0, 1.0):
        axes.axhline(level, color=PALE, lw=0.8, zorder=0)
    axes.set_ylabel("along the line, or off it", labelpad=2)
    return ends


def _log_updates(axes: Axes, updates: Floats) -> None:
    axes.set_xscale("log")
    axes.set_xlim(float(updates[0]), float(updates[-1]))
    shown = [tick for tick in (1, 10, 100, 1000, 10_000) if tick <= updates[-1]]
    axes.set_xticks(shown, [f"{tick:,}" for tick in shown])
    axes.set_xlabel("updates", labelpad=2)


@styled
def targets(results: Mapping[str, Results]) -> Figure:
    """``mechanism-targets``: how far targets move with another state, and the gradient."""
    found = results.get("mechanism-targets")
    known = (1e-3, 1.0, 1e3) if found is None else tuple(map(float, found.axes["scale"]))
    scales = _columns(known)
    shown = f"Scales not shown: {len(known) - len(scales)}." if len(scales) < len(known) else ""
    page = Page(5.95, below(found, f"{WORDS['targets']} {shown}".strip()))
    rows = [*OUTPUTS, "agree"]
    panels = {
        (row, scale): page.axes(0.62 + 1.94 * column, 0.35 + 1.43 * turn, 1.55, 0.88)
        for turn, row in enumerate(rows)
        for column, scale in enumerate(scales)
    }
    for (row, scale), axes in panels.items():
        what = OUTPUTS.get(row, "Gradient")
        letter = "ABCD"[rows.index(row)] if scale == scales[0] else ""
        page.heading(axes, letter, f"{what}, ×{scale:g}", indent=0.45)
        if found is None:
            absent(axes)
    if found is None:
        return page.figure
    updates = found.series["iteration"] - float(found.series["first"][0]) + 1
    for row in rows:
        ends = [_swapped(panels[row, scale], found, row, scale, updates) for scale in scales]
        same = [panels[row, scale] for scale in scales]
        _level(same, row)
        same[0].set_ylabel("KL (nats)" if row in OUTPUTS else "cosine", labelpad=2)
        for axes in same:
            _log_updates(axes, updates)
            if row != rows[-1]:
                axes.set_xlabel("")
        named = {end.text: end for each in ends for end in each}
        name_apart(same[-1], list(named.values()), offset=0.08)
    return page.figure


def _columns(scales: tuple[float, ...]) -> tuple[float, ...]:
    """Return the scales that there is room for: the ends and the middle."""
    if len(scales) <= MOST_COLUMNS:
        return scales
    return scales[0], scales[len(scales) // 2], scales[-1]


def _swapped(axes: Axes, found: Results, row: str, scale: float, updates: Floats) -> list[End]:
    ends = []
    for rank, (swap, how) in enumerate(SWAPS.items()):
        lines = found.series.get(f"{row}/{scale:g}/{swap}")
        if lines is None:
            continue
        _thin_and_thick(axes, updates, lines, how, kl=row in OUTPUTS)
        ends.append(End(how.name, how, 0.0, 0.0, -float(rank)))
    if row in OUTPUTS:
        loss = found.series[f"loss_{row.removeprefix('kl_')}/{scale:g}/live"]
        how = Look("own loss", GREY, ".", (0.0, (1.2, 1.4)))
        mean = np.exp(np.log(np.maximum(loss, TINIEST)).mean(axis=0))
        axes.plot(updates, mean, color=how.colour, ls=how.line, lw=1.3, zorder=1)
        ends.append(End(how.name, how, 0.0, 0.0, -9.0))
    return ends


def _thin_and_thick(axes: Axes, x: Floats, lines: Floats, how: Look, *, kl: bool) -> None:
    """Draw every lifetime thin, and their mean thick."""
    known = np.maximum(lines, TINIEST) if kl else lines
    mean = np.exp(np.log(known).mean(axis=0)) if kl else known.mean(axis=0)
    for line in known:
        axes.plot(x, line, color=how.colour, lw=0.6, alpha=0.4)
    axes.plot(x, mean, color=how.colour, lw=1.4, marker=how.marker, ms=2.8, mfc=how.face, zorder=3)


def _level(panels: Sequence[Axes], row: str) -> None:
    """Give panels of one row the same vertical axis."""
    if row in OUTPUTS:
        for axes in panels:
            axes.set_yscale("log")
        low = min(axes.get_ylim()[0] for axes in panels)
        high = max(axes.get_ylim()[1] for axes in panels)
        exponents = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
        step = 1 if len(exponents) <= 5 else 2
        for axes in panels:
            axes.set_ylim(max(low, TINIEST / 2), high * 1.3)
            axes.set_yticks([10.0**e for e in exponents if e % step == 0])
            axes.minorticks_off()
            axes.grid(axis="y")
        ends = (max(low, TINIEST / 2), high * 1.3)
    else:
        ends = (min(-0.1, *(axes.get_ylim()[0] for axes in panels)), 1.05)
        for axes in panels:
            axes.set_yticks([-1.0, -0.5, 0.0, 0.5, 1.0])
            axes.grid(axis="y")
    for axes in panels:
        axes.set_ylim(*ends)
        if axes is not panels[0]:
            axes.tick_params(labelleft=False)
