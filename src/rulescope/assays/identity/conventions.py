"""conventions: does what was found depend on how the value targets are indexed?

Eight comparisons from the other assays, each once with the agent as it is and once with the legacy
Retrace index (the trace coefficient of one step too late); nothing else about the agent differs. A
comparison is the rule minus another arm within each seed; the question is by how much the index
shifts it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from rulescope.assays.analysis import (
    ATLAS_DRAWS,
    collect_tail_warnings,
    last_row,
    make_results,
    note_missing,
    table_note,
)
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.change.switch_readouts import switch
from rulescope.assays.cohorts import CONVENTIONS
from rulescope.assays.estimates import Estimates
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.grid import EPISODIC, MASKED, Arm, Cell, make_runs
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.core.errors import SpecError
from rulescope.envs.world_config import WORLDS, ActionFlip, Boundary, DeepSea
from rulescope.run_spec import Pin, RunSpec
from rulescope.stats import (
    deep_sea_tail,
    estimate,
    paired_differences,
    seed_blocks,
    tail_mean,
)
from rulescope.stats.solve_rates import EPISODES

_PINNED = (Pin(carrier="recurrent"),)
ARMS = {
    "rule-legacy": Arm("rule", legacy=True),
    "rule": Arm("rule"),
    "rule-pin-legacy": Arm("rule", _PINNED, legacy=True),
    "rule-pin": Arm("rule", _PINNED),
    "a2c": Arm("a2c"),
}
AGAINST_A2C = {"legacy": ("rule-legacy", "a2c"), "reference": ("rule", "a2c")}
"""Convention: the two arms that are compared under it. (A2C has no such convention.)"""
AGAINST_PINNED = {
    "legacy": ("rule-legacy", "rule-pin-legacy"),
    "reference": ("rule", "rule-pin"),
}
LONGEST = 20_000
MOST_SEEDS = 18


def last_return(frame: Frame) -> Floats:
    """Return the mean return of the most recent episodes at the end: [arms, seeds]."""
    return last_row(frame, "mean_return")


def last_rate(frame: Frame) -> Floats:
    """Return the recent reward per interaction at the end: [arms, seeds]."""
    return last_row(frame, "reward_rate")


def late_return(frame: Frame) -> Floats:
    """Return the mean return over the last fifth of the log: [arms, seeds]."""
    return tail_mean(frame.log("mean_return"), deep_sea_tail(frame.iteration))


@dataclass(frozen=True)
class Comparison:
    """Two arms in one world, as in the assay that the comparison is from."""

    printed: str
    seeds: int
    log_every: int
    iterations: int = LONGEST
    """In DeepSea the length follows from the depth instead."""
    task: str = "catch"
    scale: float = 1.0
    boundary: Boundary = EPISODIC
    flips: bool = False
    """Whether left and right change places in the middle of the lifetime."""
    arms: Mapping[str, tuple[str, str]] = field(default_factory=lambda: AGAINST_A2C)
    read: Callable[[Frame], Floats] = last_return
    """The readout of a lifetime, in the units of the rewards before scaling."""
    draws: int = ATLAS_DRAWS

    def budget(self, budget: Budget) -> Budget:
        """Return the part of ``budget`` that this comparison gets.

        Lifetimes keep their published proportions. Up to the published eighteen seeds none has more
        than it was published with; a larger number that is asked for holds for all comparisons.
        """
        sea = isinstance(WORLDS[self.task], DeepSea)
        return replace(
            budget,
            seeds=min(budget.seeds, self.seeds) if budget.seeds <= MOST_SEEDS else budget.seeds,
            iterations=max(self.iterations * budget.iterations // LONGEST, 2 * self.log_every),
            episodes=max(EPISODES * budget.iterations // LONGEST, 1) if sea else None,
            log_every=self.log_every,
        )

    def runs(self, budget: Budget, arm: str) -> tuple[RunSpec, ...]:
        """Return the lifetimes of ``arm``."""
        own = self.budget(budget)
        return make_runs(
            own,
            ARMS[arm],
            task=self.task,
            scale=self.scale,
            boundary=self.boundary,
            change=ActionFlip(at=switch(own.iterations, own.log_every)) if self.flips else None,
        )


COMPARISONS = {
    "catch-big": Comparison("A1 catchbig, disco-A2C", 12, 50, task="catch-big"),
    **{
        f"catch-{scale:g}": Comparison(
            f"A2 catch x {name}, disco-pinned@0", 12, 20, 2000, scale=scale, arms=AGAINST_PINNED
        )
        for scale, name in ((1e-3, "1e-3"), (1.0, "1"), (1e3, "1e3"))
    },
    "masked": Comparison(
        "A3 masked, disco-A2C",
        18,
        40,
        6000,
        boundary=MASKED,
        read=last_rate,
    ),
    "action-flip": Comparison("A4 action-flip 8x8, disco-A2C", 18, 20, 3000, flips=True),
    **{
        f"deep-sea-{depth}": Comparison(
            f"A5 DeepSea N={depth}, disco-A2C",
            15,
            40,
            task=f"deep-sea-{depth}",
            read=late_return,
            draws=2000,
        )
        for depth in (12, 14)
    },
}
"""By the names of the command line, in the printed order."""


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every comparison of ``budget`` and arm that has its other arm there."""
    if budget.scales != (1.0,):
        raise SpecError("--scales: each comparison has its own; choose among --conditions")
    if budget.agent == "legacy":
        raise SpecError("--agent: the Retrace index of 'legacy' is what others are compared with")
    chosen = {
        name: COMPARISONS[name]
        for name in budget.conditions
        if COMPARISONS[name].task in budget.tasks
    }
    cells = [
        Cell({"comparison": name, "arm": arm}, comparison.runs(budget, arm))
        for name, comparison in chosen.items()
        for arm in budget.arms
        if any(arm in pair and set(pair) <= set(budget.arms) for pair in comparison.arms.values())
    ]
    if not cells:
        raise SpecError("--conditions: no comparison is left that has both of its arms")
    return cells


def analyse(frame: Frame) -> Results:
    """Estimate each comparison under both conventions, and the shift from one to the other."""
    notes = note_missing(frame)
    found = Estimates()
    with collect_tail_warnings(notes):
        for name in (str(name) for name in frame.axes["comparison"]):
            part, what = frame.part(comparison=name), COMPARISONS[name]
            gaps = {convention: _gap(part, what, arms) for convention, arms in what.arms.items()}
            shift = paired_differences(gaps["reference"], gaps["legacy"])
            blocks = seed_blocks(len(shift), what.draws)
            for convention, gap in gaps.items():
                labels = {"comparison": name, "convention": convention}
                found.add("gap", estimate(gap, blocks), labels, seeds=gap)
            found.add("shift", estimate(shift, blocks), {"comparison": name}, seeds=shift)
    results = make_results("conventions", frame, found, (_table(frame, found),), notes)
    return replace(results, iterations=_length(frame))


def _length(frame: Frame) -> int:
    """Return the iterations that the longest comparison has, or would have if it was run."""
    names = [str(name) for name in frame.axes["comparison"]]
    published = {
        name: COMPARISONS[name].budget(PAPER).length(COMPARISONS[name].task) for name in names
    }
    whole = all(frame.part(comparison=name).iterations == published[name] for name in names)
    return LONGEST if whole else frame.iterations


def _gap(frame: Frame, what: Comparison, arms: tuple[str, str]) -> Floats:
    """Return the difference of two arms within each planned seed, in reward units: [seeds]."""
    planned = frame.planned.any(axis=0)
    values = what.scale * what.read(frame)[:, planned]
    known = frame.axes["arm"]
    nothing = np.full(planned.sum(), np.nan)
    first, second = (values[known.index(arm)] if arm in known else nothing for arm in arms)
    return paired_differences(first, second)


def _table(frame: Frame, found: Estimates) -> Table:
    rows: list[tuple[Value, ...]] = []
    for name in (str(name) for name in frame.axes["comparison"]):
        own = [
            *(
                found.at("gap", comparison=name, convention=convention)
                for convention in ("legacy", "reference")
            ),
            found.at("shift", comparison=name),
        ]
        cell = COMPARISONS[name].printed.replace("disco", frame.subject)
        rows.append((cell, max(one.n for one in own), *own))
    return Table(
        "v5:tab:app-convention-gaps",
        "What the indexing of value targets does to eight comparisons",
        (
            Column("Cell"),
            Column("n"),
            Column("Legacy gap [95% CI]", 5),
            Column("Reference gap [95% CI]", 5),
            Column("Shift [95% CI]", 5),
        ),
        tuple(rows),
        table_note(
            frame,
            f"gap: {frame.subject} minus the other arm within each seed, in reward units: mean "
            "return at the end (A1, A2, A4), reward per interaction at the end (A3), mean return "
            "over the last fifth (A5: 2,000 draws); shift: reference gap minus legacy gap within "
            "each seed; "
            f"legacy: agent {frame.agent} with the Retrace index c[min(t+2, T-1)], reference: with "
            "c[t+1]; integer-trimmed means over seeds",
            ATLAS_DRAWS,
        ),
        tells_n=False,
    )


_ALL = tuple(COMPARISONS)
PAPER = Budget(
    seeds=MOST_SEEDS,
    iterations=LONGEST,
    arms=tuple(ARMS),
    tasks=tuple(dict.fromkeys(what.task for what in COMPARISONS.values())),
    conditions=_ALL,
    log_every=50,
)
PRESETS = {
    "smoke": replace(PAPER, seeds=1, iterations=400, conditions=("catch-1", "action-flip")),
    "quick": replace(PAPER, seeds=2, iterations=2000, conditions=_ALL[1:]),
    "standard": replace(PAPER, seeds=3),
    "paper": PAPER,
}

ASSAY = Assay(
    id="conventions",
    name="conventions",
    question="Does what was found depend on how the value targets are indexed?",
    arms=tuple(ARMS),
    tasks=PAPER.tasks,
    conditions=_ALL,
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    columns=("mean_return", "reward_rate"),
    states=(),
    cohort=CONVENTIONS,
    tables=("v5:tab:app-convention-gaps",),
)
