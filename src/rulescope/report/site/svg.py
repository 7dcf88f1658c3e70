"""Small pictures that need no script: learning curves the size of a stamp, intervals on a line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rulescope.render.style import Look
from rulescope.report.site.arm_colours import colours, dashes
from rulescope.report.site.html import Markup, el
from rulescope.report.site.learning_curves import MEASURES, Panel, middle, typical
from rulescope.report.site.site_model import Floats
from rulescope.stats import Estimate

STAMP = (240, 84)
"""Width and height of a small learning curve."""
STRIP = 150
"""Width of a line of intervals."""


class Span(NamedTuple):
    """The ends of an axis."""

    low: float
    high: float

    def place(self, value: float, length: float) -> float:
        """Return where ``value`` lies on ``length``, kept on it."""
        part = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(min(max(part, 0.0), 1.0) * length, 1)


def stamp(panel: Panel, how: Mapping[str, Look]) -> Markup:
    """Return the curves of ``panel`` as a small picture, with words for who does not see it."""
    measure = typical(panel)
    lines: dict[str, tuple[Floats, Floats]] = {}
    for arm, lives in panel.arms.items():
        alike = [life for life in lives if len(life.log["steps"]) == len(lives[0].log["steps"])]
        if all(measure in life.log for life in alike):
            lines[arm] = (alike[0].log["steps"], middle(alike, measure))
    finite = [y[np.isfinite(y)] for _, y in lines.values()]
    values = np.concatenate([part for part in finite if len(part)] or [np.zeros(1)])
    ends = [0.0, 1.0] if measure.endswith("score") else []
    tall = Span(float(min([*ends, values.min()])), float(max([*ends, values.max()])))
    wide = Span(0.0, max(float(x[-1]) for x, _ in lines.values()))
    width, height = STAMP
    ruled = [
        el("line", x1=0, x2=width, y1=y, y2=y, class_="rule")
        for y in (round(height - 4 - tall.place(end, height - 8), 1) for end in ends)
    ]
    drawn = [
        el(
            "path",
            d=_path(x, y, wide, tall),
            class_="arm",
            style=colours(how[arm]),
            stroke_dasharray=dashes(how[arm]),
        )
        for arm, (x, y) in reversed(lines.items())  # the first arm on top
    ]
    words = f"{MEASURES[measure]} over time: {_ends(lines, how)}"
    return el(
        "svg",
        ruled,
        drawn,
        class_="stamp",
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=words,
        preserveAspectRatio="none",
    )


def _path(x: Floats, y: Floats, wide: Span, tall: Span) -> str:
    """Return the line through what is finite, broken where nothing is, of some hundred points."""
    width, height = STAMP
    step = max(len(x) // 120, 1)
    said, pen = [], "M"
    for across, up in zip(x[::step].tolist(), y[::step].tolist(), strict=True):
        if not math.isfinite(up):
            pen = "M"
            continue
        said.append(
            f"{pen}{wide.place(across, width)} {4 + height - 8 - tall.place(up, height - 8):g}"
        )
        pen = "L"
    return "".join(said)


def _ends(lines: Mapping[str, tuple[Floats, Floats]], how: Mapping[str, Look]) -> str:
    said = []
    for arm, (_, y) in lines.items():
        last = y[np.isfinite(y)]
        said.append(f"{how[arm].name} ends at {last[-1]:.2f}" if len(last) else how[arm].name)
    return ", ".join(said)


def span(found: Iterable[Estimate], *also: float) -> Span | None:
    """Return the axis on which all of these have room; None if there is nothing to show."""
    ends = [end for one in found for end in (one.value, one.low, one.high) if math.isfinite(end)]
    if not ends:
        return None
    low, high = min([*ends, *also]), max([*ends, *also])
    room = 0.06 * (high - low) or 0.5
    return Span(low - room, high + room)


class Mark(NamedTuple):
    """An estimate on a line: how it is drawn is up to its class."""

    found: Estimate
    kind: str
    style: str | None = None


def strip(marks: Sequence[Mark], axis: Span, zero: float | None = None) -> Markup:
    """Return intervals below one another on one axis, each a line with a dot; for eyes only.

    (The numbers stand beside it, so that it has no words of its own.)
    """
    height = 9 * len(marks) + 3
    drawn: list[Markup] = []
    if zero is not None and axis.low < zero < axis.high:
        x = axis.place(zero, STRIP)
        drawn.append(el("line", x1=x, x2=x, y1=0, y2=height, class_="rule"))
    for turn, (found, kind, style) in enumerate(marks):
        y = 6 + 9 * turn
        if math.isfinite(found.low) and math.isfinite(found.high):
            ends = (axis.place(found.low, STRIP), axis.place(found.high, STRIP))
            drawn.append(
                el("line", x1=ends[0], x2=ends[1], y1=y, y2=y, class_=f"bar {kind}", style=style)
            )
        if math.isfinite(found.value):
            x = axis.place(found.value, STRIP)
            drawn.append(el("circle", cx=x, cy=y, r=3, class_=f"dot {kind}", style=style))
    return el(
        "svg",
        drawn,
        class_="strip",
        viewBox=f"-4 0 {STRIP + 8} {height}",
        width=STRIP + 8,
        height=height,
        aria_hidden="true",
    )
