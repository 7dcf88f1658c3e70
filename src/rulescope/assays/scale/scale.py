"""E1, scale: does the rule's history widen the range of reward scales in which it learns?

Every arm lives through seven reward scales in three versions of Catch. What is compared is the
width, in decades, of the widest run of scales in which an arm scores well.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope.assays.analysis import CORE_DRAWS, absent, exactly, missing, noted, summed_up, tail20
from rulescope.assays.assay import Assay, Budget, Cell, learner, lifetime
from rulescope.assays.comparison_families import PRIMARY
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.results import Results, scale_label
from rulescope.assays.scale import scale_tables
from rulescope.assays.scale.state_geometry import geometry
from rulescope.spec.run_spec import Hold, Intervention, Pin, Placebo
from rulescope.stats import (
    COMPETENT,
    Estimate,
    Estimates,
    Window,
    estimate_from,
    estimates,
    half_best,
    scale_window,
    seed_blocks,
    window_widths,
)

TASKS = ("catch", "catch-dense", "catch-long")
SCALES = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
INTERVENTIONS: dict[str, tuple[Intervention, ...]] = {
    "live": (),
    "pin": (Pin(carrier="recurrent"),),
    "hold": (Hold(carrier="averages"),),
    "both": (Pin(carrier="recurrent"), Hold(carrier="averages")),
    "placebo": (Placebo(carrier="recurrent"),),
    "null": (),
}
CRITERIA: dict[str, float | None] = {"half-best": None, "0.7": 0.7, "0.8": 0.8, "0.9": 0.9}
"""What counts as scoring well: a fixed score, or (None) half of what the arm's best scale has.

An arm whose best score is below :data:`~rulescope.stats.COMPETENT` has no window under the latter,
in any draw: half of its noise is not a criterion."""
CONTRASTED = ("half-best", "0.8")
"""Criteria under which live and pinned widths are compared: the primary one and a companion."""


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every task, arm and scale of ``budget``."""
    return [
        Cell(
            {"task": task, "arm": arm, "scale": scale},
            tuple(
                lifetime(
                    budget,
                    learner(budget, null=arm == "null"),
                    seed,
                    scale=scale,
                    task=task,
                    interventions=INTERVENTIONS[arm],
                )
                for seed in range(budget.seeds)
            ),
        )
        for task in budget.tasks
        for arm in budget.arms
        for scale in sorted(budget.scales)
    ]


def analyse(frame: Frame) -> Results:
    """Estimate scores, window widths, their contrasts, and the geometry of terminal states."""
    scores = tail20(frame)
    notes = missing(frame)
    found: dict[str, Estimate] = {}
    windows: dict[str, Window] = {}
    series: dict[str, Floats] = {}
    with noted(notes):
        cells = estimates(scores, seed_blocks(len(frame.seeds), CORE_DRAWS))
        curves = {
            (str(task), str(arm)): Curve.of(cells, (i, j), frame)
            for i, task in enumerate(frame.axes["task"])
            for j, arm in enumerate(frame.axes["arm"])
        }
        for place in np.ndindex(cells.value.shape):
            found[f"score/{_key(frame, place)}"] = cells[place]
            series[f"seeds/score/{_key(frame, place)}"] = scores[place]
        for (task, arm), curve in curves.items():
            found |= _widths(f"{task}/{arm}", curve)
            windows |= _windows(f"{task}/{arm}", curve)
            series |= _best_by_seed(frame, scores, task, arm, curve)
        for task in TASKS:
            found |= _contrasts(task, curves.get((task, "live")), curves.get((task, "pin")))
        notes += _incompetent(curves)
        found |= geometry(frame)
        notes += _coarse(curves)
    tables = scale_tables.tables(frame, found, windows)
    other_grid = _other_grid(curves, frame, found)
    return summed_up("E1", frame, found, tables, notes, series, other_grid, windows)


class Curve(NamedTuple):
    """The scores of one arm in one task over the scales."""

    scales: Floats
    """[scales]: those at which there are lifetimes, and not much fewer than at the others."""
    value: Floats
    """[scales]"""
    samples: Floats
    """[draws, scales]: the whole curve from each draw of seeds."""
    counts: Floats
    """[scales]: seeds."""

    @classmethod
    def of(cls, cells: Estimates, place: tuple[int, int], frame: Frame) -> Curve:
        """Return the curve at ``place`` (task, arm) of estimates [task, arm, scale].

        A campaign in progress has a lifetime or two at scales where most are still missing. Such a
        scale is left out until half of the seeds are there: one lifetime must not decide a window.
        """
        counts = np.asarray(cells.n[place], dtype=float)
        whole = cls(
            np.array(frame.axes["scale"], dtype=float),
            cells.value[place],
            cells.samples[(slice(None), *place)],
            counts,
        )
        return whole.where((counts > 0) & (2 * counts >= counts.max()))

    def where(self, kept: NDArray[np.bool_]) -> Curve:
        """Return the curve over some of its scales."""
        return Curve(self.scales[kept], self.value[kept], self.samples[:, kept], self.counts[kept])

    @property
    def n(self) -> int:
        """Seeds at the scale that has fewest."""
        return int(self.counts.min(initial=np.inf)) if len(self.counts) else 0

    @property
    def competent(self) -> bool:
        """Whether the best score at any scale is that of a competent arm."""
        return bool(np.fmax.reduce(self.value, initial=-np.inf) >= COMPETENT)

    @property
    def complete(self) -> bool:
        """Whether the curve has just the published scales."""
        return np.array_equal(self.scales, SCALES)


def _key(frame: Frame, place: tuple[int, ...]) -> str:
    task, arm, scale = (labels[i] for labels, i in zip(frame.axes.values(), place, strict=True))
    return f"{task}/{arm}/{scale_label(float(scale))}"


def _widths(name: str, curve: Curve) -> dict[str, Estimate]:
    """Estimate the width of one curve's window under each criterion."""
    if not curve.n:
        keys = [f"width/{name}/{criterion}" for criterion in CRITERIA]
        return {key: absent() for key in (f"threshold/{name}", f"best/{name}", *keys)}
    found = {
        f"width/{name}/{criterion}": estimate_from(
            float(width(curve.scales, curve.value, tau)),
            width(curve.scales, curve.samples, tau),
            curve.n,
        )
        for criterion, tau in CRITERIA.items()
    }
    tau = float(half_best(curve.value))
    known = math.isfinite(tau) and not np.isnan(curve.value).any()
    best = estimate_from(float(curve.value.max()), curve.samples.max(axis=-1), curve.n)
    threshold = exactly(tau if known else math.nan, curve.n)
    return {**found, f"best/{name}": best, f"threshold/{name}": threshold}


def _best_by_seed(
    frame: Frame, scores: Floats, task: str, arm: str, curve: Curve
) -> dict[str, Floats]:
    """Return the scores [seeds] at the scale at which the arm scores best, if it has scores."""
    if not curve.n or np.isnan(curve.value).any():
        return {}
    best = float(curve.scales[int(curve.value.argmax())])
    labels = {"task": task, "arm": arm, "scale": best}
    place = tuple(frame.axes[axis].index(labels[axis]) for axis in frame.axes)
    return {f"seeds/best/{task}/{arm}": scores[place]}


def _windows(name: str, curve: Curve) -> dict[str, Window]:
    """Return class and end points of one curve's window under each criterion, if it has a width."""
    if not curve.n or np.isnan(curve.value).any():
        return {}
    return {
        f"width/{name}/{criterion}": scale_window(
            curve.scales, curve.value, float(half_best(curve.value)) if tau is None else tau
        )
        for criterion, tau in CRITERIA.items()
    }


def _contrasts(task: str, live: Curve | None, pin: Curve | None) -> dict[str, Estimate]:
    """Estimate how much wider the live window is than the pinned one, draw by draw.

    Both windows are over the scales that both arms have. Where neither arm is competent at any of
    them there is no contrast: two arms that learned nothing are not two equal windows.
    """
    keys = {criterion: f"contrast/{task}/{criterion}" for criterion in CONTRASTED}
    if live is None or pin is None or not np.isin(live.scales, pin.scales).any():
        return {key: absent(PRIMARY.size) for key in keys.values()}
    live, pin = (
        one.where(np.isin(one.scales, other.scales)) for one, other in ((live, pin), (pin, live))
    )
    n = min(live.n, pin.n)
    if not (live.competent or pin.competent):
        return {key: replace(absent(PRIMARY.size), n=n) for key in keys.values()}
    found = {}
    for criterion, key in keys.items():
        tau, scales = CRITERIA[criterion], live.scales
        found[key] = estimate_from(
            float(width(scales, live.value, tau) - width(scales, pin.value, tau)),
            width(scales, live.samples, tau) - width(scales, pin.samples, tau),
            n,
            PRIMARY.size,
        )
    return found


def _incompetent(curves: dict[tuple[str, str], Curve]) -> list[str]:
    """Return a note that names the arms without a window because they are competent nowhere."""
    names = [f"{task}/{arm}" for (task, arm), c in curves.items() if c.n and not c.competent]
    if not names:
        return []
    return [
        f"no window for {', '.join(names)}: the best score at any scale is below "
        f"{COMPETENT:g}, so the arm is not competent"
    ]


def _other_grid(
    curves: dict[tuple[str, str], Curve], frame: Frame, found: dict[str, Estimate]
) -> frozenset[str]:
    """Return the keys of estimates over another set of scales than the published."""
    partial = {f"{task}/{arm}" for (task, arm), curve in curves.items() if not curve.complete}
    coarse = tuple(f"{kind}/{name}" for kind in ("width", "best", "threshold") for name in partial)
    coarse += tuple(f"contrast/{name.partition('/')[0]}/" for name in partial)
    if frame.axes["scale"] != SCALES:
        coarse += ("between/", "principal/")
    return frozenset(key for key in found if key.startswith(coarse))


def _coarse(curves: dict[tuple[str, str], Curve]) -> list[str]:
    """Return a note for each set of scales, other than the published, that windows are over."""
    by_scales: dict[tuple[float, ...], list[str]] = {}
    for (task, arm), curve in curves.items():
        if not curve.complete:
            by_scales.setdefault(tuple(curve.scales.tolist()), []).append(f"{task}/{arm}")
    return [
        f"windows of {', '.join(names)} are over the scales "
        f"{', '.join(scale_label(scale) for scale in scales) or 'none'}: coarser than the published"
        for scales, names in by_scales.items()
    ]


def width(scales: Floats, curves: Floats, threshold: float | None) -> Floats:
    """Return the window width of every curve [..., scales] under one criterion: [...].

    A curve with a scale at which nothing is known has no width: that scale might have passed.
    """
    tau = half_best(curves) if threshold is None else np.float64(threshold)
    unknown = np.isnan(curves).any(axis=-1)
    return np.where(unknown, np.nan, window_widths(scales, curves, tau))


PRESETS = {
    "smoke": Budget(seeds=1, iterations=60, arms=("live", "pin"), scales=(1e-3, 1.0)),
    "quick": Budget(seeds=2, iterations=600, arms=("live", "pin"), scales=(1e-3, 1e-1, 1.0, 1e3)),
    "standard": Budget(
        seeds=4, iterations=2000, arms=("live", "pin", "hold", "both"), scales=SCALES
    ),
    "paper": Budget(
        seeds=12, iterations=2000, arms=("live", "pin", "hold", "both"), scales=SCALES, tasks=TASKS
    ),
}

ASSAY = Assay(
    id="E1",
    name="scale",
    question="Does the rule's history widen the range of reward scales in which it learns?",
    arms=tuple(INTERVENTIONS),
    tasks=TASKS,
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    figures=("fig:scale", "fig:detail-scale", "v5:fig:app-scale", "orig:scale"),
)
