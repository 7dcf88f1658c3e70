"""The figure of the directions assay: scores without some of the state, and contrasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from rulescope.assays.figure_data import arms_run, caption, cell, cells, evidence, labels_run
from rulescope.assays.inheritance.directions import CONTRAST_NAMES, SCALES
from rulescope.assays.panels import (
    arm_row,
    draw_forest,
    set_difference_axis,
    set_score_axis_across,
)
from rulescope.render.arm_styles import ArmStyle, arm_style
from rulescope.render.palette import DARK
from rulescope.render.style import Page, styled

if TYPE_CHECKING:
    from rulescope.assays.results import Results

DIFFERENCE = ArmStyle("difference", DARK, "o")
WORDS = (
    "Principal: the two directions along which the states of other lifetimes, of four reward "
    "scales, vary most; random: two drawn from all directions in which they vary. Taken out from a "
    "fifth of the lifetime on. Contrasts are within seeds."
)
HIGH, STEP = 1.4, 2.12


@styled
def draw_directions(results: Mapping[str, Results]) -> Figure:
    """``directions``: scores and contrasts at each recipient scale."""
    found = results.get("directions")
    scales = sorted(labels_run(found, "contrast", "scale")) or SCALES
    used = [*cells(found, "score"), *cells(found, "contrast")]
    page = Page(STEP * len(scales) + 0.1, caption([found], evidence(used), WORDS if found else ""))
    for turn, scale in enumerate(scales):
        top, letters = 0.35 + STEP * turn, "ABCDEFGH"[2 * turn :]
        title = f"Reward scale {scale:g}: score"
        left = page.panel(letters[0], title, (1.3, top, 1.75, HIGH), 1.15)
        right = page.panel(
            letters[1], f"Reward scale {scale:g}: differences", (5.25, top, 1.75, HIGH), 1.95
        )
        arms = arms_run(found, "score", scale=scale)
        rows = [arm_row(arm_style(arm), cell(found, "score", scale=scale, arm=arm)) for arm in arms]
        if draw_forest(left, rows):
            set_score_axis_across(left, rows)
        gaps = [
            arm_row(DIFFERENCE, one, name)
            for contrast, name in CONTRAST_NAMES.items()
            if (one := cell(found, "contrast", scale=scale, contrast=contrast)) is not None
        ]
        if draw_forest(right, gaps):
            set_difference_axis([right], "difference", least=0.2, ticks=5)
    return page.finish()
