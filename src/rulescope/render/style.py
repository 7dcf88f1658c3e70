"""Style of figures: fonts, page layout, room for names, files."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox, BboxBase

from rulescope.core.disk import write_whole
from rulescope.core.errors import RulescopeError
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
BELOW = 0.55
"""Inches below the lowest panel for its tick labels and the name of its axis."""
ABSENT, EXPLAINED = "_absent:", "_explained:"
"""Beginnings of artist labels: of empty panels, with the reason; of marks, with their meaning."""
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


class NothingToDrawError(RulescopeError):
    """A figure has no panel with data."""


@dataclass(eq=False)
class _Slot:
    """A panel with its heading and the axes that belong to it; lengths in inches."""

    letter: str
    title: str
    left: float
    """Where its room begins, the letter included."""
    top: float
    data: bool
    axes: list[Axes]
    room: float | None = None
    texts: list[Text] = field(default_factory=list)

    @property
    def reason(self) -> str | None:
        """Why it is empty; None if it is not."""
        label = str(self.axes[0].get_label())
        return label.removeprefix(ABSENT) if label.startswith(ABSENT) else None


class Page:
    """A figure whose panels are placed in inches from its upper left corner.

    Fixed places, rather than a layout engine, so that labels beside lines know their room.
    :meth:`finish` removes empty panels, closes the gaps, and completes the caption.
    """

    def __init__(
        self, height: float, caption: str, width: float = WIDTH, *, merge: bool = False
    ) -> None:
        """With ``merge``, rows of panels that are not full may share one row."""
        self.width, self.height = width, height
        self.merge = merge
        self._slots: list[_Slot] = []
        self._words = caption
        self._caption: Text | None = None
        self._above = height
        """Inches above the caption."""
        self.figure = Figure(figsize=(width, height))
        self._write_caption(caption)

    def _write_caption(self, caption: str) -> None:
        """Write ``caption`` below the panels; the page becomes as high as it has to be."""
        if self._caption is not None:
            self._caption.remove()
        text = f"{caption} {_note.get()}".strip()
        letters = int((self.width - 0.2) * 72 / (TINY * 0.53))
        lines = textwrap.wrap(text, letters, break_on_hyphens=False)  # which are part of names
        below = 0.08 + len(lines) * TINY * 1.35 / 72
        self._resize(self._above + below)
        self._caption = self.figure.text(
            0.1 / self.width,
            0.05 / self.height,
            "\n".join(lines),
            size=TINY,
            color=NOTE,
            va="bottom",
            linespacing=1.25,
        )

    def _resize(self, height: float) -> None:
        """Change the height of the page; everything stays as far from its upper edge."""
        places = [(axes, self._place(axes)) for axes in self.figure.axes]
        texts = [(text, (1 - text.get_position()[1]) * self.height) for text in self.figure.texts]
        self.height = height
        self.figure.set_size_inches(self.width, height)
        for axes, box in places:
            axes.set_position(self._box(*box))
        for text, top in texts:
            text.set_y(1 - top / height)

    def _place(self, axes: Axes) -> tuple[float, float, float, float]:
        """Return left, top, width and height of ``axes`` in inches."""
        box = axes.get_position()
        return (
            box.x0 * self.width,
            (1 - box.y1) * self.height,
            box.width * self.width,
            box.height * self.height,
        )

    def _box(
        self, left: float, top: float, width: float, height: float
    ) -> tuple[float, float, float, float]:
        """Return a place in inches in units of the figure, from its lower left corner."""
        return (
            left / self.width,
            1 - (top + height) / self.height,
            width / self.width,
            height / self.height,
        )

    def extend(self, height: float) -> float:
        """Make room of ``height`` inches below all panels; return where panels in it begin."""
        top = self._above + 0.35
        self._above += height
        self._resize(self.height + height)
        return top

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Return new axes, ``left`` and ``top`` inches from the corner.

        They belong to the last panel, if there is one.
        """
        made = self.figure.add_axes(self._box(left, top, width, height))
        if self._slots:
            self._slots[-1].axes.append(made)
        return made

    def panel(
        self,
        letter: str,
        title: str,
        box: tuple[float, float, float, float],
        indent: float = 0.42,
        *,
        data: bool = True,
        room: float | None = None,
    ) -> Axes:
        """Return new axes with a heading; ``box`` is left, top, width and height in inches.

        The letter stands ``indent`` inches out. Without ``data``, the panel is analytic. ``room``
        is how wide it is with all that stands beside it; else it reaches to the next.
        """
        axes = self.axes(*box)
        self.heading(axes, letter, title, indent, data=data)
        self._slots[-1].room = room
        return axes

    def heading(
        self, axes: Axes, letter: str, title: str, indent: float = 0.42, *, data: bool = True
    ) -> None:
        """Make a panel of ``axes``: its letter, ``indent`` inches out, and title above it."""
        left, top, *_ = self._place(axes)
        for other in self._slots:
            other.axes = [one for one in other.axes if one is not axes]
        slot = _Slot(letter, title, left - indent, top, data, [axes])
        self._slots.append(slot)
        y = 1 - (top - 0.09) / self.height
        if letter:
            at = (left - indent) / self.width
            slot.texts.append(
                self.figure.text(at, y, letter, weight="bold", size=9.5, va="baseline")
            )
        slot.texts.append(
            self.figure.text(left / self.width, y, title, size=8, va="baseline", color=TITLE)
        )

    def finish(self) -> Figure:
        """Return the figure without empty panels; the caption names them and explains marks.

        Raises if no panel with data is left.
        """
        empty = [slot for slot in self._slots if slot.reason is not None]
        drawn = any(slot.data and slot not in empty for slot in self._slots)
        if not self.figure.axes or (empty and not drawn):
            raise NothingToDrawError("no data for any panel of this figure")
        if empty or (self.merge and self._slots):
            self._close_gaps(empty)
        self._write_caption(
            " ".join(
                part
                for part in (self._words, *explanations(self.figure), *_left_out(empty))
                if part
            )
        )
        return self.figure

    def _close_gaps(self, empty: Sequence[_Slot]) -> None:
        """Remove ``empty`` panels; others move to the left and up, in their order."""
        rows = self._rows()
        tops = [row[0].top for row in rows]
        heights = [low - high for high, low in zip(tops, [*tops[1:], self._above], strict=False)]
        top, free, fullest = tops[0], 0.0, 0.0
        for row, height in zip(rows, heights, strict=True):
            kept = [slot for slot in row if slot not in empty]
            widths = self._widths(row)
            wide = sum(widths[slot] for slot in kept)
            if not kept:
                continue
            if not (self.merge and fullest and wide <= self.width - free):
                top, free, fullest = top + fullest, row[0].left, 0.0
            for slot in kept:
                self._move(slot, free - slot.left, top - slot.top)
                free += widths[slot]
            fullest = max(fullest, height)
            self._inherit_letters(row, empty)
        for slot in empty:
            for artist in (*slot.axes, *slot.texts):
                artist.remove()
        lowest = max(sum(self._place(axes)[1::2]) for axes in self.figure.axes)
        self._above = lowest + BELOW

    def _rows(self) -> list[list[_Slot]]:
        """Return the panels by row, from the top; those of one row begin at one height."""
        rows: list[list[_Slot]] = []
        for slot in sorted(self._slots, key=lambda slot: slot.top):
            if rows and abs(rows[-1][0].top - slot.top) < 0.2:
                rows[-1].append(slot)
            else:
                rows.append([slot])
        return [sorted(row, key=lambda slot: slot.left) for row in rows]

    def _widths(self, row: Sequence[_Slot]) -> dict[_Slot, float]:
        """Return how much room each panel of a row has."""
        ends = [slot.left for slot in row[1:]] + [self.width]
        return {
            slot: end - slot.left if slot.room is None else slot.room
            for slot, end in zip(row, ends, strict=True)
        }

    def _move(self, slot: _Slot, right: float, down: float) -> None:
        for axes in slot.axes:
            left, top, *size = self._place(axes)
            axes.set_position(self._box(left + right, top + down, *size))
        for text in slot.texts:
            x, y = text.get_position()
            text.set_position((x + right / self.width, y - down / self.height))

    def _inherit_letters(self, row: Sequence[_Slot], empty: Sequence[_Slot]) -> None:
        """Give the letter of an empty panel to the next of its row, if that has none of its own."""
        letter, lost = "", False
        for slot in row:
            if slot.letter:
                letter, lost = slot.letter, slot in empty
            elif lost and slot not in empty:
                title = slot.texts[-1]
                x, y = title.get_position()
                at = x - 0.3 / self.width
                slot.texts.append(
                    self.figure.text(at, y, letter, weight="bold", size=9.5, va="baseline")
                )
                lost = False


def explain(artist: Artist, meaning: str, item: str = "") -> None:
    """Have the caption say once what marks such as ``artist`` mean; ``item`` is listed after it."""
    artist.set_label(f"{EXPLAINED}{meaning}\n{item}")


def explanations(figure: Figure) -> list[str]:
    """Return what the marks of ``figure`` mean, as sentences in the order of their alphabet."""
    found: dict[str, dict[str, None]] = {}
    for axes in figure.axes:
        for artist in (*axes.lines, *axes.collections, *axes.patches, axes.patch):
            label = str(artist.get_label())
            if label.startswith(EXPLAINED):
                meaning, _, item = label.removeprefix(EXPLAINED).partition("\n")
                found.setdefault(meaning, {})[item] = None
    return [
        f"{meaning}: {', '.join(items)}." if any(items) else f"{meaning}."
        for meaning, items in sorted(found.items())
    ]


def _left_out(empty: Sequence[_Slot]) -> list[str]:
    """Return which panels are left out, by reason."""
    names: dict[str, list[str]] = {}
    for slot in empty:
        name = f"{slot.letter} ({slot.title})" if slot.letter else slot.title
        names.setdefault(" ".join(str(slot.reason).split()), []).append(name)
    return [f"Left out, {reason}: {', '.join(each)}." for reason, each in names.items()]


def absent(axes: Axes, words: str = "not run") -> None:
    """Leave a panel out, and have the caption say why; ``axes`` are those of its heading."""
    axes.set_label(f"{ABSENT}{words}")


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
