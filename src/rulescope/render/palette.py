"""The colours of all figures and pages, by name and role; no other module has a colour of its own.

Colours of data are those of Okabe and Ito, which colour-blind readers can distinguish, and some of
Paul Tol's.
"""

from __future__ import annotations

BLACK, WHITE = "#000000", "#FFFFFF"

BLUE = "#0072B2"
VERMILION = "#D55E00"
ORANGE = "#E69F00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
MUSTARD = "#B8A200"
BROWN = "#7A5C2E"
OLIVE = "#999933"
WINE = "#882255"

STONE, ASH, SILVER = "#6E6E6E", "#9A9A9A", "#B4B4B4"
"""Greys of controls and references, from dark to light."""

SPARE = ("#332288", "#44AA99", "#CC6677", "#117733", "#AA4499")
"""Colours of arms that have no style of their own; no other arm has one of these."""

TITLE, DARK, NOTE = "#111111", "#333333", "#555555"
"""Ink of headings, of labels and axes, and of captions and remarks."""
GREY, PALE = "#8A8A8A", "#E4E4E4"
"""Lines that matter (axes, thresholds), and lines and fields in the background."""
PALE_BLUE = "#C9DCEB"
"""Boxes and bars of schematics."""
UNPLANNED = "#D9D9D9"
"""A cell of a heat map that the design leaves out."""

SCORES, RETURNS = "Blues", "Oranges"
"""Colour maps of matplotlib: of scores from 0 to 1, and of returns without such a scale."""
COLD, WARM = "#2166AC", "#C2410C"
"""Reward scales below and above one."""

READABLE = 0.42
"""Luminance of text on white, at most."""


def rgb(colour: str) -> tuple[float, float, float]:
    """Return red, green and blue of a colour, each from 0 to 1.

    >>> rgb("#00FF00")
    (0.0, 1.0, 0.0)
    """
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def luminance(parts: tuple[float, float, float]) -> float:
    """Return how bright red, green and blue together are, from 0 to 1."""
    red, green, blue = parts
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def hex_colour(parts: tuple[float, float, float]) -> str:
    """Return the colour of red, green and blue, each from 0 to 1.

    >>> hex_colour((0.0, 1.0, 0.0))
    '#00ff00'
    """
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def readable(colour: str) -> str:
    """Return ``colour`` for text on white: as it is, or darker.

    >>> readable(BLACK), readable(SKY)
    ('#000000', '#387698')
    """
    parts = rgb(colour)
    bright = luminance(parts)
    share = min(1.0, READABLE / bright) if bright else 1.0
    red, green, blue = parts
    return hex_colour((red * share, green * share, blue * share))
