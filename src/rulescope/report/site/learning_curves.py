"""Learning curves of an assay: a panel for every condition, a line for every arm and seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rulescope.assays import Cell
from rulescope.assays.display_names import subject_name
from rulescope.episode_stats import HEADLINES
from rulescope.render.style import Look, in_order, naming
from rulescope.report.site.arm_colours import as_data, looks
from rulescope.report.site.lifetime_rows import numbers
from rulescope.report.site.site_model import AssayPage, Floats, Life, shown
from rulescope.stats import trimmed_mean

CARRIED = {"hidden_norm": "norm of the recurrent state h", "cell_norm": "norm of the cell c"}
"""Columns that tell about the rule's state."""
MEASURES = {**HEADLINES, **CARRIED}
"""What can be drawn over time, and what it is called."""
ARM = "arm"
"""The axis along which lines of one panel differ."""


@dataclass(frozen=True, eq=False)
class Panel:
    """The lifetimes of one condition, by arm."""

    labels: Mapping[str, str]
    """Of every axis but that of the arms, as printed."""
    arms: Mapping[str, Sequence[Life]]
    """In the order of the seeds."""

    @property
    def measures(self) -> list[str]:
        """The columns that any of its lifetimes has numbers in, the best headline first."""
        return [
            name
            for name in MEASURES
            if any(
                np.isfinite(life.log[name]).any()
                for lives in self.arms.values()
                for life in lives
                if name in life.log
            )
        ]


def panels(page: AssayPage, lives: Mapping[str, Life]) -> list[Panel]:
    """Return the panels of ``page`` that have any lifetime, in the order of the grid."""
    found: dict[tuple[str, ...], dict[str, list[Life]]] = {}
    labels: dict[tuple[str, ...], dict[str, str]] = {}
    for cell in page.plan.cells:
        lived = [lives[run.id] for run in cell.runs if run.id in lives]
        if lived:
            place = _place(cell)
            labels[tuple(place.values())] = place
            arms = found.setdefault(tuple(place.values()), {})
            arms.setdefault(shown(cell.labels.get(ARM, "all")), []).extend(lived)
    return [
        Panel(labels[key], {arm: arms[arm] for arm in in_order(set(arms))})
        for key, arms in found.items()
    ]


def arms_of(page: AssayPage) -> dict[str, Look]:
    """Return how the arms of ``page`` are drawn, in their usual order."""
    named = {shown(cell.labels[ARM]) for cell in page.plan.cells if ARM in cell.labels}
    with naming(subject_name(page.results.rule)):
        return looks(in_order(named or {"all"}), page.plan.assay.id)


def _place(cell: Cell) -> dict[str, str]:
    return {axis: shown(label) for axis, label in cell.labels.items() if axis != ARM}


def middle(lives: Sequence[Life], measure: str) -> Floats:
    """Return the trimmed mean over ``lives`` of a column, row by row [rows]."""
    return np.asarray(trimmed_mean(np.stack([life.log[measure] for life in lives]), axis=0))


def typical(panel: Panel) -> str:
    """Return the measure that a panel is shown with: the best that all of its arms have."""
    for name in panel.measures:
        if all(any(_has(life, name) for life in lives) for lives in panel.arms.values()):
            return name
    return next(iter(panel.measures), "score")


def _has(life: Life, measure: str) -> bool:
    return measure in life.log and bool(np.isfinite(life.log[measure]).any())


def most_telling(found: Sequence[Panel]) -> Panel | None:
    """Return the panel whose arms end farthest apart; the first of equals."""
    return max(found, key=_apart, default=None)


def _apart(panel: Panel) -> float:
    measure = typical(panel)
    ends = [
        float(np.nanmean(middle(lives, measure)[-3:]))
        for lives in panel.arms.values()
        if all(_has(life, measure) for life in lives) and _aligned(lives)
    ]
    return max(ends) - min(ends) if len(ends) > 1 else -1.0


def index(page: AssayPage, found: Sequence[Panel]) -> dict[str, Any]:
    """Return what a page must know before it loads any panel."""
    axes: dict[str, list[str]] = {}
    for panel in found:
        for axis, label in panel.labels.items():
            if label not in axes.setdefault(axis, []):
                axes[axis].append(label)
    telling = most_telling(found)
    return {
        "page": page.name,
        "axes": axes,
        "arms": [as_data(arm, how) for arm, how in arms_of(page).items()],
        "measures": MEASURES,
        "panels": [list(panel.labels.values()) for panel in found],
        "first": next((i for i, panel in enumerate(found) if panel is telling), 0),
    }


def chunk(panel: Panel) -> dict[str, Any]:
    """Return one panel with all of its lines."""
    steps: list[list[float | None]] = []
    return {
        "measure": typical(panel),
        "measures": panel.measures,
        "change": _change(life for lives in panel.arms.values() for life in lives),
        "arms": [_arm(arm, lives, panel.measures, steps) for arm, lives in panel.arms.items()],
        "steps": steps,
    }


def _arm(
    arm: str, lives: Sequence[Life], measures: Sequence[str], steps: list[list[float | None]]
) -> dict[str, Any]:
    return {
        "arm": arm,
        "mid": {
            name: numbers(middle(lives, name), 4)
            for name in measures
            if all(name in life.log for life in lives) and _aligned(lives)
        },
        "seeds": [
            {
                "run": life.manifest.id,
                "seed": life.spec.seed,
                "steps": _shared(steps, numbers(life.log["steps"], 9)),
                "values": {n: numbers(life.log[n], 4) for n in measures if n in life.log},
            }
            for life in lives
        ],
    }


def _aligned(lives: Sequence[Life]) -> bool:
    """Tell whether all rows are of the same interactions."""
    first = lives[0].log["steps"]
    return all(np.array_equal(first, life.log["steps"]) for life in lives)


def _shared(known: list[list[float | None]], column: list[float | None]) -> int:
    """Return the place of ``column`` among those already ``known``, where it is put if new."""
    if column not in known:
        known.append(column)
    return known.index(column)


def _change(lives: Iterable[Life]) -> int | None:
    """Return after how many interactions the world changes, if it does so for all alike."""
    found = {
        None if (spec := life.spec).change is None else spec.change.at * spec.lanes * spec.steps
        for life in lives
    }
    return found.pop() if len(found) == 1 else None
