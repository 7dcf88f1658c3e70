"""Masking: what is the terminal flag worth to a learner in MinAtar Breakout?

The game is the same in both conditions; the learner is told of its ends (episodic) or never is
(masked). What is estimated is the difference within each seed, and how much larger the rule's is
than that of other learners. Rates are raw rewards per interaction: Breakout has no optimum to
compare with.
"""

from __future__ import annotations

from rulescope.assays.analysis import ATLAS_DRAWS, by_seed, missing, noted, summed_up, tail10
from rulescope.assays.assay import (
    EPISODIC,
    MASKED,
    Arm,
    Assay,
    Budget,
    Cell,
    at_unit_scale,
    lifetimes,
)
from rulescope.assays.cohorts import HISTORICAL
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.legacy_keys import as_rows
from rulescope.assays.results import Results
from rulescope.assays.streams.stream_tables import masking, masking_paired
from rulescope.stats import (
    estimate,
    estimates,
    paired_differences,
    seed_blocks,
)

ID = "masking"
ARMS = ("disco", "a2c", "ppo", "dqn")
SUBJECT = "disco"
TASK = "minatar-breakout"
BOUNDARIES = {"episodic": EPISODIC, "masked": MASKED}


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every boundary and arm of ``budget``."""
    at_unit_scale(budget, ID)
    return [
        Cell(
            {"condition": name, "arm": arm},
            lifetimes(budget, Arm(arm), task=TASK, boundary=BOUNDARIES[name]),
        )
        for name in budget.conditions
        for arm in budget.arms
    ]


def analyse(frame: Frame) -> Results:
    """Estimate rates, masked minus episodic within seeds, and the rule's effect minus others'."""
    notes = missing(frame)
    rates = tail10(frame, "reward_rate")
    with noted(notes):
        blocks = seed_blocks(len(frame.seeds), ATLAS_DRAWS)
        by_cell = estimates(rates, blocks)
        found = {f"rate/{name}": by_cell[place] for name, place in frame.places()}
        effects = _effects(frame, rates)
        for arm, each in effects.items():
            found[f"effect/{arm}"] = estimate(each, blocks)
        for arm in effects if SUBJECT in effects else ():
            if arm != SUBJECT:
                contrast = paired_differences(effects[SUBJECT], effects[arm])
                found[f"contrast/{arm}"] = estimate(contrast, blocks)
    rows = as_rows(ID, found, {}, {}, frozenset())
    made = (masking(frame, rows), masking_paired(frame, rows))
    tables = tuple(table for table in made if table.rows)
    return summed_up(ID, frame, found, tables, notes, by_seed(frame, rates, "rate"))


def _effects(frame: Frame, rates: Floats) -> dict[str, Floats]:
    """Return masked minus episodic rates [seeds] by arm, where both conditions are there."""
    if not set(BOUNDARIES) <= set(frame.axes["condition"]):
        return {}
    masked, episodic = (frame.axes["condition"].index(name) for name in ("masked", "episodic"))
    each = paired_differences(rates[masked], rates[episodic])
    return {str(arm): each[i] for i, arm in enumerate(frame.axes["arm"])}


def _budget(seeds: int, iterations: int, arms: tuple[str, ...] = ARMS) -> Budget:
    return Budget(
        seeds=seeds,
        iterations=iterations,
        arms=arms,
        tasks=(TASK,),
        conditions=tuple(BOUNDARIES),
        log_every=40,
    )


ASSAY = Assay(
    id=ID,
    name="masking",
    question="What is the signal of episode ends worth in MinAtar Breakout?",
    arms=ARMS,
    tasks=(TASK,),
    conditions=tuple(BOUNDARIES),
    presets={
        "smoke": _budget(1, 80, ("disco", "a2c")),
        "quick": _budget(2, 800, ("disco", "a2c")),
        "standard": _budget(4, 8000),
        "paper": _budget(18, 8000),
    },
    grid=grid,
    analyse=analyse,
    columns=("reward_rate",),
    states=(),
    figures=("v5:fig:app-streams",),
    cohort=HISTORICAL,
)
