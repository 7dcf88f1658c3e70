"""E-LR, learning-rate: how much of a baseline's standing is a matter of its learning rate?

The baselines of F2 live through the same 1.16 million interactions at four learning rates; nothing
else is overridden. The rate of the best trimmed mean is selected on the seeds it is judged by, so
what it scores is, if anything, too good for the baseline.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from rulescope.assays.base import Arm, Assay, Budget, Cell, at_unit_scale, lifetimes
from rulescope.assays.estimating import (
    ATLAS_DRAWS,
    SCORE,
    absent,
    below,
    exactly,
    missing,
    noted,
    summed_up,
    tail15,
)
from rulescope.assays.frame import Frame
from rulescope.assays.horizon import TASK
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.learners.baselines import VARIANTS, RandomPolicy
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
    """Estimate every cell, differences from the usual rate, and the rate that scores best."""
    notes = missing(frame)
    found: dict[str, Estimate] = {}
    rates = [str(rate) for rate in frame.axes["rate"]]
    with noted(notes):
        cells = estimates(tail15(frame), seed_blocks(len(frame.seeds), ATLAS_DRAWS))
        for i, arm in enumerate(str(arm) for arm in frame.axes["arm"]):
            for j, rate in enumerate(rates):
                found[f"score/{arm}/{rate}"] = cells[i, j]
                if usual(arm) in rates:
                    there = (i, rates.index(usual(arm)))
                    found[f"difference/{arm}/{rate}"] = _difference(cells, (i, j), there)
            found |= _selected(arm, {rate: cells[i, j] for j, rate in enumerate(rates)})
    other_grid = frozenset(
        f"{kind}/{arm}"
        for arm in frame.axes["arm"]
        if tuple(rate for rate in rates if found[f"score/{arm}/{rate}"].n) != RATES
        for kind in ("rate", "selected")
    )
    return summed_up("E-LR", frame, found, (_table(frame, found),), notes, other_grid=other_grid)


def _difference(cells: Estimates, here: tuple[int, int], there: tuple[int, int]) -> Estimate:
    """Estimate the difference between two cells' own means, from common draws of seeds."""
    return estimate_from(
        float(cells.value[here] - cells.value[there]),
        cells.samples[(slice(None), *here)] - cells.samples[(slice(None), *there)],
        int(min(cells.n[here], cells.n[there])),
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
            Column("Difference from the usual rate [95% CI]", 5),
            Column("Remark"),
        ),
        tuple(rows),
        below(
            frame,
            f"{SCORE.format(part='15 % of the log')}; differences are between trimmed means; "
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
)
