"""The published tables of E1, with our numbers in them and only what was run."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rulescope.assays.analysis import CORE_DRAWS, SCORE, adjusted, below
from rulescope.assays.comparison_families import PRIMARY
from rulescope.assays.frame import Frame
from rulescope.assays.results import Column, Table, Value, scale_label, span
from rulescope.envs.references import catch_references
from rulescope.spec.world_config import WORLDS
from rulescope.stats import COMPETENT, Estimate, Window

TASK_NAMES = {"catch": "Catch", "catch-dense": "CatchDense", "catch-long": "CatchLong"}
ARM_NAMES = {
    "live": "Live",
    "pin": "Pin 0",
    "hold": "EMA held",
    "both": "Both",
    "placebo": "Placebo",
    "null": "Null rule",
}
TAIL = SCORE.format(part="fifth")
WIDTH = (
    "width: decades spanned by the widest run of neighbouring scales that pass, "
    f"on the curve of trimmed mean scores ({TAIL}); scales: its lowest and highest passing one; an "
    f"arm whose best score is below {COMPETENT:g} is not competent and has no half-best window"
)
STATES = "terminal states of the rule; shift between centroids, in units of the unit-scale radius"


Windows = Mapping[str, Window]


def tables(frame: Frame, estimates: Mapping[str, Estimate], windows: Windows) -> tuple[Table, ...]:
    """Return every table of E1 that has a row."""
    made = [
        _all(frame, estimates, windows),
        _widths(frame, estimates, windows),
        _relative(frame, estimates, windows),
        *(_scores(str(task), frame, estimates) for task in frame.axes["task"]),
        _displacements(frame, estimates),
        _geometry(frame, estimates),
        _references(frame),
    ]
    return tuple(table for table in made if table.rows)


def _names(frame: Frame) -> tuple[list[str], list[str]]:
    return [str(task) for task in frame.axes["task"]], [str(arm) for arm in frame.axes["arm"]]


def _decimals(frame: Frame) -> int:
    """Return the decimals of a width: none while all scales are powers of ten."""
    decades = (math.log10(float(scale)) for scale in frame.axes["scale"])
    return 0 if all(abs(x - round(x)) < 1e-9 for x in decades) else 2


def _all(frame: Frame, estimates: Mapping[str, Estimate], windows: Windows) -> Table:
    tasks, arms = _names(frame)
    digits = _decimals(frame)
    contrasted = {"live", "pin"} <= set(arms)
    rows: list[tuple[Value, ...]] = []
    for task in tasks:
        for criterion, shown in (("half-best", "Half-best"), ("0.8", "S ≥ 0.8")):
            widths = [estimates[f"width/{task}/{arm}/{criterion}"] for arm in arms]
            delta = [estimates[f"contrast/{task}/{criterion}"]] if contrasted else []
            spans = [span(windows, f"width/{task}/{arm}/{criterion}") for arm in arms]
            rows.append((TASK_NAMES[task], shown, *widths, *delta, *spans))
    headings = {**ARM_NAMES, "pin": "Pin", "hold": "EMA"}
    columns = [Column(headings[arm], digits, interval=False) for arm in arms]
    if contrasted:
        columns.append(Column("ΔW live − pin [adjusted CI]", digits))
    columns += [Column(f"{headings[arm]}: scales") for arm in arms]
    return Table(
        "tab:e1-all",
        "Width of the scale window, and what the live state adds to it",
        (Column("Task"), Column("Criterion"), *columns),
        tuple(rows),
        below(frame, WIDTH, CORE_DRAWS, adjusted(PRIMARY)),
    )


def _widths(frame: Frame, estimates: Mapping[str, Estimate], windows: Windows) -> Table:
    tasks, arms = _names(frame)
    criteria = ("0.7", "0.8", "0.9")
    return Table(
        "v5:tab:app-scale-widths",
        "Width of the scale window at fixed scores",
        (
            Column("Environment"),
            Column("State"),
            *(Column(f"Score ≥ {criterion}", _decimals(frame)) for criterion in criteria),
            *(Column(f"Scales ≥ {criterion}") for criterion in criteria),
        ),
        tuple(
            (
                TASK_NAMES[task],
                ARM_NAMES[arm],
                *(estimates[f"width/{task}/{arm}/{criterion}"] for criterion in criteria),
                *(span(windows, f"width/{task}/{arm}/{criterion}") for criterion in criteria),
            )
            for task in tasks
            for arm in arms
        ),
        below(frame, WIDTH, CORE_DRAWS),
    )


def _relative(frame: Frame, estimates: Mapping[str, Estimate], windows: Windows) -> Table:
    tasks, arms = _names(frame)
    return Table(
        "tab:unified-scale-relative",
        "Width of the scale window at half of the best score",
        (
            Column("Environment"),
            Column("State"),
            Column("Width [95% interval]", _decimals(frame)),
            Column("Point threshold"),
            Column("Scales"),
        ),
        tuple(
            (
                TASK_NAMES[task],
                ARM_NAMES[arm],
                estimates[f"width/{task}/{arm}/half-best"],
                estimates[f"threshold/{task}/{arm}"],
                span(windows, f"width/{task}/{arm}/half-best"),
            )
            for task in tasks
            for arm in arms
        ),
        below(frame, f"{WIDTH}; the threshold is found anew in every draw", CORE_DRAWS),
    )


def _scores(task: str, frame: Frame, estimates: Mapping[str, Estimate]) -> Table:
    _, arms = _names(frame)
    labels = [scale_label(float(scale)) for scale in frame.axes["scale"]]
    return Table(
        f"tab:unified-scores-{TASK_NAMES[task].lower()}",
        f"Scores in {TASK_NAMES[task]} by reward scale",
        (Column("Scale"), *(Column(ARM_NAMES[arm]) for arm in arms)),
        tuple(
            (label, *(estimates[f"score/{task}/{arm}/{label}"] for arm in arms)) for label in labels
        ),
        below(frame, TAIL, CORE_DRAWS),
    )


def _displacements(frame: Frame, estimates: Mapping[str, Estimate]) -> Table:
    tasks, arms = _names(frame)
    labels = [scale_label(float(scale)) for scale in frame.axes["scale"]]
    return Table(
        "v5:tab:app-scale-state",
        "How far the reward scale moves the terminal state",
        (
            Column("Environment"),
            Column("State"),
            Column("Scale"),
            Column("h: shift / radius", 2),
            Column("c: shift / radius", 2),
        ),
        tuple(
            (
                TASK_NAMES[task],
                ARM_NAMES[arm],
                label,
                *(estimates.get(f"displacement/{task}/{arm}/{label}/{vector}") for vector in "hc"),
            )
            for task in tasks
            for arm in arms
            for label in labels
            if f"displacement/{task}/{arm}/{label}/h" in estimates
        ),
        below(frame, STATES, CORE_DRAWS),
    )


def _geometry(frame: Frame, estimates: Mapping[str, Estimate]) -> Table:
    tasks, arms = _names(frame)
    return Table(
        "tab:unified-scale-geometry",
        "How much of the terminal states' variation is due to the reward scale",
        (
            Column("Environment"),
            Column("State"),
            Column("Vector"),
            Column("Between-scale fraction [95% interval]"),
            Column("PC1+2 fraction"),
            Column("Unit radius", interval=False),
        ),
        tuple(
            (
                TASK_NAMES[task],
                ARM_NAMES[arm],
                vector,
                *(estimates[f"{kind}/{task}/{arm}/{vector}"] for kind in _KINDS),
            )
            for task in tasks
            for arm in arms
            for vector in ("h", "c", "hc")
            if f"between/{task}/{arm}/{vector}" in estimates
        ),
        below(
            frame,
            "between: variation between the scales' centroids as a fraction of all variation; "
            "radius: mean distance of unit-scale states to their centroid",
            CORE_DRAWS,
        ),
    )


_KINDS = ("between", "principal", "radius")


def _references(frame: Frame) -> Table:
    tasks, _ = _names(frame)
    found = {task: catch_references(WORLDS[task]) for task in tasks}
    return Table(
        "v5:tab:app-scale-references",
        "Returns by which scores are normalised",
        (
            Column("Environment"),
            Column("R random", 5),
            Column("R optimal", 5),
            Column("Reference span", 5),
        ),
        tuple(
            (
                TASK_NAMES[task],
                known.random_return,
                known.oracle_return,
                known.oracle_return - known.random_return,
            )
            for task, known in found.items()
        ),
        "Mean return of an episode, exact by dynamic programming, but for the random return of "
        "CatchDense: there the published audit used a mean of sampled episodes, and so do scores.",
    )
