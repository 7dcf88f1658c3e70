"""The published tables of E1, with the estimates of this run."""

from __future__ import annotations

import math

from rulescope.assays.analysis import CORE_DRAWS, SCORE, adjusted, table_note
from rulescope.assays.comparison_families import PRIMARY
from rulescope.assays.estimates import Estimates
from rulescope.assays.frame import Frame
from rulescope.assays.grid import table_names
from rulescope.assays.pivot import Entry, Index, keep_filled, names, pivot_table, window_of
from rulescope.assays.results import Column, Table
from rulescope.assays.scale.scale_arms import ARMS
from rulescope.assays.scale.state_geometry import VECTORS
from rulescope.envs.references import catch_references
from rulescope.envs.world_config import WORLDS
from rulescope.render.display_names import CATCH_NAMES
from rulescope.stats import COMPETENT

ARM_NAMES = table_names(ARMS)
TAIL = SCORE.format(part="fifth")
WIDTH = (
    "width: decades spanned by the widest run of neighbouring scales that pass, "
    f"on the curve of trimmed mean scores ({TAIL}); scales: its lowest and highest passing one; an "
    f"arm whose best score is below {COMPETENT:g} is not competent and has no half-best window"
)
STATES = "terminal states of the rule; shift between centroids, in units of the unit-scale radius"

CRITERIA = ("0.7", "0.8", "0.9")


def make_tables(frame: Frame, found: Estimates) -> tuple[Table, ...]:
    """Return every table of E1 that has a row."""
    return keep_filled(
        _contrasts(frame, found),
        _widths(frame, found),
        _relative(frame, found),
        *(_scores(str(task), frame, found) for task in frame.axes["task"]),
        _displacements(frame, found),
        _geometry(frame, found),
        _references(frame),
    )


def _cells(frame: Frame) -> tuple[Index, Index]:
    """Return a line for every task and arm."""
    return (
        Index("Environment", "task", names(frame.axes["task"], CATCH_NAMES)),
        Index("State", "arm", names(frame.axes["arm"], ARM_NAMES)),
    )


def _decimals(frame: Frame) -> int:
    """Return the decimals of a width: none while all scales are powers of ten."""
    decades = (math.log10(float(scale)) for scale in frame.axes["scale"])
    return 0 if all(abs(x - round(x)) < 1e-9 for x in decades) else 2


def _contrasts(frame: Frame, found: Estimates) -> Table:
    digits = _decimals(frame)
    headings = names(frame.axes["arm"], {**ARM_NAMES, "pin": "Pin", "hold": "EMA"})
    entries = [
        Entry(Column(heading, digits, interval=False), "width", {"arm": arm})
        for arm, heading in headings.items()
    ]
    if {"live", "pin"} <= set(headings):
        entries.append(Entry(Column("ΔW live − pin [adjusted CI]", digits), "contrast"))
    entries += [
        Entry(Column(f"{heading}: scales"), "width", {"arm": arm}, window_of)
        for arm, heading in headings.items()
    ]
    return pivot_table(
        "tab:e1-all",
        "Width of the scale window, and what the live state adds to it",
        found,
        (
            Index("Task", "task", names(frame.axes["task"], CATCH_NAMES)),
            Index("Criterion", "criterion", {"half-best": "Half-best", "0.8": "S ≥ 0.8"}),
        ),
        entries,
        table_note(frame, WIDTH, CORE_DRAWS, adjusted(PRIMARY)),
    )


def _widths(frame: Frame, found: Estimates) -> Table:
    digits = _decimals(frame)
    return pivot_table(
        "v5:tab:app-scale-widths",
        "Width of the scale window at fixed scores",
        found,
        _cells(frame),
        (
            *(Entry(Column(f"Score ≥ {c}", digits), "width", {"criterion": c}) for c in CRITERIA),
            *(
                Entry(Column(f"Scales ≥ {c}"), "width", {"criterion": c}, window_of)
                for c in CRITERIA
            ),
        ),
        table_note(frame, WIDTH, CORE_DRAWS),
    )


def _relative(frame: Frame, found: Estimates) -> Table:
    half = {"criterion": "half-best"}
    return pivot_table(
        "tab:unified-scale-relative",
        "Width of the scale window at half of the best score",
        found,
        _cells(frame),
        (
            Entry(Column("Width [95% interval]", _decimals(frame)), "width", half),
            Entry(Column("Point threshold"), "threshold"),
            Entry(Column("Scales"), "width", half, window_of),
        ),
        table_note(frame, f"{WIDTH}; the threshold is found anew in every draw", CORE_DRAWS),
    )


def _scores(task: str, frame: Frame, found: Estimates) -> Table:
    arms = names(frame.axes["arm"], ARM_NAMES)
    return pivot_table(
        f"tab:unified-scores-{CATCH_NAMES.get(task, task).lower()}",
        f"Scores in {CATCH_NAMES.get(task, task)} by reward scale",
        found,
        [Index("Scale", "scale", names(frame.axes["scale"]))],
        [Entry(Column(name), "score", {"task": task, "arm": arm}) for arm, name in arms.items()],
        table_note(frame, TAIL, CORE_DRAWS),
    )


def _displacements(frame: Frame, found: Estimates) -> Table:
    return pivot_table(
        "v5:tab:app-scale-state",
        "How far the reward scale moves the terminal state",
        found,
        (*_cells(frame), Index("Scale", "scale", names(frame.axes["scale"]))),
        [
            Entry(Column(f"{vector}: shift / radius", 2), "displacement", {"vector": vector})
            for vector in "hc"
        ],
        table_note(frame, STATES, CORE_DRAWS),
    )


def _geometry(frame: Frame, found: Estimates) -> Table:
    return pivot_table(
        "tab:unified-scale-geometry",
        "How much of the terminal states' variation is due to the reward scale",
        found,
        (*_cells(frame), Index("Vector", "vector", names(VECTORS))),
        (
            Entry(Column("Between-scale fraction [95% interval]"), "between"),
            Entry(Column("PC1+2 fraction"), "principal"),
            Entry(Column("Unit radius", interval=False), "radius"),
        ),
        table_note(
            frame,
            "between: variation between the scales' centroids as a fraction of all variation; "
            "radius: mean distance of unit-scale states to their centroid",
            CORE_DRAWS,
        ),
    )


def _references(frame: Frame) -> Table:
    own = [str(task) for task in frame.axes["task"] if task not in frame.worlds]
    found = {task: catch_references(WORLDS[task]) for task in own}
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
                CATCH_NAMES[task],
                known.random_return,
                known.oracle_return,
                known.oracle_return - known.random_return,
            )
            for task, known in found.items()
        ),
        "Mean return of an episode, exact by dynamic programming, but for the random return of "
        "CatchDense: there the published audit used a mean of sampled episodes, and so do scores.",
    )
