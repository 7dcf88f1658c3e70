"""E3: its grid, and published tables in and out."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import printed_tables
from rulescope.assays import ASSAYS, Selection, narrowed, published
from rulescope.assays.change.change import CONDITIONS, TASKS, analyse
from rulescope.assays.change.switch_readouts import switch
from rulescope.assays.comparison import compare
from rulescope.assays.frame import Floats
from rulescope.assays.results import Results, Table
from rulescope.core.errors import SpecError
from rulescope.envs.world_config import ActionFlip, RewardMove
from rulescope.learners.baseline_config import DQN
from rulescope.learners.disco_config import Disco
from rulescope.run_spec import Freeze, Reset, RunSpec
from rulescope.stats import Estimate

from .change_frames import STEPS
from .frames import our_name
from .lives import Labels, lived

ASSAY = ASSAYS["E3"]
PAPER = ASSAY.budget("paper")
BOARDS = {"8x8": "catch", "16x16": "catch-long"}
PRINTED_ARMS = {
    "Disco": "rule",
    "Frozen": "rule-freeze",
    "No aux.": "rule-no-aux",
    "DQN 100k": "dqn",
    "DQN 28,672": "dqn-28672",
    "DQN cleared": "dqn-cleared",
}
SYSTEMS = {"disco": "Disco", "DQN clear": "DQN cleared"}


def printed_cells() -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return the printed row of each cell by condition, task and arm."""
    return {
        (condition, BOARDS[row["Grid"]], PRINTED_ARMS[row["Condition"]]): row
        for condition in CONDITIONS
        for row in printed_tables.tables()[f"tab:unified-recovery-{condition.replace('-', '_')}"]
    }


def place(labels: Labels) -> tuple[str, str, str]:
    return str(labels["condition"]), str(labels["task"]), str(labels["arm"])


def table(results: Results, label: str) -> Table:
    (found,) = (one for one in results.tables if one.label == label)
    return found


def values(row: tuple[object, ...]) -> list[float]:
    return [cell.value for cell in row if isinstance(cell, Estimate)]


# The grid


def test_27_cells_486_lifetimes_and_84_564_000_interactions() -> None:
    cells = ASSAY.grid(PAPER)
    runs = [run for cell in cells for run in cell.runs]
    assert (len(cells), len(runs)) == (27, 486)
    assert sum(run.iterations * run.lanes * run.steps for run in runs) == 84_564_000
    assert printed_tables.scalars()["budgets"]["E3_interactions"] == 84_564_000
    assert sum(isinstance(run.learner, Disco) for run in runs) == 324
    assert sum(isinstance(run.learner, DQN) for run in runs) == 162
    assert len({run.id for run in runs}) == 486
    assert {run.seed for run in runs} == set(range(18))
    assert {place(cell.labels) for cell in cells} == set(printed_cells())


def test_lifetimes_of_the_historical_agent_are_those_of_plain_specifications() -> None:
    grid = ASSAY.grid(replace(PAPER, agent="historical"))
    cells = {place(cell.labels): cell.runs for cell in grid}
    plain = [RunSpec(change=ActionFlip(at=1500), iterations=3000, seed=seed) for seed in range(18)]
    assert [run.id for run in cells["action-flip", "catch", "rule"]] == [run.id for run in plain]
    moved = RunSpec(change=RewardMove(at=1500), iterations=3000, seed=7)
    assert cells["reward-move", "catch", "rule"][7].id == moved.id
    assert cells["none", "catch", "rule"][0].id == RunSpec(iterations=3000).id


def test_arms_differ_in_what_they_carry_over_the_switch() -> None:
    runs = {place(cell.labels): cell.runs[0] for cell in ASSAY.grid(PAPER)}
    for condition, task in product(CONDITIONS, TASKS):
        frozen = runs[condition, task, "rule-freeze"]
        assert frozen.interventions == (Freeze(carrier="recurrent", at=1000),)
        live, without = (runs[condition, task, arm] for arm in ("rule", "rule-no-aux"))
        assert live.interventions == without.interventions == ()
        assert live.learner != without.learner
        assert frozen.learner == live.learner
    for condition in CONDITIONS:
        large, small, cleared = (
            runs[condition, "catch", arm] for arm in ("dqn", "dqn-28672", "dqn-cleared")
        )
        assert isinstance(large.learner, DQN)
        assert isinstance(small.learner, DQN)
        assert (large.learner.capacity, small.learner.capacity) == (100_000, 28_672)
        assert cleared.learner == large.learner
        # also where nothing changes: clearing is done at a time, not for a reason
        assert cleared.interventions == (Reset(carrier="replay", at=1500),)


def test_a_world_changes_at_half_of_a_lifetime_where_there_is_a_log_row() -> None:
    assert [switch(n, 20) for n in (3000, 1200, 120, 110, 50, 40)] == [1500, 600, 60, 40, 20, 20]
    assert switch(8000, 40) == 4000
    for preset in ("smoke", "quick"):
        for cell in ASSAY.grid(ASSAY.budget(preset)):
            for run in cell.runs:
                assert run.change is not None
                assert run.change.at * 2 == run.iterations
                freezes = [item.at for item in run.interventions if isinstance(item, Freeze)]
                assert all(at < run.change.at for at in freezes)


def test_what_cannot_be_had_is_refused() -> None:
    short = narrowed(ASSAY, PAPER, Selection(iterations=20))
    with pytest.raises(SpecError, match="--iterations: 20 has no log row"):
        ASSAY.grid(short)
    with pytest.raises(SpecError, match="--scales: E3"):
        ASSAY.grid(narrowed(ASSAY, PAPER, Selection(scales=[10.0])))
    with pytest.raises(SpecError, match="--tasks: baselines run in 'catch' only"):
        ASSAY.grid(
            narrowed(ASSAY, PAPER, Selection(tasks=["catch-long"], arms=["dqn", "dqn-cleared"]))
        )
    both = narrowed(ASSAY, PAPER, Selection(tasks=["catch-long"], arms=["rule", "dqn"]))
    assert {cell.labels["arm"] for cell in ASSAY.grid(both)} == {"rule"}


# Published tables in, published tables out


def two_levels(area: float, final: float, rows: Floats) -> Floats:
    """Return scores that are ``final`` from 2,700 on, and before it what makes up ``area``."""
    late = rows >= 2700
    weights = np.where(rows >= 1500, 20.0, 0.0)
    weights[rows == 1500] = weights[rows == 3000] = 10.0
    early = (1500 * area - final * weights[late].sum()) / weights[~late].sum()
    return np.where(late, final, early)


def test_printed_areas_and_final_windows_come_back_as_they_are() -> None:
    printed = printed_cells()

    def log(labels: Labels, _seed: int, rows: Floats) -> dict[str, Floats]:
        row = printed[place(labels)]
        area, final = row["AUC [95% CI]"][0], row["Final window [95% CI]"][0]
        return {"score": two_levels(area, final, rows), "episodes": rows * 8}

    results = analyse(lived(ASSAY, PAPER, log))
    for condition in CONDITIONS:
        label = f"tab:unified-recovery-{condition.replace('-', '_')}"
        ours, theirs = table(results, label), printed_tables.tables()[label]
        assert len(ours.rows) == 9
        for row, known in zip(ours.rows, theirs, strict=True):
            assert (str(row[0]).replace("×", "x"), row[1]) == (
                known["Grid"],
                our_name(known["Condition"]),
            )
            assert values(row)[:2] == pytest.approx(
                [known["AUC [95% CI]"][0], known["Final window [95% CI]"][0]]
            )
    for one in compare(results):
        if one.key.startswith(("auc/", "final/")):
            assert one.ours.value == pytest.approx(one.published.value)
            assert one.verdict != "contradicted", one.key
        assert one.same_budget, one.key
        assert one.ours.family == one.published.family, one.key
    assert {one.key for one in compare(results)} == set(published.estimates("E3"))


def times_of(attained: int, total: float, first: int) -> list[float]:
    """Return 18 times, so many of them attained, that add up to ``total``; the others 1,500."""
    rest = round(total) - 1500 * (18 - attained)
    times = [float(first)] * attained
    for i in range(attained):
        more = min(rest - sum(times), 1500.0 - first)
        times[i] += more
    return [*times, *[math.inf] * (18 - attained)]


def test_printed_counts_and_delays_come_back_as_they_are() -> None:
    """Lifetimes made to attain as the printed row says give its count, its RMD and its RM time."""
    printed = printed_cells()

    def log(labels: Labels, seed: int, rows: Floats) -> dict[str, Floats]:
        row, task = printed[place(labels)], str(labels["task"])
        attained = int(row["Target"].split("/")[0])
        total = 20 * round(row["RMD"] * 18 / 20)
        time = times_of(attained, total, 20 if task == "catch" else 40)[seed]
        score = np.where(rows >= 1500 + time, 0.8, 0.1)
        return {"score": score, "episodes": 58 * rows // STEPS[task]}

    results = analyse(lived(ASSAY, PAPER, log))
    for (condition, task, arm), row in printed.items():
        key = f"{condition}/{task}/{arm}/0.8"
        share, delay = results.estimates[f"attained/{key}"], results.estimates[f"rmd/{key}"]
        assert f"{round(share.value * share.n)}/{share.n}" == row["Target"], key
        assert delay.value == pytest.approx(row["RMD"], abs=0.05), key
        assert results.estimates[f"rmd/{key[:-3]}0.9"].value == 1500
    ours, theirs = (
        [row for row in rows if row[2] == 0.8]
        for rows in (
            table(results, "tab:e3-thresholds").rows,
            printed_tables.tables()["tab:e3-thresholds"].rows,
        )
    )
    assert len(theirs) == 8
    for mine, known in zip(ours, theirs, strict=True):
        assert mine[:4] == (known[0], our_name(known[1]), *known[2:4])
        # twice rounded: the printed delays have one decimal, 58 of them make 2.9
        assert values(mine) == pytest.approx([known[4]], abs=0.0501)


def test_printed_delays_are_whole_rows_and_agree_between_tables() -> None:
    cells = printed_cells()
    assert len(cells) == 27
    for key, row in cells.items():
        rows = row["RMD"] * 18 / 20
        assert rows == pytest.approx(round(rows), abs=0.05 * 18 / 20), key
    shared = 0
    for row in printed_tables.tables()["tab:e3-thresholds"]:
        condition = row["Change"].replace(" ", "-")
        arm = PRINTED_ARMS[SYSTEMS.get(row["System"], row["System"])]
        if row["Threshold"] == 0.8:
            cell = cells[condition, "catch", arm]
            exact = 20 * round(cell["RMD"] * 18 / 20) / 18
            assert round(exact * 58 / 1000, 1) == row["RM time (1e3)"]
            assert cell["Target"] == row["Attained"]
            shared += 1
    assert shared == 8


@pytest.mark.parametrize(
    ("key", "value", "interval", "family"),
    [
        ("auc/action-flip/catch/rule", 0.563, (0.509, 0.61), 1),
        ("final/none/catch-long/rule-no-aux", 0.221, (0.04, 0.48), 1),
        ("contrast/action-flip/cleared", -0.3154, (-0.403, -0.253), 11),
        ("contrast-iqm/reward-move/28672", 0.0689, (0.03, 0.128), 11),
        ("no-aux/none/catch-long/auc", -0.895, (-0.948, -0.805), 1),
        ("attained/action-flip/catch/rule/0.9", 17 / 18, None, 1),
        ("rmd/reward-move/catch/dqn-cleared/0.8", 1082.2, None, 1),
        ("time/reward-move/catch/dqn-28672/0.9", 84.9, None, 1),
    ],
)
def test_published_values_have_the_keys_of_our_estimates(
    key: str, value: float, interval: tuple[float, float] | None, family: int
) -> None:
    known = published.estimates("E3")[key]
    assert (known.value, known.n, known.family) == (value, 18, family)
    if interval is None:
        assert math.isnan(known.low)
    else:
        assert (known.low, known.high) == interval
