"""E-LR, learning-rate: how much does the score of a baseline depend on its learning rate?

The baselines of F2 run through the same 1.16 million interactions at four learning rates; nothing
else is overridden. The rate of the best trimmed mean is selected on the seeds that it is judged by,
so its score is, if anything, too good for the baseline.

Differences are from the scalar that F2 reports of the same baseline: its score in the last log row,
at its usual rate. Those lifetimes of F2 are cells of this assay too.
"""

from __future__ import annotations

from dataclasses import replace

from rulescope.assays.analysis import (
    ATLAS_DRAWS,
    SCORE,
    collect_tail_warnings,
    last_row,
    make_results,
    missing_estimate,
    note_missing,
    table_note,
    tail15,
    without_interval,
)
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.cohorts import NO_DISCO
from rulescope.assays.estimates import Estimates, Row
from rulescope.assays.frame import Frame
from rulescope.assays.grid import Arm, Cell, make_runs, require_unit_scale, sweep
from rulescope.assays.horizon.horizon import TASK
from rulescope.assays.marginals import difference_of_cells
from rulescope.assays.pivot import Entry, Index, names, pivot_table
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.learners.baseline_config import VARIANTS, RandomPolicy
from rulescope.render.arm_styles import arm_name
from rulescope.stats import estimates, seed_blocks

ARMS = ("a2c", "ppo", "dqn")
RATES = ("0.0001", "0.0003", "0.0007", "0.001")


def usual_rate(arm: str) -> float:
    """Return the learning rate that a baseline has everywhere else.

    >>> usual_rate("a2c")
    0.0007
    """
    learner = VARIANTS[arm]
    assert not isinstance(learner, RandomPolicy)
    return learner.learning_rate


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every baseline and learning rate of ``budget``."""
    require_unit_scale(budget, "E-LR")
    return sweep(
        {"arm": budget.arms, "rate": budget.conditions},
        lambda at: make_runs(
            budget, Arm(str(at["arm"]), learning_rate=float(at["rate"])), task=TASK
        ),
    )


def analyse(frame: Frame) -> Results:
    """Estimate every cell, differences from the scalar of F2, and the rate that scores best."""
    notes = note_missing(frame)
    found = Estimates()
    rates = _rates(frame)
    with collect_tail_warnings(notes):
        blocks = seed_blocks(len(frame.seeds), ATLAS_DRAWS)
        scores = tail15(frame)
        cells, ends = estimates(scores, blocks), estimates(last_row(frame), blocks)
        for i, arm in enumerate(str(arm) for arm in frame.axes["arm"]):
            for j, rate in enumerate(rates):
                found.add("score", cells[i, j], {"arm": arm, "rate": rate}, seeds=scores[i, j])
            if usual_rate(arm) in rates:
                there = (i, rates.index(usual_rate(arm)))
                found.add("horizon", ends[there], {"arm": arm})
                for j, rate in enumerate(rates):
                    difference = difference_of_cells(cells, (i, j), there, ends)
                    found.add("difference", difference, {"arm": arm, "rate": rate})
            _add_selected(found, arm)
    return make_results("E-LR", frame, found, (_table(frame, found),), notes)


def _rates(frame: Frame) -> list[float]:
    return [float(rate) for rate in frame.axes["rate"]]


def _add_selected(found: Estimates, arm: str) -> None:
    """Add the rate with the largest trimmed mean, and its score."""
    scores = [row for row in found.where("score", arm=arm) if row.known]
    other_grid = [row.labels["rate"] for row in scores] != [float(rate) for rate in RATES]
    rate = score = missing_estimate()
    if scores:
        best = max(scores, key=lambda row: row.estimate.value)
        rate, score = without_interval(float(best.labels["rate"]), best.estimate.n), best.estimate
    found.add("rate", rate, {"arm": arm}, other_grid=other_grid)
    found.add("selected", score, {"arm": arm}, other_grid=other_grid)


def _table(frame: Frame, found: Estimates) -> Table:
    def remark(row: Row) -> Value:
        arm, rate = str(row.labels["arm"]), row.labels["rate"]
        marks = {
            "usual": rate == usual_rate(arm),
            "selected": rate == found.at("rate", arm=arm).value,
        }
        return ", ".join(mark for mark, holds in marks.items() if holds)

    return pivot_table(
        "tab:elr-scores",
        "Baselines in Catch 24×24 by learning rate",
        found,
        (
            Index(
                "Learner",
                "arm",
                {arm: arm_name(str(arm), frame.subject) for arm in frame.axes["arm"]},
            ),
            Index("Learning rate", "rate", names(_rates(frame))),
        ),
        (
            Entry(Column("Score [95% CI]", 5), "score"),
            Entry(Column("Difference from the F2 endpoint [95% CI]", 5), "difference"),
            Entry(Column("Remark"), "score", show=remark),
        ),
        table_note(
            frame,
            f"{SCORE.format(part='15 % of the log')}; F2 endpoint: the last log row at the usual "
            "rate, trimmed mean; differences are between trimmed means; "
            "selected: the largest trimmed mean on these very seeds",
            ATLAS_DRAWS,
        ),
    )


PAPER = Budget(
    seeds=12, iterations=20_000, arms=ARMS, tasks=(TASK,), conditions=RATES, log_every=50
)
PRESETS = {
    "smoke": replace(PAPER, seeds=1, iterations=50, conditions=("0.0003", "0.0007")),
    "quick": replace(PAPER, seeds=1, iterations=1000),
    "standard": replace(PAPER, seeds=3, iterations=10_000),
    "paper": PAPER,
}

ASSAY = Assay(
    id="E-LR",
    name="learning-rate",
    question="How much of a baseline's standing is a matter of its learning rate?",
    arms=ARMS,
    tasks=(TASK,),
    conditions=RATES,
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    columns=("score",),
    states=(),
    figures=("v5:fig:app-baselines",),
    cohort=NO_DISCO,
)
