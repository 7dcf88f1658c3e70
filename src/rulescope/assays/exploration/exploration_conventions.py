"""F1, exploration-conventions: do the results of exploration depend on how the rule is indexed?

The rule with the Retrace index of the agent ``legacy`` and with that of the reference, each against
the same A2C lifetimes, seed by seed; nothing else about the agent differs. A run is its
specification: with ``--agent published`` the reference arm and A2C are those of E-A5 at these
depths, and not an independent repetition. (The assay ``conventions`` estimates how far the index
shifts the comparison.)
"""

from __future__ import annotations

from rulescope.assays import cohorts
from rulescope.assays.analysis import collect_tail_warnings, make_results, note_missing, table_note
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.estimates import Estimates, count_text
from rulescope.assays.exploration import staircase
from rulescope.assays.exploration.staircase import (
    budget,
    depth_of,
    estimate_share,
    read_depth,
    task_at,
)
from rulescope.assays.frame import Frame
from rulescope.assays.grid import Arm, Cell
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.core.errors import SpecError
from rulescope.stats import estimate, estimates, paired_differences, seed_blocks

DEPTHS = (12, 14)
ARMS = {
    "rule-legacy": Arm("rule", legacy=True),
    "rule": Arm("rule"),
    "a2c": Arm("a2c"),
}
CONVENTIONS = {"legacy": "rule-legacy", "reference": "rule"}
"""The arm of each Retrace index."""
DRAWS = 2_000


def grid(chosen: Budget) -> list[Cell]:
    """Return a cell for every depth and arm of ``chosen``."""
    if chosen.agent == "legacy":
        raise SpecError("--agent: F1 compares the Retrace index of 'legacy' with another")
    return staircase.grid(chosen, ARMS)


def analyse(frame: Frame) -> Results:
    """Estimate, for each convention, how much higher the rule's returns are than A2C's by seed."""
    notes = note_missing(frame)
    found = Estimates()
    blocks = seed_blocks(len(frame.seeds), DRAWS)
    arms = frame.axes["arm"]
    with collect_tail_warnings(notes):
        for task in frame.axes["task"]:
            here, depth = read_depth(frame, task), float(depth_of(task))
            by_arm = dict(zip(arms, here.returns, strict=True))
            returns = estimates(here.returns, blocks)
            for i, arm in enumerate(arms):
                labels = {"arm": arm, "depth": depth}
                found.add("solved", estimate_share(here.solved[i]), labels)
                found.add("return", returns[i], labels, seeds=here.returns[i])
            for convention, arm in CONVENTIONS.items():
                if {arm, "a2c"} <= set(arms):
                    gap = paired_differences(by_arm[arm], by_arm["a2c"])
                    labels = {"convention": convention, "depth": depth}
                    found.add("difference", estimate(gap, blocks), labels, seeds=gap)
    return make_results("F1", frame, found, (_table(frame, found),), notes)


def _table(frame: Frame, found: Estimates) -> Table:
    rows: list[tuple[Value, ...]] = []
    for row in found.where("difference"):
        convention, depth = str(row.labels["convention"]), row.labels["depth"]
        if row.known:
            arms = (CONVENTIONS[convention], "a2c")
            counts = (count_text(found.at("solved", arm=arm, depth=depth)) for arm in arms)
            rows.append((convention, int(depth), row.estimate.n, *counts, row.estimate))
    return Table(
        "v5:tab:app-exploration-f1",
        f"DeepSea under two conventions: {frame.subject} against A2C, seed by seed",
        (
            Column("Convention"),
            Column("Depth"),
            Column("n"),
            Column(f"{frame.subject} solved"),
            Column("A2C solved"),
            Column(f"{frame.subject} minus A2C [95% CI]", 5),
        ),
        tuple(rows),
        table_note(
            frame,
            "tail return: mean logged return of the last fifth of a lifetime; its difference is "
            "taken within each seed, then the integer-trimmed mean over seeds; solved: a tail "
            "return of at least 0.495",
            DRAWS,
        ),
        tells_n=False,
    )


PRESETS = {
    "smoke": budget(1, ("rule-legacy", "rule", "a2c"), (12,), episodes=400, log_every=10),
    "quick": budget(2, ("rule-legacy", "rule", "a2c"), (12,), episodes=6000),
    "standard": budget(8, tuple(ARMS), DEPTHS),
    "paper": budget(15, tuple(ARMS), DEPTHS),
}

ASSAY = Assay(
    id="F1",
    name="exploration-conventions",
    question="Does what is said of exploration depend on how the rule's targets are indexed?",
    arms=tuple(ARMS),
    tasks=tuple(task_at(depth) for depth in DEPTHS),
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    columns=("mean_return",),
    states=(),
    tables=("v5:tab:app-exploration-f1",),
    figures=("v5:fig:app-exploration",),
    cohort=cohorts.CONVENTIONS,
)
