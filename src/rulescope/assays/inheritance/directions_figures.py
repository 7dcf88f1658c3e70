"""The figure of the directions assay: scores without some of the state, and contrasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.assays.figure_data import caption, estimate, estimates, evidence, parts
from rulescope.assays.panels import dots
from rulescope.render.style import DARK, GREY, PALE, Look, Page, absent, look, styled

if TYPE_CHECKING:
    from rulescope.assays.results import Results
    from rulescope.stats import Estimate

LOOKS = {
    "live": look("live"),
    "without-principal": Look("without principal", "#D55E00", "s"),
    "without-random": Look("without random", "#6E6E6E", "D", filled=False),
    "only-principal": Look("only principal", "#009E73", "^"),
}
CONTRASTS = {
    "necessary": "without principal − live",
    "sufficient": "only principal − live",
    "control": "without random − live",
    "specific": "without principal − without random",
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
    scales = sorted(parts(found, "score/", 0), key=float) or ["0.001", "1000"]
    used = [*estimates(found, "score/"), *estimates(found, "contrast/")]
    page = Page(STEP * len(scales) + 0.1, caption([found], evidence(used), WORDS if found else ""))
    for turn, scale in enumerate(scales):
        top = 0.35 + STEP * turn
        left = page.axes(1.3, top, 1.75, HIGH)
        right = page.axes(5.25, top, 1.75, HIGH)
        page.heading(left, "ABCDEFGH"[2 * turn], f"Reward scale {scale}: score", indent=1.15)
        page.heading(right, "ABCDEFGH"[2 * turn + 1], "Difference of scores", indent=1.95)
        scores = {arm: estimate(found, f"score/{scale}/{arm}") for arm in LOOKS}
        rows = {LOOKS[arm].name: (LOOKS[arm], one) for arm, one in scores.items()}
        if _rows(left, rows):
            _score_axis(left)
        how = Look("difference", DARK, "o")
        gaps = {name: estimate(found, f"contrast/{scale}/{key}") for key, name in CONTRASTS.items()}
        if _rows(right, {name: (how, one) for name, one in gaps.items()}):
            _difference_axis(right)
    return page.figure


def _rows(axes: Axes, rows: Mapping[str, tuple[Look, Estimate | None]]) -> bool:
    """Draw a row for each estimate that there is; return whether there is any."""
    known = {name: (how, one) for name, (how, one) in rows.items() if one is not None}
    if not known:
        absent(axes)
        return False
    for turn, (how, one) in enumerate(known.values()):
        dots(axes, [-float(turn)], [one], how, across=True)
    axes.set_yticks([-turn for turn in range(len(known))], list(known))
    for tick, (how, _) in zip(axes.get_yticklabels(), known.values(), strict=True):
        tick.set_color(how.ink)
    axes.tick_params(axis="y", length=0, labelsize=6.8)
    axes.set_ylim(-len(known) + 0.4, 0.6)
    return True


def _score_axis(axes: Axes) -> None:
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, -0.05), max(high, 1.05))
    axes.set_xticks([0.0, 0.5, 1.0], ["0", "0.5", "1"])
    for reference in (0.0, 0.5, 1.0):
        axes.axvline(reference, color=PALE, lw=0.8, zorder=0)
    axes.set_xlabel("score (0 random, 1 optimal)", labelpad=2)


def _difference_axis(axes: Axes) -> None:
    widest = 1.05 * float(np.abs(axes.get_xlim()).max())
    axes.set_xlim(-max(widest, 0.1), max(widest, 0.1))  # near nothing must not look like much
    axes.axvline(0.0, color=GREY, lw=0.8, zorder=1)
    axes.grid(axis="x")
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel("difference", labelpad=2)
