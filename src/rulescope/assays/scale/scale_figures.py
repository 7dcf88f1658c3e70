"""Figures of the reward-scale assay (E1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.assays.figure_data import (
    Curve,
    arms_run,
    caption,
    cell,
    cells,
    curve_along,
    curves_by_arm,
    evidence,
    explain_arms,
    family_of,
    interval_text,
    labels_run,
    reach,
)
from rulescope.assays.panels import (
    Row,
    arm_row,
    draw_curves_beside,
    draw_forest,
    draw_scores_over_scale,
    fix_ticks,
    name_marks,
    note_not_run,
    power,
    set_decades_axis,
    set_scale_axis,
    write_beside,
    write_not_run,
)
from rulescope.assays.pivot import window_of
from rulescope.render.arm_styles import ArmStyle, arm_style, in_order
from rulescope.render.display_names import CATCH_NAMES
from rulescope.render.line_labels import End, name_ends
from rulescope.render.palette import DARK, GREY
from rulescope.render.style import Page, absent, styled

if TYPE_CHECKING:
    from rulescope.assays.results import Results

THRESHOLD = "Dotted line: the threshold of 0.8."
INCOMPETENT = "no estimate:\nneither arm\nis competent"
CRITERIA = {"half-best": "half of best", "0.7": "0.7", "0.8": "0.8", "0.9": "0.9"}
CONTRAST = ArmStyle("live − pin", DARK, "o")


def tasks_run(results: Results | None) -> list[str]:
    """Return the tasks that have scores, the known ones first."""
    found = set(labels_run(results, "score", "task"))
    return [t for t in CATCH_NAMES if t in found] + sorted(found - set(CATCH_NAMES))


def draw_windows(
    axes: Axes,
    results: Results | None,
    tasks: Mapping[str, str],
    criteria: Mapping[str, str],
    *,
    label: str = "usable window (decades)",
    named: bool = True,
) -> bool:
    """Draw the widths of windows for each task and criterion, an arm beside the other.

    Groups are named by what varies; tasks that were not run are left out. Return whether there
    are any. Where they are ``named``, names of the arms stand at the right.
    """
    run = {task: arms_run(results, "width", planned=True, task=task) for task in tasks}
    note_not_run(axes, (name for task, name in tasks.items() if not run[task]))
    tasks = {task: name for task, name in tasks.items() if run[task]}
    arms = in_order(arm for task in tasks for arm in arms_run(results, "width", task=task))
    rows = [
        Row(
            criteria[criterion] or name,
            [
                (arm_style(arm), cell(results, "width", task=task, arm=arm, criterion=criterion))
                for arm in arms
            ],
        )
        for task, name in tasks.items()
        for criterion in criteria
    ]
    apart = min(0.24, 0.8 / max(len(arms), 1))
    if not rows:
        absent(axes)
        return False
    if not draw_forest(axes, rows, upright=True, apart=apart, labelsize=None):
        return False
    if named:
        name_marks(axes, map(arm_style, arms))
    for place, row in enumerate(rows):
        if all(one is None for _, one in row.marks):
            write_not_run(axes, place, "no estimate")
    set_decades_axis(axes, max([1.0, *reach(one for row in rows for _, one in row.marks)]))
    axes.set_ylabel(label)
    return True


@styled
def draw_scale_detail(results: Mapping[str, Results]) -> Figure:
    """``fig:detail-scale``: Catch scores and windows by criterion, and live minus pin."""
    scale = results.get("E1")
    task = next(iter(tasks_run(scale)), "catch")
    name = CATCH_NAMES.get(task, task)
    arms = explain_arms(["E1"], arms_run(scale, "score", task=task))
    words = evidence([*cells(scale, "score", task=task), *cells(scale, "width", task=task)])
    family = family_of(cells(scale, "contrast"))
    wide = f"C: {family}." if family else ""
    page = Page(5.35, caption([scale], words, wide, THRESHOLD, arms))
    box = (0.62, 0.35, 5.75, 2.0)
    curves = page.panel("A", f"{name}: final score over reward scale", box)
    name_ends(curves, draw_scores_over_scale(curves, curves_by_arm(scale, "score", task=task)))
    windows = page.panel("B", f"{name}: window by criterion", (0.62, 2.98, 2.95, 1.95))
    if draw_windows(windows, scale, {task: name}, CRITERIA):
        windows.set_xlabel("criterion: score at least")
    contrasts = page.panel("C", "live − pin (adjusted)", (5.25, 2.98, 1.13, 1.95), 0.98)
    _draw_contrasts(contrasts, scale)
    return page.finish()


def _draw_contrasts(axes: Axes, results: Results | None) -> None:
    """Draw live minus pin, a row for each task and criterion, the numbers beside."""
    found = {
        f"{CATCH_NAMES.get(task, task)}\n{CRITERIA[criterion]}": e
        for task in tasks_run(results)
        for criterion in ("half-best", "0.8")
        if (e := cell(results, "contrast", task=task, criterion=criterion)) is not None
    }
    if not found:
        # both arms may have been run in some task, though they have no contrast
        planned = [] if results is None else results.estimates.where("contrast")
        absent(axes, INCOMPETENT if any(row.estimate.n for row in planned) else "not run")
        return
    rows = [arm_row(CONTRAST, e, name) for name, e in found.items()]
    draw_forest(axes, rows, labelsize=6.4, between=", ")
    # whole decades have no decimals
    numbers = [interval_text(e, lambda width: f"{round(width, 2):g}") for e in found.values()]
    write_beside(axes, numbers)
    ends = reach(found.values())
    low, high = min(0.0, *ends), max(1.0, *ends)
    step = 1 if high - low <= 5 else 2
    axes.set_xticks([t for t in range(int(np.floor(low)), int(np.ceil(high)) + 1) if t % step == 0])
    axes.set(xlim=(low - 0.3, high + 0.3), xlabel="decades")
    axes.grid(axis="x")
    axes.axvline(0.0, color=GREY, lw=0.8, zorder=1)


@styled
def draw_scale_appendix(results: Mapping[str, Results]) -> Figure:
    """``v5:fig:app-scale``: curves, windows and terminal-state displacement of three tasks."""
    scale = results.get("E1")
    arms = explain_arms(["E1"], arms_run(scale, "score"))
    words = evidence([*cells(scale, "score"), *cells(scale, "width")])
    moved = (
        "Displacement: how far the centroid of terminal states is from that at scale 1,"
        " in radii of the states there."
    )
    if not cells(scale, "displacement"):
        moved = ""
    tasks = tasks_run(scale)
    # of several tasks each is a column, of one its panels stand in a row
    step = (2.3, 0.0) if len(tasks) == 1 else (0.0, 2.12)
    page = Page(2.3 + 2 * step[1], caption([scale], words, THRESHOLD, arms, moved))
    scores: list[tuple[Axes, list[End]]] = []
    shifts: list[tuple[Axes, list[End]]] = []
    windows: list[Axes] = []
    for column, task in enumerate(tasks):
        name = CATCH_NAMES.get(task, task)
        titles = (name, f"{name}: windows", f"{name}: displacement")
        wide = 1.45 if len(tasks) == 1 else min(1.62, 5.4 / len(tasks) - 0.35)
        rows = [
            page.panel("ABCDEFGHI"[row * len(tasks) + column], title, (left, top, wide, 1.48), 0.3)
            for row, title in enumerate(titles)
            for left, top in [(0.62 + column * (wide + 0.42) + row * step[0], 0.35 + row * step[1])]
        ]
        curves = curves_by_arm(scale, "score", task=task)
        scores.append((rows[0], draw_scores_over_scale(rows[0], curves)))
        fixed = {c: c for c in ("0.7", "0.8", "0.9")}
        last = column == len(tasks) - 1
        if draw_windows(rows[1], scale, {task: name}, fixed, label="window (decades)", named=last):
            rows[1].set_xlabel("score at least")
            windows.append(rows[1])
        shifts.append((rows[2], _draw_displacement(rows[2], scale, task)))
        for axes in rows if len(scores) > 1 else ():  # named at the first panel of a row
            axes.set_ylabel("")
    _share_vertical_axis([axes for axes, _ in scores])
    _share_vertical_axis(windows)
    # Colours and markers are the same in each column: names stand at the last one.
    for drawn in (scores, shifts):
        if drawn:
            name_ends(*drawn[-1])
    return page.finish()


def _share_vertical_axis(panels: Sequence[Axes]) -> None:
    """Give ``panels`` the same vertical axis, so that heights can be compared across them."""
    if panels:
        widest = max(panels, key=lambda axes: float(np.ptp(axes.get_ylim())))
        ticks = widest.get_yticks()
        bounds = np.array([axes.get_ylim() for axes in panels])
        for axes in panels:
            axes.set_yticks(ticks)
            axes.set_ylim(float(bounds[:, 0].min()), float(bounds[:, 1].max()))


def _draw_displacement(axes: Axes, results: Results | None, task: str) -> list[End]:
    """Draw how far terminal h and c moved from where they are at unit scale."""
    lines: list[tuple[ArmStyle, Curve]] = []
    for arm in arms_run(results, "displacement", task=task):
        for vector in ("h", "c"):
            line = curve_along(results, "displacement", task=task, arm=arm, vector=vector)
            if line is not None:
                name = f"{arm_style(arm).name} {vector}"
                lines.append((arm_style(arm)._replace(name=name, filled=vector == "h"), line))
    if not lines:
        absent(axes, "no estimate")
        return []
    set_scale_axis(axes, [line.x for _, line in lines])
    ends = draw_curves_beside(axes, lines, 0.05, log=True, lifetimes=False)
    tops = [max(e.value, e.high) for e in cells(results, "displacement")]
    top = max([10.0, *(t for t in tops if np.isfinite(t))])  # the same in every panel
    # At unit scale the displacement is 0 by definition, which a logarithm cannot show.
    axes.set_yscale("symlog", linthresh=1.0, linscale=0.5)
    axes.set(ylim=(-0.15, top * 1.4), ylabel="shift / unit radius")
    tens = [e for e in range(int(np.ceil(np.log10(top))) + 1) if 10.0**e <= top * 1.4]
    fix_ticks(axes.yaxis, {0.0: "0"} | {10.0**e: power(e) for e in tens})
    return ends


@styled
def draw_scale_audit(results: Mapping[str, Results]) -> Figure:
    """``scale-audit``: score over reward scale, with every seed where known."""
    scale = results.get("E1")
    tasks = tasks_run(scale) or ["catch"]
    width = "Beside the names: class and ends of the window of scales with a score of at least 0.8."
    words = [
        evidence(cells(scale, "score")),
        THRESHOLD,
        explain_arms(["E1"], arms_run(scale, "score")),
        width if scale is not None and scale.windows else "",
    ]
    page = Page(0.2 + 2.75 * len(tasks), caption([scale], *words))
    for turn, task in enumerate(tasks):
        letter = "ABCDEFGH"[turn] if len(tasks) > 1 else ""
        title = f"{CATCH_NAMES.get(task, task)}: final score over reward scale"
        axes = page.panel(letter, title, (0.62, 0.35 + 2.75 * turn, 5.0, 2.15))
        curves = curves_by_arm(scale, "score", task=task)
        ends = draw_scores_over_scale(axes, curves)
        pairs = zip(ends, curves, strict=True)
        name_ends(axes, [_with_window(end, scale, task, arm) for end, arm in pairs])
    return page.finish()


def _with_window(end: End, results: Results | None, task: str, arm: str) -> End:
    """Print the class and the ends of an arm's window behind its name."""
    row = results and results.estimates.find("width", task=task, arm=arm, criterion="0.8")
    found = window_of(row) if row else None
    return end if found is None else end._replace(text=f"{end.text}: {found}")
