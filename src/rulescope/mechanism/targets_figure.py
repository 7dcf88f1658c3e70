"""Figure of the targets view: divergence of the targets under another state, and the gradient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.assays.results import Results
from rulescope.mechanism.figure_parts import Floats, full_caption, set_update_axis
from rulescope.render.arm_styles import DOTTED, ArmStyle, arm_style
from rulescope.render.line_labels import End, name_apart
from rulescope.render.palette import GREY
from rulescope.render.style import Page, absent, styled

CAPTION = (
    "One update on one batch of the learner's own replay, made on copies: with the learner's own "
    "recurrent state, and with another. A to C: KL(own state || other state), mean over "
    "transitions. Pin: zero; match: the state of a lifetime of the same scale and another seed at "
    "the same age; cross: of the opposite scale. Dotted: KL between the targets and the learner's "
    "outputs. D: cosine between the gradients with the two states. Thin lines: lifetimes; thick: "
    "their (in A to C geometric) mean. Targets of values do not depend on the state."
)
SMALLEST_KL = 1e-7
"""Smaller KL divergences are drawn here: they are rounding errors."""
SWAPS = {
    "pin": arm_style("pin"),
    "match": arm_style("match-clamp"),
    "cross": arm_style("cross-clamp"),
}
DIVERGENCES = {"kl_policy": "Policy target", "kl_y": "Target of y", "kl_z": "Target of z"}
ROWS = {**DIVERGENCES, "agree": "Gradient"}
COLUMNS = 3


@styled
def draw_targets(results: Mapping[str, Results]) -> Figure:
    """``mechanism-targets``: how far targets move with another state, and the gradient."""
    found = results.get("mechanism-targets")
    known = (1e-3, 1.0, 1e3) if found is None else tuple(map(float, found.axes["scale"]))
    scales = _select_scales(known)
    hidden = f"Scales not shown: {len(known) - len(scales)}." if len(scales) < len(known) else ""
    page = Page(5.95, full_caption(found, f"{CAPTION} {hidden}".strip()))
    panels: dict[str, list[Axes]] = {}
    for line, (row, title) in enumerate(ROWS.items()):
        panels[row] = [
            page.axes(0.62 + 1.94 * column, 0.35 + 1.43 * line, 1.55, 0.88)
            for column in range(len(scales))
        ]
        for column, (axes, scale) in enumerate(zip(panels[row], scales, strict=True)):
            letter = "" if column else "ABCD"[line]
            page.heading(axes, letter, f"{title}, ×{scale:g}", indent=0.45)
            if found is None:
                absent(axes)
    if found is None:
        return page.finish()
    updates = found.series["iteration"] - float(found.series["first"][0]) + 1
    for row, in_row in panels.items():
        ends = {
            end.text: end
            for axes, scale in zip(in_row, scales, strict=True)
            for end in _draw_swaps(axes, found, row, scale, updates)
        }
        _share_vertical_axis(in_row, row)
        in_row[0].set_ylabel("KL (nats)" if row in DIVERGENCES else "cosine")
        for axes in in_row:
            set_update_axis(axes, updates)
            if row in DIVERGENCES:  # the lowest row names the axis
                axes.set_xlabel("")
        name_apart(in_row[-1], list(ends.values()), offset=0.08)
    return page.finish()


def _select_scales(scales: tuple[float, ...]) -> tuple[float, ...]:
    """Return the scales that fit: all, or both ends and the middle."""
    if len(scales) <= COLUMNS:
        return scales
    return scales[0], scales[len(scales) // 2], scales[-1]


def _draw_swaps(axes: Axes, found: Results, row: str, scale: float, updates: Floats) -> list[End]:
    ends = []
    for rank, (swap, how) in enumerate(SWAPS.items()):
        lines = found.series.get(f"{row}/{scale:g}/{swap}")
        if lines is None:
            continue
        _draw_lifetimes_and_mean(axes, updates, lines, how, kl=row in DIVERGENCES)
        ends.append(End(how.name, how, 0.0, 0.0, -float(rank)))
    if row in DIVERGENCES:
        loss = found.series[f"loss_{row.removeprefix('kl_')}/{scale:g}/live"]
        how = ArmStyle("own loss", GREY, ".", DOTTED)
        mean = _geometric_mean(np.maximum(loss, SMALLEST_KL))
        axes.plot(updates, mean, color=how.colour, ls=how.line, lw=1.3, zorder=1)
        ends.append(End(how.name, how, 0.0, 0.0, -9.0))
    return ends


def _draw_lifetimes_and_mean(
    axes: Axes, updates: Floats, lines: Floats, how: ArmStyle, *, kl: bool
) -> None:
    """Draw each of ``lines`` [seeds, moments] thin, and their mean thick."""
    known = np.maximum(lines, SMALLEST_KL) if kl else lines
    mean = _geometric_mean(known) if kl else known.mean(axis=0)
    for line in known:
        axes.plot(updates, line, color=how.colour, lw=0.6, alpha=0.4)
    axes.plot(
        updates, mean, color=how.colour, lw=1.4, marker=how.marker, ms=2.8, mfc=how.face, zorder=3
    )


def _geometric_mean(lines: Floats) -> Floats:
    return np.asarray(np.exp(np.log(lines).mean(axis=0)))


def _share_vertical_axis(panels: Sequence[Axes], row: str) -> None:
    """Give the panels of one row the same vertical axis."""
    if row in DIVERGENCES:
        for axes in panels:
            axes.set_yscale("log")
        low = min(axes.get_ylim()[0] for axes in panels)
        high = max(axes.get_ylim()[1] for axes in panels)
        limits = (max(low, SMALLEST_KL / 2), high * 1.3)
        exponents = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
        step = 1 if len(exponents) <= 5 else 2
        ticks = [10.0**exponent for exponent in exponents if exponent % step == 0]
    else:
        limits = (min(-0.1, *(axes.get_ylim()[0] for axes in panels)), 1.05)
        ticks = [-1.0, -0.5, 0.0, 0.5, 1.0]
    for axes in panels:
        axes.set_yticks(ticks)
        if row in DIVERGENCES:
            axes.minorticks_off()
        axes.grid(axis="y")
        axes.set_ylim(*limits)
        if axes is not panels[0]:
            axes.tick_params(labelleft=False)
