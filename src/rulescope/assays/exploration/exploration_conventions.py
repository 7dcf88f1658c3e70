"""F1, exploration-conventions: does what is said of exploration depend on how the rule is indexed?

The rule with the Retrace index of the agent ``legacy`` and with that of the reference, each against
the same A2C lifetimes, seed by seed; nothing else about the agent differs. A run is its
specification: with ``--agent published`` the reference arm and A2C are those of E-A5 at these
depths, and not an independent repetition. (By how much the index shifts the comparison is estimated
among the other comparisons, in ``conventions``.)
"""

from __future__ import annotations

from rulescope.assays import cohorts
from rulescope.assays.analysis import below, collect_tail_warnings, make_results, missing
from rulescope.assays.assay import Arm, Assay, Budget, Cell
from rulescope.assays.exploration import staircase
from rulescope.assays.exploration.staircase import budget, depth_of, dives, share, task_at
from rulescope.assays.exploration.staircase_tables import counted
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.core.errors import SpecError
from rulescope.stats import (
    Estimate,
    estimate,
    estimates,
    paired_differences,
    seed_blocks,
)

DEPTHS = (12, 14)
ARMS = {
    "disco-legacy": Arm("disco", legacy=True),
    "disco": Arm("disco"),
    "a2c": Arm("a2c"),
}
CONVENTIONS = {"legacy": "disco-legacy", "reference": "disco"}
"""The arm of each Retrace index."""
DRAWS = 2_000


def grid(chosen: Budget) -> list[Cell]:
    """Return a cell for every depth and arm of ``chosen``."""
    if chosen.agent == "legacy":
        raise SpecError("--agent: F1 compares the Retrace index of 'legacy' with another")
    return staircase.grid(chosen, ARMS)


def analyse(frame: Frame) -> Results:
    """Estimate, for each convention, how much higher the rule's returns are than A2C's by seed."""
    notes = missing(frame)
    made: dict[str, Estimate] = {}
    series: dict[str, Floats] = {}
    blocks = seed_blocks(len(frame.seeds), DRAWS)
    arms = [str(arm) for arm in frame.axes["arm"]]
    with collect_tail_warnings(notes):
        for task in frame.axes["task"]:
            here, depth = dives(frame, task), depth_of(task)
            returns = dict(zip(arms, here.returns, strict=True))
            cells = estimates(here.returns, blocks)
            for i, arm in enumerate(arms):
                made[f"solved/{arm}/{depth}"] = share(here.solved[i])
                made[f"return/{arm}/{depth}"] = cells[i]
                series[f"seeds/return/{arm}/{depth}"] = here.returns[i]
            for convention, arm in CONVENTIONS.items():
                if {arm, "a2c"} <= set(arms):
                    gap = paired_differences(returns[arm], returns["a2c"])
                    made[f"difference/{convention}/{depth}"] = estimate(gap, blocks)
    return make_results("F1", frame, made, (_table(frame, made),), notes, series)


def _table(frame: Frame, made: dict[str, Estimate]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for depth in (depth_of(task) for task in frame.axes["task"]):
        for convention, arm in CONVENTIONS.items():
            gap = made.get(f"difference/{convention}/{depth}")
            if gap is not None and not gap.missing:
                counts = (counted(made[f"solved/{who}/{depth}"]) for who in (arm, "a2c"))
                rows.append((convention, depth, gap.n, *counts, gap))
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
        below(
            frame,
            "tail return: mean logged return of the last fifth of a lifetime; its difference is "
            "taken within each seed, then the integer-trimmed mean over seeds; solved: a tail "
            "return of at least 0.495",
            DRAWS,
        ),
        tells_n=False,
    )


PRESETS = {
    "smoke": budget(1, ("disco-legacy", "disco", "a2c"), (12,), episodes=400, log_every=10),
    "quick": budget(2, ("disco-legacy", "disco", "a2c"), (12,), episodes=6000),
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
    figures=("v5:fig:app-exploration",),
    cohort=cohorts.CONVENTIONS,
)
