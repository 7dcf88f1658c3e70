"""How figures look: one colour, marker and line for each arm everywhere; type, pages, files."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from rulescope.report.files import write_whole

WIDTH = 7.2
"""Inches: the width of a printed page's text."""
DARK, GREY, PALE = "#333333", "#8A8A8A", "#E4E4E4"
SMALL, TINY = 7.0, 6.6
"""Points: labels at lines, and the line below the figure."""
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so it is the same everywhere
    "mathtext.fontset": "dejavusans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "axes.labelcolor": DARK,
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

Line = str | tuple[float, tuple[float, ...]]


class Look(NamedTuple):
    """How an arm is drawn, wherever it is drawn."""

    name: str
    """As printed beside its line."""
    colour: str
    marker: str
    line: Line = "-"
    filled: bool = True
    """Natural transfers are hollow, clamped ones filled."""

    @property
    def face(self) -> str:
        """The colour inside of its marker."""
        return self.colour if self.filled else "#FFFFFF"

    @property
    def ink(self) -> str:
        """Its colour for text: dark enough to be read on white."""
        red, green, blue = to_rgb(self.colour)
        bright = 0.2126 * red + 0.7152 * green + 0.0722 * blue
        part = min(1.0, 0.42 / bright) if bright else 1.0
        return str(to_hex((red * part, green * part, blue * part)))


DASHED: Line = (0.0, (4.0, 1.6))
DOTTED: Line = (0.0, (1.2, 1.4))
MIXED: Line = (0.0, (5.0, 1.4, 1.2, 1.4))
ARMS: dict[str, Look] = {
    "live": Look("live", "#0072B2", "o"),
    "pin": Look("pin", "#D55E00", "s", DASHED),
    "hold": Look("hold", "#E69F00", "^", MIXED),
    "both": Look("both", "#CC79A7", "D", DOTTED),
    "freeze": Look("freeze", "#6E6E6E", "P"),
    "match-natural": Look("match", "#009E73", "v", DASHED, filled=False),
    "match-clamp": Look("match", "#009E73", "v"),
    "cross-natural": Look("cross", "#000000", "X", DASHED, filled=False),
    "cross-clamp": Look("cross", "#000000", "X"),
    "random-natural": Look("random", "#56B4E9", "h", DASHED, filled=False),
    "random-clamp": Look("random", "#56B4E9", "h"),
    "permute-natural": Look("permute", "#B8A200", "p", DOTTED, filled=False),
    "permute-clamp": Look("permute", "#B8A200", "p", MIXED),
    "placebo": Look("placebo", "#9A9A9A", "x", DOTTED),
    "null": Look("null", "#B4B4B4", "+", MIXED),
}
"""Okabe-Ito colours, which colour-blind readers can tell apart (greys for controls)."""
LEARNERS: dict[str, Look] = {
    "disco": Look("Disco", "#0072B2", "o"),
    "disco-pin": Look("Disco, pinned", "#D55E00", "s", DASHED),
    "disco-null": Look("null rule", "#B4B4B4", "+", MIXED),
    "disco-hold": Look("Disco, held", "#E69F00", "^", MIXED),
    "disco-freeze": Look("Disco, frozen", "#6E6E6E", "P", DASHED),
    "disco-no-aux": Look("Disco, no aux", "#56B4E9", "h", MIXED),
    "disco-entropy": Look("Disco, entropy", "#56B4E9", "h", DASHED),
    "disco-lr3e4": Look("Disco, lr 3e-4", "#56B4E9", "h", DOTTED),
    "disco-legacy": Look("Disco, legacy", "#0072B2", "o", DASHED, filled=False),
    "a2c": Look("A2C", "#009E73", "v"),
    "a2c-popart": Look("A2C-PopArt", "#B8A200", "p", DASHED),
    "ppo": Look("PPO", "#CC79A7", "D"),
    "dqn": Look("DQN", "#000000", "X"),
    "dqn-28672": Look("DQN 28,672", "#7A5C2E", "<", DASHED),
    "dqn-cleared": Look("DQN cleared", "#999933", ">", DOTTED, filled=False),
    "open": Look("OPEN", "#882255", "s"),
    "open-adam": Look("PPO, Adam", "#CC79A7", "D", DASHED),
    "disco-minatar": Look("Disco (M1)", "#0072B2", "o", DOTTED, filled=False),
    "random": Look("random policy", "#9A9A9A", "x", DOTTED),
}
"""Arms of assays that compare learners; no figure has these and the above."""
_OTHERS = ("<", ">", "*", "d")


def look(arm: str) -> Look:
    """Return how ``arm`` is drawn; an arm that is not known yet is dark grey."""
    known = ARMS | LEARNERS
    if arm in known:
        return known[arm]
    return Look(arm, "#555555", _OTHERS[sum(arm.encode()) % len(_OTHERS)], MIXED)


def in_order(arms: set[str]) -> list[str]:
    """Return ``arms`` in the order in which they are always drawn."""
    known = [*ARMS, *LEARNERS]
    return sorted(arms, key=lambda arm: (known.index(arm) if arm in known else len(known), arm))


P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in our style, whatever a reader's own matplotlib settings are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def styled(function: Callable[P, R]) -> Callable[P, R]:
    """Make ``function`` draw in our style."""

    @wraps(function)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        with drawing():
            return function(*args, **kwargs)

    return drawn


class Page:
    """A figure whose panels are placed in inches from its upper left corner.

    Fixed places, rather than a layout engine, so that labels beside lines know their room.
    """

    def __init__(self, height: float, caption: str, width: float = WIDTH) -> None:
        lines = textwrap.wrap(caption, int((width - 0.2) * 72 / (TINY * 0.53)))
        below = 0.08 + len(lines) * TINY * 1.35 / 72
        self.width, self.height = width, height + below
        self.figure = Figure(figsize=(self.width, self.height))
        self.figure.text(
            0.1 / self.width,
            0.05 / self.height,
            "\n".join(lines),
            size=TINY,
            color="#555555",
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

    def heading(self, axes: Axes, letter: str, title: str, indent: float = 0.42) -> None:
        """Put the panel's letter and title above ``axes``, the letter ``indent`` inches out."""
        box = axes.get_position()
        y = box.y1 + 0.09 / self.height
        if letter:
            x = box.x0 - indent / self.width
            self.figure.text(x, y, letter, weight="bold", size=9.5, va="baseline")
        self.figure.text(box.x0, y, title, size=8, va="baseline", color="#111111")


def absent(axes: Axes, words: str = "not run") -> None:
    """Say quietly that there is nothing to draw in ``axes``."""
    axes.set(xticks=[], yticks=[], xlabel="", ylabel="")
    for spine in axes.spines.values():
        spine.set_color(PALE)
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color=GREY)


def save(figure: Figure, path: Path, title: str | None = None) -> Path:
    """Write ``figure`` whole, with nothing in it that changes from one time to the next.

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
