"""Figures of all changes: areas by condition, levels around the switch, learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.assays.change.change_figures import (
    AREA,
    BOARDS,
    CONDITIONS,
    PAIR,
    SWITCHED,
    area_and_final,
    draw_logs,
    replay_style,
)
from rulescope.assays.estimates import Label
from rulescope.assays.figure_data import (
    Curve,
    arms_run,
    caption,
    cell,
    cells,
    evidence,
    explain_arms,
    labels_run,
    planned_cell,
    point,
    signed,
    trajectories,
)
from rulescope.assays.panels import (
    ColourScale,
    draw_colour_bar,
    draw_estimate,
    draw_forest,
    draw_heatmap,
    draw_levels,
    finish_row,
    line_end,
    name_columns,
    set_difference_axis,
    set_score_axis,
    write_not_run,
)
from rulescope.render import palette
from rulescope.render.arm_styles import DOTTED, arm_style, in_order, subject
from rulescope.render.line_labels import End
from rulescope.render.palette import DARK, GREY
from rulescope.render.style import SMALL, Page, absent, styled

if TYPE_CHECKING:
    from rulescope.assays.results import Results

CELL = (0.56, 0.3)
"""Inches: a cell of a heat map."""
CONDITIONS_OF_E3 = (*SWITCHED, "none")
MAPPING = ("observation-flip", "reward-sign", "none")
BREAKOUT = ("action-flip", "none")
ASSAYS = ("E3", "E-A4x", "E-A4m")
PATH = {"pre": "before", "trough": "lowest", "endpoint": "end"}
"""Readouts of a path around the switch, and their words."""
SIGN_TURNED = 1.5 / 1.75
"""Score of random play in 8×8 Catch once the sign of the reward is turned."""


@styled
def draw_recovery_overview(results: Mapping[str, Results]) -> Figure:
    """``v5:fig:recovery-overview``: areas of all cells, and what auxiliary losses do."""
    e3, mapping, breakout = shown = [results.get(name) for name in ASSAYS]
    areas = [cells(found, "auc") for found in shown]
    used, effects = [e for each in areas for e in each], cells(e3, "no-aux")
    words = [
        "A–C: AUC, the mean from the switch to the end; grey: not run." if used else "",
        PAIR.replace("Hollow", "D: hollow") if effects else "",
        evidence([*used, *effects]),
        explain_arms(ASSAYS, [arm for found in shown for arm in arms_run(found, "auc")]),
    ]
    page = Page(4.9, caption(shown, *words, seeds=False))
    top = max([1.0, *(e.value for e in areas[2])])
    scores, returns = ColourScale(palette.SCORES), ColourScale(palette.RETURNS, high=top)
    boards = [{"condition": name, "task": task} for task in BOARDS for name in CONDITIONS_OF_E3]
    first = _draw_areas(page, (1.1, 0.35), e3, boards, 6, scores)
    page.heading(first, "A", "Catch, score: 8×8 (left) and 16×16 (right)", indent=1.0)
    turned = [{"condition": name} for name in MAPPING]
    second = _draw_areas(page, (5.38, 0.35), mapping, turned, 3, scores)
    page.heading(second, "B", "Catch 8×8, score", indent=0.82)
    flipped = [{"condition": name} for name in BREAKOUT]
    third = _draw_areas(page, (1.1, 2.98), breakout, flipped, 4, returns)
    page.heading(third, "C", "Breakout, return", indent=1.0)
    if areas[0] or areas[1]:
        draw_colour_bar(page.axes(5.38, 1.75, 1.68, 0.09), scores, "AUC of the score (A, B)")
    if areas[2]:
        draw_colour_bar(page.axes(1.1, 4.5, 1.12, 0.09), returns, "AUC of the return (C)")
    title = f"Without auxiliary losses, minus {subject()}"
    _draw_auxiliary(page.panel("D", title, (4.2, 2.98, 2.85, 1.5), 1.1), e3)
    return page.figure


def _draw_areas(
    page: Page,
    corner: tuple[float, float],
    results: Results | None,
    columns: Sequence[Mapping[str, Label]],
    rows: int,
    scale: ColourScale,
) -> Axes:
    """Draw areas as a heat map: a column for each of the labels ``columns``, an arm a row.

    ``rows`` is how many arms the published grid has, for the size of an empty panel. Columns
    beyond the third stand a little apart: they are another board.
    """
    places = [turn + 0.18 * (turn // 3) for turn in range(len(columns))]
    arms = in_order(
        arm
        for labels in columns
        for arm in labels_run(results, "auc", "arm", planned=True, **labels)
    )
    width, height = (places[-1] + 1) * CELL[0], (len(arms) or rows) * CELL[1]
    axes = page.axes(*corner, width, height)
    names = [CONDITIONS[str(labels["condition"])].replace(" ", "\n") for labels in columns]
    areas = [
        (replay_style(arm), [planned_cell(results, "auc", arm=arm, **labels) for labels in columns])
        for arm in arms
    ]
    draw_heatmap(axes, areas, list(zip(places, names, strict=True)), scale)
    return axes


def _draw_auxiliary(axes: Axes, results: Results | None) -> None:
    """Draw what changes without auxiliary losses: a row for each board and change."""
    rows = [
        area_and_final(
            f"{board}, {CONDITIONS[condition]}",
            arm_style("rule-no-aux"),
            cell(results, "no-aux", readout="auc", condition=condition, task=task),
            cell(results, "no-aux", readout="final", condition=condition, task=task),
        )
        for task, board in BOARDS.items()
        for condition in CONDITIONS_OF_E3
        if cells(results, "no-aux", condition=condition, task=task)
    ]
    if draw_forest(axes, rows, labelsize=None):
        set_difference_axis([axes], "difference in score", room=0.06, ticks=5)


@styled
def draw_mapping_recovery(results: Mapping[str, Results]) -> Figure:
    """``v5:fig:recovery-mapping``: levels before, at the lowest and at the end; areas."""
    found = results.get("E-A4x")
    used = [e for quantity in (*PATH, "auc") for e in cells(found, quantity)]
    arms = arms_run(found, "auc")
    text = (
        "Before: last five log rows up to the switch; lowest: lowest row after it; end: last row."
    )
    turned = (
        "Dotted: random play once the sign of the reward is turned (scores keep the references"
        " from before)."
    )
    if not cells(found, "auc", condition="reward-sign"):
        turned = ""
    words = (text, AREA, evidence(used), turned, explain_arms(["E-A4x"], arms)) if used else ()
    page = Page(4.25, caption([found], *words))
    width, gap, left = 1.6, 0.22, 0.62
    panels = [
        page.panel("" if turn else "A", CONDITIONS[condition], (at, 0.35, width, 1.75))
        for turn, condition in enumerate(MAPPING)
        for at in [left + turn * (width + gap)]
    ]
    lines: list[Curve] = []
    drawn: list[tuple[Axes, list[End]]] = []
    for axes, condition in zip(panels, MAPPING, strict=True):
        mine, ends = _draw_path(axes, found, condition, arms)
        lines += mine
        drawn += [(axes, ends)] if mine else []
    finish_row(panels, drawn, lambda axes: set_score_axis(axes, lines))
    title = "AUC: mean score from the switch to the end"
    areas = page.panel("B", title, (left, 2.75, 3 * width + 2 * gap, 1.25))
    _draw_areas_below(areas, found, arms, (width, gap))
    return page.figure


def _draw_path(
    axes: Axes, results: Results | None, condition: str, arms: Sequence[str]
) -> tuple[list[Curve], list[End]]:
    """Draw each arm from before the switch over its lowest level to its end."""
    lines: list[Curve] = []
    ends: list[End] = []
    for turn, arm in enumerate(arms):
        marks = [cell(results, quantity, condition=condition, arm=arm) for quantity in PATH]
        if all(e is None for e in marks):
            continue
        how = replay_style(arm)
        places = [place + 0.09 * (turn - (len(arms) - 1) / 2) for place in range(len(PATH))]
        heights = np.array([[np.nan] * 3 if e is None else [e.value, e.low, e.high] for e in marks])
        axes.plot(places, heights[:, 0], color=how.colour, ls=how.line, lw=1.0, alpha=0.6)
        for place, mark in zip(places, marks, strict=True):
            draw_estimate(axes, place, mark, how)
        lines.append(Curve(np.array(places), *heights.T))
        ends.append(line_end(lines[-1], how))
    if not lines:
        absent(axes)
        return [], []
    if condition == "reward-sign":
        axes.axhline(SIGN_TURNED, color=GREY, lw=0.8, ls=DOTTED, zorder=1)
    name_columns(axes, [(name, DARK) for name in PATH.values()])
    return lines, ends


def _draw_areas_below(
    axes: Axes, results: Results | None, arms: Sequence[str], panels: tuple[float, float]
) -> None:
    """Draw the areas of each condition below its panel of levels: width and gap in inches."""
    if not cells(results, "auc"):
        absent(axes)
        return
    width, gap = panels
    centres = [width / 2 + turn * (width + gap) for turn in range(len(MAPPING))]
    lines: list[Curve] = []
    draw_levels(axes, *(centre - (width + gap) / 2 for centre in centres[1:]), across=True)
    for centre, condition in zip(centres, MAPPING, strict=True):
        found = [cell(results, "auc", condition=condition, arm=arm) for arm in arms]
        for turn, (arm, e) in enumerate(zip(arms, found, strict=True)):
            place = centre + 0.45 * (turn - (len(arms) - 1) / 2)
            draw_estimate(axes, place, e, replay_style(arm))
            if e is not None:
                axes.text(place + 0.07, e.value, signed(f"{e.value:.2f}"), size=SMALL, va="center")
                lines.append(point(e))
        if all(e is None for e in found):
            write_not_run(axes, centre)
    set_score_axis(axes, lines, label="score")
    axes.set_xlim(0, 3 * width + 2 * gap)
    axes.set_xticks(centres, [CONDITIONS[condition] for condition in MAPPING])
    axes.tick_params(axis="x", length=0)


class LogRow(NamedTuple):
    """Learning curves of an assay in one task, a panel for each condition."""

    assay: str
    title: str
    conditions: tuple[str, ...]
    task: str = ""
    """If the assay has several."""

    def labels(self, condition: str) -> tuple[str, ...]:
        """Return the labels of one panel."""
        return (condition, self.task) if self.task else (condition,)

    def arms(self, results: Results | None) -> list[str]:
        """Return the arms that have a learning curve under any condition."""
        run = arms_run(results, "auc", planned=True)
        return in_order(
            arm
            for condition in self.conditions
            for arm in trajectories(results, run, *self.labels(condition))
        )


ROWS = (
    LogRow("E3", "Catch 8×8", CONDITIONS_OF_E3, "catch"),
    LogRow("E3", "Catch 16×16", CONDITIONS_OF_E3, "catch-long"),
    LogRow("E-A4x", "Catch 8×8", MAPPING),
    LogRow("E-A4m", "Breakout", BREAKOUT),
)


@styled
def draw_change_curves(results: Mapping[str, Results]) -> Figure:
    """``change-streams``: the log of every learner before and after each change."""
    found = {row: row.arms(results.get(row.assay)) for row in ROWS}
    rows = [row for row, arms in found.items() if arms] or [ROWS[0]]
    names = list(dict.fromkeys(row.assay for row in rows))
    used = [e for name in names for e in cells(results.get(name), "auc")]
    bands = evidence(used).replace("intervals:", "bands:")
    words = explain_arms(names, [arm for row in rows for arm in found[row]])
    dashed = "Dashed: the switch." if used else ""
    shown = [results.get(name) for name in names]
    page = Page(0.1 + 2.1 * len(rows), caption(shown, bands, dashed, words, seeds=False))
    for turn, row in enumerate(rows):
        _draw_row(page, 0.35 + 2.1 * turn, "ABCD"[turn], row, results.get(row.assay), found[row])
    return page.figure


def _draw_row(
    page: Page, top: float, letter: str, row: LogRow, results: Results | None, arms: Sequence[str]
) -> None:
    width, gap = 1.62, 0.22
    panels: list[Axes] = []
    lines: list[Curve] = []
    drawn: list[tuple[Axes, list[End]]] = []
    for turn, condition in enumerate(row.conditions):
        name, box = CONDITIONS[condition], (0.62 + turn * (width + gap), top, width, 1.45)
        axes = page.panel("" if turn else letter, name if turn else f"{row.title}, {name}", box)
        panels.append(axes)
        mine, ends = draw_logs(axes, results, arms, *row.labels(condition))
        if mine:
            axes.set_xlabel("" if drawn else "iteration")
            lines += mine
            drawn.append((axes, ends))

    def set_axis(axes: Axes) -> None:
        """Make the vertical axis one of scores, or of returns where there is no reference."""
        if row.assay != "E-A4m":
            set_score_axis(axes, lines)
            return
        top = max(float(np.nanmax(np.fmax(line.y, line.high))) for line in lines)
        axes.set(ylim=(0, top * 1.05), ylabel="return of an episode")

    finish_row(panels, drawn, set_axis)
