"""The figure of the horizon factorial: scores in every cell, and the effects of the factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from rulescope.assays.figure_data import (
    arms_run,
    caption,
    cell,
    cells,
    curves_by_arm,
    evidence,
    explain_arms,
    labels_run,
)
from rulescope.assays.horizon.horizon_factorial import ARMS, DISCOUNTS, ID, WORLD_NAMES, WORLDS
from rulescope.assays.panels import (
    Row,
    draw_forest,
    draw_scores_over_scale,
    name_marks,
    set_difference_axis,
)
from rulescope.render.arm_styles import arm_style
from rulescope.render.line_labels import name_ends
from rulescope.render.style import Page, styled

if TYPE_CHECKING:
    from rulescope.assays.results import Results

WORDS = (
    "Effects: last level minus first within seeds, averaged over the levels of the other factors; "
    "×: the difference of such differences between the extreme levels."
)
HIGH, STEP, WIDE = 1.25, 1.8, 1.5
"""Inches: height of a panel of scores, from one row of them to the next, and their width."""
ROW = 0.24
"""Inches of a row of effects."""


@styled
def draw_horizon_factorial(results: Mapping[str, Results]) -> Figure:
    """``horizon-factorial``: scores over scale in each world, and effects of the factors."""
    found = results.get(ID)
    worlds = [name for name in WORLDS if name in labels_run(found, "score", "task")] or [WORLDS[0]]
    discounts = [name for name in DISCOUNTS if name in labels_run(found, "score", "discount")]
    discounts = discounts or [DISCOUNTS[0]]
    effects = labels_run(found, "effect", "effect")
    arms = [arm for arm in arms_run(found, "effect") if arm in ARMS]
    top = STEP * len(worlds) + 0.35
    words = [evidence([*cells(found, "score"), *cells(found, "effect")])]
    words += [explain_arms([ID], arms), WORDS if effects else ""]
    high = max(ROW * len(effects), 0.6)
    page = Page(top + high + 0.55, caption([found], *words))
    _draw_scores(page, found, worlds, discounts)
    letter = "ABCDEFGHIJKLMNOP"[len(worlds) * len(discounts)]
    axes = page.panel(letter, "Effects on the score", (1.95, top, 3.6, high), 1.8)
    rows = [
        Row(
            effect,
            [(arm_style(arm), cell(found, "effect", effect=effect, arm=arm)) for arm in arms],
        )
        for effect in effects
    ]
    if draw_forest(axes, rows, apart=0.24):
        set_difference_axis([axes], "score difference", least=0.2)
        name_marks(axes, map(arm_style, arms))
    return page.finish()


def _draw_scores(
    page: Page, found: Results | None, worlds: Sequence[str], discounts: Sequence[str]
) -> None:
    """Draw scores over scale: a row of panels for each world, a column for each discount."""
    for row, world in enumerate(worlds):
        for column, discount in enumerate(discounts):
            letter = "ABCDEFGHIJKLMNOP"[row * len(discounts) + column]
            title = f"{WORLD_NAMES[world]}, {discount}"
            box = (0.62 + 1.85 * column, 0.35 + STEP * row, WIDE, HIGH)
            axes = page.panel(letter, title, box, 0.42 if column == 0 else 0.16)
            curves = curves_by_arm(found, "score", task=world, discount=discount)
            ends = draw_scores_over_scale(axes, curves)
            if column:
                axes.set_ylabel("")
                axes.tick_params(axis="y", labelleft=False)
            if row < len(worlds) - 1:
                axes.set_xlabel("")
            if column == len(discounts) - 1:
                name_ends(axes, ends)
