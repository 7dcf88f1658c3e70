"""Learning curves of an assay: a panel for every condition, a line for every arm and seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rulescope.assays import Cell
from rulescope.assays.estimates import label_text
from rulescope.episode_stats import HEADLINES
from rulescope.render.arm_styles import ArmStyle, in_order
from rulescope.render.display_names import subject_name
from rulescope.report.css_styles import distinct_styles, style_data
from rulescope.report.report_inputs import json_numbers
from rulescope.report.site_model import AssayPage, Floats, RecordedRun
from rulescope.stats import trimmed_mean

STATE_NORMS = {"hidden_norm": "norm of the recurrent state h", "cell_norm": "norm of the cell c"}
"""Log columns about the recurrent state of the rule."""
MEASURES = {**HEADLINES, **STATE_NORMS}
"""Log columns that can be drawn over time, and their names."""
ARM = "arm"
"""The axis that separates the lines of one panel."""


@dataclass(frozen=True, eq=False)
class Panel:
    """The runs of one condition, by arm."""

    labels: Mapping[str, str]
    """Of every axis but that of the arms, as printed."""
    arms: Mapping[str, Sequence[RecordedRun]]
    """In the order of the seeds."""

    @property
    def measures(self) -> list[str]:
        """Columns in which any run has a finite number, the best headline first."""
        return [
            name
            for name in MEASURES
            if any(_has(run, name) for runs in self.arms.values() for run in runs)
        ]


def panels(page: AssayPage, recorded: Mapping[str, RecordedRun]) -> list[Panel]:
    """Return the panels of ``page`` that have any recorded run, in the order of the grid."""
    found: dict[tuple[str, ...], dict[str, list[RecordedRun]]] = {}
    labels: dict[tuple[str, ...], dict[str, str]] = {}
    for cell in page.plan.cells:
        runs = [recorded[run.id] for run in cell.runs if run.id in recorded]
        if runs:
            condition = _condition(cell)
            labels[tuple(condition.values())] = condition
            arms = found.setdefault(tuple(condition.values()), {})
            arms.setdefault(label_text(cell.labels.get(ARM, "all")), []).extend(runs)
    return [
        Panel(labels[key], {arm: arms[arm] for arm in in_order(arms)})
        for key, arms in found.items()
    ]


def page_styles(page: AssayPage) -> dict[str, ArmStyle]:
    """Return the styles of the arms of ``page``, in their usual order."""
    named = {label_text(cell.labels[ARM]) for cell in page.plan.cells if ARM in cell.labels}
    return distinct_styles(in_order(named or {"all"}), subject_name(page.results.rule))


def _condition(cell: Cell) -> dict[str, str]:
    return {axis: label_text(label) for axis, label in cell.labels.items() if axis != ARM}


def mean_curve(runs: Sequence[RecordedRun], measure: str) -> Floats:
    """Return the trimmed mean of a column over ``runs``, row by row [rows]."""
    return np.asarray(trimmed_mean(np.stack([run.log[measure] for run in runs]), axis=0))


def default_measure(panel: Panel) -> str:
    """Return the measure that a panel is shown with: the best that all of its arms have."""
    for name in panel.measures:
        if all(any(_has(run, name) for run in runs) for runs in panel.arms.values()):
            return name
    return next(iter(panel.measures), "score")


def _has(run: RecordedRun, measure: str) -> bool:
    return measure in run.log and bool(np.isfinite(run.log[measure]).any())


def most_separated(found: Sequence[Panel]) -> Panel | None:
    """Return the panel whose arms end farthest apart; the first of equals."""
    return max(found, key=_separation, default=None)


def _separation(panel: Panel) -> float:
    measure = default_measure(panel)
    ends = [
        float(np.nanmean(mean_curve(runs, measure)[-3:]))
        for runs in panel.arms.values()
        if all(_has(run, measure) for run in runs) and _aligned(runs)
    ]
    return max(ends) - min(ends) if len(ends) > 1 else -1.0


def panel_index(page: AssayPage, found: Sequence[Panel]) -> dict[str, Any]:
    """Return the data that a page needs before it loads any panel."""
    axes: dict[str, list[str]] = {}
    for panel in found:
        for axis, label in panel.labels.items():
            if label not in axes.setdefault(axis, []):
                axes[axis].append(label)
    first = most_separated(found)
    return {
        "page": page.name,
        "axes": axes,
        "arms": [style_data(arm, style) for arm, style in page_styles(page).items()],
        "measures": MEASURES,
        "panels": [list(panel.labels.values()) for panel in found],
        "first": next((i for i, panel in enumerate(found) if panel is first), 0),
    }


def panel_data(panel: Panel) -> dict[str, Any]:
    """Return one panel with all of its lines."""
    steps: list[list[float | None]] = []
    return {
        "measure": default_measure(panel),
        "measures": panel.measures,
        "change": _change(run for runs in panel.arms.values() for run in runs),
        "arms": [_arm_data(arm, runs, panel.measures, steps) for arm, runs in panel.arms.items()],
        "steps": steps,
    }


def _arm_data(
    arm: str,
    runs: Sequence[RecordedRun],
    measures: Sequence[str],
    steps: list[list[float | None]],
) -> dict[str, Any]:
    return {
        "arm": arm,
        "mid": {
            name: json_numbers(mean_curve(runs, name), 4)
            for name in measures
            if all(name in run.log for run in runs) and _aligned(runs)
        },
        "seeds": [
            {
                "run": run.manifest.id,
                "seed": run.spec.seed,
                "steps": _shared_index(steps, json_numbers(run.log["steps"], 9)),
                "values": {n: json_numbers(run.log[n], 4) for n in measures if n in run.log},
            }
            for run in runs
        ],
    }


def _aligned(runs: Sequence[RecordedRun]) -> bool:
    """Return whether the rows of all logs are of the same interactions."""
    first = runs[0].log["steps"]
    return all(np.array_equal(first, run.log["steps"]) for run in runs)


def _shared_index(columns: list[list[float | None]], column: list[float | None]) -> int:
    """Return the index of ``column`` in ``columns``; a new one is appended."""
    if column not in columns:
        columns.append(column)
    return columns.index(column)


def _change(runs: Iterable[RecordedRun]) -> int | None:
    """Return the interactions before the world changes, if that number is the same for all."""
    found = {
        None if (spec := run.spec).change is None else spec.change.at * spec.lanes * spec.steps
        for run in runs
    }
    return found.pop() if len(found) == 1 else None
