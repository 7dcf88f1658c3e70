"""What every figure must be, whatever was run: readable, without empty panels, all marks named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from rulescope.assays.figures import Drawing
from rulescope.assays.panels import DIAMOND, DOTS, PATHS
from rulescope.assays.results import Results
from rulescope.render import palette
from rulescope.render.style import EXPLAINED, NothingToDrawError

NEUTRAL = {to_hex(c) for c in (palette.GREY, palette.PALE, palette.DARK, palette.NOTE, "white")}
"""Colours of lines that help to read: thresholds, levels, and what the axis names."""


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text)]


def said(figure: Figure) -> str:
    return " ".join(" ".join(words(figure)).split())


def shown_texts(figure: Figure) -> list[tuple[str, Bbox]]:
    """Return every text that is drawn, with its place in pixels."""
    figure.draw_without_rendering()
    drawn: list[Text] = list(figure.texts)
    for axes in figure.axes:
        drawn += axes.texts
        if axes.axison:
            drawn += [axes.xaxis.label, axes.yaxis.label]
            for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
                low, high = sorted(limits)
                ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
                # the axis of a colour bar is at the right
                drawn += [
                    tick.label1 if tick.label1.get_visible() else tick.label2 for tick in ticks
                ]
    kept = [text for text in drawn if text.get_visible() and text.get_text().strip()]
    return [(text.get_text(), text.get_window_extent()) for text in kept]


def clashes(figure: Figure) -> list[str]:
    """Return the texts that stand on each other or over the edge of the page."""
    texts = shown_texts(figure)
    page = figure.bbox
    found = [
        f"{words!r} is over the edge"
        for words, box in texts
        if box.x0 < page.x0 - 1 or box.x1 > page.x1 + 1 or box.y0 < page.y0 or box.y1 > page.y1
    ]
    for i, (one, a) in enumerate(texts):
        for other, b in texts[i + 1 :]:
            both = Bbox.intersection(a, b)
            if both is not None and both.width > 1 and both.height > 2:
                found.append(f"{one!r} stands on {other!r}")
    return found


def data_lines(axes: Axes) -> list[Line2D]:
    """Return the lines and marks of data: no thresholds, levels, keys or leaders."""
    spanning = (
        axes.get_xaxis_transform("grid"),
        axes.get_yaxis_transform("grid"),
        axes.transAxes,
        axes.get_xaxis_transform(),
    )
    return [line for line in axes.lines if line.get_transform() not in spanning]


def is_empty(axes: Axes) -> bool:
    """Return whether axes show nothing: no line, mark, area or image."""
    points = [np.asarray(line.get_xydata(), dtype=float) for line in data_lines(axes)]
    shown = any(np.isfinite(at).all(axis=-1).any() for at in points if len(at))
    return not (shown or axes.collections or axes.patches or axes.images)


def unnamed(figure: Figure) -> list[str]:
    """Return the colours of lines and marks that no word of the figure has."""
    inks = {to_hex(text.get_color()) for text in figure.findobj(Text) if text.get_text().strip()}
    used = {to_hex(line.get_color()) for axes in figure.axes for line in data_lines(axes)}
    return sorted(
        colour for colour in used - NEUTRAL if to_hex(palette.readable(colour)) not in inks
    )


def meanings(figure: Figure, kind: type) -> Iterator[str]:
    """Yield what the marks of one kind mean, as far as the caption explains them."""
    for axes in figure.axes:
        for artist in (*axes.lines, *axes.collections):
            label = str(artist.get_label())
            if isinstance(artist, kind) and label.startswith(EXPLAINED):
                yield label.removeprefix(EXPLAINED).partition("\n")[0]


def dotted_bars(figure: Figure) -> list[Line2D]:
    """Return the ranges of too few lifetimes."""
    return [
        line
        for axes in figure.axes
        for line in axes.lines
        if str(line.get_label()).startswith(f"{EXPLAINED}Dotted bars")
    ]


def capped_bars(figure: Figure) -> list[Line2D]:
    """Return the intervals: bars with caps."""
    return [
        line
        for axes in figure.axes
        for line in data_lines(axes)
        if line.get_marker() in ("_", "|") and len(np.asarray(line.get_xdata())) == 2
    ]


def bands(figure: Figure) -> list[PolyCollection]:
    """Return the bands that have an area."""
    return [
        band
        for axes in figure.axes
        for band in axes.collections
        if isinstance(band, PolyCollection) and len(band.get_paths())
    ]


def single_seeds(figure: Figure) -> int:
    """Return how many single lifetimes are drawn as dots or as thin lines."""
    dots = [
        len(np.asarray(each.get_offsets()))
        for axes in figure.axes
        for each in axes.collections
        if isinstance(each, PathCollection) and str(each.get_label()).startswith(EXPLAINED + DOTS)
    ]
    lines = [
        len(each.get_segments())
        for axes in figure.axes
        for each in axes.collections
        if isinstance(each, LineCollection) and str(each.get_label()).startswith(EXPLAINED + PATHS)
    ]
    return sum(dots) + sum(lines)


def published_marks(figure: Figure) -> list[Line2D]:
    """Return the marks of published values."""
    lines: Iterable[Line2D] = (line for axes in figure.axes for line in axes.lines)
    return [line for line in lines if line.get_marker() == DIAMOND]


def faults(figure: Figure) -> list[str]:
    """Return what is wrong with a figure, as its reader would see it."""
    found = clashes(figure)
    found += [f"axes {i} are empty" for i, axes in enumerate(figure.axes) if is_empty(axes)]
    found += [f"nothing is named in {colour}" for colour in unnamed(figure)]
    found += ["'not run' stands in a panel"] if "not run" in words(figure) else []
    return found


def draw_checked(drawing: Drawing, results: Mapping[str, Results]) -> Figure | None:
    """Draw a figure and assert that it has no faults; None if there is no data to draw."""
    if not drawing.has_data(results):
        with pytest.raises(NothingToDrawError):
            drawing(results)
        return None
    figure = drawing(results)
    assert faults(figure) == []
    return figure
