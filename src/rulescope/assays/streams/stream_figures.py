"""Figures of streams and boundaries: exposure, synthetic terminals, CatchStream, masking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.assays.estimates import count_text, join_labels
from rulescope.assays.figure_data import (
    Curve,
    arms_run,
    caption,
    cell,
    cells,
    evidence,
    point,
    reach,
)
from rulescope.assays.panels import (
    difference_axis,
    dots,
    draw_curve,
    forest,
    score_axis,
    write_beside,
)
from rulescope.render.line_labels import End, name_apart, name_ends
from rulescope.render.style import DARK, GREY, PALE, SMALL, Page, absent, in_order, look, styled

if TYPE_CHECKING:
    from rulescope.assays.estimates import Label
    from rulescope.assays.results import Results
    from rulescope.stats import Estimate

WORDS = (
    "Score: reward per interaction over the last 4,000, 0 as of random and 1 as of optimal play."
    " Dots: final score. Dotted line: the threshold of 0.8."
)


@styled
def app_streams(results: Mapping[str, Results]) -> Figure:
    """``v5:fig:app-streams``: four worlds, masking in Breakout, and signalled ends."""
    exposure, stream, masking = (results.get(name) for name in ("exposure", "E-A3c", "masking"))
    effects = cells(masking, "effect")
    used = [*cells(exposure, "score"), *cells(stream, "score"), *effects]
    within = "E: masked minus episodic within each seed." if effects else ""
    words = [evidence(used), WORDS if exposure or stream else "", within]
    page = Page(7.0, caption([exposure, stream, masking], *words))
    worlds: tuple[tuple[Results | None, dict[str, Label], str], ...] = (
        (exposure, {"condition": "episodic"}, "Catch, episode ends signalled"),
        (exposure, {"condition": "masked"}, "Catch, ends not signalled (masked)"),
        (exposure, {"condition": "natural"}, "Tracking: no episodes"),
        (stream, {}, "CatchStream: no episodes"),
    )
    for turn, (found, labels, title) in enumerate(worlds):
        left, top = 0.62 + 3.5 * (turn % 2), 0.35 + 2.42 * (turn // 2)
        curves = page.axes(left, top, 1.7, 1.7)
        ends = page.axes(left + 1.74, top, 0.4, 1.7)
        page.heading(curves, "ABCD"[turn], title)
        _draw_learning(curves, ends, found, labels)
    panel = page.axes(0.62, 5.19, 1.4, 1.42)
    page.heading(panel, "E", "Breakout: masked − episodic")
    _draw_effects(panel, masking)
    panel = page.axes(4.24, 5.19, 2.86, 1.42)
    page.heading(panel, "F", "What happens, and what is signalled")
    _draw_signals(panel)
    return page.figure


def _draw_learning(
    axes: Axes, ends: Axes, results: Results | None, labels: Mapping[str, Label]
) -> None:
    """Draw the reward rate of each arm at ``labels`` and, in ``ends`` beside it, the last one."""
    arms = arms_run(results, "score", planned=False, **labels)
    if results is None or not arms:
        absent(axes)
        ends.set_axis_off()
        return
    lines: list[Curve] = []
    names: list[End] = []
    for turn, arm in enumerate(arms):
        how, final = look(arm), cell(results, "score", arm=arm, **labels)
        band = results.series.get(join_labels("trajectory", *labels.values(), arm))
        if band is not None:
            line = Curve(results.series["steps"][: band.shape[1]] / 1000, *band)
            draw_curve(axes, line, how, dots=False)
            lines.append(line)
        dots(ends, [float(turn)], [final], how, size=4.0)
        if final is not None:
            lines.append(point(final))
            names.append(End(how.name, how, float(turn), final.value, final.value))
    for panel in (axes, ends):
        score_axis(panel, lines, (0.8,))
    axes.set_ylabel("score of the reward rate", labelpad=2)
    axes.set_xlim(0, max([1.0, *(float(line.x[-1]) for line in lines)]))
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel("interactions (thousands)", labelpad=2)
    ends.set(xlim=(-0.7, len(arms) - 0.3), xticks=[], ylabel="")
    ends.set_xlabel("final", labelpad=8)
    ends.tick_params(axis="y", length=0, labelleft=False)
    ends.spines["left"].set_color(PALE)
    name_ends(ends, names, offset=0.1)


def _draw_effects(axes: Axes, results: Results | None) -> None:
    """Draw masked minus episodic of every arm, a row each, with the numbers beside."""
    arms = arms_run(results, "effect")
    found = {arm: e for arm in arms if (e := cell(results, "effect", arm=arm)) is not None}
    if not found:
        absent(axes)
        return
    forest(axes, [(look(arm).name, look(arm), e) for arm, e in found.items()], labelsize=7.2)
    write_beside(axes, [_in_thousandths(e) for e in found.values()])
    difference_axis([axes], "reward per 1,000 interactions", room=0.12, least=1e-3)
    axes.xaxis.set_major_formatter(lambda value, _: f"{round(1000 * value, 6):g}".replace("-", "−"))


def _in_thousandths(found: Estimate) -> str:
    """Return a difference of rates in words, per 1,000 interactions."""
    value, low, high = (
        f"{1000 * number:.1f}".replace("-", "−") for number in (found.value, found.low, found.high)
    )
    if found.method == "none" or np.isnan(found.low) or found.n < 2:
        return value
    return f"{value} ({low} to {high})" if found.method == "range" else f"{value} [{low}, {high}]"


SHOWN = 30
"""Steps of a lane in the schematic."""
SIGNALS: tuple[tuple[str, int | None, int | None], ...] = (
    ("Catch, episodic", 7, 7),
    ("Catch, masked", 7, None),
    ("Catch, synthetic 29", 7, 29),
    ("Tracking, CatchStream", None, None),
)
"""A name, steps of an episode, and steps between two signalled ends (None: never)."""
SIGNAL = "#D55E00"
KEY = -0.2
"""Height of the key below the schematic, where the axis has its name."""


def _draw_signals(axes: Axes) -> None:
    """Draw episodes as bars and the signalled ends as triangles above."""
    for turn, (name, episode, interval) in enumerate(SIGNALS):
        y = -float(turn)
        starts = range(0, SHOWN, episode or SHOWN)
        for start in starts:
            stop = min(start + (episode or SHOWN), SHOWN)
            axes.barh(y, stop - start - 0.5, 0.3, start + 0.25, color="#C9DCEB", lw=0)
        marks = range(interval or SHOWN + 1, SHOWN + 1, interval or 1)
        axes.plot(list(marks), [y + 0.32] * len(marks), "v", color=SIGNAL, ms=4.5, clip_on=False)
        axes.text(-0.8, y, name, ha="right", va="center", size=SMALL, color=DARK)
    axes.set(xlim=(-14.5, SHOWN), ylim=(-len(SIGNALS) + 0.3, 0.75))
    axes.set_yticks([])
    axes.set_xticks([0, 7, 14, 21, 28])
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_bounds(0, SHOWN)
    axes.set_xlabel("step of a lane", labelpad=2, loc="right")
    key = axes.get_xaxis_transform()
    axes.plot([-13.8], [KEY], "v", color=SIGNAL, ms=4.5, transform=key, clip_on=False)
    axes.text(-12.6, KEY, "end signalled,  gap: reset", transform=key, size=SMALL, va="center")


BOUNDARIES = (
    ("exposure", "episodic", "truth"),
    ("synthetic", "synth7", "7"),
    ("synthetic", "synth29", "29"),
    ("synthetic", "synth100", "100"),
    ("exposure", "masked", "never"),
)
"""Which episode ends are signalled in Catch: assay, condition, words."""


@styled
def synthetic_terminals(results: Mapping[str, Results]) -> Figure:
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
    panels = (
        (page.axes(0.62, 0.35, 2.5, 1.9), "A", "Final score", "score"),
        (page.axes(3.9, 0.35, 2.5, 1.9), "B", "Interactions until 0.8", "steps"),
    )
    for axes, letter, title, quantity in panels:
        page.heading(axes, letter, title)
        if used:
            _draw_by_boundary(axes, results, quantity)
        else:
            absent(axes)
    return page.figure


def _draw_by_boundary(axes: Axes, results: Mapping[str, Results], quantity: str) -> None:
    """Draw a readout over what is signalled, an arm beside the other."""
    run = [
        arms_run(results.get(name), "score", condition=condition)
        for name, condition, _ in BOUNDARIES
    ]
    arms = in_order({arm for here in run for arm in here} & {"rule", "a2c"})
    names: list[End] = []
    every: list[Estimate] = []
    for turn, arm in enumerate(arms):
        shift = (turn - (len(arms) - 1) / 2) * 0.2
        for place, (name, condition, _) in enumerate(BOUNDARIES):
            found, share = (
                cell(results.get(name), kind, condition=condition, arm=arm)
                for kind in (quantity, "fraction")
            )
            dots(axes, [place + shift], [found], look(arm))
            every += [] if found is None else [found]
            if quantity == "steps" and share is not None and share.value < 1.0:
                _write_share(axes, place + shift, share, found, arm)
        names.append(End(look(arm).name, look(arm), 0.0, 0.0, -float(turn)))
    middle = axes.get_xaxis_transform()
    for place, here in enumerate(run):
        if not here:
            axes.text(place, 0.5, "not run", transform=middle, ha="center", size=SMALL, color=GREY)
    axes.set_xticks(range(len(BOUNDARIES)), [words for _, _, words in BOUNDARIES])
    axes.set_xlim(-0.6, len(BOUNDARIES) - 0.4)
    axes.tick_params(axis="x", length=0)
    axes.set_xlabel("steps between signalled ends", labelpad=2)
    if quantity == "score":
        score_axis(axes, [point(e) for e in every], (0.8,))
        axes.set_ylabel("score of the reward rate", labelpad=2)
        return
    top = max([1.0, *reach(every)])
    axes.set_ylim(0, float(top) * 1.12)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}")
    axes.set_ylabel("thousands", labelpad=2)
    axes.grid(axis="y")
    name_apart(axes, names)


def _write_share(axes: Axes, x: float, share: Estimate, found: Estimate | None, arm: str) -> None:
    """Write how many lifetimes reach the threshold."""
    axes.annotate(
        f"({count_text(share)})",
        (x, 0.0 if found is None else max(found.value, found.high)),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        size=SMALL,
        color=look(arm).ink,
    )
