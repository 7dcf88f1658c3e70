"""F2, horizon: how fast does a learner become as good as it will ever be, and how good is that?

Every arm lives for 1.16 million interactions in Catch on a 24 x 24 board. Two readouts are kept
apart: the score at the end, and when a lifetime first comes within a tenth of its own last scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rulescope.assays.analysis import ATLAS_DRAWS, below, by_seed, final, missing, noted, summed_up
from rulescope.assays.assay import CONTROLS, Arm, Assay, Budget, Cell, at_unit_scale, lifetimes
from rulescope.assays.display_names import rate_label
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.spec.run_spec import Freeze
from rulescope.stats import (
    Estimate,
    estimate,
    estimates,
    mastery,
    paired_differences,
    seed_blocks,
)

TASK = "catch-big"
ARMS = ("disco", "disco-lr3e4", "a2c", "ppo", "dqn", "disco-pin", "disco-freeze")
FIRST_FREEZE = "disco-freeze-40"
"""Not in a preset: the published grid has the seven arms above, the published capture points are 0,
40 and 400. The state captured at 0 is zero, so that arm is ``disco-pin``."""
CAPTURE = 40
"""The earliest iteration at which there is a state to keep: the first update comes after 32."""
REFERENCES: dict[str, tuple[str, tuple[str, ...]]] = {
    "difference": ("disco", (*ARMS[1:], FIRST_FREEZE)),
    "difference-lr3e4": ("disco-lr3e4", ("a2c", "ppo", "dqn")),
}
"""Kind of difference: whose readout comes first, and whose is subtracted."""


def early(iterations: int) -> int:
    """Return when the state is frozen: after a fiftieth of a lifetime (400 of 20,000 iterations).

    (Not before :data:`CAPTURE`.)
    """
    return max(iterations // 50, CAPTURE) if iterations > CAPTURE else first(iterations)


def first(iterations: int) -> int:
    """Return the earliest time of a freeze: 40, unless the lifetime is over by then."""
    return min(CAPTURE, iterations - 1)


def arm_of(name: str, budget: Budget) -> Arm:
    """Return the learner called ``name`` and what is done to it."""
    captured = {"disco-freeze": early(budget.iterations), FIRST_FREEZE: first(budget.iterations)}
    if name in captured:
        return Arm("disco", (Freeze(carrier="recurrent", at=captured[name]),))
    return CONTROLS.get(name, Arm(name))


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every arm of ``budget``."""
    at_unit_scale(budget, "F2")
    return [
        Cell({"arm": name}, lifetimes(budget, arm_of(name, budget), task=TASK))
        for name in budget.arms
    ]


def analyse(frame: Frame) -> Results:
    """Estimate endpoint and mastery of every arm, and differences within seeds."""
    readouts = {"endpoint": final(frame), "mastery": mastered(frame)}
    notes = missing(frame)
    found: dict[str, Estimate] = {}
    series: dict[str, Floats] = {}
    blocks = seed_blocks(len(frame.seeds), ATLAS_DRAWS)
    with noted(notes):
        for name, values in readouts.items():
            cells = estimates(values, blocks)
            each = {str(arm): values[i] for i, arm in enumerate(frame.axes["arm"])}
            found |= {f"{name}/{arm}": cells[i] for i, arm in enumerate(each)}
            series |= by_seed(frame, values, name)
            for kind, (reference, others) in REFERENCES.items():
                for arm in (arm for arm in others if {reference, arm} <= set(each)):
                    difference = paired_differences(each[reference], each[arm])
                    found[f"{kind}/{name}/{arm}"] = estimate(difference, blocks)
    tables = tuple(table for table in (_paired(frame, found), _levels(frame, found)) if table.rows)
    return summed_up("F2", frame, found, tables, notes, series)


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
    names = {
        **{arm: _with_rate(frame, arm) for arm in ("disco", "disco-lr3e4")},
        "a2c": "A2C",
        "ppo": "PPO",
        "dqn": "DQN",
        "disco-pin": "Pinned 0",
        "disco-freeze": f"Frozen {early(frame.iterations)}",
        FIRST_FREEZE: f"Frozen {first(frame.iterations)}",
    }
    return {arm: name for arm, name in names.items() if arm in frame.axes["arm"]}


def _with_rate(frame: Frame, arm: str) -> str:
    """Return the rule under audit with the learning rate that its learner had in ``arm``."""
    rate = frame.learning_rates.get(arm)
    return frame.subject if rate is None else f"{frame.subject} lr{rate_label(rate)}"


def _levels(frame: Frame, found: Mapping[str, Estimate]) -> Table:
    return Table(
        "tab:f2-levels",
        "Catch 24×24: score at the end, and when it was mastered",
        (Column("Arm"), Column("Endpoint [95% CI]", 4), Column("Mastery [95% CI]", 1)),
        tuple(
            (name, found[f"endpoint/{arm}"], in_thousands(found[f"mastery/{arm}"]))
            for arm, name in _names(frame).items()
        ),
        below(frame, READOUTS, ATLAS_DRAWS),
    )


def _paired(frame: Frame, found: Mapping[str, Estimate]) -> Table:
    names = _names(frame)
    rows: list[tuple[Value, ...]] = [
        (
            names[reference],
            names[arm],
            found[f"endpoint/{arm}"],
            in_thousands(found[f"mastery/{arm}"]),
            found[f"{kind}/endpoint/{arm}"],
            in_thousands(found[f"{kind}/mastery/{arm}"]),
        )
        for kind, (reference, others) in REFERENCES.items()
        for arm in others
        if {reference, arm} <= set(names)
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
        below(
            frame,
            f"{READOUTS}; differences are reference minus comparator within each seed",
            ATLAS_DRAWS,
        ),
    )


_ONE = Budget(seeds=1, iterations=20_000, arms=ARMS, tasks=(TASK,), log_every=50)

PRESETS = {
    "smoke": replace(_ONE, iterations=100, arms=("disco", "a2c", "disco-pin")),
    "quick": replace(_ONE, seeds=2, iterations=1000),
    "standard": replace(_ONE, seeds=3),
    "paper": replace(_ONE, seeds=12),
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
    figures=("fig:behavior",),
)
