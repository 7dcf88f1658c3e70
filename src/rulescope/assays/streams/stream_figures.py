"""Figures of streams and boundaries: exposure, synthetic terminals, CatchStream, masking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.assays.estimates import count_text
from rulescope.assays.figure_data import (
    arms_run,
    caption,
    cell,
    cells,
    count_words,
    evidence,
    interval_text,
    point,
    reach,
    signed,
    trajectories,
)
from rulescope.assays.panels import (
    Row,
    arm_row,
    draw_curves,
    draw_forest,
    name_marks,
    note_not_run,
    set_difference_axis,
    set_score_axis,
    with_styles,
    write_beside,
)
from rulescope.render.arm_styles import arm_style, in_order
from rulescope.render.line_labels import End, name_ends
from rulescope.render.palette import DARK, PALE, PALE_BLUE, VERMILION, readable
from rulescope.render.style import SMALL, Page, absent, styled

if TYPE_CHECKING:
    from rulescope.assays.estimates import Label
    from rulescope.assays.results import Results
    from rulescope.stats import Estimate

WORDS = (
    "Score: reward per interaction over the last 4,000, 0 as of random and 1 as of optimal play."
    " Dots: final score. Dotted line: the threshold of 0.8."
)


@styled
def draw_streams(results: Mapping[str, Results]) -> Figure:
    """``v5:fig:app-streams``: four worlds, masking in Breakout, and signalled ends."""
    exposure, stream, masking = (results.get(name) for name in ("exposure", "E-A3c", "masking"))
    effects = cells(masking, "effect")
    used = [*cells(exposure, "score"), *cells(stream, "score"), *effects]
    within = "E: masked minus episodic within each seed." if effects else ""
    words = [evidence(used), WORDS if exposure or stream else "", within]
    page = Page(7.0, caption([exposure, stream, masking], *words), merge=True)
    worlds: tuple[tuple[Results | None, dict[str, Label], str], ...] = (
        (exposure, {"condition": "episodic"}, "Catch, episode ends signalled"),
        (exposure, {"condition": "masked"}, "Catch, ends not signalled (masked)"),
        (exposure, {"condition": "natural"}, "Tracking: no episodes"),
        (stream, {}, "CatchStream: no episodes"),
    )
    for turn, (found, labels, title) in enumerate(worlds):
        left, top = 0.62 + 3.5 * (turn % 2), 0.35 + 2.42 * (turn // 2)
        curves = page.panel("ABCD"[turn], title, (left, top, 1.7, 1.7))
        _draw_learning(curves, page.axes(left + 1.74, top, 0.4, 1.7), found, labels)
    box = (0.62, 5.19, 1.4, 1.42)
    _draw_effects(page.panel("E", "Breakout: masked − episodic", box), masking)
    box = (4.24, 5.19, 2.86, 1.42)
    _draw_signals(page.panel("F", "What happens, and what is signalled", box, data=False))
    return page.finish()


def _draw_learning(
    axes: Axes, ends: Axes, results: Results | None, labels: Mapping[str, Label]
) -> None:
    """Draw the reward rate of each arm at ``labels`` and, in ``ends`` beside it, the last one."""
    arms = arms_run(results, "score", planned=False, **labels)
    if not arms:
        absent(axes)
        return
    lines = {
        arm: line._replace(x=line.x / 1000)
        for arm, line in trajectories(results, arms, *labels.values(), along="steps").items()
    }
    if lines:
        draw_curves(axes, with_styles(lines), markers=False)
    finals = {arm: cell(results, "score", arm=arm, **labels) for arm in arms}
    known = {arm: final for arm, final in finals.items() if final is not None}
    draw_forest(
        ends, [arm_row(arm_style(arm), e, "") for arm, e in known.items()], upright=True, size=4
    )
    for panel in (axes, ends):
        every = [*lines.values(), *map(point, known.values())]
        set_score_axis(panel, every, (0.8,), "score of the reward rate")
    axes.set(xlim=(0, max([1.0, *(float(line.x[-1]) for line in lines.values())])))
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel("interactions (thousands)")
    ends.set(xlim=(-0.7, len(arms) - 0.3), xticks=[], ylabel="")
    ends.set_xlabel("\n".join(filter(None, ["final", count_words(known.values())])), labelpad=8)
    ends.tick_params(axis="y", length=0, labelleft=False)
    ends.spines["left"].set_color(PALE)
    names = [
        End(arm_style(arm).name, arm_style(arm), float(turn), final.value, final.value)
        for turn, (arm, final) in enumerate(known.items())
    ]
    name_ends(ends, names, offset=0.1)


def _draw_effects(axes: Axes, results: Results | None) -> None:
    """Draw masked minus episodic of every arm, a row each, with the numbers beside."""
    arms = arms_run(results, "effect")
    found = {arm: e for arm in arms if (e := cell(results, "effect", arm=arm)) is not None}
    if not draw_forest(
        axes, [arm_row(arm_style(arm), e) for arm, e in found.items()], labelsize=7.2
    ):
        return
    numbers = [interval_text(e, lambda rate: f"{1000 * rate:.1f}") for e in found.values()]
    write_beside(axes, numbers)
    label = "reward per 1,000 interactions"
    set_difference_axis([axes], label, room=0.12, least=1e-3, ticks=3)
    axes.xaxis.set_major_formatter(lambda value, _: signed(f"{round(1000 * value, 6):g}"))


SHOWN = 30
"""Steps of a lane in the schematic."""
SIGNALS: tuple[tuple[str, int | None, int | None], ...] = (
    ("Catch, episodic", 7, 7),
    ("Catch, masked", 7, None),
    ("Catch, synthetic 29", 7, 29),
    ("Tracking, CatchStream", None, None),
)
"""A name, steps of an episode, and steps between two signalled ends (None: never)."""
KEY = -0.2
"""Height of the key below the schematic, where the axis has its name."""


def _draw_signals(axes: Axes) -> None:
    """Draw episodes as bars and the signalled ends as triangles above."""
    for turn, (name, episode, interval) in enumerate(SIGNALS):
        y = -float(turn)
        starts = range(0, SHOWN, episode or SHOWN)
        for start in starts:
            stop = min(start + (episode or SHOWN), SHOWN)
            axes.barh(y, stop - start - 0.5, 0.3, start + 0.25, color=PALE_BLUE, lw=0)
        marks = range(interval or SHOWN + 1, SHOWN + 1, interval or 1)
        axes.plot(list(marks), [y + 0.32] * len(marks), "v", color=VERMILION, ms=4.5, clip_on=False)
        axes.text(-0.8, y, name, ha="right", va="center", size=SMALL, color=DARK)
    axes.set(xlim=(-14.5, SHOWN), ylim=(-len(SIGNALS) + 0.3, 0.75))
    axes.set_yticks([])
    axes.set_xticks([0, 7, 14, 21, 28])
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_bounds(0, SHOWN)
    axes.set_xlabel("step of a lane", loc="right")
    key = axes.get_xaxis_transform()
    axes.plot([-13.8], [KEY], "v", color=VERMILION, ms=4.5, transform=key, clip_on=False)
    words = "end signalled"
    ink = readable(VERMILION)
    axes.text(-12.6, KEY, words, transform=key, size=SMALL, va="center", color=ink)
    axes.text(-0.4, KEY, "gap: reset", transform=key, size=SMALL, va="center", color=DARK)


BOUNDARIES = (
    ("exposure", "episodic", "truth"),
    ("synthetic", "synth7", "7"),
    ("synthetic", "synth29", "29"),
    ("synthetic", "synth100", "100"),
    ("exposure", "masked", "never"),
)
"""Which episode ends are signalled in Catch: assay, condition, words."""


@styled
def draw_synthetic_terminals(results: Mapping[str, Results]) -> Figure:
    """``synthetic-terminals``: score and time to 0.8 by how often an end is signalled in Catch."""
    used = [
        found
        for name, condition, _ in BOUNDARIES
        for quantity in ("score", "steps")
        for found in cells(results.get(name), quantity, condition=condition)
    ]
    text = (
        "Catch resets after every 7 steps, whatever is signalled. Score: reward per"
        " interaction, 0 as of random and 1 as of optimal play. B: lifetimes that reach 0.8;"
        " in brackets how many of all do, where some do not."
    )
    shown = [results.get(name) for name in ("exposure", "synthetic")]
    page = Page(2.65, caption(shown, evidence(used), text))
    scores = page.panel("A", "Final score", (0.62, 0.35, 2.5, 1.9))
    every = _draw_by_boundary(scores, results, "score")
    if every:
        set_score_axis(scores, map(point, every), (0.8,), "score of the reward rate")
    times = page.panel("B", "Interactions until 0.8", (3.9, 0.35, 2.5, 1.9))
    every = _draw_by_boundary(times, results, "steps")
    if every:
        times.set(ylim=(0, max([1.0, *reach(every)]) * 1.3), ylabel="thousands")
        times.yaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}")
        times.grid(axis="y")
        name_marks(times, map(arm_style, _boundary_arms(results)))
    return page.finish()


def _boundary_arms(results: Mapping[str, Results]) -> list[str]:
    """Return those of the two arms compared that were run under any boundary."""
    run = [
        arm
        for name, condition, _ in BOUNDARIES
        for arm in arms_run(results.get(name), "score", condition=condition)
    ]
    return in_order({"rule", "a2c"} & set(run))


def _draw_by_boundary(axes: Axes, results: Mapping[str, Results], quantity: str) -> list[Estimate]:
    """Draw a readout over what is signalled, an arm beside the other; return what is drawn."""
    arms, apart = _boundary_arms(results), 0.36
    run = [
        each for each in BOUNDARIES if arms_run(results.get(each[0]), "score", condition=each[1])
    ]
    note_not_run(axes, (f"ends signalled: {each[2]}" for each in BOUNDARIES if each not in run))
    if all(condition == "episodic" for _, condition, _ in run):  # nothing to compare it with
        absent(axes)
        return []
    rows = [
        Row(
            words,
            [
                (arm_style(arm), cell(results.get(name), quantity, condition=condition, arm=arm))
                for arm in arms
            ],
        )
        for name, condition, words in run
    ]
    if not draw_forest(axes, rows, upright=True, apart=apart, labelsize=None):
        return []
    for place, (name, condition, _) in enumerate(run):
        for turn, arm in enumerate(arms):
            share = cell(results.get(name), "fraction", condition=condition, arm=arm)
            if quantity == "steps" and share is not None and share.value < 1.0:
                _write_share(axes, place, share, arm, turn)
    axes.set_xlabel("steps between signalled ends")
    return [found for row in rows for _, found in row.marks if found is not None]


def _write_share(axes: Axes, x: float, share: Estimate, arm: str, turn: int) -> None:
    """Write how many lifetimes of an arm reach the threshold, in its line above the marks."""
    axes.annotate(
        f"({count_text(share)})",
        (x, 1.0),
        xycoords=axes.get_xaxis_transform(),
        xytext=(0, -9 * turn),
        textcoords="offset points",
        ha="center",
        va="top",
        size=SMALL,
        color=arm_style(arm).ink,
    )
