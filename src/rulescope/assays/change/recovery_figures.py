"""Figures of all changes: areas by condition, levels around the switch, streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from rulescope.assays.change.change_figures import (
    AREA,
    BOARDS,
    CONDITIONS,
    PAIR,
    SWITCHED,
    area_and_final,
    arm_words,
    name_arms,
    replay_look,
    stream_panel,
)
from rulescope.assays.estimates import join_labels
from rulescope.assays.figure_data import (
    Curve,
    arms_run,
    caption,
    cell,
    cells,
    evidence,
    labels_run,
    point,
)
from rulescope.assays.panels import difference_axis, dots, line_end, score_axis
from rulescope.render.line_labels import End, name_apart, name_ends
from rulescope.render.style import (
    DARK,
    GREY,
    PALE,
    SMALL,
    TINY,
    Page,
    absent,
    in_order,
    look,
    styled,
    subject,
)

if TYPE_CHECKING:
    from rulescope.assays.results import Results
    from rulescope.stats import Estimate

CELL = (0.56, 0.3)
"""Inches: a cell of a heat map."""
NOT_PLANNED = "#D9D9D9"
CONDITIONS_OF_E3 = (*SWITCHED, "none")
MAPPING = ("observation-flip", "reward-sign", "none")
BREAKOUT = ("action-flip", "none")
PATH = {"pre": "before", "trough": "lowest", "endpoint": "end"}
"""Readouts of a path around the switch, and their words."""
SIGN_TURNED = 1.5 / 1.75
"""Score of random play in 8×8 Catch once the sign of the reward is turned."""


@styled
def recovery_overview(results: Mapping[str, Results]) -> Figure:
    """``v5:fig:recovery-overview``: areas of all cells, and what auxiliary losses do."""
    e3, mapping, breakout = shown = [results.get(name) for name in ("E3", "E-A4x", "E-A4m")]
    areas = [cells(found, "auc") for found in shown]
    used, effects = [e for each in areas for e in each], cells(e3, "no-aux")
    arms = [arm for found in shown for arm in arms_run(found, "auc")]
    words = [
        "A–C: AUC, the mean from the switch to the end; grey: not run." if used else "",
        PAIR.replace("Hollow", "D: hollow") if effects else "",
        evidence([*used, *effects]),
        arm_words(arms),
    ]
    page = Page(4.9, caption(shown, *words, seeds=False))
    top = max([1.0, *(e.value for e in areas[2])])
    scores, returns = ("Blues", Normalize(0.0, 1.0)), ("Oranges", Normalize(0.0, top))
    columns = [{"condition": name, "task": task} for task in BOARDS for name in CONDITIONS_OF_E3]
    first = heat_map(page, (1.1, 0.35), e3, columns, 6, scores)
    page.heading(first, "A", "Catch, score: 8×8 (left) and 16×16 (right)", indent=1.0)
    columns = [{"condition": name} for name in MAPPING]
    second = heat_map(page, (5.38, 0.35), mapping, columns, 3, scores)
    page.heading(second, "B", "Catch 8×8, score", indent=0.82)
    columns = [{"condition": name} for name in BREAKOUT]
    third = heat_map(page, (1.1, 2.98), breakout, columns, 4, returns)
    page.heading(third, "C", "Breakout, return", indent=1.0)
    if areas[0] or areas[1]:
        _scale_bar(page, (5.38, 1.75, 1.68), scores, "AUC of the score (A, B)")
    if areas[2]:
        _scale_bar(page, (1.1, 4.5, 1.12), returns, "AUC of the return (C)")
    axes = page.axes(4.2, 2.98, 2.85, 1.5)
    page.heading(axes, "D", f"Without auxiliary losses, minus {subject()}", indent=1.1)
    _auxiliary(axes, e3)
    return page.figure


def heat_map(
    page: Page,
    corner: tuple[float, float],
    results: Results | None,
    columns: Sequence[Mapping[str, str]],
    rows: int,
    colours: tuple[str, Normalize],
) -> Axes:
    """Draw areas as coloured numbers: a column for each of the labels ``columns``, an arm a row.

    ``rows`` is how many arms the published grid has, for the size of an empty panel. Columns
    beyond the third stand a little apart: they are another board.
    """
    places = [turn + 0.18 * (turn // 3) for turn in range(len(columns))]
    arms = in_order(
        {
            arm
            for labels in columns
            for arm in labels_run(results, "auc", "arm", planned=True, **labels)
        }
    )
    width, height = (places[-1] + 1) * CELL[0], (len(arms) or rows) * CELL[1]
    axes = page.axes(*corner, width, height)
    if results is None or not any(cells(results, "auc", **labels) for labels in columns):
        absent(axes)
        return axes
    for row, arm in enumerate(arms):
        for place, labels in zip(places, columns, strict=True):
            found = results.estimates.find("auc", **labels, arm=arm)
            _heat_cell(axes, place, -row, None if found is None else found.estimate, colours)
    name_arms(axes, arms)
    axes.set_xlim(-0.02, places[-1] + 1.02)
    axes.set_ylim(-len(arms) + 0.48, 0.52)
    axes.set_xticks(
        [place + 0.5 for place in places],
        [CONDITIONS[labels["condition"]].replace(" ", "\n") for labels in columns],
    )
    axes.tick_params(axis="x", length=0, labelsize=TINY, pad=1)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return axes


def _heat_cell(
    axes: Axes, place: float, row: float, found: Estimate | None, colours: tuple[str, Normalize]
) -> None:
    """Draw one area; grey if it was never planned, a dash if it could not be estimated."""
    fill, words, ink = (NOT_PLANNED, "", DARK) if found is None else ("#FFFFFF", "—", GREY)
    if found is not None and not found.missing:
        tint, norm = colours
        rgb = mpl.colormaps[tint](0.08 + 0.84 * float(np.clip(norm(found.value), 0, 1)))[:3]
        fill, words = mpl.colors.to_hex(rgb), f"{found.value:.2f}".replace("-", "−")
        ink = "#FFFFFF" if np.dot(rgb, (0.2126, 0.7152, 0.0722)) < 0.45 else "#111111"
    axes.add_patch(Rectangle((place + 0.02, row - 0.46), 0.96, 0.92, fc=fill, ec=PALE, lw=0.4))
    axes.text(place + 0.5, row, words, ha="center", va="center", size=SMALL, color=ink)


def _scale_bar(
    page: Page, place: tuple[float, float, float], colours: tuple[str, Normalize], words: str
) -> None:
    """Draw the scale of the colours at ``place``: left, top and width in inches."""
    (left, top, width), (tint, norm) = place, colours
    axes = page.axes(left, top, width, 0.09)
    shades = 0.08 + 0.84 * np.linspace(0, 1, 128)
    low, high = float(norm.vmin or 0.0), float(norm.vmax or 1.0)
    axes.imshow(
        shades[np.newaxis], cmap=tint, vmin=0, vmax=1, aspect="auto", extent=(low, high, 0, 1)
    )
    axes.set_yticks([])
    axes.locator_params(axis="x", nbins=3)
    axes.tick_params(axis="x", labelsize=TINY, pad=1)
    axes.set_xlabel(words, labelpad=1, size=TINY)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _auxiliary(axes: Axes, results: Results | None) -> None:
    """Draw what changes without auxiliary losses: a row for each board and change."""
    rows = [
        {"condition": condition, "task": task}
        for task in BOARDS
        for condition in CONDITIONS_OF_E3
        if cells(results, "no-aux", condition=condition, task=task)
    ]
    if not rows:
        absent(axes)
        return
    for turn, labels in enumerate(rows):
        area, final = (cell(results, "no-aux", readout=name, **labels) for name in ("auc", "final"))
        area_and_final(axes, -turn, area, final, look("rule-no-aux"))
    names = [f"{BOARDS[at['task']]}, {CONDITIONS[at['condition']]}" for at in rows]
    axes.set_yticks([-turn for turn in range(len(rows))], names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-len(rows) + 0.4, 0.6)
    difference_axis([axes], "difference in score", room=0.06, ticks=5)


def _finish_row(
    panels: Sequence[Axes], drawn: Sequence[tuple[Axes, list[End]]], scale: Callable[[Axes], None]
) -> None:
    """Give panels side by side one vertical axis by ``scale``; names stand right of the last."""
    for turn, (axes, ends) in enumerate(drawn):
        scale(axes)
        if turn:
            axes.set_ylabel("")
            axes.tick_params(axis="y", labelleft=False)
        if turn == len(drawn) - 1:
            name_ends(axes, ends) if axes is panels[-1] else name_apart(panels[-1], ends)


@styled
def recovery_mapping(results: Mapping[str, Results]) -> Figure:
    """``v5:fig:recovery-mapping``: levels before, at the lowest and at the end; areas."""
    found = results.get("E-A4x")
    used = [e for quantity in (*PATH, "auc") for e in cells(found, quantity)]
    arms = arms_run(found, "auc")
    turned = (
        "Dotted: random play once the sign of the reward is turned (scores keep the references"
        " from before)."
    )
    text = (
        "Before: last five log rows up to the switch; lowest: lowest row after it; end: last row."
    )
    if not cells(found, "auc", condition="reward-sign"):
        turned = ""
    words = (text, AREA, evidence(used), turned, arm_words(arms)) if used else ()
    page = Page(4.25, caption([found], *words))
    width, gap, left = 1.6, 0.22, 0.62
    panels = [page.axes(left + turn * (width + gap), 0.35, width, 1.75) for turn in range(3)]
    lines: list[Curve] = []
    drawn: list[tuple[Axes, list[End]]] = []
    for turn, (axes, condition) in enumerate(zip(panels, MAPPING, strict=True)):
        page.heading(axes, "A" if turn == 0 else "", CONDITIONS[condition])
        mine, ends = _path(axes, found, condition, arms)
        lines += mine
        if mine:
            drawn.append((axes, ends))
    _finish_row(panels, drawn, lambda axes: score_axis(axes, lines))
    areas = page.axes(left, 2.75, 3 * width + 2 * gap, 1.25)
    page.heading(areas, "B", "AUC: mean score from the switch to the end")
    _areas(areas, found, arms, (width, gap))
    return page.figure


def _path(
    axes: Axes, results: Results | None, condition: str, arms: Sequence[str]
) -> tuple[list[Curve], list[End]]:
    """Draw each arm from before the switch over its lowest level to its end."""
    lines: list[Curve] = []
    ends: list[End] = []
    for turn, arm in enumerate(arms):
        marks = [cell(results, quantity, condition=condition, arm=arm) for quantity in PATH]
        if all(e is None for e in marks):
            continue
        how = replay_look(arm)
        places = [place + 0.09 * (turn - (len(arms) - 1) / 2) for place in range(len(PATH))]
        heights = np.array([[np.nan] * 3 if e is None else [e.value, e.low, e.high] for e in marks])
        axes.plot(places, heights[:, 0], color=how.colour, ls=how.line, lw=1.0, alpha=0.6)
        dots(axes, places, marks, how)
        line = Curve(np.array(places), *heights.T)
        lines.append(line)
        ends.append(line_end(line, how))
    if not lines:
        absent(axes)
        return [], []
    if condition == "reward-sign":
        axes.axhline(SIGN_TURNED, color=GREY, lw=0.8, ls=(0, (1.2, 1.4)), zorder=1)
    axes.set_xticks(range(len(PATH)), PATH.values())
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.4, len(PATH) - 0.6)
    return lines, ends


def _areas(
    axes: Axes, results: Results | None, arms: Sequence[str], panels: tuple[float, float]
) -> None:
    """Draw the areas of each condition below its panel of levels."""
    if not cells(results, "auc"):
        absent(axes)
        return
    width, gap = panels
    centres = [width / 2 + turn * (width + gap) for turn in range(3)]
    lines: list[Curve] = []
    for edge in (width + gap / 2, 2 * width + 1.5 * gap):
        axes.axvline(edge, color=PALE, lw=0.8, zorder=0)
    for centre, condition in zip(centres, MAPPING, strict=True):
        found = [cell(results, "auc", condition=condition, arm=arm) for arm in arms]
        for turn, (arm, e) in enumerate(zip(arms, found, strict=True)):
            place = centre + 0.45 * (turn - (len(arms) - 1) / 2)
            dots(axes, [place], [e], replay_look(arm))
            if e is not None:
                words = f"{e.value:.2f}".replace("-", "−")
                axes.text(place + 0.07, e.value, words, size=SMALL, va="center")
                lines.append(point(e))
        if all(e is None for e in found):
            axes.text(centre, 0.5, "not run", ha="center", va="center", color=GREY, size=SMALL)
    score_axis(axes, lines)
    axes.set_xlim(0, 3 * width + 2 * gap)
    axes.set_xticks(centres, [CONDITIONS[condition] for condition in MAPPING])
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("score", labelpad=2)


class StreamRow(NamedTuple):
    """Streams of an assay in one task, a panel for each condition."""

    assay: str
    title: str
    conditions: tuple[str, ...]
    task: str = ""
    """If the assay has several."""

    def labels(self, condition: str) -> dict[str, str]:
        """Return the labels of one panel."""
        return {"condition": condition} | ({"task": self.task} if self.task else {})

    def arms(self, results: Results | None) -> list[str]:
        """Return the arms that have a stream under any condition."""
        return in_order(
            {
                arm
                for condition in self.conditions
                for arm in labels_run(results, "auc", "arm", planned=True, **self.labels(condition))
                if results is not None
                and join_labels("trajectory", *self.labels(condition).values(), arm)
                in results.series
            }
        )


ROWS = (
    StreamRow("E3", "Catch 8×8", CONDITIONS_OF_E3, "catch"),
    StreamRow("E3", "Catch 16×16", CONDITIONS_OF_E3, "catch-long"),
    StreamRow("E-A4x", "Catch 8×8", MAPPING),
    StreamRow("E-A4m", "Breakout", BREAKOUT),
)


@styled
def change_streams(results: Mapping[str, Results]) -> Figure:
    """``change-streams``: the log of every learner before and after each change."""
    found = {row: row.arms(results.get(row.assay)) for row in ROWS}
    rows = [row for row, arms in found.items() if arms] or [ROWS[0]]
    used = [e for row in rows for e in cells(results.get(row.assay), "auc")]
    bands = evidence(used).replace("intervals:", "bands:")
    shown = [results.get(name) for name in dict.fromkeys(row.assay for row in rows)]
    words = arm_words([arm for row in rows for arm in found[row]])
    dashed = "Dashed: the switch." if used else ""
    page = Page(0.1 + 2.1 * len(rows), caption(shown, bands, dashed, words, seeds=False))
    for turn, row in enumerate(rows):
        _stream_row(page, 0.35 + 2.1 * turn, "ABCD"[turn], row, results.get(row.assay), found[row])
    return page.figure


def _stream_row(
    page: Page,
    top: float,
    letter: str,
    row: StreamRow,
    results: Results | None,
    arms: Sequence[str],
) -> None:
    width, gap = 1.62, 0.22
    panels = [
        page.axes(0.62 + turn * (width + gap), top, width, 1.45)
        for turn in range(len(row.conditions))
    ]
    lines: list[Curve] = []
    drawn: list[tuple[Axes, list[End]]] = []
    for turn, (axes, condition) in enumerate(zip(panels, row.conditions, strict=True)):
        title = f"{row.title}, {CONDITIONS[condition]}" if turn == 0 else CONDITIONS[condition]
        page.heading(axes, letter if turn == 0 else "", title)
        mine, ends = stream_panel(axes, results, arms, **row.labels(condition))
        if mine:
            axes.set_xlabel("" if drawn else "iteration", labelpad=2)
            lines += mine
            drawn.append((axes, ends))
    _finish_row(panels, drawn, lambda axes: _stream_axis(axes, row, lines))


def _stream_axis(axes: Axes, row: StreamRow, lines: Sequence[Curve]) -> None:
    """Make the vertical axis one of scores, or of returns where there is no reference."""
    if row.assay != "E-A4m":
        score_axis(axes, lines)
        return
    top = max(float(np.nanmax(np.fmax(line.y, line.high))) for line in lines)
    axes.set_ylim(0, top * 1.05)
    axes.set_ylabel("return of an episode", labelpad=2)
