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
    bounds,
    caption,
    cell,
    cells,
    evidence,
    explain_arms,
    labels_run,
    planned_cell,
    point,
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
    note_not_run,
    set_difference_axis,
    set_score_axis,
)
from rulescope.render import palette
from rulescope.render.arm_styles import DOTTED, arm_style, in_order, subject
from rulescope.render.line_labels import End
from rulescope.render.palette import DARK, GREY
from rulescope.render.style import Page, absent, styled

if TYPE_CHECKING:
    from rulescope.assays.results import Results

CELL = (0.84, 0.44)
"""Inches: a cell of a heat map."""
CONDITIONS_OF_E3 = (*SWITCHED, "none")
MAPPING = ("observation-flip", "reward-sign", "none")
BREAKOUT = ("action-flip", "none")
ASSAYS = ("E3", "E-A4x", "E-A4m")
AREAS = (
    "Cells: AUC, the mean from the switch to the end, with its interval; dots: single lifetimes,"
    " from the low end of the scale at the left to the high end; grey: not planned or not run."
)
PATH = {"pre": "before", "trough": "lowest", "endpoint": "end"}
"""Readouts of a path around the switch, and their words."""
SIGN_TURNED = 1.5 / 1.75
"""Score of random play in 8×8 Catch once the sign of the reward is turned."""


@styled
def draw_recovery_overview(results: Mapping[str, Results]) -> Figure:
    """``v5:fig:recovery-overview``: areas of all cells, and what auxiliary losses do."""
    shown = [results.get(name) for name in ASSAYS]
    e3 = shown[0]
    areas = [cells(found, "auc") for found in shown]
    used, effects = [e for each in areas for e in each], cells(e3, "no-aux")
    words = [
        AREAS if used else "",
        PAIR.replace("Hollow", "D: hollow") if effects else "",
        evidence([*used, *effects]),
        explain_arms(ASSAYS, [arm for found in shown for arm in arms_run(found, "auc")]),
    ]
    page = Page(0.0, caption(shown, *words), merge=True)
    top = max([1.0, *(e.value for e in areas[2])])
    scores, returns = ColourScale(palette.SCORES), ColourScale(palette.RETURNS, high=top)
    for maps in _planned_maps(shown):
        _draw_areas(page, maps, scores if maps.assay != "E-A4m" else returns)
    _draw_auxiliary(page, e3)
    return page.finish()


class AreaMap(NamedTuple):
    """A heat map of areas: its columns by their names, those of the cells that were run."""

    letter: str
    title: str
    assay: str
    results: Results | None
    columns: Mapping[str, Mapping[str, Label]]
    gone: Sequence[str]
    """Names of columns that were not run."""

    @property
    def arms(self) -> list[str]:
        """The arms that were planned under any of the conditions."""
        return in_order(
            arm
            for labels in self.columns.values()
            for arm in labels_run(self.results, "auc", "arm", planned=True, **labels)
        )


def _planned_maps(shown: Sequence[Results | None]) -> list[AreaMap]:
    """Return the heat maps, without columns that have no estimate."""
    wanted: tuple[tuple[str, str, dict[str, dict[str, Label]]], ...] = (
        (
            "A",
            "Catch, score by change and board",
            {
                f"{CONDITIONS[name]}\n{board}": {"condition": name, "task": task}
                for task, board in BOARDS.items()
                for name in CONDITIONS_OF_E3
            },
        ),
        ("B", "Catch 8×8, score", {CONDITIONS[name]: {"condition": name} for name in MAPPING}),
        ("C", "Breakout, return", {CONDITIONS[name]: {"condition": name} for name in BREAKOUT}),
    )
    maps = []
    for (letter, title, columns), found, assay in zip(wanted, shown, ASSAYS, strict=True):
        run = {name: at for name, at in columns.items() if cells(found, "auc", **at)}
        gone = [name for name in columns if name not in run]
        maps.append(AreaMap(letter, title, assay, found, run, gone))
    return maps


def _draw_areas(page: Page, maps: AreaMap, scale: ColourScale) -> None:
    """Add a heat map to the foot of ``page``: a column for each condition, an arm a row."""
    if not maps.columns:
        absent(page.panel(maps.letter, maps.title, (1.1, page.extend(0.0), 1.0, 0.0), 1.0))
        return
    arms = maps.arms
    width, height = len(maps.columns) * CELL[0], len(arms) * CELL[1]
    top = page.extend(height + 1.05)
    box = (1.1, top, width, height)
    room = max(width + 1.6, 1.1 + 0.06 * len(maps.title))
    axes = page.panel(maps.letter, maps.title, box, 1.0, room=room)
    areas = [
        (
            replay_style(arm),
            [planned_cell(maps.results, "auc", arm=arm, **at) for at in maps.columns.values()],
        )
        for arm in arms
    ]
    names = [name.replace(" ", "\n", 1) for name in maps.columns]
    draw_heatmap(axes, areas, list(zip(map(float, range(len(names))), names, strict=True)), scale)
    note_not_run(axes, maps.gone)
    label = "AUC of the return" if maps.assay == "E-A4m" else "AUC of the score"
    draw_colour_bar(page.axes(1.1 + width + 0.2, top + 0.1, 0.09, height - 0.2), scale, label)


def _draw_auxiliary(page: Page, results: Results | None) -> None:
    """Add to ``page`` what changes without auxiliary losses: a row for each board and change."""
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
    height = 0.4 * len(rows)  # of no rows, the panel is left out
    title = f"Without auxiliary losses, minus {subject()}"
    box = (1.8, page.extend(height + 0.8 if rows else 0.0), 2.1, height)
    axes = page.panel("D", title, box, 1.7, room=3.9)
    if not rows:
        absent(axes)
        return
    if draw_forest(axes, rows, apart=0.46, labelsize=None):
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
    shown = [each for each in MAPPING if cells(found, "auc", condition=each)] or MAPPING[:1]
    panels = [
        page.panel("" if turn else "A", CONDITIONS[condition], (at, 0.35, width, 1.75))
        for turn, condition in enumerate(shown)
        for at in [left + turn * (width + gap)]
    ]
    lines: list[Curve] = []
    drawn: list[tuple[Axes, list[End]]] = []
    for axes, condition in zip(panels, shown, strict=True):
        mine, ends = _draw_path(axes, found, condition, arms)
        lines += mine
        drawn += [(axes, ends)] if mine else []
    finish_row(panels, drawn, lambda axes: set_score_axis(axes, lines))
    title = "AUC: mean score from the switch to the end"
    wide = len(shown) * (width + gap) - gap
    areas = page.panel("B", title, (left, 2.75, wide, 1.25))
    _draw_areas_below(areas, found, arms, shown, (width, gap))
    return page.finish()


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
        places = [place + 0.2 * (turn - (len(arms) - 1) / 2) for place in range(len(PATH))]
        heights = np.array([[np.nan] * 3 if e is None else [e.value, *bounds(e)] for e in marks])
        axes.plot(places, heights[:, 0], color=how.colour, ls=how.line, lw=1.0, alpha=0.6)
        for place, mark in zip(places, marks, strict=True):
            draw_estimate(axes, place, mark, how, room=0.16)
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
    axes: Axes,
    results: Results | None,
    arms: Sequence[str],
    conditions: Sequence[str],
    panels: tuple[float, float],
) -> None:
    """Draw the areas of each condition below its panel of levels: width and gap in inches."""
    if not cells(results, "auc"):
        absent(axes)
        return
    width, gap = panels
    centres = [width / 2 + turn * (width + gap) for turn in range(len(conditions))]
    lines: list[Curve] = []
    draw_levels(axes, *(centre - (width + gap) / 2 for centre in centres[1:]), across=True)
    for centre, condition in zip(centres, conditions, strict=True):
        found = [cell(results, "auc", condition=condition, arm=arm) for arm in arms]
        for turn, (arm, e) in enumerate(zip(arms, found, strict=True)):
            place = centre + 0.45 * (turn - (len(arms) - 1) / 2)
            draw_estimate(axes, place, e, replay_style(arm), room=0.4)
            if e is not None:
                lines.append(point(e))
    set_score_axis(axes, lines, label="score")
    axes.set_xlim(0, len(conditions) * (width + gap) - gap)
    axes.set_xticks(centres, [CONDITIONS[condition] for condition in conditions])
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
    rows = [row for row, arms in found.items() if arms]
    names = list(dict.fromkeys(row.assay for row in rows))
    used = [e for name in names for e in cells(results.get(name), "auc")]
    bands = evidence(used).replace("intervals:", "bands:")
    words = explain_arms(names, [arm for row in rows for arm in found[row]])
    dashed = "Dashed: the switch." if used else ""
    shown = [results.get(name) for name in names]
    page = Page(0.1 + 2.1 * len(rows), caption(shown, bands, dashed, words))
    for turn, row in enumerate(rows):
        _draw_row(page, 0.35 + 2.1 * turn, "ABCD"[turn], row, results[row.assay], found[row])
    return page.finish()


def _draw_row(
    page: Page, top: float, letter: str, row: LogRow, results: Results, arms: Sequence[str]
) -> None:
    """Draw a panel for each condition that was run; where few were, the panels are wider."""
    run = [each for each in row.conditions if trajectories(results, arms, *row.labels(each))]
    gap = 0.22
    width = min(3.6, (5.3 + gap) / len(run) - gap)
    lines: list[Curve] = []
    drawn: list[tuple[Axes, list[End]]] = []
    for turn, condition in enumerate(run):
        name, box = CONDITIONS[condition], (0.62 + turn * (width + gap), top, width, 1.45)
        axes = page.panel("" if turn else letter, name if turn else f"{row.title}, {name}", box)
        mine, ends = draw_logs(axes, results, arms, *row.labels(condition))
        axes.set_xlabel("" if drawn else "iteration")
        lines += mine
        drawn.append((axes, ends))
    note_not_run(
        drawn[0][0],
        (f"{row.title} {CONDITIONS[each]}" for each in row.conditions if each not in run),
    )

    def set_axis(axes: Axes) -> None:
        """Make the vertical axis one of scores, or of returns where there is no reference."""
        if row.assay != "E-A4m":
            set_score_axis(axes, lines)
            return
        tops = [np.nanmax(np.fmax(line.y, line.high)) for line in lines]
        tops += [np.nanmax(line.paths) for line in lines if line.paths is not None]
        axes.set(ylim=(0, float(max(tops)) * 1.05), ylabel="return of an episode")

    finish_row([axes for axes, _ in drawn], drawn, set_axis)
