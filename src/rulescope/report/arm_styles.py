"""Colours and dashes of arms on pages: those of the figures, on light and on dark paper."""

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

MIN_LIGHTNESS = 0.36
"""Lightness of a line on dark paper, at least (black becomes a light grey)."""
SPARE = (
    *("#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"),
    *("#882255", "#7A5C2E", "#D55E00", "#999933", "#332288"),
)
"""Colours of arms that have no style of their own."""
BY_ASSAY = {"OPEN": OPEN, "directions": DIRECTIONS, "E-IF": INTERFACES, "P1": INTERFACES}
"""Styles of arms that only the figures of one assay have."""
PINNED = "-pin"


def distinct_styles(arms: Collection[str], assay: str = "") -> dict[str, Look]:
    """Return the style of each of ``arms``, all different, for arms that share a chart.

    Styles are those of the figures of ``assay``. An arm without a style gets a spare colour; a
    pinned arm has the colour of its unpinned twin. Arms whose printed names are the same are
    printed as in the grid.
    """
    known = {arm: style for arm in arms if (style := _known_style(arm, BY_ASSAY.get(assay, {})))}
    taken = {style.colour for style in known.values()}
    spare = cycle([colour for colour in SPARE if colour not in taken])
    for arm in sorted(set(arms) - known.keys()):  # a pinned arm after its twin
        twin = known.get(arm.removesuffix(PINNED))
        known[arm] = _pinned(twin, arm) if twin else Look(arm, next(spare), "o")
    names = Counter(style.name for style in known.values())
    return {
        arm: known[arm]._replace(name=arm) if names[known[arm].name] > 1 else known[arm]
        for arm in arms
    }


def _known_style(arm: str, own: Mapping[str, Look]) -> Look | None:
    """Return the style of an arm, or that of its unpinned twin with dashes, if either has one."""
    if arm in own or arm in ARMS or arm in LEARNERS:
        return own[arm] if arm in own else look(arm)
    twin = own.get(arm.removesuffix(PINNED))
    return _pinned(twin, arm) if twin else None


def _pinned(twin: Look, arm: str) -> Look:
    return twin._replace(name=arm, line=DASHED)


def dark_colour(style: Look) -> str:
    """Return the colour of an arm on dark paper: as bright as possible in the same hue."""
    hue, level, saturation = colorsys.rgb_to_hls(*to_rgb(style.colour))
    if saturation < 0.1:  # greys keep their order: the darkest one has most contrast
        return str(to_hex((0.93 - 0.45 * level,) * 3))
    lightness = max(level, MIN_LIGHTNESS) + 0.24
    red, green, blue = colorsys.hls_to_rgb(hue, lightness, min(saturation, 0.8))
    return str(to_hex((min(red, 1.0), min(green, 1.0), min(blue, 1.0))))


def css_colours(style: Look) -> str:
    """Return both colours as a style for CSS to choose from (see ``.arm`` in report.css)."""
    return f"--light:{style.ink};--dark:{dark_colour(style)}"


def svg_dashes(style: Look) -> str | None:
    """Return the dash pattern of an arm's line for SVG; None for a solid line."""
    if isinstance(style.line, str):
        return None
    return " ".join(f"{2 * part:g}" for part in style.line[1])


def style_data(arm: str, style: Look) -> dict[str, str | None]:
    """Return the style of an arm for templates and scripts."""
    return {
        "arm": arm,
        "name": style.name,
        "colours": css_colours(style),
        "dashes": svg_dashes(style),
    }
