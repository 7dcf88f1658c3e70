"""E-LR, learning-rate: how much of a baseline's standing is a matter of its learning rate?

The baselines of F2 live through the same 1.16 million interactions at four learning rates; nothing
else is overridden. The rate of the best trimmed mean is selected on the seeds it is judged by, so
what it scores is, if anything, too good for the baseline.

Differences are from the scalar that F2 reports of the same baseline: its score in the last log row,
at its usual rate. Those lifetimes of F2 are cells of this assay too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from rulescope.assays.analysis import (
    ATLAS_DRAWS,
    SCORE,
    absent,
    below,
    exactly,
    final,
    missing,
    noted,
    summed_up,
    tail15,
)
from rulescope.assays.assay import Arm, Assay, Budget, Cell, at_unit_scale, lifetimes
from rulescope.assays.cohorts import NO_DISCO
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.horizon.horizon import TASK
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.spec.baseline_config import VARIANTS, RandomPolicy
from rulescope.stats import Estimate, Estimates, estimate_from, estimates, seed_blocks

ARMS = ("a2c", "ppo", "dqn")
RATES = ("0.0001", "0.0003", "0.0007", "0.001")
NAMES = {"a2c": "A2C", "ppo": "PPO", "dqn": "DQN"}


def usual(arm: str) -> str:
    """Return the learning rate that a baseline has everywhere else.

    >>> usual("a2c")
    '0.0007'
    """
    learner = VARIANTS[arm]
    assert not isinstance(learner, RandomPolicy)
    return f"{learner.learning_rate:g}"


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every baseline and learning rate of ``budget``."""
    at_unit_scale(budget, "E-LR")
    return [
        Cell(
            {"arm": arm, "rate": rate},
            lifetimes(budget, Arm(arm, learning_rate=float(rate)), task=TASK),
        )
        for arm in budget.arms
        for rate in budget.conditions
    ]


def analyse(frame: Frame) -> Results:
    """Estimate every cell, differences from the scalar of F2, and the rate that scores best."""
    notes = missing(frame)
    found: dict[str, Estimate] = {}
    series: dict[str, Floats] = {}
    rates = [str(rate) for rate in frame.axes["rate"]]
    with noted(notes):
        blocks = seed_blocks(len(frame.seeds), ATLAS_DRAWS)
        scores = tail15(frame)
        cells, ends = estimates(scores, blocks), estimates(final(frame), blocks)
        for i, arm in enumerate(str(arm) for arm in frame.axes["arm"]):
            found |= {f"score/{arm}/{rate}": cells[i, j] for j, rate in enumerate(rates)}
            series |= {f"seeds/score/{arm}/{rate}": scores[i, j] for j, rate in enumerate(rates)}
            if usual(arm) in rates:
                there = (i, rates.index(usual(arm)))
                found[f"horizon/{arm}"] = ends[there]
                for j, rate in enumerate(rates):
                    found[f"difference/{arm}/{rate}"] = _difference(cells, (i, j), ends, there)
            found |= _selected(arm, {rate: cells[i, j] for j, rate in enumerate(rates)})
    other_grid = frozenset(
        f"{kind}/{arm}"
        for arm in frame.axes["arm"]
        if tuple(rate for rate in rates if found[f"score/{arm}/{rate}"].n) != RATES
        for kind in ("rate", "selected")
    )
    tables = (_table(frame, found),)
    return summed_up("E-LR", frame, found, tables, notes, series, other_grid)


def _difference(
    cells: Estimates, here: tuple[int, int], ends: Estimates, there: tuple[int, int]
) -> Estimate:
    """Estimate the difference between two cells' own means, from common draws of seeds."""
    return estimate_from(
        float(cells.value[here] - ends.value[there]),
        cells.samples[(slice(None), *here)] - ends.samples[(slice(None), *there)],
        int(min(cells.n[here], ends.n[there])),
    )


def _selected(arm: str, scores: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """Return the rate with the largest trimmed mean, and what it scores."""
    known = [rate for rate, score in scores.items() if not math.isnan(score.value)]
    if not known:
        return {f"rate/{arm}": absent(), f"selected/{arm}": absent()}
    best = max(known, key=lambda rate: scores[rate].value)
    chosen = exactly(float(best), scores[best].n)
    return {f"rate/{arm}": chosen, f"selected/{arm}": scores[best]}


def _table(frame: Frame, found: Mapping[str, Estimate]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for arm in (str(arm) for arm in frame.axes["arm"]):
        selected = found[f"rate/{arm}"].value
        for rate in (str(rate) for rate in frame.axes["rate"]):
            marks = {"usual": rate == usual(arm), "selected": float(rate) == selected}
            remark = ", ".join(mark for mark, holds in marks.items() if holds)
            score, difference = (
                found.get(f"{key}/{arm}/{rate}") for key in ("score", "difference")
            )
            rows.append((NAMES[arm], rate, score, difference, remark))
    return Table(
        "tab:elr-scores",
        "Baselines in Catch 24×24 by learning rate",
        (
            Column("Learner"),
            Column("Learning rate"),
            Column("Score [95% CI]", 5),
            Column("Difference from the F2 endpoint [95% CI]", 5),
            Column("Remark"),
        ),
        tuple(rows),
        below(
            frame,
            f"{SCORE.format(part='15 % of the log')}; F2 endpoint: the last log row at the usual "
            "rate, trimmed mean; differences are between trimmed means; "
            "selected: the largest trimmed mean on these very seeds",
            ATLAS_DRAWS,
        ),
    )


_ONE = Budget(seeds=1, iterations=20_000, arms=ARMS, tasks=(TASK,), conditions=RATES, log_every=50)

PRESETS = {
    "smoke": replace(_ONE, iterations=50, conditions=("0.0003", "0.0007")),
    "quick": replace(_ONE, iterations=1000),
    "standard": replace(_ONE, seeds=3, iterations=10_000),
    "paper": replace(_ONE, seeds=12),
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
