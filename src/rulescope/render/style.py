"""Style of figures: fonts, page layout, room for names, files."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox, BboxBase

from rulescope.core.disk import write_whole
from rulescope.render.arm_styles import naming, subject
from rulescope.render.display_names import OfRule, subject_of
from rulescope.render.palette import DARK, GREY, NOTE, PALE, TITLE

WIDTH = 7.2
"""Inches: the width of a printed page's text."""
SMALL, TINY = 7.0, 6.6
"""Points: labels at lines, and the line below the figure."""
EDGE = 1.0
"""Pixels of a page that words keep free at either side."""
GAP = 3.0
"""Pixels between two words side by side."""
FLOOR = 5.5
"""Points: no label is made smaller than this to fit."""
LONGEST = 8
"""Letters of a rule's name in a figure: for these there is room beside lines."""
END_LABEL = "end of a line"
"""The artist label of names that stand beside the ends of lines."""
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so it is the same everywhere
    "mathtext.fontset": "dejavusans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "axes.labelcolor": DARK,
    "axes.labelpad": 2,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "xtick.labelsize": 7.2,
    "ytick.labelsize": 7.2,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": DARK,
    "ytick.labelcolor": DARK,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "grid.color": PALE,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.2,
    "pdf.fonttype": 42,  # whole fonts, which publishers ask for
    "svg.hashsalt": "rulescope",
}

_note: ContextVar[str] = ContextVar("note", default="")


@contextmanager
def _caption_note(text: str) -> Iterator[None]:
    """End captions with ``text``."""
    token = _note.set(text)
    try:
        yield
    finally:
        _note.reset(token)


def _contains(figure: Figure, part: str) -> bool:
    return any(part in text.get_text() for text in figure.findobj(Text) if isinstance(text, Text))


P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in our style, independent of the user's matplotlib settings."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def styled(function: Callable[P, R]) -> Callable[P, R]:
    """Make ``function`` draw in our style, and name arms after the rule of its results."""

    @wraps(function)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        given = args[0] if args and isinstance(args[0], Mapping) else {}
        found = [one for one in given.values() if isinstance(one, OfRule)]
        name = subject_of(found)
        short = abbreviated(name)
        arms = {str(arm) for one in found for arm in one.axes.get("arm", ())}
        with drawing(), naming(short, arms):
            made = function(*args, **kwargs)
            if short != name and isinstance(made, Figure) and _contains(made, short):
                with _caption_note(f"{short}: {name}."):
                    made = function(*args, **kwargs)
            if isinstance(made, Figure):
                keep_inside(made)
            return made

    return drawn


def abbreviated(name: str) -> str:
    """Return the name of a rule as figures have room for it: its beginning and its end.

    >>> abbreviated("Disco103"), abbreviated("my-plugin-rule-v2")
    ('Disco103', 'my-pl…v2')
    """
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}…{name[-2:]}"


def keep_inside(figure: Figure) -> None:
    """Keep end labels, and names of the rule under audit, on the page and off other words.

    Panels have fixed places, and a rule may be called anything. The end labels of a panel have one
    size, not below :data:`FLOOR`. Where that is not small enough, an ellipsis ends them.
    """
    groups: dict[object, list[Text]] = {}
    every = _shown(figure)
    for text in every:
        if text.get_label() == END_LABEL:
            groups.setdefault(text.axes, []).append(text)
        elif subject() in text.get_text():
            groups[text] = [text]
    if not groups:
        return
    figure.draw_without_rendering()
    boxes = {text: text.get_window_extent() for text in every}
    for group in groups.values():
        others = [box for text, box in boxes.items() if text not in group]
        _shrink(group, others, figure.bbox.width)
        boxes |= {text: text.get_window_extent() for text in group}


def _shown(figure: Figure) -> list[Text]:
    """Return the texts that are drawn."""
    found = list(figure.texts)
    for axes in figure.axes:
        found += axes.texts
        if not axes.axison:
            continue
        found += [axes.xaxis.label, axes.yaxis.label]
        for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            low, high = sorted(limits)
            ticks = axis.get_major_ticks()
            found += [tick.label1 for tick in ticks if low <= tick.get_loc() <= high]
    return [text for text in found if text.get_visible() and text.get_text().strip()]


def _shrink(group: Sequence[Text], others: Sequence[BboxBase], width: float) -> None:
    """Make the texts of ``group`` smaller, then shorter, until each has room among ``others``."""
    size = min(float(text.get_fontsize()) for text in group)
    while size > FLOOR and not all(_has_room(text, others, width) for text in group):
        size = max(size - 0.1, FLOOR)
        for text in group:
            text.set_fontsize(size)
    for text in group:
        while (
            text.get_label() == END_LABEL
            and len(text.get_text()) > 3
            and not _has_room(text, others, width)
        ):
            text.set_text(f"{text.get_text().rstrip('…')[:-1].rstrip(' ,')}…")


def _has_room(text: Text, others: Sequence[BboxBase], width: float) -> bool:
    """Return whether ``text`` is within the page's ``width`` and on none of the ``others``."""
    box = text.get_window_extent()
    if box.x0 < EDGE or box.x1 > width - EDGE:
        return False
    wide = Bbox.from_extents(box.x0 - GAP, box.y0, box.x1 + GAP, box.y1)
    shared = (Bbox.intersection(wide, other) for other in others)
    return not any(
        both is not None and both.width > EDGE and both.height > 2 * EDGE for both in shared
    )


class Page:
    """A figure whose panels are placed in inches from its upper left corner.

    Fixed places, rather than a layout engine, so that labels beside lines know their room.
    """

    def __init__(self, height: float, caption: str, width: float = WIDTH) -> None:
        text = f"{caption} {_note.get()}".strip()
        letters = int((width - 0.2) * 72 / (TINY * 0.53))
        lines = textwrap.wrap(text, letters, break_on_hyphens=False)  # which are part of names
        below = 0.08 + len(lines) * TINY * 1.35 / 72
        self.width, self.height = width, height + below
        self.figure = Figure(figsize=(self.width, self.height))
        self.figure.text(
            0.1 / self.width,
            0.05 / self.height,
            "\n".join(lines),
            size=TINY,
            color=NOTE,
            va="bottom",
            linespacing=1.25,
        )

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Return new axes, ``left`` and ``top`` inches from the corner."""
        box = (
            left / self.width,
            1 - (top + height) / self.height,
            width / self.width,
            height / self.height,
        )
        return self.figure.add_axes(box)

    def panel(
        self,
        letter: str,
        title: str,
        box: tuple[float, float, float, float],
        indent: float = 0.42,
    ) -> Axes:
        """Return new axes with a heading; ``box`` is left, top, width and height in inches."""
        axes = self.axes(*box)
        self.heading(axes, letter, title, indent)
        return axes

    def heading(self, axes: Axes, letter: str, title: str, indent: float = 0.42) -> None:
        """Put the panel's letter and title above ``axes``, the letter ``indent`` inches out."""
        box = axes.get_position()
        y = box.y1 + 0.09 / self.height
        if letter:
            x = box.x0 - indent / self.width
            self.figure.text(x, y, letter, weight="bold", size=9.5, va="baseline")
        self.figure.text(box.x0, y, title, size=8, va="baseline", color=TITLE)


def absent(axes: Axes, words: str = "not run") -> None:
    """Write in ``axes`` why nothing is drawn there."""
    axes.set(xticks=[], yticks=[], xlabel="", ylabel="")
    for spine in axes.spines.values():
        spine.set_color(PALE)
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color=GREY)


def save(figure: Figure, path: Path, title: str | None = None) -> Path:
    """Write ``figure`` whole and reproducible: without dates.

    The ending of ``path`` decides the format.
    """
    metadata: dict[str, dict[str, str | None]] = {
        ".png": {"Software": "rulescope"},
        ".pdf": {"CreationDate": None},
        ".svg": {"Date": None},
    }
    kept = metadata.get(path.suffix, {})
    if title is not None and kept:
        kept["Title"] = title
    buffer = io.BytesIO()
    with drawing():
        figure.savefig(buffer, format=path.suffix.lstrip("."), dpi=200, metadata=kept)
    return write_whole(path, buffer.getvalue())
