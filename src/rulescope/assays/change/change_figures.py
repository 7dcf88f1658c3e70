"""Figures of changes within a lifetime: streams around the switch, and what follows (E3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.assays.estimates import count_text, join_labels
from rulescope.assays.figure_data import (
    Curve,
    adjusted,
    arms_run,
    caption,
    cell,
    cells,
    evidence,
    reach,
)
from rulescope.assays.panels import (
    difference_axis,
    dots,
    draw_curve,
    line_end,
    name_rows,
    score_axis,
    write_beside,
)
from rulescope.render.line_labels import End, name_ends
from rulescope.render.style import (
    DARK,
    GREY,
    PALE,
    Look,
    Page,
    absent,
    look,
    styled,
    subject,
)

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
ARM_WORDS = {
    "rule-freeze": "Frozen: the recurrent state is kept from before the switch on, all else goes"
    " on learning.",
    "rule-no-aux": "No aux: without auxiliary losses.",
    "dqn-28672": "DQN 28,672: as many transitions in replay as the learner of Disco103 has.",
    "dqn-cleared": "Cleared: replay emptied at the switch.",
}
AREA = "AUC: mean score from the switch to the end."
PAIR = "Hollow: AUC, the mean score from the switch to the end; filled: mean of the last tenth."


def replay_look(arm: str) -> Look:
    """Return how ``arm`` is drawn; beside other replays, DQN is named by the size of its own."""
    return look(arm)._replace(name="DQN 100,000") if arm == "dqn" else look(arm)


def name_arms(axes: Axes, arms: Sequence[str]) -> None:
    """Give each arm a row of ``axes``."""
    name_rows(axes, [(replay_look(arm).name, replay_look(arm)) for arm in arms])


def arm_words(arms: Sequence[str]) -> str:
    """Explain the names of those ``arms`` that need it."""
    return " ".join(words for arm, words in ARM_WORDS.items() if arm in arms)


def stream_panel(
    axes: Axes, results: Results | None, arms: Sequence[str], **labels: str
) -> tuple[list[Curve], list[End]]:
    """Draw the log of each arm at ``labels`` with its band, and the switch.

    Return the lines, and where they end.
    """
    lines: list[Curve] = []
    ends: list[End] = []
    series = {} if results is None else results.series
    for arm in arms:
        band = series.get(join_labels("trajectory", *labels.values(), arm))
        if band is None or not np.isfinite(band[0]).any():
            continue
        line = Curve(series["iteration"], *band)
        draw_curve(axes, line, replay_look(arm), dots=False)
        lines.append(line)
        ends.append(line_end(line, replay_look(arm)))
    if not lines:
        absent(axes)
        return [], []
    at = float(series["switch"][0])
    axes.axvline(at, color=GREY, lw=0.8, ls=(0, (4, 2)), zorder=1)
    axes.set_xlim(0, float(series["iteration"][-1]))
    ticks = [0.0, at, float(series["iteration"][-1])]
    axes.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    first, _, last = axes.get_xticklabels()
    first.set_horizontalalignment("left")  # neighbouring panels stand close
    last.set_horizontalalignment("right")
    axes.set_xlabel("iteration (dashed: the switch)", labelpad=2)
    return lines, ends


@styled
def detail_replay(results: Mapping[str, Results]) -> Figure:
    """``fig:detail-replay``: streams of the rule and DQN in 8×8 Catch, and their contrasts."""
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
    words = arm_words([arm for arm in REPLAY_ARMS if arm in run])
    page = Page(4.6, caption([e3], bands, wide, AREA if e3 else "", words, seeds=False))
    ends: list[tuple[Axes, list[End]]] = []
    every: list[Curve] = []
    contrasts: list[Axes] = []
    for row, condition in enumerate(SWITCHED):
        top = 0.35 + 2.25 * row
        left = page.axes(0.62, top, 2.55, 1.65)
        page.heading(left, "AC"[row], f"Catch 8×8, {CONDITIONS[condition]}")
        lines, names = stream_panel(left, e3, REPLAY_ARMS, condition=condition, task="catch")
        right = page.axes(4.82, top, 0.95, 1.65)
        page.heading(right, "BD"[row], f"AUC: {subject()} minus DQN, paired", indent=0.85)
        if lines:
            every += lines
            ends.append((left, names))
        if _contrasts(right, e3, condition):
            contrasts.append(right)
    for axes, names in ends:
        score_axis(axes, every)
        name_ends(axes, names)
    difference_axis(contrasts, "difference in score")
    return page.figure


def _contrasts(axes: Axes, results: Results | None, condition: str) -> bool:
    """Draw the rule minus each DQN with its numbers; return whether there is any."""
    found = {
        arm: e
        for replay, arm in REPLAYS.items()
        if (e := cell(results, "contrast", condition=condition, replay=replay)) is not None
    }
    if not found:
        absent(axes)
        return False
    for row, (arm, e) in enumerate(found.items()):
        dots(axes, [-row], [e], replay_look(arm), across=True)
    name_arms(axes, list(found))
    write_beside(axes, [_in_words(e) for e in found.values()])
    return True


def _in_words(found: Estimate) -> str:
    """Return an estimate with its interval, if it has one; the caption names the family."""
    method = found.method if found.n > 1 else "none"  # from itself to itself
    return adjusted(replace(found, family=1, method=method))


@styled
def recovery_catch(results: Mapping[str, Results]) -> Figure:
    """``v5:fig:recovery-catch``: levels and times to competence after an action flip."""
    e3 = results.get("E3")
    flip = "action-flip"
    used = [e for name in ("auc", "final", "rmd") for e in cells(e3, name, condition=flip)]
    arms = {task: arms_run(e3, "auc", condition=flip, task=task) for task in BOARDS}
    heights = {task: 0.3 * max(len(found), 3) for task, found in arms.items()}
    times = (
        "B, D: mean time from the switch to a score of 0.8, by all lifetimes (those that never"
        " attain it count with the whole horizon, the dashed line); beside it, how many attained."
    )
    every = [arm for found in arms.values() for arm in found]
    words = (evidence(used), PAIR, times, arm_words(every)) if used else ()
    page = Page(sum(heights.values()) + 1.6, caption([e3], *words))
    top = 0.35
    for turn, (task, board) in enumerate(BOARDS.items()):
        levels = page.axes(1.15, top, 2.65, heights[task])
        delays = page.axes(4.2, top, 2.3, heights[task])
        page.heading(levels, "AC"[turn], f"{board}, action flip: AUC (○), final (●)", indent=1.05)
        page.heading(
            delays, "BD"[turn], f"{board}, action flip: time to a score of 0.8", indent=0.25
        )
        if e3 is not None and arms[task]:
            _levels(levels, e3, arms[task], condition=flip, task=task)
            _delays(delays, e3, arms[task], condition=flip, task=task)
        else:
            absent(levels)
            absent(delays)
        top += heights[task] + 0.85
    return page.figure


def area_and_final(
    axes: Axes, row: float, area: Estimate | None, final: Estimate | None, how: Look
) -> None:
    """Draw an area (hollow) above a final window (filled) in one row."""
    dots(axes, [row + 0.15], [area], how._replace(filled=False), across=True)
    dots(axes, [row - 0.15], [final], how._replace(filled=True), across=True)


def _levels(axes: Axes, results: Results, arms: Sequence[str], **labels: str) -> None:
    ends = [0.0, 1.0]
    for row, arm in enumerate(arms):
        area, final = (cell(results, name, arm=arm, **labels) for name in ("auc", "final"))
        area_and_final(axes, -row, area, final, replay_look(arm))
        ends += reach([area, final])
    name_arms(axes, arms)
    axes.set_xlim(min(ends) - 0.04, max(ends) + 0.04)
    for reference in (0.0, 1.0):
        axes.axvline(reference, color=PALE, lw=0.8, zorder=0)
    axes.locator_params(axis="x", nbins=6)
    axes.grid(axis="x")
    axes.set_xlabel("score (0 random, 1 optimal)", labelpad=2)


def _delays(axes: Axes, results: Results, arms: Sequence[str], **labels: str) -> None:
    counts = []
    for row, arm in enumerate(arms):
        at: dict[str, Label] = {"arm": arm, "threshold": 0.8, **labels}
        time, share = cell(results, "time", **at), cell(results, "attained", **at)
        dots(axes, [-row], [time], replay_look(arm)._replace(filled=True), across=True)
        counts.append("" if share is None else count_text(share) or "")
    write_beside(axes, counts)
    name_arms(axes, arms)
    axes.set_yticklabels([])
    horizon = float(results.series["horizon"][0])
    axes.axvline(horizon, color=DARK, lw=0.8, ls=(0, (4, 2)), zorder=1)
    axes.set_xlim(0, horizon * 1.04)
    axes.locator_params(axis="x", nbins=5)
    axes.grid(axis="x")
    axes.set_xlabel("thousand interactions since the switch", labelpad=2)
