"""The figure of the directions assay: scores without some of the state, and contrasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.assays.figure_data import caption, cell, cells, evidence, labels_run
from rulescope.assays.inheritance.directions import CONTRAST_NAMES, SCALES
from rulescope.assays.panels import forest, score_axis_across
from rulescope.render.style import DARK, GREY, Look, Page, absent, look, styled

if TYPE_CHECKING:
    from rulescope.assays.results import Results

LOOKS = {
    "live": look("live"),
    "without-principal": Look("without principal", "#D55E00", "s"),
    "without-random": Look("without random", "#6E6E6E", "D", filled=False),
    "only-principal": Look("only principal", "#009E73", "^"),
}
WORDS = (
    "Principal: the two directions along which the states of other lifetimes, of four reward "
    "scales, vary most; random: two drawn from all directions in which they vary. Taken out from a "
    "fifth of the lifetime on. Contrasts are within seeds."
)
HIGH, STEP = 1.0, 1.72


@styled
def directions(results: Mapping[str, Results]) -> Figure:
    """``directions``: scores and contrasts at each recipient scale."""
    found = results.get("directions")
    scales = sorted(labels_run(found, "score", "scale")) or SCALES
    used = [*cells(found, "score"), *cells(found, "contrast")]
    page = Page(STEP * len(scales) + 0.1, caption([found], evidence(used), WORDS if found else ""))
    gap = Look("difference", DARK, "o")
    for turn, scale in enumerate(scales):
        top = 0.35 + STEP * turn
        left = page.axes(1.3, top, 1.75, HIGH)
        right = page.axes(5.25, top, 1.75, HIGH)
        page.heading(left, "ABCDEFGH"[2 * turn], f"Reward scale {scale:g}: score", indent=1.15)
        page.heading(right, "ABCDEFGH"[2 * turn + 1], "Difference of scores", indent=1.95)
        scores = [
            (how.name, how, cell(found, "score", scale=scale, arm=arm))
            for arm, how in LOOKS.items()
        ]
        gaps = [
            (name, gap, cell(found, "contrast", scale=scale, contrast=contrast))
            for contrast, name in CONTRAST_NAMES.items()
        ]
        for axes, rows in ((left, scores), (right, gaps)):
            known = [(name, how, one) for name, how, one in rows if one is not None]
            if not known:
                absent(axes)
                continue
            forest(axes, known)
            if axes is left:
                score_axis_across(axes, [one for _, _, one in known])
                axes.set_xlabel("score (0 random, 1 optimal)", labelpad=2)
            else:
                _difference_axis(axes)
    return page.figure


def _difference_axis(axes: Axes) -> None:
    widest = 1.05 * float(np.abs(axes.get_xlim()).max())
    axes.set_xlim(-max(widest, 0.1), max(widest, 0.1))  # near nothing must not look like much
    axes.axvline(0.0, color=GREY, lw=0.8, zorder=1)
    axes.grid(axis="x")
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel("difference", labelpad=2)
