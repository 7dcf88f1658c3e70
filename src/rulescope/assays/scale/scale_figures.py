"""Figures of the reward-scale assay (E1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from rulescope.assays.figure_data import (
    TASKS,
    Curve,
    arm_words,
    arms_run,
    caption,
    cell,
    cells,
    curve_along,
    curves_by_arm,
    evidence,
    family_of,
    labels_run,
)
from rulescope.assays.panels import (
    curves_beside,
    forest,
    power,
    scale_axis,
    score_curves,
    widths,
    write_beside,
)
from rulescope.assays.pivot import window_of
from rulescope.render.line_labels import End, name_apart, name_ends
from rulescope.render.style import DARK, GREY, Look, Page, absent, look, styled

if TYPE_CHECKING:
    from rulescope.assays.results import Results
    from rulescope.stats import Estimate

THRESHOLD = "Dotted line: the threshold of 0.8."
INCOMPETENT = "no estimate:\nneither arm\nis competent"
CRITERIA = {"half-best": "half of best", "0.7": "0.7", "0.8": "0.8", "0.9": "0.9"}


def window_groups(
    results: Results, tasks: Mapping[str, str], criteria: Mapping[str, str]
) -> list[tuple[str, Mapping[str, Estimate | None]]]:
    """Return the widths by arm of each task and criterion; the varying one names its group."""
    groups: list[tuple[str, Mapping[str, Estimate | None]]] = []
    for task, task_name in tasks.items():
        arms = arms_run(results, "width", planned=True, task=task)
        for criterion, criterion_name in criteria.items():
            found = {
                arm: cell(results, "width", task=task, arm=arm, criterion=criterion) for arm in arms
            }
            groups.append((task_name if len(criteria) == 1 else criterion_name, found))
    return groups


def tasks_run(results: Results | None) -> list[str]:
    """Return the tasks that have scores, the known ones first."""
    found = set(labels_run(results, "score", "task"))
    return [t for t in TASKS if t in found] + sorted(found - set(TASKS))


@styled
def detail_scale(results: Mapping[str, Results]) -> Figure:
    """``fig:detail-scale``: Catch scores and windows by criterion, and live minus pin."""
    scale = results.get("E1")
    task = next(iter(tasks_run(scale)), "catch")
    name = TASKS.get(task, task)
    arms = arms_run(scale, "score", task=task)
    words = evidence([*cells(scale, "score", task=task), *cells(scale, "width", task=task)])
    family = family_of(cells(scale, "contrast"))
    wide = f"C: {family}." if family else ""
    page = Page(5.35, caption([scale], words, wide, THRESHOLD, arm_words(arms)))
    curves = page.axes(0.62, 0.35, 5.75, 2.0)
    page.heading(curves, "A", f"{name}: final score over reward scale")
    windows = page.axes(0.62, 2.98, 3.35, 1.95)
    page.heading(windows, "B", f"{name}: window by criterion")
    contrasts = page.axes(5.08, 2.98, 1.3, 1.95)
    page.heading(contrasts, "C", "live − pin (adjusted)", indent=0.85)
    if scale is None:
        for axes in (curves, windows, contrasts):
            absent(axes)
        return page.figure
    _curves(curves, scale, task)
    groups = window_groups(scale, {task: name}, CRITERIA)
    if any(e is not None for _, found in groups for e in found.values()):
        widths(windows, groups)
        windows.set_xlabel("criterion: score at least", labelpad=2)
    else:
        absent(windows)
    _contrasts(contrasts, scale)
    return page.figure


def _curves(axes: Axes, results: Results, task: str, *, named: bool = True) -> list[End]:
    curves = curves_by_arm(results, "score", task=task)
    if not curves:
        absent(axes)
        return []
    ends = score_curves(axes, curves)
    if named:
        name_ends(axes, ends)
    return ends


def _contrasts(axes: Axes, results: Results) -> None:
    """Draw live minus pin, a row for each task and criterion, the numbers beside."""
    rows = [
        (f"{TASKS.get(task, task)}\n{CRITERIA[criterion]}", Look("live − pin", DARK, "o"), e)
        for task in tasks_run(results)
        for criterion in ("half-best", "0.8")
        if (e := cell(results, "contrast", task=task, criterion=criterion)) is not None
    ]
    if not rows:
        # both arms were run in some task, though they have no contrast
        compared = any(row.estimate.n for row in results.estimates.where("contrast"))
        absent(axes, INCOMPETENT if compared else "not run")
        return
    forest(axes, rows, labelsize=6.6)
    write_beside(axes, [window_words(e) for _, _, e in rows])
    ends = np.array([(e.value, e.low, e.high) for _, _, e in rows])
    low, high = min(0.0, float(np.nanmin(ends))), max(1.0, float(np.nanmax(ends)))
    axes.set_xlim(low - 0.3, high + 0.3)
    step = 1 if high - low <= 5 else 2
    axes.set_xticks([t for t in range(int(np.floor(low)), int(np.ceil(high)) + 1) if t % step == 0])
    axes.grid(axis="x")
    axes.axvline(0.0, color=GREY, lw=0.8, zorder=1)
    axes.set_xlabel("decades", labelpad=2)


def window_words(found: Estimate) -> str:
    """Return a width or a difference of widths: whole decades without decimals."""
    ends = [f"{round(v, 2):g}".replace("-", "−") for v in (found.value, found.low, found.high)]
    if found.method == "none" or np.isnan(found.low):
        return ends[0]
    middle = f"({ends[1]} to {ends[2]})" if found.method == "range" else f"[{ends[1]}, {ends[2]}]"
    return f"{ends[0]} {middle}"


@styled
def app_scale(results: Mapping[str, Results]) -> Figure:
    """``v5:fig:app-scale``: curves, windows and terminal-state displacement of three tasks."""
    scale = results.get("E1")
    arms = arms_run(scale, "score")
    words = evidence([*cells(scale, "score"), *cells(scale, "width")])
    moved = (
        "Displacement: how far the centroid of terminal states is from that at scale 1,"
        " in radii of the states there."
    )
    if not cells(scale, "displacement"):
        moved = ""
    page = Page(6.5, caption([scale], words, THRESHOLD, arm_words(arms), moved))
    named: dict[str, tuple[Axes, list[End]]] = {}
    scores: list[Axes] = []
    spans: list[Axes] = []
    last: list[Axes] = []
    for column, (task, name) in enumerate(TASKS.items()):
        left = 0.62 + column * 2.07
        rows = [page.axes(left, 0.35 + row * 2.12, 1.62, 1.48) for row in range(3)]
        last = rows
        for row, title in enumerate((name, f"{name}: windows", f"{name}: displacement")):
            page.heading(rows[row], "ABCDEFGHI"[row * 3 + column], title, indent=0.3)
        if scale is None or task not in tasks_run(scale):
            for axes in rows:
                absent(axes)
            continue
        named["score"] = rows[0], _curves(rows[0], scale, task, named=False)
        groups = window_groups(scale, {task: name}, {c: c for c in ("0.7", "0.8", "0.9")})
        if cells(scale, "width", task=task):
            widths(rows[1], groups, label="window (decades)")
            rows[1].set_xlabel("score at least", labelpad=2)
            spans.append(rows[1])
        else:
            absent(rows[1])
        scores.append(rows[0])
        named["displacement"] = rows[2], _displacement(rows[2], scale, task)
        if len(scores) > 1:  # named at the first panel of a row
            for axes in rows:
                axes.set_ylabel("")
    _level(scores)
    _level(spans)
    # Colours and markers are the same in each column: names stand at the last one.
    for turn, (axes, ends) in enumerate(named.values()):
        rightmost = last[turn * 2]
        if axes is rightmost:
            name_ends(axes, ends)
        else:
            name_apart(rightmost, ends)
    return page.figure


def _level(panels: list[Axes]) -> None:
    """Give ``panels`` the same vertical axis, so that heights can be compared across them."""
    if panels:
        widest = max(panels, key=lambda axes: float(np.ptp(axes.get_ylim())))
        ticks = widest.get_yticks()
        bounds = np.array([axes.get_ylim() for axes in panels])
        for axes in panels:
            axes.set_yticks(ticks)
            axes.set_ylim(float(bounds[:, 0].min()), float(bounds[:, 1].max()))


def _displacement(axes: Axes, results: Results, task: str) -> list[End]:
    """Draw how far terminal h and c moved from where they are at unit scale."""
    drawn: list[tuple[Look, Curve]] = []
    for arm in arms_run(results, "displacement", task=task):
        for vector in ("h", "c"):
            line = curve_along(results, "displacement", task=task, arm=arm, vector=vector)
            if line is not None:
                name = f"{look(arm).name} {vector}"
                drawn.append((look(arm)._replace(name=name, filled=vector == "h"), line))
    if not drawn:
        absent(axes)
        return []
    scale_axis(axes, [line.x for _, line in drawn])
    ends = curves_beside(axes, drawn, 0.05, log=True)
    tops = [max(e.value, e.high) for e in cells(results, "displacement")]
    top = max([10.0, *(t for t in tops if np.isfinite(t))])  # the same in every panel
    # At unit scale the displacement is 0 by definition, which a logarithm cannot show.
    axes.set_yscale("symlog", linthresh=1.0, linscale=0.5)
    axes.set_ylim(-0.15, top * 1.4)
    tens = range(int(np.ceil(np.log10(top))) + 1)
    shown = [e for e in tens if 10.0**e <= top * 1.4]
    axes.yaxis.set_major_locator(FixedLocator([0.0, *(10.0**e for e in shown)]))
    axes.yaxis.set_major_formatter(FixedFormatter(["0", *(power(e) for e in shown)]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("shift / unit radius", labelpad=2)
    return ends


@styled
def scale_audit(results: Mapping[str, Results]) -> Figure:
    """``scale-audit``: score over reward scale, with every seed where known."""
    scale = results.get("E1")
    tasks = tasks_run(scale) or ["catch"]
    arms = arms_run(scale, "score")
    rows = [] if scale is None else scale.estimates.where("score")
    seeds = any(row.seeds is not None for row in rows)
    words = evidence(cells(scale, "score"))
    width = "Beside the names: class and ends of the window of scales with a score of at least 0.8."
    if scale is None or not scale.windows:
        width = ""
    page = Page(0.2 + 2.75 * len(tasks), caption([scale], words, THRESHOLD, arm_words(arms), width))
    for turn, task in enumerate(tasks):
        axes = page.axes(0.62, 0.35 + 2.75 * turn, 5.0, 2.15)
        letter = "ABCDEFGH"[turn] if len(tasks) > 1 else ""
        page.heading(axes, letter, f"{TASKS.get(task, task)}: final score over reward scale")
        if scale is None:
            absent(axes)
            continue
        curves = curves_by_arm(scale, "score", task=task)
        ends = score_curves(axes, curves, bands=not seeds)
        pairs = zip(ends, curves, strict=True)
        name_ends(axes, [_with_window(end, scale, task, arm) for end, arm in pairs])
    return page.figure


def _with_window(end: End, results: Results, task: str, arm: str) -> End:
    """Print the class and the ends of an arm's window behind its name."""
    row = results.estimates.find("width", task=task, arm=arm, criterion="0.8")
    found = None if row is None else window_of(row)
    return end if found is None else end._replace(text=f"{end.text}: {found}")
