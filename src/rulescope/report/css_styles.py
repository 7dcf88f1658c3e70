"""Colours and dashes of arms on pages: those of the figures, on light and on dark paper."""

from __future__ import annotations

import colorsys
from collections import Counter
from collections.abc import Collection

from rulescope.render.arm_styles import ArmStyle, arm_style, naming
from rulescope.render.palette import hex_colour, rgb

MIN_LIGHTNESS = 0.36
"""Lightness of a line on dark paper, at least (black becomes a light grey)."""


def distinct_styles(arms: Collection[str], subject: str) -> dict[str, ArmStyle]:
    """Return the style of each of ``arms`` under the rule called ``subject``, all different.

    Arms whose printed names are the same are printed as in the grid.
    """
    with naming(subject, arms):
        styles = {arm: arm_style(arm) for arm in arms}
    names = Counter(style.name for style in styles.values())
    return {
        arm: style._replace(name=arm) if names[style.name] > 1 else style
        for arm, style in styles.items()
    }


def dark_colour(style: ArmStyle) -> str:
    """Return the colour of an arm on dark paper: as bright as possible in the same hue."""
    hue, level, saturation = colorsys.rgb_to_hls(*rgb(style.colour))
    if saturation < 0.1:  # greys keep their order: the darkest one has most contrast
        grey = 0.93 - 0.45 * level
        return hex_colour((grey, grey, grey))
    lightness = max(level, MIN_LIGHTNESS) + 0.24
    red, green, blue = colorsys.hls_to_rgb(hue, lightness, min(saturation, 0.8))
    return hex_colour((min(red, 1.0), min(green, 1.0), min(blue, 1.0)))


def css_colours(style: ArmStyle) -> str:
    """Return both colours as a style for CSS to choose from (see ``.arm`` in report.css)."""
    return f"--light:{style.ink};--dark:{dark_colour(style)}"


def svg_dashes(style: ArmStyle) -> str | None:
    """Return the dash pattern of an arm's line for SVG; None for a solid line."""
    if isinstance(style.line, str):
        return None
    return " ".join(f"{2 * part:g}" for part in style.line[1])


def style_data(arm: str, style: ArmStyle) -> dict[str, str | None]:
    """Return the style of an arm for templates and scripts."""
    return {
        "arm": arm,
        "name": style.name,
        "colours": css_colours(style),
        "dashes": svg_dashes(style),
    }
