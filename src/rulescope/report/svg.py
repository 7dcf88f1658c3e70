"""Coordinates of small SVG pictures: learning curves on cards, intervals beside numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rulescope.render.arm_styles import ArmStyle
from rulescope.report.css_styles import css_colours, svg_dashes
from rulescope.report.learning_curves import MEASURES, Panel, default_measure, mean_curve
from rulescope.report.site_model import Floats
from rulescope.stats import Estimate

WIDTH, HEIGHT = 240, 84
"""Of a small learning curve."""
MARGIN = 4
STRIP_WIDTH = 150


class Axis(NamedTuple):
    """The ends of an axis."""

    low: float
    high: float

    def position(self, value: float, length: float) -> float:
        """Return the position of ``value`` on an axis of ``length``, clipped to it."""
        part = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(min(max(part, 0.0), 1.0) * length, 1)


class Line(NamedTuple):
    """One line of a small learning curve."""

    path: str
    colours: str
    dashes: str | None


@dataclass(frozen=True)
class Thumbnail:
    """A small learning curve."""

    label: str
    """Alternative text."""
    lines: list[Line]
    """The first arm last, so that it is drawn on top."""
    rules: list[float]
    """Heights of horizontal lines."""
    width: int = WIDTH
    height: int = HEIGHT


def thumbnail(panel: Panel, styles: Mapping[str, ArmStyle]) -> Thumbnail:
    """Return the mean curves of ``panel`` as a small picture."""
    measure = default_measure(panel)
    curves: dict[str, tuple[Floats, Floats]] = {}
    for arm, runs in panel.arms.items():
        alike = [run for run in runs if len(run.log["steps"]) == len(runs[0].log["steps"])]
        if all(measure in run.log for run in alike):
            curves[arm] = (alike[0].log["steps"], mean_curve(alike, measure))
    finite = [y[np.isfinite(y)] for _, y in curves.values()]
    values = np.concatenate([part for part in finite if len(part)] or [np.zeros(1)])
    ends = [0.0, 1.0] if measure.endswith("score") else []
    y_axis = Axis(float(min([*ends, values.min()])), float(max([*ends, values.max()])))
    x_axis = Axis(0.0, max(float(x[-1]) for x, _ in curves.values()))
    inner = HEIGHT - 2 * MARGIN
    return Thumbnail(
        label=f"{MEASURES[measure]} over time: {_final_values(curves, styles)}",
        lines=[
            Line(_path(x, y, x_axis, y_axis), css_colours(styles[arm]), svg_dashes(styles[arm]))
            for arm, (x, y) in reversed(curves.items())
        ],
        rules=[round(HEIGHT - MARGIN - y_axis.position(end, inner), 1) for end in ends],
    )


def _path(x: Floats, y: Floats, x_axis: Axis, y_axis: Axis) -> str:
    """Return a path through about a hundred points, broken where values are not finite."""
    inner = HEIGHT - 2 * MARGIN
    step = max(len(x) // 120, 1)
    parts, command = [], "M"
    for across, up in zip(x[::step].tolist(), y[::step].tolist(), strict=True):
        if not math.isfinite(up):
            command = "M"
            continue
        height = MARGIN + inner - y_axis.position(up, inner)
        parts.append(f"{command}{x_axis.position(across, WIDTH)} {height:g}")
        command = "L"
    return "".join(parts)


def _final_values(
    curves: Mapping[str, tuple[Floats, Floats]], styles: Mapping[str, ArmStyle]
) -> str:
    texts = []
    for arm, (_, y) in curves.items():
        last = y[np.isfinite(y)]
        name = styles[arm].name
        texts.append(f"{name} ends at {last[-1]:.2f}" if len(last) else name)
    return ", ".join(texts)


def shared_axis(found: Iterable[Estimate], *also: float) -> Axis | None:
    """Return an axis that has room for all estimates and values; None if no end is finite."""
    ends = [end for one in found for end in (one.value, one.low, one.high) if math.isfinite(end)]
    if not ends:
        return None
    low, high = min([*ends, *also]), max([*ends, *also])
    room = 0.06 * (high - low) or 0.5
    return Axis(low - room, high + room)


class Mark(NamedTuple):
    """An estimate on a strip; its CSS class decides how it is drawn."""

    estimate: Estimate
    css: str
    style: str | None = None


class Interval(NamedTuple):
    """Coordinates of one estimate on a strip; None where an end is not finite."""

    y: int
    ends: tuple[float, float] | None
    x: float | None
    css: str
    style: str | None


@dataclass(frozen=True)
class Strip:
    """Intervals below one another on one axis. Decorative: the numbers stand beside it."""

    height: int
    zero: float | None
    """Position of the line at zero, if it is drawn."""
    intervals: list[Interval]
    width: int = STRIP_WIDTH


def strip(marks: Sequence[Mark], axis: Axis | None, zero: float | None = None) -> Strip | None:
    """Return the coordinates of ``marks`` on ``axis``; None if there is nothing to draw."""
    if axis is None or not marks:
        return None
    shown = zero is not None and axis.low < zero < axis.high
    return Strip(
        height=9 * len(marks) + 3,
        zero=axis.position(zero, STRIP_WIDTH) if zero is not None and shown else None,
        intervals=[_interval(mark, axis, 6 + 9 * row) for row, mark in enumerate(marks)],
    )


def _interval(mark: Mark, axis: Axis, y: int) -> Interval:
    one = mark.estimate
    finite = math.isfinite(one.low) and math.isfinite(one.high)
    return Interval(
        y,
        (axis.position(one.low, STRIP_WIDTH), axis.position(one.high, STRIP_WIDTH))
        if finite
        else None,
        axis.position(one.value, STRIP_WIDTH) if math.isfinite(one.value) else None,
        mark.css,
        mark.style,
    )
