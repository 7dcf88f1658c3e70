"""Figures of changes within a lifetime: learning curves around the switch, and recovery (E3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.assays.estimates import count_text
from rulescope.assays.figure_data import (
    Curve,
    arms_run,
    caption,
    cell,
    cells,
    evidence,
    explain_arms,
    interval_text,
    trajectories,
)
from rulescope.assays.panels import (
    Row,
    arm_row,
    draw_curves,
    draw_forest,
    set_difference_axis,
    set_score_axis,
    set_score_axis_across,
    write_beside,
)
from rulescope.render.arm_styles import ArmStyle, arm_style, subject
from rulescope.render.line_labels import End, name_ends
from rulescope.render.palette import DARK, GREY
from rulescope.render.style import Page, absent, styled

if TYPE_CHECKING:
    from rulescope.assays.estimates import Label
    from rulescope.assays.results import Results
    from rulescope.stats import Estimate

CONDITIONS = {
    "action-flip": "action flip",
    "reward-move": "reward move",
    "observation-flip": "observation flip",
    "reward-sign": "reward sign",
    "none": "no change",
}
SWITCHED = ("action-flip", "reward-move")
BOARDS = {"catch": "8×8", "catch-long": "16×16"}
REPLAYS = {"100k": "dqn", "28672": "dqn-28672", "cleared": "dqn-cleared"}
REPLAY_ARMS = ("rule", *REPLAYS.values())
AREA = "AUC: mean score from the switch to the end."
PAIR = "Hollow: AUC, the mean score from the switch to the end; filled: mean of the last tenth."
TIMES = (
    "B, D: mean time from the switch to a score of 0.8, over all lifetimes (those that never attain"
    " it count with the whole horizon, the dashed line); beside it, how many attained."
)
SWITCH = (0, (4, 2))
"""The line style of the switch and of the horizon."""


def replay_style(arm: str) -> ArmStyle:
    """Return the style of ``arm``; beside other replays, DQN is named by the size of its own."""
    return arm_style(arm)._replace(name="DQN 100,000") if arm == "dqn" else arm_style(arm)


def draw_logs(
    axes: Axes, results: Results | None, arms: Sequence[str], *labels: str
) -> tuple[list[Curve], list[End]]:
    """Draw the log of each arm at ``labels`` with its band, and the switch.

    Return the lines, and where they end.
    """
    lines = trajectories(results, arms, *labels)
    ends = draw_curves(
        axes, [(replay_style(arm), line) for arm, line in lines.items()], markers=False
    )
    if results is not None and lines:
        at, last = float(results.series["switch"][0]), float(results.series["iteration"][-1])
        axes.axvline(at, color=GREY, lw=0.8, ls=SWITCH, zorder=1)
        axes.set(xlim=(0, last), xlabel="iteration (dashed: the switch)")
        axes.set_xticks([0.0, at, last], [f"{tick:,.0f}" for tick in (0.0, at, last)])
        axes.get_xticklabels()[0].set_horizontalalignment("left")  # neighbouring panels stand close
        axes.get_xticklabels()[-1].set_horizontalalignment("right")
    return list(lines.values()), ends


@styled
def draw_replay_detail(results: Mapping[str, Results]) -> Figure:
    """``fig:detail-replay``: learning curves of the rule and DQN in Catch, and their contrasts."""
    e3 = results.get("E3")
    used = [
        e
        for condition in SWITCHED
        for arm in REPLAY_ARMS
        for e in cells(e3, "auc", condition=condition, task="catch", arm=arm)
    ]
    bands = evidence(used).replace("intervals:", "bands:")
    families = {e.family for e in cells(e3, "contrast") if e.method == "bootstrap"} - {1}
    wide = f"B, D: adjusted for a family of {max(families)}." if families else ""
    run = arms_run(e3, "auc")
    words = explain_arms(["E3"], [arm for arm in REPLAY_ARMS if arm in run])
    page = Page(4.6, caption([e3], bands, wide, AREA if e3 else "", words))
    drawn: list[tuple[Axes, list[End]]] = []
    every: list[Curve] = []
    contrasts: list[Axes] = []
    for row, condition in enumerate(SWITCHED):
        top = 0.35 + 2.25 * row
        title = f"Catch 8×8, {CONDITIONS[condition]}"
        left = page.panel("AC"[row], title, (0.62, top, 2.55, 1.65))
        lines, ends = draw_logs(left, e3, REPLAY_ARMS, condition, "catch")
        title = f"{CONDITIONS[condition].capitalize()}, AUC: {subject()} − DQN"
        right = page.panel("BD"[row], title, (4.82, top, 0.95, 1.65), 0.95)
        if lines:
            every += lines
            drawn.append((left, ends))
        contrasts += [right] if _draw_contrasts(right, e3, condition) else []
    for axes, ends in drawn:
        set_score_axis(axes, every)
        name_ends(axes, ends)
    set_difference_axis(contrasts, "difference in score", ticks=3)
    return page.finish()


def _draw_contrasts(axes: Axes, results: Results | None, condition: str) -> bool:
    """Draw the rule minus each DQN with its numbers; return whether there is any."""
    found = {
        arm: e
        for replay, arm in REPLAYS.items()
        if (e := cell(results, "contrast", condition=condition, replay=replay)) is not None
    }
    rows = [arm_row(replay_style(arm), e) for arm, e in found.items()]
    # the caption names the family
    write_beside(axes, [interval_text(e, "{:.3f}".format) for e in found.values()])
    return draw_forest(axes, rows, labelsize=None)


@styled
def draw_catch_recovery(results: Mapping[str, Results]) -> Figure:
    """``v5:fig:recovery-catch``: levels and times to competence after an action flip."""
    e3 = results.get("E3")
    flip = "action-flip"
    used = [e for name in ("auc", "final", "rmd") for e in cells(e3, name, condition=flip)]
    arms = {task: arms_run(e3, "auc", condition=flip, task=task) for task in BOARDS}
    heights = {task: 0.46 * max(len(found), 3) for task, found in arms.items()}
    every = [arm for found in arms.values() for arm in found]
    words = (evidence(used), PAIR, TIMES, explain_arms(["E3"], every)) if used else ()
    page = Page(sum(heights.values()) + 1.6, caption([e3], *words))
    top = 0.35
    for turn, (task, board) in enumerate(BOARDS.items()):
        box = (1.15, top, 2.65, heights[task])
        levels = page.panel("AC"[turn], f"{board}, action flip: AUC (○), final (●)", box, 1.05)
        box = (4.2, top, 2.3, heights[task])
        delays = page.panel("BD"[turn], f"{board}, action flip: time to a score of 0.8", box, 0.25)
        if e3 is not None and arms[task]:
            _draw_levels(levels, e3, arms[task], condition=flip, task=task)
            _draw_delays(delays, e3, arms[task], condition=flip, task=task)
        else:
            absent(levels)
            absent(delays)
        top += heights[task] + 0.85
    return page.finish()


def area_and_final(
    name: str, how: ArmStyle, area: Estimate | None, final: Estimate | None, ink: str = DARK
) -> Row:
    """Return a row with an area (hollow) above a final window (filled)."""
    return Row(name, [(how._replace(filled=False), area), (how._replace(filled=True), final)], ink)


def _draw_levels(axes: Axes, results: Results, arms: Sequence[str], **labels: str) -> None:
    styles = {arm: replay_style(arm) for arm in arms}
    rows = [
        area_and_final(
            how.name,
            how,
            cell(results, "auc", arm=arm, **labels),
            cell(results, "final", arm=arm, **labels),
            how.ink,
        )
        for arm, how in styles.items()
    ]
    draw_forest(axes, rows, apart=0.46, labelsize=None)
    set_score_axis_across(axes, rows)


def _draw_delays(axes: Axes, results: Results, arms: Sequence[str], **labels: str) -> None:
    at: dict[str, Label] = {"threshold": 0.8, **labels}
    shares = [cell(results, "attained", arm=arm, **at) for arm in arms]
    styles = [replay_style(arm)._replace(filled=True) for arm in arms]
    times = [cell(results, "time", arm=arm, **at) for arm in arms]
    draw_forest(axes, [arm_row(how, e, "") for how, e in zip(styles, times, strict=True)])
    write_beside(axes, ["" if share is None else count_text(share) or "" for share in shares])
    horizon = float(results.series["horizon"][0])
    axes.axvline(horizon, color=DARK, lw=0.8, ls=SWITCH, zorder=1)
    axes.set(xlim=(0, horizon * 1.04), xlabel="thousand interactions since the switch")
    axes.locator_params(axis="x", nbins=5)
    axes.grid(axis="x")
