"""E-A3c, stream: what does a learner achieve in a world that never resets?

Masked Catch still resets. CatchStream does not: the ball bounces, the paddle stays where it was
left, and no end is reported because there is none (see ``continuity.py``).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from rulescope.assays.analysis import (
    ATLAS_DRAWS,
    collect_tail_warnings,
    estimate_cells,
    make_results,
    note_missing,
    table_note,
    tail15,
)
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.estimates import Estimates, Label
from rulescope.assays.frame import Frame
from rulescope.assays.grid import CONTROLS, Arm, Cell, make_runs, require_unit_scale, sweep
from rulescope.assays.pivot import Entry, count_of, pivot_table
from rulescope.assays.results import Column, Results, Table
from rulescope.assays.streams.continuity import STEPS, structural_check
from rulescope.assays.streams.stream_readouts import (
    CROSSED,
    RATE_SCORE,
    THRESHOLD,
    crossed,
    crossings,
    learning_curves,
)
from rulescope.assays.streams.stream_tables import algorithms
from rulescope.run_spec import RunSpec

ID = "E-A3c"
ARMS = ("rule", "a2c", "dqn")
TASK = "catch-stream"


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every arm of ``budget``."""
    require_unit_scale(budget, ID)

    def runs(labels: dict[str, Label]) -> tuple[RunSpec, ...]:
        arm = str(labels["arm"])
        return make_runs(budget, CONTROLS.get(arm, Arm(arm)), task=TASK)

    return sweep({"arm": budget.arms}, runs)


def analyse(frame: Frame) -> Results:
    """Estimate each arm's score and the share of lifetimes that ever reach the threshold."""
    notes = note_missing(frame)
    found = Estimates()
    with collect_tail_warnings(notes):
        scores = estimate_cells(frame, "score", tail15(frame, "rate_score"), ATLAS_DRAWS)
        first = crossings(frame)
        for row, (labels, place) in zip(scores.rows, frame.cells(), strict=True):
            found.add("score", row.estimate, labels, seeds=row.seeds)
            found.add("ever", crossed(first[place], frame.completed[place]), labels)
        series = learning_curves(frame)
    return make_results(ID, frame, found, (_table(frame, found),), notes, series)


def _table(frame: Frame, found: Estimates) -> Table:
    return pivot_table(
        "v5:tab:app-resetfree",
        "CatchStream: the reward rate of learners in a world that goes on",
        found,
        (algorithms(frame),),
        (
            Entry(Column("n"), "ever", show=count_of),
            Entry(Column("Reward-rate score [95% CI]", 5), "score"),
            Entry(Column(f"Ever reaches {THRESHOLD:g}"), "ever"),
        ),
        table_note(frame, f"{RATE_SCORE}; {CROSSED}; {describe_resets()}", ATLAS_DRAWS),
        tells_n=False,
    )


@cache
def describe_resets() -> str:
    """Return the result of the check of resets, in words; ``rulescope check worlds`` records it."""
    counts = (
        f"{name} {found.terminals} ends, {found.snaps} paddle resets, {found.jumps} ball jumps"
        for name, found in structural_check().items()
    )
    return f"{STEPS} steps without drift, the paddle left off centre: {'; '.join(counts)}"


PAPER = Budget(seeds=12, iterations=6000, arms=ARMS, tasks=(TASK,), log_every=40)
PRESETS = {
    "smoke": replace(PAPER, seeds=1, iterations=80, arms=("rule", "a2c")),
    "quick": replace(PAPER, seeds=2, iterations=2000),
    "standard": replace(PAPER, seeds=4),
    "paper": PAPER,
}

ASSAY = Assay(
    id=ID,
    name="stream",
    question="What does a learner achieve in a world that never resets?",
    arms=(*ARMS, *CONTROLS),
    tasks=(TASK,),
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    columns=("rate_score",),
    states=(),
    tables=("v5:tab:app-resetfree",),
    figures=("v5:fig:app-streams", "fig:behavior", "orig:behavior"),
)
