"""M1, scale-minatar: is what was learned in a MinAtar game kept when rewards are scaled?

Unlike Catch these games have no known best play. An arm is therefore measured by itself: the reward
rate that each seed has at a scale (in the game's own units) over the one it has at scale 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rulescope.assays.analysis import (
    collect_tail_warnings,
    estimate_cells,
    make_results,
    note_missing,
    table_note,
    tail10,
    without_interval,
)
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.cohorts import HISTORICAL
from rulescope.assays.estimates import Estimates, Label, label_text
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.grid import Arm, Cell, make_runs, sweep
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.render.arm_styles import arm_name
from rulescope.run_spec import Hold, Pin
from rulescope.stats import (
    estimate,
    retention,
    retention_ratios,
    seed_blocks,
    usable_scales,
)

TASKS = ("minatar-breakout", "minatar-freeway")
ARMS = {
    "rule": Arm("rule"),
    "rule-pin": Arm("rule", (Pin(carrier="recurrent"),), table_name="Pinned 0"),
    "rule-hold": Arm("rule", (Hold(carrier="averages"),), table_name="Frozen EMA"),
    "a2c": Arm("a2c"),
}
SCALES = (1e-2, 1e-1, 1.0, 1e1, 1e2)
DRAWS = 4_000
PASSING = 0.8
"""The retention at which a scale is usable."""
GAMES = {"minatar-breakout": "Breakout", "minatar-freeway": "Freeway"}
PRINTED_ORDER = ("a2c", "rule", "rule-hold", "rule-pin")
RATE = "rate: reward per interaction without the multiplier, mean of the last 10 % of the log"
RETENTION = (
    "retention: a seed's rate over its own rate at scale 1, where the rate there is at least 0.001"
)
PAIRS = "n: seeds whose rates at the scale and at scale 1 give a finite ratio"


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every game, arm and scale of ``budget``."""
    axes = {"task": budget.tasks, "arm": budget.arms, "scale": sorted(budget.scales)}
    return sweep(
        axes,
        lambda at: make_runs(
            budget, ARMS[str(at["arm"])], task=str(at["task"]), scale=float(at["scale"])
        ),
    )


def analyse(frame: Frame) -> Results:
    """Estimate rates, what is retained of them, and how many scales are usable."""
    rates = tail10(frame, "reward_rate")
    notes = note_missing(frame)
    with collect_tail_warnings(notes):
        found = estimate_cells(frame, "rate", rates, DRAWS)
        for i, task in enumerate(frame.axes["task"]):
            for j, arm in enumerate(frame.axes["arm"]):
                _add_retention(found, {"task": task, "arm": arm}, frame, rates[i, j])
    tables = (_retention(frame, found), _usable(frame, found))
    return make_results("M1", frame, found, tables, notes)


def _add_retention(
    found: Estimates, cell: Mapping[str, Label], frame: Frame, rates: Floats
) -> None:
    """Add the retention of one arm [scales, seeds] at each scale, and how many are usable."""
    scales = [float(scale) for scale in frame.axes["scale"]]
    unit = rates[scales.index(1.0)] if 1.0 in scales else np.full(len(frame.seeds), np.nan)
    blocks = seed_blocks(len(frame.seeds), DRAWS)
    retained = []
    for scale, values in zip(scales, rates, strict=True):
        ratios = retention_ratios(unit, values)
        kept = estimate(ratios, blocks)
        known = math.isfinite(retention(unit, values))
        retained.append(kept if known else without_interval(math.nan, kept.n))
        found.add("retention", retained[-1], {**cell, "scale": scale}, seeds=ratios)
    usable = usable_scales(scales, [one.value for one in retained], PASSING)
    fewest = min((one.n for one in retained if one.n), default=0)
    count = usable.count if usable.measured else math.nan
    run = tuple(scale for scale in scales if found.at("rate", **cell, scale=scale).n)
    for quantity, value in (
        ("usable", count),
        ("usable-low", usable.low),
        ("usable-high", usable.high),
    ):
        found.add(quantity, without_interval(value, fewest), cell, other_grid=run != SCALES)


def _names(frame: Frame) -> list[tuple[str, str]]:
    """Return the tasks and arms that were run, in the printed order."""
    arms = [arm for arm in PRINTED_ORDER if arm in frame.axes["arm"]]
    return [(str(task), arm) for task in frame.axes["task"] for arm in arms]


def _table_name(arm: str, frame: Frame) -> str:
    """Return the name of ``arm`` in tables."""
    return ARMS[arm].table_name or arm_name(arm, frame.subject)


def _retention(frame: Frame, found: Estimates) -> Table:
    rows: list[tuple[Value, ...]] = []
    for task, arm in _names(frame):
        for scale in frame.axes["scale"]:
            rate, kept = (
                found.at(quantity, task=task, arm=arm, scale=scale)
                for quantity in ("rate", "retention")
            )
            passing = None if kept.missing else "yes" if kept.value >= PASSING else "no"
            n = kept.n if 1.0 in frame.axes["scale"] else rate.n
            name = _table_name(arm, frame)
            rows.append((GAMES[task], name, label_text(scale), n, rate, kept, passing))
    return Table(
        "v5:tab:app-minatar-retention",
        "MinAtar: reward rates by reward scale",
        (
            Column("Game"),
            Column("Algorithm"),
            Column("Scale"),
            Column("n"),
            Column("Descaled rate", 6, interval=False),
            Column("Retention [95% CI]"),
            Column("Passing"),
        ),
        tuple(rows),
        table_note(frame, f"{RATE}; {RETENTION}; {PAIRS}; integer-trimmed means over seeds", DRAWS),
        tells_n=False,
    )


def _usable(frame: Frame, found: Estimates) -> Table:
    rows: list[tuple[Value, ...]] = []
    for task, arm in _names(frame):
        count, low, high = (
            found.at(quantity, task=task, arm=arm)
            for quantity in ("usable", "usable-low", "usable-high")
        )
        ends = [None if end.missing else label_text(end.value) for end in (low, high)]
        rows.append((GAMES[task], _table_name(arm, frame), count, *ends))
    return Table(
        "v5:tab:app-minatar-usable",
        "MinAtar: usable reward scales",
        (
            Column("Environment"),
            Column("Algorithm"),
            Column("Usable scales", 0),
            Column("Low scale"),
            Column("High scale"),
        ),
        tuple(rows),
        table_note(frame, f"usable: retention at least {PASSING}; {RATE}; {RETENTION}", DRAWS),
    )


PAPER = Budget(seeds=8, iterations=8000, arms=tuple(ARMS), scales=SCALES, tasks=TASKS, log_every=40)
_ONE_GAME = replace(PAPER, seeds=1, tasks=TASKS[:1])
PRESETS = {
    "smoke": replace(_ONE_GAME, iterations=80, arms=("rule", "a2c"), scales=(1.0, 100.0)),
    "quick": replace(_ONE_GAME, iterations=600, scales=(0.01, 1.0, 100.0)),
    "standard": replace(_ONE_GAME, seeds=3, iterations=4000),
    "paper": PAPER,
}

ASSAY = Assay(
    id="M1",
    name="scale-minatar",
    question="Is what was learned in a MinAtar game kept when rewards are scaled?",
    arms=tuple(ARMS),
    tasks=TASKS,
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    columns=("reward_rate",),
    states=(),
    cohort=HISTORICAL,
    tables=(
        "v5:tab:app-minatar-retention",
        "v5:tab:app-minatar-usable",
    ),
)
