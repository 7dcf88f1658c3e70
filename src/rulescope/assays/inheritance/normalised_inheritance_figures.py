"""The figure of normalised inheritance: effects of the donor's scale, and what scaling removes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from rulescope.assays.estimates import Label
from rulescope.assays.figure_data import caption, cell, cells, evidence, labels_run
from rulescope.assays.inheritance.normalised_inheritance import (
    ID,
    LEARNERS,
    READOUTS,
    SCALE,
    UNSCALED,
)
from rulescope.assays.panels import Row, draw_forest, name_marks, set_difference_axis
from rulescope.render import palette
from rulescope.render.arm_styles import ArmStyle, arm_style
from rulescope.render.style import Page, styled

if TYPE_CHECKING:
    from rulescope.assays.results import Results

STYLES = {
    UNSCALED: ArmStyle("unscaled", palette.BLACK, "X"),
    "fixed-floor": ArmStyle("fixed floor", palette.ORANGE, "^"),
    "reward-floor": ArmStyle("reward floor", palette.BLUE, "o"),
}
"""Of the conditions, which stand beside each other in each row."""
ADDED = {"history": "", "statistics": ", stat."}
WORDS = (
    "Effect: score after a donor of the recipient's scale minus that after one of the reciprocal "
    "scale, within seeds. Removed: the effect without return-based scaling minus that with it. "
    "stat.: the donor's statistics of returns are inherited as well."
)
GAP, ROW = 0.75, 0.27
"""Inches: between panels, and of a row."""


@styled
def draw_normalised_inheritance(results: Mapping[str, Results]) -> Figure:
    """``normalised-inheritance``: effects of the donor's scale, with and without scaling."""
    found = results.get(ID)
    groups = [
        (scale, learner, rows)
        for scale in sorted(labels_run(found, "effect", "scale"))
        for learner in LEARNERS
        if (rows := _rows(found, scale, learner))
    ] or [(SCALE, "rule", [])]
    heights = [max(ROW * len(rows), 0.6) for *_, rows in groups]
    used = [*cells(found, "effect"), *cells(found, "interaction")]
    words = (evidence(used), WORDS if found else "")
    page = Page(sum(heights) + GAP * len(groups) + 0.1, caption([found], *words))
    top, panels = 0.35, []
    for turn, ((scale, learner, rows), high) in enumerate(zip(groups, heights, strict=True)):
        letters, name = "ABCDEFGHIJKLMNOP"[2 * turn :], arm_style(learner).name
        title = f"{name} at scale {scale:g}: effect of the donor"
        effects = page.panel(letters[0], title, (1.45, top, 2.0, high), 1.3)
        removed = page.panel(letters[1], "removed by scaling", (3.95, top, 2.0, high), 0.25)
        top += high + GAP
        for axes, quantity in ((effects, "effect"), (removed, "interaction")):
            if draw_forest(axes, [_forest_row(found, quantity, at, text) for at, text in rows]):
                panels.append(axes)
        removed.set_yticks([])
        name_marks(removed, STYLES.values() if rows else ())
    if panels:
        set_difference_axis(panels, "score difference", least=0.2)
    return page.finish()


def _rows(found: Results | None, scale: float, learner: str) -> list[tuple[dict[str, Label], str]]:
    """Return the labels of each row of a panel, and how the row is named."""
    known = labels_run(found, "effect", "inherited", scale=scale, learner=learner)
    return [
        (
            {"scale": scale, "learner": learner, "inherited": inherited, "readout": readout},
            f"{text}{ADDED[inherited]}",
        )
        for inherited in known
        for readout, text in READOUTS.items()
        if cells(
            found, "effect", scale=scale, learner=learner, inherited=inherited, readout=readout
        )
    ]


def _forest_row(found: Results | None, quantity: str, at: Mapping[str, Label], text: str) -> Row:
    marks = [(how, cell(found, quantity, condition=name, **at)) for name, how in STYLES.items()]
    return Row(text, marks)
