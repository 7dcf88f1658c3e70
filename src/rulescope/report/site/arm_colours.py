"""Colours and dashes of arms on a screen: those of the figures, on light and on dark paper."""

from __future__ import annotations

import colorsys
from collections import Counter
from collections.abc import Collection, Mapping
from itertools import cycle

from matplotlib.colors import to_hex, to_rgb

from rulescope.assays.inheritance.directions_figures import LOOKS as DIRECTIONS
from rulescope.assays.interface.interface_figures import LOOKS as INTERFACES
from rulescope.assays.open.open_figures import LEVELS as OPEN
from rulescope.render.style import ARMS, DASHED, LEARNERS, Look, look
from rulescope.report.site.html import Markup, el

DIMMEST = 0.36
"""Lightness of a line on dark paper, at least (black becomes a light grey)."""


SPARE = (
    *("#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"),
    *("#882255", "#7A5C2E", "#D55E00", "#999933", "#332288"),
)
"""For arms that have no look of their own."""
OWN = {"OPEN": OPEN, "directions": DIRECTIONS, "E-IF": INTERFACES, "P1": INTERFACES}
"""Looks of arms that only the figures of one assay have."""
PINNED = "-pin"


def looks(arms: Collection[str], assay: str = "") -> dict[str, Look]:
    """Return how ``arms`` that are seen together are drawn: no two of them alike.

    As in the figures of the ``assay``, if it has looks of its own. An arm that has none anywhere
    gets a spare colour; a pinned arm has that of its twin. Where two have the same name, they are
    called by what they are called in the grid.
    """
    known = {arm: how for arm in arms if (how := _known(arm, OWN.get(assay, {})))}
    taken = {how.colour for how in known.values()}
    spare = cycle([colour for colour in SPARE if colour not in taken])
    for arm in sorted(set(arms) - known.keys()):  # a twin after who it is the twin of
        twin = known.get(arm.removesuffix(PINNED))
        known[arm] = _pinned(twin, arm) if twin else Look(arm, next(spare), "o")
    names = Counter(how.name for how in known.values())
    found = {arm: known[arm] for arm in arms}
    return {
        arm: how._replace(name=arm) if names[how.name] > 1 else how for arm, how in found.items()
    }


def _known(arm: str, own: Mapping[str, Look]) -> Look | None:
    """Return the look that an arm, or who it is the pinned twin of, has of its own."""
    if arm in own or arm in ARMS or arm in LEARNERS:
        return own[arm] if arm in own else look(arm)
    twin = own.get(arm.removesuffix(PINNED))
    return _pinned(twin, arm) if twin else None


def _pinned(twin: Look, arm: str) -> Look:
    return twin._replace(name=arm, line=DASHED)


def light(how: Look) -> str:
    """Return the colour of an arm on light paper: dark enough for text, too."""
    return how.ink


def dark(how: Look) -> str:
    """Return the colour of an arm on dark paper: as bright as can be without losing its hue."""
    hue, level, saturation = colorsys.rgb_to_hls(*to_rgb(how.colour))
    if saturation < 0.1:  # greys keep their order: the darkest is the one that stands out
        return str(to_hex((0.93 - 0.45 * level,) * 3))
    red, green, blue = colorsys.hls_to_rgb(hue, max(level, DIMMEST) + 0.24, min(saturation, 0.8))
    return str(to_hex((min(red, 1.0), min(green, 1.0), min(blue, 1.0))))


def colours(how: Look) -> str:
    """Return both colours as a style for CSS to choose from (see ``.arm`` in report.css)."""
    return f"--light:{light(how)};--dark:{dark(how)}"


def dashes(how: Look) -> str | None:
    """Return the pattern of an arm's line, for SVG."""
    return None if isinstance(how.line, str) else " ".join(f"{2 * part:g}" for part in how.line[1])


def swatch(how: Look) -> Markup:
    """Return a short piece of an arm's line, for legends."""
    stroke = el("line", x1=1, y1=6, x2=25, y2=6, stroke_dasharray=dashes(how))
    return el(
        "svg",
        stroke,
        class_="swatch arm",
        style=colours(how),
        viewBox="0 0 26 12",
        aria_hidden="true",
    )


def as_data(arm: str, how: Look) -> dict[str, str | None]:
    """Return how an arm is drawn, for scripts."""
    return {"arm": arm, "name": how.name, "colours": colours(how), "dashes": dashes(how)}
