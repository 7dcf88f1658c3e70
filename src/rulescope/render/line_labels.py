"""Labels at the ends of lines, moved apart where lines end close together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes

from rulescope.render.arm_styles import ArmStyle
from rulescope.render.style import END_LABEL, SMALL


class End(NamedTuple):
    """The end of a line, and its label."""

    text: str
    style: ArmStyle
    x: float
    y: float
    level: float
    """Mean height of the line: orders labels of lines that end together."""


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return places at least ``gap`` apart, as near as possible to the ``wanted`` ones (ascending).

    They keep their order and stay within ``low`` and ``high`` if there is room for all.
    """
    # Without the gaps this is isotonic regression: neighbours that overlap share a mean.
    pools: list[list[float]] = []
    for turn, place in enumerate(wanted):
        pools.append([place - turn * gap])
        while len(pools) > 1 and _mean(pools[-2]) > _mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    flat = [_mean(pool) for pool in pools for _ in pool]
    last = max(low, high - (len(wanted) - 1) * gap)
    return [min(max(place, low), last) + turn * gap for turn, place in enumerate(flat)]


def inches(axes: Axes) -> tuple[float, float]:
    """Return the width and height of ``axes``."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    box = axes.get_position()
    return box.width * figure.get_figwidth(), box.height * figure.get_figheight()


def name_ends(
    axes: Axes, ends: Sequence[End], *, offset: float = 0.13, size: float = SMALL
) -> None:
    """Write each label right of ``axes``, with its marker and a thin line to the end of its line.

    Call this last: it reads the limits of the axes. ``offset`` is in inches.
    """
    if not ends:
        return
    width, height = inches(axes)
    axes.get_xlim(), axes.get_ylim()  # matplotlib computes limits when they are read
    flat = axes.transData + axes.transAxes.inverted()
    places = [
        (min(float(x), 1.0), min(max(float(y), 0.0), 1.0))
        for x, y in (flat.transform((end.x, end.y)) for end in ends)
    ]
    order = _order([y for _, y in places], [end.level for end in ends])
    gap = size * 1.3 / 72 / height
    wanted = _rising([places[i][1] for i in order])
    found = spread(wanted, gap, gap * 0.3, 1.0)
    for i, y in zip(order, found, strict=True):
        at = 1 + offset / width
        axes.plot(
            [places[i][0], at],
            [places[i][1], y],
            color=ends[i].style.colour,
            lw=0.6,
            alpha=0.6,
            transform=axes.transAxes,
            clip_on=False,
            zorder=1,
        )
        _name(axes, ends[i], at, y, size)


def name_apart(axes: Axes, ends: Sequence[End], *, offset: float = 0.13) -> None:
    """Write labels right of ``axes`` for lines in other axes."""
    gap = SMALL * 1.3 / 72 / inches(axes)[1]
    for turn, end in enumerate(sorted(ends, key=lambda end: -end.level)):
        _name(axes, end, 1 + offset / inches(axes)[0], 1.0 - turn * gap, SMALL)


def _name(axes: Axes, end: End, x: float, y: float, size: float) -> None:
    axes.plot(
        [x],
        [y],
        marker=end.style.marker,
        color=end.style.colour,
        mfc=end.style.face,
        ms=3.8,
        ls="",
        transform=axes.transAxes,
        clip_on=False,
    )
    axes.text(
        x + 0.06 / inches(axes)[0],
        y,
        end.text,
        color=end.style.ink,
        size=size,
        va="center_baseline",
        transform=axes.transAxes,
        label=END_LABEL,
    )


def _order(places: Sequence[float], levels: Sequence[float]) -> list[int]:
    """Return the lines from the lowest end to the highest; ends close together by mean height."""
    groups: list[list[int]] = []
    for i in sorted(range(len(places)), key=lambda i: places[i]):
        if groups and places[i] - places[groups[-1][-1]] < 0.06:
            groups[-1].append(i)
        else:
            groups.append([i])
    return [i for group in groups for i in sorted(group, key=lambda i: levels[i])]


def _rising(places: list[float]) -> list[float]:
    """Return ``places`` made ascending (lines that end together may be in another order)."""
    highest = float("-inf")
    return [highest := max(highest, place) for place in places]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
