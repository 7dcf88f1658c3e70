"""Figures of streams and boundaries: exposure, synthetic terminals, CatchStream, masking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.assays.figure_data import (
    Curve,
    caption,
    estimate,
    estimates,
    evidence,
    parts,
    point,
    reach,
)
from rulescope.assays.panels import dots, draw_curve, score_axis
from rulescope.render.line_labels import End, name_apart, name_ends
from rulescope.render.style import DARK, GREY, PALE, SMALL, Page, absent, in_order, look, styled

if TYPE_CHECKING:
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
    used = [
        *estimates(exposure, "score/"),
        *estimates(stream, "score/"),
        *estimates(masking, "effect/"),
    ]
    within = "E: masked minus episodic within each seed." if estimates(masking, "effect/") else ""
    words = [evidence(used), WORDS if exposure or stream else "", within]
    page = Page(7.0, caption([exposure, stream, masking], *words))
    for turn, (found, start, title) in enumerate(
        (
            (exposure, "episodic/", "Catch, episode ends signalled"),
            (exposure, "masked/", "Catch, ends not signalled (masked)"),
            (exposure, "natural/", "Tracking: no episodes"),
            (stream, "", "CatchStream: no episodes"),
        )
    ):
        left, top = 0.62 + 3.5 * (turn % 2), 0.35 + 2.42 * (turn // 2)
        curves = page.axes(left, top, 1.7, 1.7)
        ends = page.axes(left + 1.74, top, 0.4, 1.7)
        page.heading(curves, "ABCD"[turn], title)
        learning(curves, ends, found, start)
    effects = page.axes(0.62, 5.19, 1.4, 1.42)
    page.heading(effects, "E", "Breakout: masked − episodic")
    _effects(effects, masking)
    told = page.axes(4.24, 5.19, 2.86, 1.42)
    page.heading(told, "F", "What happens, and what is signalled")
    _told(told)
    return page.figure


def learning(axes: Axes, ends: Axes, results: Results | None, start: str) -> None:
    """Draw how the reward rate rises and, in ``ends`` beside, where it ends.

    ``start`` is what stands before the arm in keys, such as ``masked/``.
    """
    arms = in_order(parts(results, f"score/{start}", 0))
    if results is None or not arms:
        absent(axes)
        ends.set_axis_off()
        return
    lines: list[Curve] = []
    names: list[End] = []
    for turn, arm in enumerate(arms):
        how, final = look(arm), estimate(results, f"score/{start}{arm}")
        band = results.series.get(f"trajectory/{start}{arm}")
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


def _effects(axes: Axes, results: Results | None) -> None:
    """Draw masked minus episodic of every arm, a row each, with the numbers beside."""
    arms = in_order(parts(results, "effect/", 0))
    found = {arm: e for arm in arms if (e := estimate(results, f"effect/{arm}")) is not None}
    if not found:
        absent(axes)
        return
    for turn, (arm, e) in enumerate(found.items()):
        dots(axes, [-float(turn)], [e], look(arm), across=True)
        axes.annotate(
            _in_thousandths(e),
            (1.0, -turn),
            xycoords=axes.get_yaxis_transform(),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            size=SMALL,
            color=DARK,
        )
    rows_for(axes, list(found))
    ends = np.array([0.0, *(v for e in found.values() for v in (e.value, e.low, e.high))])
    low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
    room = 0.12 * (high - low) or 1e-3
    axes.set_xlim(low - room, high + room)
    axes.locator_params(axis="x", nbins=3)
    axes.xaxis.set_major_formatter(lambda value, _: f"{round(1000 * value, 6):g}".replace("-", "−"))
    axes.axvline(0.0, color=GREY, lw=0.8, zorder=1)
    axes.set_xlabel("reward per 1,000 interactions", labelpad=2)


def _in_thousandths(found: Estimate) -> str:
    """Return a difference of rates in words, per 1,000 interactions."""
    value, low, high = (
        f"{1000 * number:.1f}".replace("-", "−") for number in (found.value, found.low, found.high)
    )
    if found.method == "none" or np.isnan(found.low) or found.n < 2:
        return value
    return f"{value} ({low} to {high})" if found.method == "range" else f"{value} [{low}, {high}]"


def rows_for(axes: Axes, arms: Sequence[str]) -> None:
    """Give each arm a row of ``axes``, from the top, with its name in its colour at the left."""
    axes.set_yticks([-turn for turn in range(len(arms))], [look(arm).name for arm in arms])
    for tick, arm in zip(axes.get_yticklabels(), arms, strict=True):
        tick.set_color(look(arm).ink)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-len(arms) + 0.4, 0.6)


SHOWN = 30
"""Steps of a lane in the schematic."""
TOLD: tuple[tuple[str, int | None, int | None], ...] = (
    ("Catch, episodic", 7, 7),
    ("Catch, masked", 7, None),
    ("Catch, synthetic 29", 7, 29),
    ("Tracking, CatchStream", None, None),
)
"""A name, steps of an episode, and steps between two signalled ends (None: never)."""
TELLING = "#D55E00"
KEY = -0.2
"""Height of the key below the schematic, where the axis has its name."""


def _told(axes: Axes) -> None:
    """Draw episodes as bars and the signalled ends as triangles above."""
    for turn, (name, episode, told) in enumerate(TOLD):
        y = -float(turn)
        starts = range(0, SHOWN, episode or SHOWN)
        for start in starts:
            stop = min(start + (episode or SHOWN), SHOWN)
            axes.barh(y, stop - start - 0.5, 0.3, start + 0.25, color="#C9DCEB", lw=0)
        marks = range(told or SHOWN + 1, SHOWN + 1, told or 1)
        axes.plot(list(marks), [y + 0.32] * len(marks), "v", color=TELLING, ms=4.5, clip_on=False)
        axes.text(-0.8, y, name, ha="right", va="center", size=SMALL, color=DARK)
    axes.set(xlim=(-14.5, SHOWN), ylim=(-len(TOLD) + 0.3, 0.75))
    axes.set_yticks([])
    axes.set_xticks([0, 7, 14, 21, 28])
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_bounds(0, SHOWN)
    axes.set_xlabel("step of a lane", labelpad=2, loc="right")
    key = axes.get_xaxis_transform()
    axes.plot([-13.8], [KEY], "v", color=TELLING, ms=4.5, transform=key, clip_on=False)
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
    known = {
        (name, condition): results.get(name)
        for name, condition, _ in BOUNDARIES
        if parts(results.get(name), f"score/{condition}/", 0)
    }
    used = [
        found
        for (_, condition), its in known.items()
        for kind in ("score", "steps")
        for found in estimates(its, f"{kind}/{condition}/")
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
    for axes, letter, title, kind in panels:
        page.heading(axes, letter, title)
        if not known:
            absent(axes)
            continue
        _by_boundary(axes, results, kind)
    return page.figure


def _by_boundary(axes: Axes, results: Mapping[str, Results], kind: str) -> None:
    """Draw a readout over what is signalled, an arm beside the other."""
    keys = {
        (place, arm): (results.get(name), f"{condition}/{arm}")
        for place, (name, condition, _) in enumerate(BOUNDARIES)
        for arm in parts(results.get(name), f"score/{condition}/", 0)
    }
    arms = in_order({arm for _, arm in keys} & {"disco", "a2c"})
    names: list[End] = []
    every: list[Estimate] = []
    for turn, arm in enumerate(arms):
        shift = (turn - (len(arms) - 1) / 2) * 0.2
        for place in range(len(BOUNDARIES)):
            its, key = keys.get((place, arm), (None, ""))
            found = estimate(its, f"{kind}/{key}")
            dots(axes, [place + shift], [found], look(arm))
            every += [] if found is None else [found]
            _never(axes, place + shift, kind, estimate(its, f"fraction/{key}"), found, arm)
        names.append(End(look(arm).name, look(arm), 0.0, 0.0, -float(turn)))
    for place in set(range(len(BOUNDARIES))) - {place for place, _ in keys}:
        middle = axes.get_xaxis_transform()
        axes.text(place, 0.5, "not run", transform=middle, ha="center", size=SMALL, color=GREY)
    axes.set_xticks(range(len(BOUNDARIES)), [words for _, _, words in BOUNDARIES])
    axes.set_xlim(-0.6, len(BOUNDARIES) - 0.4)
    axes.tick_params(axis="x", length=0)
    axes.set_xlabel("steps between signalled ends", labelpad=2)
    if kind == "score":
        score_axis(axes, [point(e) for e in every], (0.8,))
        axes.set_ylabel("score of the reward rate", labelpad=2)
        return
    top = max([1.0, *reach(every)])
    axes.set_ylim(0, float(top) * 1.12)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}")
    axes.set_ylabel("thousands", labelpad=2)
    axes.grid(axis="y")
    name_apart(axes, names)


def _never(
    axes: Axes, x: float, kind: str, share: Estimate | None, found: Estimate | None, arm: str
) -> None:
    """Say how many reach the threshold, where not all do."""
    if kind != "steps" or share is None or share.value == 1.0:
        return
    count = f"{round(share.value * share.n)}/{share.n}"
    y = 0.0 if found is None else max(found.value, found.high)
    axes.annotate(
        f"({count})",
        (x, y),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        size=SMALL,
        color=look(arm).ink,
    )
