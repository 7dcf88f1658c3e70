"""Figures of changes within a lifetime: streams around the switch, and what follows (E3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.assays.figure_data import (
    Curve,
    adjusted,
    caption,
    estimate,
    estimates,
    evidence,
    parts,
    reach,
)
from rulescope.assays.panels import dots, draw_curve, score_axis
from rulescope.render.line_labels import End, name_ends
from rulescope.render.style import (
    DARK,
    GREY,
    PALE,
    SMALL,
    Look,
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

CONDITIONS = {
    "action-flip": "action flip",
    "reward-move": "reward move",
    "observation-flip": "observation flip",
    "reward-sign": "reward sign",
    "none": "no change",
}
BOARDS = {"catch": "8×8", "catch-long": "16×16"}
REPLAYS = {"100k": "dqn", "28672": "dqn-28672", "cleared": "dqn-cleared"}
REPLAY_ARMS = ("disco", *REPLAYS.values())
ARM_WORDS = {
    "disco-freeze": "Frozen: the recurrent state is kept from before the switch on, all else goes"
    " on learning.",
    "disco-no-aux": "No aux: without auxiliary losses.",
    "dqn-28672": "DQN 28,672: as many transitions in replay as the learner of Disco103 has.",
    "dqn-cleared": "Cleared: replay emptied at the switch.",
}
AREA = "AUC: mean score from the switch to the end."
PAIR = "Hollow: AUC, the mean score from the switch to the end; filled: mean of the last tenth."


def named(arm: str) -> Look:
    """Return how ``arm`` is drawn; beside other replays, DQN is named by the size of its own."""
    return look(arm)._replace(name="DQN 100,000") if arm == "dqn" else look(arm)


def arm_words(arms: Sequence[str]) -> str:
    """Explain the names of those ``arms`` that need it."""
    return " ".join(words for arm, words in ARM_WORDS.items() if arm in arms)


def in_words(found: Estimate) -> str:
    """Return an estimate with its interval, if it has one; the family is told elsewhere."""
    method = found.method if found.n > 1 else "none"  # from itself to itself
    return adjusted(replace(found, family=1, method=method))


def stream_panel(
    axes: Axes, results: Results | None, start: str, arms: Sequence[str]
) -> tuple[list[Curve], list[End]]:
    """Draw the log of the cells ``{start}{arm}`` with their bands, and the switch.

    Return the lines, and where they end.
    """
    lines: list[Curve] = []
    ends: list[End] = []
    series = {} if results is None else results.series
    for arm in arms:
        band = series.get(f"trajectory/{start}{arm}")
        if band is None or not np.isfinite(band[0]).any():
            continue
        line = Curve(series["iteration"], *band)
        draw_curve(axes, line, named(arm), dots=False)
        lines.append(line)
        ends.append(End(named(arm).name, named(arm), *line.last, line.level))
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
        for condition in ("action-flip", "reward-move")
        for arm in REPLAY_ARMS
        for e in [estimate(e3, f"auc/{condition}/catch/{arm}")]
        if e is not None
    ]
    contrasts = estimates(e3, "contrast/")
    bands = evidence(used).replace("intervals:", "bands:")
    families = {e.family for e in contrasts if e.method == "bootstrap"} - {1}
    wide = f"B, D: adjusted for a family of {max(families)}." if families else ""
    arms = [arm for arm in REPLAY_ARMS if arm in parts(e3, "auc/", 2)]
    page = Page(4.6, caption([e3], bands, wide, AREA if e3 else "", arm_words(arms), seeds=False))
    ends: list[tuple[Axes, list[End]]] = []
    every: list[Curve] = []
    scopes: list[Axes] = []
    for row, condition in enumerate(("action-flip", "reward-move")):
        top = 0.35 + 2.25 * row
        left = page.axes(0.62, top, 2.55, 1.65)
        page.heading(left, "AC"[row], f"Catch 8×8, {CONDITIONS[condition]}")
        lines, names = stream_panel(left, e3, f"{condition}/catch/", REPLAY_ARMS)
        right = page.axes(4.82, top, 0.95, 1.65)
        page.heading(right, "BD"[row], f"AUC: {subject()} minus DQN, paired", indent=0.85)
        if lines:
            every += lines
            ends.append((left, names))
        if _contrasts(right, e3, condition):
            scopes.append(right)
    for axes, names in ends:
        score_axis(axes, every)
        name_ends(axes, names)
    _same_breadth(scopes, "difference in score")
    return page.figure


def _contrasts(axes: Axes, results: Results | None, condition: str) -> bool:
    """Draw the rule minus each DQN, a row each with its numbers; tell whether there is any."""
    found = {replay: estimate(results, f"contrast/{condition}/{replay}") for replay in REPLAYS}
    known = [(REPLAYS[replay], e) for replay, e in found.items() if e is not None]
    if not known:
        absent(axes)
        return False
    for turn, (arm, e) in enumerate(known):
        dots(axes, [-turn], [e], named(arm), across=True)
        beside(axes, -turn, in_words(e))
    name_rows(axes, [arm for arm, _ in known])
    return True


def beside(axes: Axes, row: float, words: str) -> None:
    """Write ``words`` right of ``axes``, at the height of a row."""
    axes.annotate(
        words,
        (1.0, row),
        xycoords=axes.get_yaxis_transform(),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        size=SMALL,
    )


def name_rows(axes: Axes, arms: Sequence[str]) -> None:
    """Give each row the name of its arm, in the colour of the arm."""
    axes.set_yticks([-turn for turn in range(len(arms))], [named(arm).name for arm in arms])
    for tick, arm in zip(axes.get_yticklabels(), arms, strict=True):
        tick.set_color(named(arm).ink)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-len(arms) + 0.4, 0.6)


def _same_breadth(panels: Sequence[Axes], label: str) -> None:
    """Give panels of differences one horizontal axis with zero in sight."""
    if not panels:
        return
    ends = [x for axes in panels for line in axes.lines for x in np.ravel(line.get_xdata())]
    known = np.array([*ends, 0.0], dtype=np.float64)
    low, high = float(np.nanmin(known)), float(np.nanmax(known))
    room = 0.08 * (high - low) or 0.1
    for axes in panels:
        axes.axvline(0.0, color=GREY, lw=0.8, zorder=1)
        axes.set_xlim(low - room, high + room)
        axes.locator_params(axis="x", nbins=3)
        axes.grid(axis="x")
        axes.set_xlabel(label, labelpad=2)


@styled
def recovery_catch(results: Mapping[str, Results]) -> Figure:
    """``v5:fig:recovery-catch``: levels and times to competence after an action flip."""
    e3 = results.get("E3")
    start = "action-flip"
    used = [e for kind in ("auc", "final", "rmd") for e in estimates(e3, f"{kind}/{start}/")]
    arms = {task: in_order(parts(e3, f"auc/{start}/{task}/", 0)) for task in BOARDS}
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
        if arms[task]:
            _levels(levels, e3, f"{start}/{task}", arms[task])
            _delays(delays, e3, f"{start}/{task}", arms[task])
        else:
            absent(levels)
            absent(delays)
        top += heights[task] + 0.85
    return page.figure


def pair_row(
    axes: Axes, row: float, area: Estimate | None, final: Estimate | None, how: Look
) -> None:
    """Draw an area (hollow) above a final window (filled) in one row."""
    dots(axes, [row + 0.15], [area], how._replace(filled=False), across=True)
    dots(axes, [row - 0.15], [final], how._replace(filled=True), across=True)


def _levels(axes: Axes, results: Results | None, start: str, arms: Sequence[str]) -> None:
    ends = [0.0, 1.0]
    for turn, arm in enumerate(arms):
        pair = [estimate(results, f"{kind}/{start}/{arm}") for kind in ("auc", "final")]
        pair_row(axes, -turn, pair[0], pair[1], named(arm))
        ends += reach(pair)
    name_rows(axes, arms)
    low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
    axes.set_xlim(low - 0.04, high + 0.04)
    for reference in (0.0, 1.0):
        axes.axvline(reference, color=PALE, lw=0.8, zorder=0)
    axes.locator_params(axis="x", nbins=6)
    axes.grid(axis="x")
    axes.set_xlabel("score (0 random, 1 optimal)", labelpad=2)


def _delays(axes: Axes, results: Results | None, start: str, arms: Sequence[str]) -> None:
    found = [estimate(results, f"time/{start}/{arm}/0.8") for arm in arms]
    for turn, (arm, e) in enumerate(zip(arms, found, strict=True)):
        dots(axes, [-turn], [e], named(arm)._replace(filled=True), across=True)
        share = estimate(results, f"attained/{start}/{arm}/0.8")
        if share is not None:
            beside(axes, -turn, f"{round(share.value * share.n)}/{share.n}")
    name_rows(axes, arms)
    axes.set_yticklabels([])
    horizon = 0.0 if results is None else float(results.series["horizon"][0])
    axes.axvline(horizon, color=DARK, lw=0.8, ls=(0, (4, 2)), zorder=1)
    axes.set_xlim(0, horizon * 1.04)
    axes.locator_params(axis="x", nbins=5)
    axes.grid(axis="x")
    axes.set_xlabel("thousand interactions since the switch", labelpad=2)
