"""F2, horizon: how fast does a learner become as good as it will ever be, and how good is that?

Every arm runs for 1.16 million interactions in Catch on a 24 x 24 board. Two readouts are kept
apart: the score at the end, and when a lifetime first comes within a tenth of its own last scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rulescope.assays.analysis import (
    ATLAS_DRAWS,
    collect_tail_warnings,
    estimate_cells,
    last_row,
    make_results,
    note_missing,
    table_note,
)
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.estimates import Estimates, Label, Row
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.grid import CONTROLS, Arm, Cell, make_runs, require_unit_scale, sweep
from rulescope.assays.pivot import Entry, Index, keep_filled, names, pivot_table
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.render.arm_styles import arm_name
from rulescope.render.display_names import rate_label
from rulescope.run_spec import Freeze, RunSpec
from rulescope.stats import Estimate, estimate, mastery, paired_differences, seed_blocks

TASK = "catch-big"
ARMS = ("rule", "rule-lr3e4", "a2c", "ppo", "dqn", "rule-pin", "rule-freeze")
FIRST_FREEZE = "rule-freeze-40"
"""Not in a preset: the published grid has the seven arms above, the published capture points are 0,
40 and 400. The state captured at 0 is zero, so that arm is ``rule-pin``."""
CAPTURE = 40
"""The earliest iteration with a state to keep: the first update comes after 32."""
REFERENCES: dict[str, tuple[str, tuple[str, ...]]] = {
    "difference": ("rule", (*ARMS[1:], FIRST_FREEZE)),
    "difference-lr3e4": ("rule-lr3e4", ("a2c", "ppo", "dqn")),
}
"""Quantity of a difference: the arm whose readout comes first, and the arms subtracted from it."""


def early(iterations: int) -> int:
    """Return when the state is frozen: after a fiftieth of a lifetime (400 of 20,000 iterations).

    (Not before :data:`CAPTURE`.)
    """
    return max(iterations // 50, CAPTURE) if iterations > CAPTURE else first(iterations)


def first(iterations: int) -> int:
    """Return the earliest time of a freeze: 40, unless the lifetime is over by then."""
    return min(CAPTURE, iterations - 1)


def frozen_after(time: Callable[[int], int]) -> Arm:
    """Return the arm that keeps its recurrent state from ``time(iterations)`` on."""
    return Arm("rule", lambda budget: (Freeze(carrier="recurrent", at=time(budget.iterations)),))


INTERVENED = {**CONTROLS, "rule-freeze": frozen_after(early), FIRST_FREEZE: frozen_after(first)}
"""Arms with interventions; the others are named after their learner."""


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every arm of ``budget``."""
    require_unit_scale(budget, "F2")

    def runs(at: dict[str, Label]) -> tuple[RunSpec, ...]:
        arm = str(at["arm"])
        return make_runs(budget, INTERVENED.get(arm, Arm(arm)), task=TASK)

    return sweep({"arm": budget.arms}, runs)


def analyse(frame: Frame) -> Results:
    """Estimate endpoint and mastery of every arm, and differences within seeds."""
    readouts = {"endpoint": last_row(frame), "mastery": mastered(frame)}
    notes = note_missing(frame)
    found = Estimates()
    blocks = seed_blocks(len(frame.seeds), ATLAS_DRAWS)
    with collect_tail_warnings(notes):
        for readout, values in readouts.items():
            found.update(estimate_cells(frame, readout, values, ATLAS_DRAWS))
            each = dict(zip(frame.axes["arm"], values, strict=True))
            for quantity, (reference, others) in REFERENCES.items():
                for arm in (arm for arm in others if {reference, arm} <= set(each)):
                    apart = paired_differences(each[reference], each[arm])
                    labels = {"readout": readout, "arm": arm}
                    found.add(quantity, estimate(apart, blocks), labels, seeds=apart)
    tables = keep_filled(_paired(frame, found), _levels(frame, found))
    return make_results("F2", frame, found, tables, notes)


def mastered(frame: Frame) -> Floats:
    """Return [..., seeds]: the interactions until mastery."""
    interactions = frame.iteration * (frame.interactions // frame.iterations)
    return np.asarray(mastery(interactions, frame.log("score")))


def in_thousands(found: Estimate) -> Estimate:
    """Return an estimate of interactions in thousands, as they are printed."""
    return replace(found, value=found.value / 1000, low=found.low / 1000, high=found.high / 1000)


READOUTS = (
    "endpoint: the last logged score (0 random, 1 optimal); mastery: thousands of interactions "
    "until a lifetime is within a tenth of the mean of its last five scores; integer-trimmed means "
    "over seeds"
)


def _names(frame: Frame) -> dict[str, str]:
    """Return the arms that were run, with their printed names."""
    printed = {
        **{arm: _with_rate(frame, arm) for arm in ("rule", "rule-lr3e4")},
        **{arm: arm_name(arm, frame.subject) for arm in ("a2c", "ppo", "dqn")},
        "rule-pin": "Pinned 0",
        "rule-freeze": f"Frozen {early(frame.iterations)}",
        FIRST_FREEZE: f"Frozen {first(frame.iterations)}",
    }
    return {arm: name for arm, name in printed.items() if arm in frame.axes["arm"]}


def _with_rate(frame: Frame, arm: str) -> str:
    """Return the rule under audit with the learning rate that its learner had in ``arm``."""
    rate = frame.learning_rates.get(arm)
    return frame.subject if rate is None else f"{frame.subject} lr{rate_label(rate)}"


def _levels(frame: Frame, found: Estimates) -> Table:
    shown = _names(frame)
    return pivot_table(
        "tab:f2-levels",
        "Catch 24×24: score at the end, and when it was mastered",
        found,
        [Index("Arm", "arm", names(tuple(shown), shown))],
        (
            Entry(Column("Endpoint [95% CI]", 4), "endpoint"),
            Entry(Column("Mastery [95% CI]", 1), "mastery", show=_thousands_of),
        ),
        table_note(frame, READOUTS, ATLAS_DRAWS),
    )


def _thousands_of(row: Row) -> Value:
    return in_thousands(row.estimate)


def _paired(frame: Frame, found: Estimates) -> Table:
    shown = _names(frame)
    rows: list[tuple[Value, ...]] = [
        (
            shown[reference],
            shown[arm],
            found.at("endpoint", arm=arm),
            in_thousands(found.at("mastery", arm=arm)),
            found.at(quantity, readout="endpoint", arm=arm),
            in_thousands(found.at(quantity, readout="mastery", arm=arm)),
        )
        for quantity, (reference, others) in REFERENCES.items()
        for arm in others
        if {reference, arm} <= set(shown)
    ]
    return Table(
        "v5:tab:app-f2-paired",
        f"Catch 24×24: {frame.subject} beside the other arms, seed by seed",
        (
            Column("Reference"),
            Column("Comparator"),
            Column("Endpoint", 4, interval=False),
            Column("Mastery", 1, interval=False),
            Column("Endpoint difference [95% CI]", 5),
            Column("Mastery difference [95% CI]", 1),
        ),
        tuple(rows),
        table_note(
            frame,
            f"{READOUTS}; differences are reference minus comparator within each seed",
            ATLAS_DRAWS,
        ),
    )


PAPER = Budget(seeds=12, iterations=20_000, arms=ARMS, tasks=(TASK,), log_every=50)
PRESETS = {
    "smoke": replace(PAPER, seeds=1, iterations=100, arms=("rule", "a2c", "rule-pin")),
    "quick": replace(PAPER, seeds=2, iterations=1000),
    "standard": replace(PAPER, seeds=3),
    "paper": PAPER,
}

ASSAY = Assay(
    id="F2",
    name="horizon",
    question="How fast does a learner become as good as it will ever be, and how good is that?",
    arms=(*ARMS, FIRST_FREEZE),
    tasks=(TASK,),
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    columns=("score",),
    states=(),
    tables=("v5:tab:app-f2-paired",),
    figures=("fig:behavior",),
)
