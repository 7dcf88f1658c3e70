"""Discovery: first goals on every clock, censoring, Wilson intervals, and what chance finds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
from scipy import stats as scipy_stats  # type: ignore[import-untyped]

import printed_tables
from rulescope.assays import ASSAYS, Selection, gather, narrowed, published
from rulescope.assays.comparison import compare
from rulescope.assays.exploration.discovery import analyse, campaigns, events, expected_first, grid
from rulescope.assays.exploration.staircase import budget, depth_of
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.results import Results
from rulescope.envs.world_config import DeepSea
from rulescope.learners.baseline_config import RandomPolicy
from rulescope.lifetime import Lifetime
from rulescope.render.display_names import canonical_arm
from rulescope.run_spec import RunSpec
from rulescope.stats import random_discovery

from .frames import bounds, drawn_seeds, our_name, trim
from .lives import Labels, lived

ASSAY = ASSAYS["discovery"]
SURE = 1e-4
"""How improbable a deviation must be to be called one; seeds are fixed, so it is seen once."""


def dive(rows: Floats, depth: int, first: int | None, success: float = 0.0) -> dict[str, Floats]:
    """Return the log of a lifetime whose ``first`` goal is in that episode."""
    episodes = 2 * (29 * rows // depth)  # of two lanes
    reached = np.zeros(len(rows), bool) if first is None else episodes >= first
    moment = math.nan if first is None else float(first)
    return {
        "episodes": episodes,
        "goals": reached.astype(float),
        "success": np.where(reached, success, 0.0),
        "first_goal_episode": np.where(reached, moment, np.nan),
        "first_goal_interaction": np.where(reached, moment * depth, np.nan),
    }


@cache
def as_printed() -> Results:
    printed = {
        (canonical_arm(row["Learner"]), row["Depth"]): int(row["Found"].split("/")[0])
        for row in printed_tables.tables()["tab:deepsea"]
    }

    def log(labels: Labels, seed: int, rows: Floats) -> Mapping[str, Floats]:
        depth = depth_of(labels["task"])
        finds = seed < printed[str(labels["arm"]), depth]
        return dive(rows, depth, 100 * (seed + 1) if finds else None)

    return analyse(lived(ASSAY, ASSAY.budget("paper"), log))


def test_printed_counts_give_the_printed_intervals() -> None:
    results = as_printed()
    rows = list(printed_tables.tables()["tab:deepsea"])
    for row in rows:
        ours = results.estimates[f"found/{canonical_arm(row['Learner'])}/{row['Depth']}"]
        assert [round(ours.low, 3), round(ours.high, 3)] == row["Wilson CI"]
        assert ours.n == (100 if row["Learner"] == "random" else 15)
    profile, _ = results.tables
    assert profile.label == "tab:deepsea"
    assert [row[:3] for row in profile.rows] == [
        (row["Depth"], our_name(row["Learner"]), row["Found"]) for row in rows
    ]


def test_every_published_value_is_an_estimate_of_the_paper_grid() -> None:
    compared = compare(as_printed())
    assert {one.key for one in compared} == set(published.estimates("discovery"))
    assert all(one.same_budget for one in compared)


def test_the_cohort_has_135_lifetimes_and_300_campaigns() -> None:
    cells = grid(ASSAY.budget("paper"))
    random = [run for cell in cells if cell.labels["arm"] == "random" for run in cell.runs]
    learners = [run for cell in cells if cell.labels["arm"] != "random" for run in cell.runs]
    assert (len(learners), len(random)) == (135, 300)
    stairs = ASSAYS["E-A5"].grid(ASSAYS["E-A5"].budget("paper"))
    assert {run.id for run in learners} <= {run.id for cell in stairs for run in cell.runs}
    for seeds in (1, 2, 4):
        few = grid(narrowed(ASSAY, ASSAY.budget("paper"), Selection(seeds=seeds, arms=["random"])))
        assert [len(cell.runs) for cell in few] == [campaigns(seeds)] * 3
        assert {run.id for cell in few for run in cell.runs} <= {run.id for run in random}


def test_first_goals_are_timed_by_three_clocks_and_censored_at_the_horizon() -> None:
    small = budget(4, ("a2c", "random"), (12,), episodes=300, log_every=10)
    firsts = {0: 1, 1: 200, 2: None, 3: 17}

    def log(labels: Labels, seed: int, rows: Floats) -> Mapping[str, Floats] | None:
        if labels["arm"] == "a2c" and seed == 3:
            return None
        return dive(rows, 12, firsts.get(seed), success=0.25)

    frame = lived(ASSAY, small, log)
    found = events(frame, "deep-sea-12", "a2c")
    # 62 iterations are 300 episodes; the last log row is after 60 of them, and 290 episodes.
    assert found.horizon == {"episodes": 300, "interactions": 3600, "iterations": 62}
    assert found.unlogged == 10
    np.testing.assert_array_equal(found.found, [1, 1, 0, np.nan])
    np.testing.assert_array_equal(found.first["episodes"], [1, 200, 300, np.nan])
    np.testing.assert_array_equal(found.first["interactions"], [12, 2400, 3600, np.nan])
    np.testing.assert_array_equal(found.first["iterations"], [1, 42, 62, np.nan])
    results = analyse(frame)
    ours = results.estimates["first/a2c/12/episodes"]
    assert ours.value == pytest.approx((1 + 200 + 300) / 3)
    times = (1.0, 200.0, 300.0)
    drawn = ([times[i] for i in block if i != 3] for block in drawn_seeds(4))
    every = [sum(each) / len(each) for each in drawn if each]
    assert (ours.low, ours.high) == pytest.approx(bounds(every))
    assert ours.n == 3
    assert results.estimates["found/a2c/12"].value == pytest.approx(2 / 3)
    episodes, shares = results.series["incidence/a2c/12"]
    assert episodes.tolist() == [0, 1, 200, 300]
    assert (
        "episodes after the last log row, in which no goal is seen: 10 at depth 12" in results.notes
    )
    assert shares.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 2 / 3])


def test_tail_success_is_of_the_last_fifth_and_of_a_cell_s_own_seeds() -> None:
    small = budget(3, ("dqn", "random"), (12,), episodes=600, log_every=10)
    ends = [0.1, 0.5, 0.8]

    def log(_: Labels, seed: int, rows: Floats) -> Mapping[str, Floats]:
        tail = rows >= 0.8 * 120
        return dive(rows, 12, 1) | {"success": np.where(tail, ends[seed % 3], 1.0)}

    results = analyse(lived(ASSAY, small, log)).estimates
    ours = results["success/dqn/12"]
    every = [trim([ends[i] for i in block]) for block in drawn_seeds(3)]
    assert ours.value == pytest.approx(trim(ends))
    assert (ours.low, ours.high) == pytest.approx(bounds(every))  # not those of 20 seeds
    assert (ours.n, results["success/random/12"].n) == (3, 20)


def test_the_horizon_is_12000_episodes_at_every_depth() -> None:
    def log(labels: Labels, _: int, rows: Floats) -> Mapping[str, Floats]:
        return dive(rows, depth_of(labels["task"]), None)

    frame = lived(ASSAY, ASSAY.budget("paper"), log)
    for depth, iterations in ((12, 2483), (14, 2897), (16, 3310)):
        found = events(frame, f"deep-sea-{depth}", "a2c")
        assert found.horizon == {
            "episodes": 12_000,
            "interactions": 12_000 * depth,  # 144,000, 168,000 and 192,000
            "iterations": iterations,
        }
        for clock, last in found.horizon.items():
            assert set(found.first[clock].tolist()) == {last}


def test_a_first_goal_after_the_horizon_is_censored_there() -> None:
    small = budget(2, ("a2c",), (12,), episodes=300, log_every=1)

    def log(_: Labels, seed: int, rows: Floats) -> Mapping[str, Floats]:
        whole = dive(rows, 12, 200)
        return whole | {"first_goal_episode": np.full(len(rows), 301.0 if seed else 300.0)}

    found = events(lived(ASSAY, small, log), "deep-sea-12", "a2c")
    assert found.found.tolist() == [1, 0]
    assert found.first["episodes"].tolist() == [300, 300]


def test_a_goal_between_log_rows_is_found_and_not_in_the_log() -> None:
    """The lifetimes are the same: what E-A5 and discovery ask of them has two names."""
    small = budget(2, ("a2c",), (12,), episodes=300, log_every=10)

    def log(_: Labels, seed: int, rows: Floats) -> Mapping[str, Floats]:
        returns = np.where(seed == 0, 0.02, -0.005) * np.ones_like(rows)
        return dive(rows, 12, 17) | {"mean_return": returns}

    events_, stairs = (ASSAYS[name] for name in ("discovery", "E-A5"))
    found = events_.analyse(lived(events_, small, log)).estimates
    logged = stairs.analyse(lived(stairs, small, log)).estimates
    assert found["found/a2c/12"].value == 1.0
    assert logged["goal-in-log/a2c/12"].value == 0.5
    assert not any(key.startswith("found/") for key in logged)
    assert not any(key.startswith("found/") for key in published.estimates("E-A5"))
    [table] = stairs.analyse(lived(stairs, small, log)).tables
    assert "Goal in the log" in [column.heading for column in table.columns]


def test_chance_is_that_of_12000_episodes() -> None:
    results = as_printed()
    for depth, chance in ((12, 0.9972), (14, 0.7689), (16, 0.3066)):
        ours = results.estimates[f"chance/{depth}"]
        assert ours.value == pytest.approx(1 - (1 - 2.0 ** (1 - depth)) ** 12_000)
        assert ours.value == pytest.approx(chance, abs=5e-5)
        assert results.estimates[f"chance-first/{depth}"].value == expected_first(depth, 12_000)
    rows = [row for row in results.tables[0].rows if row[-1] is not None]
    assert [row[1] for row in rows] == ["random policy"] * 3


def test_the_expected_first_goal_is_that_of_a_plain_sum() -> None:
    p, horizon = 2.0**-5, 40
    each = [(1 - p) ** (k - 1) * p * k for k in range(1, horizon + 1)]
    assert expected_first(6, horizon) == pytest.approx(sum(each) + (1 - p) ** horizon * horizon)


def test_nothing_at_all_can_be_analysed_too() -> None:
    for name in ("discovery", "E-A5", "F1", "ladder"):
        assay = ASSAYS[name]
        results = assay.analyse(lived(assay, assay.budget("paper"), lambda *_: None))
        assert all(math.isnan(one.value) for one in results.estimates.values())
        assert "lifetimes are missing" in results.notes[0]
        assert all(table.rows == () for table in results.tables)


@cache
def really_lived() -> Frame:
    """Return random campaigns that were run: 50 iterations at depth 10, by 26 seeds."""
    cells = grid(budget(4, ("random",), (10,), episodes=1, log_every=10))
    records = {}
    for run in cells[0].runs:
        life = Lifetime(run)
        life.run()
        records[run.id] = life.record()
    return gather(cells, records.get, columns=ASSAY.columns, states=())


def test_random_play_finds_what_chance_says() -> None:
    results = analyse(really_lived()).estimates
    found, chance = results["found/random/10"], results["chance/10"]
    assert found.n == campaigns(4) == 26
    assert chance.value == pytest.approx(random_discovery(10, 290))
    low, high = scipy_stats.binom.ppf([SURE / 2, 1 - SURE / 2], found.n, chance.value)
    assert low <= round(found.value * found.n) <= high
    first, exact = results["first/random/10/episodes"], results["chance-first/10"]
    spread = 145 / math.sqrt(found.n)  # nothing between 0 and 290 spreads more
    assert abs(first.value - exact.value) < 4 * spread
    interactions = results["first/random/10/interactions"]
    assert interactions.value == pytest.approx(10 * first.value, abs=10)


def test_goals_come_as_often_as_one_path_in_2_to_the_depth_less_one() -> None:
    spec = RunSpec(
        learner=RandomPolicy(),
        environment=DeepSea(depth=6),
        lanes=512,
        iterations=12,
        log_every=12,
    )
    life = Lifetime(spec)
    life.run()
    log = life.log()
    episodes, goals = int(log["episodes"][-1]), int(log["goals"][-1])
    assert episodes == 512 * (12 * 29 // 6)
    low, high = scipy_stats.binom.ppf([SURE / 2, 1 - SURE / 2], episodes, 2.0**-5)
    assert low <= goals <= high
    assert not low <= episodes * 2.0**-6 <= high  # which is what bsuite's rule would give
