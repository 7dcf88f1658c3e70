"""E-A5, ladder and F1: printed fractions and majorities, tails, partial grids, differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

import printed_tables
from rulescope.assays import ASSAYS, Assay, Budget, Selection, narrowed, published
from rulescope.assays.comparison import compare
from rulescope.assays.exploration.exploration import analyse
from rulescope.assays.exploration.exploration_conventions import analyse as analyse_conventions
from rulescope.assays.exploration.staircase import depth_of
from rulescope.assays.frame import Floats, Frame
from rulescope.core.errors import SpecError
from rulescope.learners.baseline_config import A2C
from rulescope.learners.disco_config import Disco
from rulescope.render.display_names import canonical_arm
from rulescope.run_spec import RunSpec
from rulescope.stats import Estimate

from .frames import bounds, drawn_seeds, our_name, trim
from .lives import Labels, lived

STAIRS, LADDER, PAIRS = ASSAYS["E-A5"], ASSAYS["ladder"], ASSAYS["F1"]
ROWS = {8: 41, 10: 51, 12: 62, 14: 72, 16: 82}
"""Log rows of a lifetime of 12,000 episodes."""
TAILS = {8: 9, 10: 11, 12: 13, 14: 15, 16: 17}
"""And how many of them are its tail."""
SEEDS = 15


def runs_of(assay: Assay, budget: Budget | None = None) -> list[RunSpec]:
    return [run for cell in assay.grid(budget or assay.budget("paper")) for run in cell.runs]


def dive(solved: int, found: int, seed: int, rows: Floats) -> dict[str, Floats]:
    """Return the log of one of 15 lifetimes, of which so many solve and find the goal."""
    returns = np.full(len(rows), 0.97 if seed < solved else -0.005)
    if seed < found:
        returns[3] = 0.00505  # one goal among a hundred episodes
    return {"mean_return": returns}


def as_printed() -> Frame:
    printed = {
        (canonical_arm(row["Algorithm"]), row["Depth"]): (row["Solved fraction"], row["Ever found"])
        for row in printed_tables.tables()["v5:tab:app-exploration-reference"]
    }

    def log(labels: Labels, seed: int, rows: Floats) -> Mapping[str, Floats]:
        solved, found = printed[str(labels["arm"]), depth_of(labels["task"])]
        return dive(round(15 * solved), round(15 * found), seed, rows)

    return lived(STAIRS, STAIRS.budget("paper"), log)


def test_printed_fractions_give_the_printed_majorities() -> None:
    results = analyse(as_printed())
    for key, value in published.estimates("E-A5").items():
        if not key.startswith("return/"):
            assert results.estimates[key].value == pytest.approx(value.value, abs=5e-6), key
        assert results.estimates[key].n == value.n == SEEDS
    (table,) = results.tables
    theirs = printed_tables.tables()[table.label]
    assert [row[:3] for row in table.rows] == [(our_name(row[0]), *row[1:3]) for row in theirs.rows]
    assert [row[-1] for row in table.rows] == [row[-1] for row in theirs.rows]
    assert "1,000 seed-block draws" in table.note
    assert "1,655 to 3,310 iterations" in results.budget
    assert results.other_grid == frozenset()


def test_a_share_has_its_wilson_interval() -> None:
    found = analyse(as_printed()).estimates["solved/a2c/12"]  # 11 of 15
    assert (found.method, found.n) == ("wilson", SEEDS)
    assert (found.low, found.high) == pytest.approx((0.480496, 0.891025), abs=5e-7)


def noisy(labels: Labels, seed: int, rows: Floats) -> dict[str, Floats]:
    """Return a log that is another for every lifetime."""
    rng = np.random.default_rng([seed, depth_of(labels["task"]), len(str(labels["arm"]))])
    return {"mean_return": rng.uniform(-0.3, 0.9, len(rows))}


def test_tail_returns_are_those_of_plain_loops() -> None:
    budget = narrowed(STAIRS, STAIRS.budget("paper"), Selection(arms=["a2c", "rule-entropy"]))
    results = analyse(lived(STAIRS, budget, noisy)).estimates
    for depth, count in ROWS.items():
        labels = {"task": f"deep-sea-{depth}", "arm": "a2c"}
        tails = []
        for seed in range(SEEDS):
            rows = noisy(labels, seed, np.zeros(count))["mean_return"].tolist()
            tail = rows[int(0.8 * len(rows)) :]
            assert len(tail) == TAILS[depth]
            tails.append(sum(tail) / len(tail))
        ours = results[f"return/a2c/{depth}"]
        every = [trim([tails[i] for i in block]) for block in drawn_seeds(SEEDS, draws=1000)]
        assert ours.value == pytest.approx(trim(tails))
        assert (ours.low, ours.high) == pytest.approx(bounds(every))
        assert results[f"solved/a2c/{depth}"].value == sum(t >= 0.495 for t in tails) / SEEDS


def some(present: Callable[[str, int, int], bool], solved: int = 15) -> Frame:
    """Return a staircase of those lifetimes alone of which arm, depth and seed are ``present``."""

    def log(labels: Labels, seed: int, rows: Floats) -> Mapping[str, Floats] | None:
        here = present(str(labels["arm"]), depth_of(labels["task"]), seed)
        return dive(solved, solved, seed, rows) if here else None

    return lived(STAIRS, STAIRS.budget("paper"), log)


def test_one_lifetime_at_a_depth_is_no_majority_there() -> None:
    results = analyse(some(lambda _, depth, seed: depth < 16 or seed == 0))
    assert results.estimates["deepest/ppo"].value == 14
    assert results.estimates["deepest/ppo"].n == SEEDS
    assert results.estimates["solved/ppo/16"].n == 1
    assert "deepest/ppo" in results.other_grid
    assert any("of PPO leaves out depth 16" in note for note in results.notes)
    half = analyse(some(lambda _, depth, seed: depth < 16 or seed < 8))
    assert half.estimates["deepest/ppo"].value == 16
    assert half.estimates["deepest/ppo"].n == 8


def test_that_nothing_is_solved_is_told() -> None:
    results = analyse(some(lambda arm, *_: arm != "dqn", solved=7))
    assert math.isnan(results.estimates["deepest/a2c"].value)
    assert {row[-1] for row in results.tables[0].rows} == {"none"}
    assert "dqn" not in {row[0] for row in results.tables[0].rows}
    assert results.estimates["return/dqn/8"].n == 0


def test_a_narrowed_staircase_has_the_published_budget_at_its_depths() -> None:
    budget = narrowed(
        STAIRS, STAIRS.budget("paper"), Selection(tasks=["deep-sea-8", "deep-sea-10"])
    )
    compared = compare(analyse(lived(STAIRS, budget, noisy)))
    assert len(compared) >= 5 * 2 * 3
    assert all(one.same_budget for one in compared)
    assert {one.key.split("/")[0] for one in compared if not one.same_grid} <= {"deepest"}
    shorter = narrowed(STAIRS, STAIRS.budget("paper"), Selection(episodes=6000))
    assert shorter.iterations == 1655  # as deep as 16 is then as long as 8 was
    assert not any(one.same_budget for one in compare(analyse(lived(STAIRS, shorter, noisy))))


def test_every_published_value_is_an_estimate_of_the_paper_grid() -> None:
    for assay in (STAIRS, PAIRS):
        results = assay.analyse(lived(assay, assay.budget("paper"), noisy))
        printed = published.estimates(assay.id)
        assert set(printed) <= set(results.estimates)
        for one in compare(results):
            assert one.same_budget, one.key
            assert one.ours.family == one.published.family == 1


def test_lifetimes_have_twelve_thousand_episodes() -> None:
    lengths = {
        depth_of(cell.labels["task"]): {run.iterations for run in cell.runs}
        for assay in (LADDER, STAIRS)
        for cell in assay.grid(assay.budget("paper"))
    }
    assert lengths == {
        4: {828},
        6: {1241},
        8: {1655},
        10: {2069},
        12: {2483},
        14: {2897},
        16: {3310},
        20: {4138},
        24: {4966},
        30: {6207},
    }
    for assay in (STAIRS, LADDER, PAIRS):
        for budget in assay.presets.values():
            assert budget.iterations == max(budget.length(task) for task in budget.tasks)


def test_grids_have_their_published_sizes() -> None:
    assert len(runs_of(STAIRS)) == 375
    assert len(runs_of(LADDER)) == 750
    pairs = [type(run.learner) for run in runs_of(PAIRS)]
    assert (pairs.count(Disco), pairs.count(A2C)) == (60, 30)
    assert {run.log_every for run in runs_of(STAIRS)} == {40}


def test_conventions_reach_the_learners() -> None:
    for run in runs_of(LADDER):
        if isinstance(run.learner, Disco):
            conventions = run.learner.conventions
            assert (conventions.alignment, conventions.retrace) == ("bootstrap", "skip")
    indexing = {
        str(cell.labels["arm"]): {
            run.learner.conventions.retrace for run in cell.runs if isinstance(run.learner, Disco)
        }
        for cell in PAIRS.grid(PAIRS.budget("paper"))
    }
    assert indexing == {"rule-legacy": {"skip"}, "rule": {"next"}, "a2c": set()}


def test_assays_share_the_lifetimes_that_they_have_in_common() -> None:
    stairs, ladder = {run.id for run in runs_of(STAIRS)}, {run.id for run in runs_of(LADDER)}
    as_stairs = narrowed(PAIRS, PAIRS.budget("paper"), Selection(agent="published"))
    for run in (run for cell in PAIRS.grid(as_stairs) for run in cell.runs):
        legacy = isinstance(run.learner, Disco) and run.learner.conventions.retrace == "skip"
        assert (run.id in stairs) == (not legacy)
    assert len(stairs & ladder) == 3 * 5 * SEEDS  # the baselines at five depths


def test_what_has_no_meaning_is_refused() -> None:
    for assay in (STAIRS, LADDER, PAIRS):
        with pytest.raises(SpecError, match="--scales: DeepSea has reward scale 1 alone"):
            assay.grid(narrowed(assay, assay.budget("smoke"), Selection(scales=[0.1])))
    with pytest.raises(SpecError, match="--agent: F1 compares the Retrace index of 'legacy'"):
        PAIRS.grid(narrowed(PAIRS, PAIRS.budget("paper"), Selection(agent="legacy")))
    with pytest.raises(SpecError, match="--iterations: lifetimes of F1 are counted in --episodes"):
        narrowed(PAIRS, PAIRS.budget("paper"), Selection(iterations=100))
    with pytest.raises(SpecError, match="has no depth"):
        depth_of("catch")


def test_differences_are_taken_within_seeds() -> None:
    tails = np.random.default_rng(3).uniform(-0.1, 1.0, (15, 3, SEEDS))  # by depth
    arms = ("rule-legacy", "rule", "a2c")

    def log(labels: Labels, seed: int, rows: Floats) -> Mapping[str, Floats]:
        tail = tails[depth_of(labels["task"]), arms.index(str(labels["arm"])), seed]
        return {"mean_return": np.full(len(rows), tail)}

    results = analyse_conventions(lived(PAIRS, PAIRS.budget("paper"), log)).estimates
    for depth in (12, 14):
        for j, convention in enumerate(("legacy", "reference")):
            each = [tails[depth, j, seed] - tails[depth, 2, seed] for seed in range(SEEDS)]
            every = [trim([each[k] for k in block]) for block in drawn_seeds(SEEDS, draws=2000)]
            ours = results[f"difference/{convention}/{depth}"]
            assert ours.value == pytest.approx(trim(each))
            assert (ours.low, ours.high) == pytest.approx(bounds(every))
            assert (ours.n, ours.draws) == (SEEDS, 2000)


def test_printed_counts_of_conventions_come_back() -> None:
    rows = list(printed_tables.tables()["v5:tab:app-exploration-f1"])
    counts = {("a2c", row["Depth"]): row["A2C solved"] for row in rows}
    arms = {"legacy": "rule-legacy", "reference": "rule"}
    counts |= {(arms[row["Convention"]], row["Depth"]): row["Disco solved"] for row in rows}

    def log(labels: Labels, seed: int, rows: Floats) -> Mapping[str, Floats]:
        k = counts[str(labels["arm"]), depth_of(labels["task"])]
        return dive(k, k, seed, rows)

    results = analyse_conventions(lived(PAIRS, PAIRS.budget("paper"), log))
    (table,) = results.tables
    assert [row[:3] for row in table.rows] == [(r["Convention"], r["Depth"], r["n"]) for r in rows]
    assert [row[3:5] for row in table.rows] == [
        (f"{r['Disco solved']}/15", f"{r['A2C solved']}/15") for r in rows
    ]
    for key, value in published.estimates("F1").items():
        if key.startswith("solved/"):
            assert results.estimates[key].value == value.value
    assert "2,000 seed-block draws" in table.note


def test_without_a2c_there_is_no_difference() -> None:
    budget = replace(PAIRS.budget("paper"), seeds=2, arms=("rule-legacy", "rule"))
    results = analyse_conventions(lived(PAIRS, budget, noisy))
    assert not [key for key in results.estimates if key.startswith("difference/")]
    assert results.tables[0].rows == ()
    assert isinstance(results.estimates["return/rule/12"], Estimate)
