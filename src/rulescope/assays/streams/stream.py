"""E-A3c, stream: what does a learner achieve in a world that truly goes on?

Masked Catch still resets. CatchStream does not: the ball bounces, the paddle stays where it was
left, and no end is reported because there is none (see ``continuity.py``).
"""

from __future__ import annotations

from rulescope.assays.analysis import ATLAS_DRAWS, by_seed, missing, noted, summed_up, tail15
from rulescope.assays.assay import CONTROLS, Arm, Assay, Budget, Cell, at_unit_scale, lifetimes
from rulescope.assays.frame import Frame
from rulescope.assays.results import Results
from rulescope.assays.streams.stream_readouts import crossed, crossings, trajectories
from rulescope.assays.streams.stream_tables import resetfree
from rulescope.stats import Estimate, estimates, seed_blocks

ID = "E-A3c"
ARMS = ("disco", "a2c", "dqn")
TASK = "catch-stream"


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every arm of ``budget``."""
    at_unit_scale(budget, ID)
    return [
        Cell({"arm": arm}, lifetimes(budget, CONTROLS.get(arm, Arm(arm)), task=TASK))
        for arm in budget.arms
    ]


def analyse(frame: Frame) -> Results:
    """Estimate each arm's score and the share of lifetimes that ever reach the threshold."""
    notes = missing(frame)
    found: dict[str, Estimate] = {}
    with noted(notes):
        blocks = seed_blocks(len(frame.seeds), ATLAS_DRAWS)
        late = tail15(frame, "rate_score")
        scores = estimates(late, blocks)
        first = crossings(frame)
        for arm, place in frame.places():
            found[f"score/{arm}"] = scores[place]
            found[f"ever/{arm}"] = crossed(first[place], frame.lived[place])
        series = {**trajectories(frame), **by_seed(frame, late, "score")}
    return summed_up(ID, frame, found, (resetfree(frame, found),), notes, series)


def _budget(seeds: int, iterations: int, arms: tuple[str, ...] = ARMS) -> Budget:
    return Budget(seeds=seeds, iterations=iterations, arms=arms, tasks=(TASK,), log_every=40)


ASSAY = Assay(
    id=ID,
    name="stream",
    question="What does a learner achieve in a world that never resets?",
    arms=(*ARMS, *CONTROLS),
    tasks=(TASK,),
    presets={
        "smoke": _budget(1, 80, ("disco", "a2c")),
        "quick": _budget(2, 2000),
        "standard": _budget(4, 6000),
        "paper": _budget(12, 6000),
    },
    grid=grid,
    analyse=analyse,
    columns=("rate_score",),
    states=(),
    figures=("v5:fig:app-streams", "fig:behavior", "orig:behavior"),
)
