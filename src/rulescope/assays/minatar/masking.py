"""Masking: what is the terminal flag worth to a learner in MinAtar Breakout?

The game is the same in both conditions; the learner observes its ends (episodic) or never does
(masked). What is estimated is the difference within each seed, and how much larger the rule's is
than that of other learners. Rates are raw rewards per interaction: Breakout has no optimum to
compare with.
"""

from __future__ import annotations

from dataclasses import replace

from rulescope.assays.analysis import (
    ATLAS_DRAWS,
    collect_tail_warnings,
    estimate_cells,
    make_results,
    note_missing,
    table_note,
    tail10,
)
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.cohorts import HISTORICAL
from rulescope.assays.estimates import Estimates
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.grid import EPISODIC, MASKED, Arm, Cell, make_runs, require_unit_scale, sweep
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.assays.streams.stream_readouts import RATE
from rulescope.render.arm_styles import arm_name
from rulescope.stats import (
    estimate,
    paired_differences,
    seed_blocks,
)

ID = "masking"
ARMS = ("rule", "a2c", "ppo", "dqn")
SUBJECT = "rule"
TASK = "minatar-breakout"
RAW = f"{RATE}, in rewards of the game, mean of the last 10 % of the log rows"
BOUNDARIES = {"episodic": EPISODIC, "masked": MASKED}


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every boundary and arm of ``budget``."""
    require_unit_scale(budget, ID)
    return sweep(
        {"condition": budget.conditions, "arm": budget.arms},
        lambda at: make_runs(
            budget, Arm(str(at["arm"])), task=TASK, boundary=BOUNDARIES[str(at["condition"])]
        ),
    )


def analyse(frame: Frame) -> Results:
    """Estimate rates, masked minus episodic within seeds, and the rule's effect minus others'."""
    notes = note_missing(frame)
    rates = tail10(frame, "reward_rate")
    with collect_tail_warnings(notes):
        blocks = seed_blocks(len(frame.seeds), ATLAS_DRAWS)
        found = estimate_cells(frame, "rate", rates, ATLAS_DRAWS)
        effects = _effects(frame, rates)
        for arm, each in effects.items():
            found.add("effect", estimate(each, blocks), {"arm": arm}, seeds=each)
        for arm in effects if SUBJECT in effects else ():
            if arm != SUBJECT:
                contrast = paired_differences(effects[SUBJECT], effects[arm])
                found.add("contrast", estimate(contrast, blocks), {"arm": arm}, seeds=contrast)
    made = (_levels_table(frame, found), _paired_table(frame, found))
    tables = tuple(table for table in made if table.rows)
    return make_results(ID, frame, found, tables, notes)


def _effects(frame: Frame, rates: Floats) -> dict[str, Floats]:
    """Return masked minus episodic rates [seeds] by arm, where both conditions are there."""
    if not set(BOUNDARIES) <= set(frame.axes["condition"]):
        return {}
    masked, episodic = (frame.axes["condition"].index(name) for name in ("masked", "episodic"))
    each = paired_differences(rates[masked], rates[episodic])
    return {str(arm): each[i] for i, arm in enumerate(frame.axes["arm"])}


def _levels_table(frame: Frame, found: Estimates) -> Table:
    """Return the reward rate with and without the terminal flag, and what the flag is worth."""
    conditions = [str(label) for label in frame.axes["condition"]]
    rows: list[tuple[Value, ...]] = []
    for arm in map(str, frame.axes["arm"]):
        rates = [found.at("rate", condition=condition, arm=arm) for condition in conditions]
        effect = found.lookup("effect", arm=arm)
        n = min(rate.n for rate in rates) if effect is None else effect.n
        rows.append((arm_name(arm, frame.subject), n, *rates, effect))
    return Table(
        "v5:tab:app-minatar-masking",
        "MinAtar Breakout with and without the terminal flag",
        (
            Column("Algorithm"),
            Column("n"),
            *(Column(condition.capitalize(), 6, interval=False) for condition in conditions),
            Column("Masked minus episodic [95% CI]", 7),
        ),
        tuple(rows),
        table_note(
            frame,
            f"rates: {RAW}, integer-trimmed mean over seeds; differences: within seeds first, "
            "then trimmed",
            ATLAS_DRAWS,
        ),
        tells_n=False,
    )


def _paired_table(frame: Frame, found: Estimates) -> Table:
    """Return how much more the flag is worth to the rule than to each other learner."""
    rows: list[tuple[Value, ...]] = [
        (
            f"masking penalty: {frame.subject} − {arm_name(str(row.labels['arm']), frame.subject)}",
            row.estimate.n,
            row.estimate,
        )
        for row in found.where("contrast")
    ]
    return Table(
        "v5:tab:app-minatar-masking-paired",
        f"The effect of masking on {frame.subject}, minus that on other learners",
        (Column("Contrast"), Column("n"), Column("Paired difference [95% CI]", 7)),
        tuple(rows),
        table_note(
            frame,
            f"effect: masked minus episodic, {RAW}; both differences within seeds, then trimmed",
            ATLAS_DRAWS,
        ),
        tells_n=False,
    )


PAPER = Budget(
    seeds=18,
    iterations=8000,
    arms=ARMS,
    tasks=(TASK,),
    conditions=tuple(BOUNDARIES),
    log_every=40,
)
PRESETS = {
    "smoke": replace(PAPER, seeds=1, iterations=80, arms=("rule", "a2c")),
    "quick": replace(PAPER, seeds=2, iterations=800, arms=("rule", "a2c")),
    "standard": replace(PAPER, seeds=4),
    "paper": PAPER,
}

ASSAY = Assay(
    id=ID,
    name="masking",
    question="What is the signal of episode ends worth in MinAtar Breakout?",
    arms=ARMS,
    tasks=(TASK,),
    conditions=tuple(BOUNDARIES),
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    columns=("reward_rate",),
    states=(),
    tables=(
        "v5:tab:app-minatar-masking",
        "v5:tab:app-minatar-masking-paired",
    ),
    figures=("v5:fig:app-streams",),
    cohort=HISTORICAL,
)
