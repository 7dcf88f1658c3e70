"""E1, scale: does the rule's history widen the range of reward scales in which it learns?

Every arm runs at seven reward scales in three versions of Catch. Compared is the width, in
decades, of the widest run of scales at which an arm scores well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope.assays.analysis import (
    CORE_DRAWS,
    as_cells,
    collect_tail_warnings,
    make_results,
    missing_estimate,
    note_missing,
    tail20,
    without_interval,
)
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.comparison_families import PRIMARY
from rulescope.assays.estimates import Estimates, label_text
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.grid import Cell, arm_words, make_runs, sweep
from rulescope.assays.results import Results
from rulescope.assays.scale.scale_arms import ARMS
from rulescope.assays.scale.scale_tables import make_tables
from rulescope.assays.scale.state_geometry import estimate_geometry
from rulescope.stats import (
    COMPETENT,
    EstimateArray,
    criterion_widths,
    estimate_from,
    half_best,
    scale_window,
    seed_blocks,
)
from rulescope.stats import estimates as cell_estimates

TASKS = ("catch", "catch-dense", "catch-long")
SCALES = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
CRITERIA: dict[str, float | None] = {"half-best": None, "0.7": 0.7, "0.8": 0.8, "0.9": 0.9}
"""What counts as scoring well: a fixed score, or (None) half of what the arm's best scale has.

An arm whose best score is below :data:`~rulescope.stats.COMPETENT` has no window under the latter,
in any draw: half of its noise is not a criterion."""
CONTRASTED = ("half-best", "0.8")
"""Criteria under which live and pinned widths are compared: the primary one and a companion."""


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every task, arm and scale of ``budget``."""
    return sweep(
        {"task": budget.tasks, "arm": budget.arms, "scale": sorted(budget.scales)},
        lambda at: make_runs(
            budget, ARMS[str(at["arm"])], task=str(at["task"]), scale=float(at["scale"])
        ),
    )


def analyse(frame: Frame) -> Results:
    """Estimate scores, window widths, their contrasts, and the geometry of terminal states."""
    scores = tail20(frame)
    notes = note_missing(frame)
    with collect_tail_warnings(notes):
        cells = cell_estimates(scores, seed_blocks(len(frame.seeds), CORE_DRAWS))
        found = as_cells(frame, "score", scores, cells)
        curves = {
            (str(task), str(arm)): Curve.of(cells, scores, (i, j), frame)
            for i, task in enumerate(frame.axes["task"])
            for j, arm in enumerate(frame.axes["arm"])
        }
        raw = [task for task, each in frame.worlds.items() if not each.normalised]
        windows = {place: curve for place, curve in curves.items() if place[0] not in raw}
        for (task, arm), curve in windows.items():
            found.update(_widths(task, arm, curve))
        own = () if frame.worlds else TASKS
        for task in dict.fromkeys((*own, *(str(name) for name in frame.axes["task"]))):
            if task not in raw:
                found.update(_contrasts(task, curves))
        notes += _name_incompetent(windows)
        notes += [f"no windows in {task}: its scores are in raw units" for task in raw]
        found.update(estimate_geometry(frame, other_grid=frame.axes["scale"] != SCALES))
        notes += _name_other_scales(windows)
    return make_results("E1", frame, found, make_tables(frame, found), notes)


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
    seeds: Floats
    """[scales, seeds]: the scores of single lifetimes."""

    @classmethod
    def of(
        cls, cells: EstimateArray, scores: Floats, place: tuple[int, int], frame: Frame
    ) -> Curve:
        """Return the curve at ``place`` (task, arm) of ``cells`` [task, arm, scale].

        ``scores`` are [task, arm, scale, seed]. A campaign in progress has a lifetime or two at
        scales where most are still missing. Such a scale is left out until half of the seeds are
        there: one lifetime must not decide a window.
        """
        counts = np.asarray(cells.n[place], dtype=float)
        whole = cls(
            np.array(frame.axes["scale"], dtype=float),
            cells.value[place],
            cells.samples[(slice(None), *place)],
            counts,
            scores[place],
        )
        return whole.where((counts > 0) & (2 * counts >= counts.max()))

    def where(self, kept: NDArray[np.bool_]) -> Curve:
        """Return the curve over some of its scales."""
        return Curve(
            self.scales[kept],
            self.value[kept],
            self.samples[:, kept],
            self.counts[kept],
            self.seeds[kept],
        )

    @property
    def n(self) -> int:
        """Seeds at the scale that has fewest."""
        return int(self.counts.min(initial=np.inf)) if len(self.counts) else 0

    @property
    def known(self) -> bool:
        """Whether there are scales, and a score at each of them."""
        return bool(self.n) and not np.isnan(self.value).any()

    @property
    def competent(self) -> bool:
        """Whether the best score at any scale is that of a competent arm."""
        return bool(np.fmax.reduce(self.value, initial=-np.inf) >= COMPETENT)

    @property
    def complete(self) -> bool:
        """Whether the curve has just the published scales."""
        return np.array_equal(self.scales, SCALES)


def _widths(task: str, arm: str, curve: Curve) -> Estimates:
    """Estimate the width of one curve's window under each criterion, its best and half of it."""
    found, at, other = Estimates(), {"task": task, "arm": arm}, not curve.complete
    for criterion, tau in CRITERIA.items():
        estimate, window = missing_estimate(), None
        if curve.n:
            value = float(criterion_widths(curve.scales, curve.value, tau))
            estimate = estimate_from(
                value, criterion_widths(curve.scales, curve.samples, tau), curve.n
            )
        if curve.known:
            passed = float(half_best(curve.value)) if tau is None else tau
            window = scale_window(curve.scales, curve.value, passed)
        labels = {**at, "criterion": criterion}
        found.add("width", estimate, labels, window=window, other_grid=other)
    best, threshold, seeds = missing_estimate(), missing_estimate(), None
    if curve.n:
        half = float(half_best(curve.value)) if curve.known else math.nan
        threshold = without_interval(half if math.isfinite(half) else math.nan, curve.n)
        best = estimate_from(float(curve.value.max()), curve.samples.max(axis=-1), curve.n)
    if curve.known:
        seeds = curve.seeds[int(curve.value.argmax())]
    found.add("best", best, at, seeds=seeds, other_grid=other)
    found.add("threshold", threshold, at, other_grid=other)
    return found


def _contrasts(task: str, curves: Mapping[tuple[str, str], Curve]) -> Estimates:
    """Estimate how much wider the live window is than the pinned one, draw by draw.

    Both windows are over the scales that both arms have. Where neither arm is competent at any of
    them there is no contrast: two arms that learned nothing are not two equal windows.
    """
    other = any(not curve.complete for (its, _), curve in curves.items() if its == task)
    live, pin = curves.get((task, "live")), curves.get((task, "pin"))
    n = 0
    if live is not None and pin is not None:
        shared = np.intersect1d(live.scales, pin.scales)
        live, pin = (one.where(np.isin(one.scales, shared)) for one in (live, pin))
        n = min(live.n, pin.n)
    found = Estimates()
    for criterion in CONTRASTED:
        estimate = replace(missing_estimate(PRIMARY.size), n=n)
        if live is not None and pin is not None and (live.competent or pin.competent):
            tau, scales = CRITERIA[criterion], live.scales
            estimate = estimate_from(
                float(
                    criterion_widths(scales, live.value, tau)
                    - criterion_widths(scales, pin.value, tau)
                ),
                criterion_widths(scales, live.samples, tau)
                - criterion_widths(scales, pin.samples, tau),
                n,
                PRIMARY.size,
            )
        labels = {"task": task, "criterion": criterion}
        found.add("contrast", estimate, labels, other_grid=other)
    return found


def _name_incompetent(curves: Mapping[tuple[str, str], Curve]) -> list[str]:
    """Return a note that names the arms without a window because they are competent nowhere."""
    names = [f"{task}/{arm}" for (task, arm), c in curves.items() if c.n and not c.competent]
    if not names:
        return []
    return [
        f"no window for {', '.join(names)}: the best score at any scale is below "
        f"{COMPETENT:g}, so the arm is not competent"
    ]


def _name_other_scales(curves: Mapping[tuple[str, str], Curve]) -> list[str]:
    """Return a note for each set of scales, other than the published, that windows are over."""
    by_scales: dict[tuple[float, ...], list[str]] = {}
    for (task, arm), curve in curves.items():
        if not curve.complete:
            by_scales.setdefault(tuple(curve.scales.tolist()), []).append(f"{task}/{arm}")
    return [
        f"windows of {', '.join(names)} are over the scales "
        f"{', '.join(map(label_text, scales)) or 'none'}: coarser than the published"
        for scales, names in by_scales.items()
    ]


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
    arms=tuple(ARMS),
    tasks=TASKS,
    any_world=True,
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    tables=(
        "tab:e1-all",
        "v5:tab:app-scale-widths",
        "tab:unified-scale-relative",
        "tab:unified-scores-catch",
        "tab:unified-scores-catchdense",
        "tab:unified-scores-catchlong",
        "v5:tab:app-scale-state",
        "tab:unified-scale-geometry",
        "v5:tab:app-scale-references",
    ),
    figures=("fig:scale", "fig:detail-scale", "v5:fig:app-scale", "orig:scale"),
    arm_words=arm_words(ARMS),
)
