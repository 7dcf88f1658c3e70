"""E3: readouts of a lifetime, which lifetimes attain, and contrasts seed by seed."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from rulescope.assays import ASSAYS, Selection, narrowed
from rulescope.assays.change.change import CONDITIONS, DISCO, PUBLISHED, TASKS, analyse
from rulescope.assays.change.switch_readouts import readouts, switch_of
from rulescope.assays.comparison_families import REPLAY
from rulescope.assays.frame import Floats, Frame

from .change_frames import STEPS, recovering
from .frames import bounds, drawn_seeds, trim
from .lives import Labels, lived

ASSAY = ASSAYS["E3"]
PAPER = ASSAY.budget("paper")


# What is read of a lifetime


def small(
    seeds: int = 5,
    arms: tuple[str, ...] = PUBLISHED,
    tasks: tuple[str, ...] = TASKS,
    conditions: tuple[str, ...] = CONDITIONS,
) -> Frame:
    narrow = narrowed(
        ASSAY,
        PAPER,
        Selection(seeds=seeds, iterations=400, arms=arms, tasks=tasks, conditions=conditions),
    )
    return lived(ASSAY, narrow, recovering)


def one_lifetime(score: Floats, iterations: int = 3000) -> Frame:
    budget = replace(
        PAPER,
        seeds=1,
        iterations=iterations,
        arms=("rule",),
        tasks=("catch",),
        conditions=("action-flip",),
    )
    return lived(
        ASSAY, budget, lambda *_: {"score": score, "episodes": np.arange(len(score)) * 166}
    )


def test_readouts_of_worked_lifetimes() -> None:
    rows = np.arange(20.0, 3001, 20)
    step = readouts(one_lifetime(np.where(rows <= 1500, 1.0, 0.5)))
    assert step["auc"].item() == pytest.approx(0.5033333333)
    ramp = readouts(one_lifetime(((rows - 1500) / 750).clip(0, 1)))
    assert ramp["auc"].item() == pytest.approx(0.7499555556)
    line = readouts(one_lifetime(rows / 100))
    assert line["pre"].item() == pytest.approx((14.2 + 14.4 + 14.6 + 14.8 + 15.0) / 5)
    assert line["trough"].item() == pytest.approx(15.2)
    assert line["final"].item() == pytest.approx(np.mean(np.arange(27.0, 30.01, 0.2)))
    assert line["endpoint"].item() == pytest.approx(30.0)


def test_times_are_fractions_of_a_lifetime_of_any_length() -> None:
    frame = one_lifetime(np.arange(5.0), iterations=110)  # rows 20 .. 100, the switch at 40
    assert switch_of(frame) == 40
    found = readouts(frame)
    assert [found[name].item() for name in ("pre", "trough", "final", "endpoint")] == [0.5, 2, 4, 4]
    assert found["auc"].item() == pytest.approx((0.5 * 1 + 2 + 3 + 0.5 * 4) / 3)


def test_nobody_attains_before_the_window_holds_new_episodes_only() -> None:
    """102 episodes: the first row that counts is 20 after the switch on 8×8, 40 on 16×16."""

    def log(labels: Labels, _seed: int, rows: Floats) -> dict[str, Floats]:
        return {"score": np.ones(len(rows)), "episodes": 58 * rows // STEPS[str(labels["task"])]}

    budget = replace(PAPER, seeds=3, arms=DISCO, conditions=("none",))
    found = analyse(lived(ASSAY, budget, log)).estimates
    for arm in DISCO:
        assert found[f"rmd/none/catch/{arm}/0.9"].value == 20
        assert found[f"rmd/none/catch-long/{arm}/0.9"].value == 40


def test_delays_are_means_over_all_lifetimes_with_the_horizon_for_those_who_never_attain() -> None:
    """Times 20, 60, none and 1,500: three of four attained, one exactly at the horizon."""
    times = [20, 60, math.inf, 1500]

    def log(_labels: Labels, seed: int, rows: Floats) -> dict[str, Floats]:
        return {"score": np.where(rows >= 1500 + times[seed], 0.85, 0.0), "episodes": rows * 8}

    budget = replace(PAPER, seeds=4, tasks=("catch",), conditions=("none",))
    results = analyse(lived(ASSAY, budget, log))
    found = results.estimates
    delay = found["rmd/none/catch/dqn/0.8"]
    assert delay.value == 770.0
    every = [np.mean([min(times[i], 1500) for i in block]) for block in drawn_seeds(4)]
    assert (delay.low, delay.high) == pytest.approx(bounds([float(one) for one in every]))
    assert found["time/none/catch/dqn/0.8"].value == pytest.approx(44.66)
    assert found["attained/none/catch/dqn/0.8"].value == 0.75
    assert found["attained/none/catch/dqn/0.9"].value == 0
    (table,) = (one for one in results.tables if one.label == "tab:unified-recovery-none")
    assert [row[4] for row in table.rows if row[1] == "DQN 100k"] == ["3/4"]


def test_a_missing_lifetime_is_not_one_that_never_attained() -> None:
    def log(labels: Labels, seed: int, rows: Floats) -> dict[str, Floats] | None:
        gone = seed == 2 and labels["arm"] == "rule"
        return None if gone else {"score": np.ones(len(rows)), "episodes": rows * 8}

    budget = replace(PAPER, seeds=4, tasks=("catch",), conditions=("action-flip", "none"))
    results = analyse(lived(ASSAY, budget, log))
    share = results.estimates["attained/none/catch/rule/0.8"]
    assert (share.value, share.n) == (1.0, 3)
    assert results.estimates["rmd/none/catch/rule/0.8"].value == 20
    assert results.estimates["contrast/action-flip/100k"].n == 3
    assert results.estimates["no-aux/none/catch/auc"].n == 3
    assert results.estimates["auc/none/catch/rule-freeze"].n == 4
    assert results.notes == ("2 of 48 lifetimes are missing; estimates use the seeds that exist",)


# Contrasts


def areas(frame: Frame, condition: str, task: str, arm: str) -> list[float]:
    """Return the area of every seed, by plain sums."""
    at = switch_of(frame)
    found = []
    for run in frame.log("score", condition=condition, task=task, arm=arm):
        points = [(t, s) for t, s in zip(frame.iteration, run, strict=True) if t >= at]
        pairs = pairwise(points)
        whole = sum((u - t) * (r + s) / 2 for (t, r), (u, s) in pairs)
        found.append(float(whole / (points[-1][0] - at)))
    return found


def test_replay_contrasts_are_those_of_plain_loops() -> None:
    frame = small(tasks=("catch",), conditions=("reward-move",))
    found = analyse(frame).estimates
    disco, dqn = (areas(frame, "reward-move", "catch", arm) for arm in ("rule", "dqn-cleared"))
    each = [a - b for a, b in zip(disco, dqn, strict=True)]
    ours = found["contrast/reward-move/cleared"]
    assert ours.value == pytest.approx(trim(each))
    every = [trim([each[i] for i in block]) for block in drawn_seeds(5)]
    assert (ours.low, ours.high) == pytest.approx(bounds(every, family=11))
    assert (ours.n, ours.family) == (5, 11)
    # of five values, the middle half is three tenths, four tenths and three tenths of the middle
    second, third, fourth = sorted(each)[1:4]
    iqm = found["contrast-iqm/reward-move/cleared"]
    assert iqm.value == pytest.approx((0.75 * second + third + 0.75 * fourth) / 2.5)
    assert iqm.family == 11


def test_differences_are_taken_within_seeds_first() -> None:
    """Shuffling the seeds of one arm leaves its own estimate, but not the contrast."""
    arms = ("rule", "dqn", "dqn-28672")
    frame = small(arms=arms, tasks=("catch",), conditions=("action-flip",))
    arm = frame.axes["arm"].index("dqn-28672")
    score = frame.columns["score"].copy()
    score[..., arm, :, :] = score[..., arm, ::-1, :]
    shuffled = replace(frame, columns={**frame.columns, "score": score})
    before, after = analyse(frame).estimates, analyse(shuffled).estimates
    key = "auc/action-flip/catch/dqn-28672"
    assert before[key].value == after[key].value
    assert before["contrast/action-flip/28672"] != after["contrast/action-flip/28672"]
    assert before["contrast/action-flip/100k"] == after["contrast/action-flip/100k"]


def test_what_auxiliary_losses_do_is_told_pointwise_for_areas_and_final_windows() -> None:
    frame = small(arms=("rule", "rule-no-aux"), conditions=("none",))
    found = analyse(frame).estimates
    for task in TASKS:
        without, live = (areas(frame, "none", task, arm) for arm in ("rule-no-aux", "rule"))
        each = [a - b for a, b in zip(without, live, strict=True)]
        ours = found[f"no-aux/none/{task}/auc"]
        assert ours.value == pytest.approx(trim(each))
        every = [trim([each[i] for i in block]) for block in drawn_seeds(5)]
        assert (ours.low, ours.high) == pytest.approx(bounds(every))
        last = frame.iteration >= 360
        ends = [
            frame.log("score", condition="none", task=task, arm=arm)[:, last].mean(axis=-1)
            for arm in ("rule-no-aux", "rule")
        ]
        assert found[f"no-aux/none/{task}/final"].value == pytest.approx(trim(ends[0] - ends[1]))


def test_streams_have_a_band_for_every_log_row() -> None:
    frame = small(conditions=("action-flip",))
    series = analyse(frame).series
    assert series["switch"].item() == 200
    assert series["horizon"].item() == pytest.approx(200 * 58 / 1000)
    assert len([key for key in series if key.startswith("trajectory/")]) == 9
    ours = series["trajectory/action-flip/catch-long/rule"]
    assert ours.shape == (3, 20)
    each = frame.log("score", condition="action-flip", task="catch-long", arm="rule")[:, 12]
    every = [trim([each[i] for i in block]) for block in drawn_seeds(5, 1000)]
    assert ours[:, 12] == pytest.approx([trim(each), *bounds(every)])


# Parts of the grid


def test_a_part_of_the_grid_keeps_the_family_and_its_place_in_it() -> None:
    results = analyse(small(arms=("rule", "dqn"), conditions=("action-flip",), tasks=("catch",)))
    found = results.estimates
    assert found["contrast/action-flip/100k"].n == 5
    for key in REPLAY:
        assert found[key].family == 11
        if key != "contrast/action-flip/100k":
            assert found[key].missing
    assert not any(key.startswith("no-aux/") for key in found)
    labels = ["tab:e3-all", "tab:e3-thresholds", "tab:unified-recovery-action_flip"]
    assert [one.label for one in results.tables] == labels
    assert [row[0] for row in results.tables[0].rows] == ["action flip / 100k"]


def test_two_seeds_give_ranges_and_boards_without_dqn_no_estimates_of_it() -> None:
    frame = small(seeds=2)
    found = analyse(frame).estimates
    assert int(frame.planned.any(axis=-1).sum()) == 27
    assert not any("catch-long/dqn" in key for key in found)
    for key in ("auc/none/catch/dqn", "contrast/action-flip/100k", "rmd/none/catch/rule/0.8"):
        assert found[key].method == "range"
    assert len([key for key in found if key.startswith("auc/")]) == 27
    assert {arm for key in found for arm in PUBLISHED if key == f"auc/none/catch/{arm}"} == set(
        PUBLISHED
    )


def test_what_continual_backprop_does_is_told_within_seeds_where_both_arms_were_run() -> None:
    frame = small(arms=("a2c", "a2c-cbp", "ppo", "dqn-cbp"), conditions=("action-flip", "none"))
    results = analyse(frame)
    rows = results.estimates.where("replacement")
    assert {str(row.labels["arm"]) for row in rows} == {"a2c"}
    for condition in ("action-flip", "none"):
        replacing, plain = (areas(frame, condition, "catch", arm) for arm in ("a2c-cbp", "a2c"))
        each = [a - b for a, b in zip(replacing, plain, strict=True)]
        ours = results.estimates[f"replacement/{condition}/catch/a2c/auc"]
        assert ours.value == pytest.approx(trim(each))
        low, high = bounds([trim([each[i] for i in block]) for block in drawn_seeds(5)])
        assert ours.low <= low + 1e-12
        assert ours.high >= high - 1e-12
    (table,) = (table for table in results.tables if table.label == "e3-replacement")
    assert [row[1:4] for row in table.rows] == [
        ("A2C", change, metric)
        for change in ("Action flip", "No change")
        for metric in ("AUC", "Final window")
    ]


def test_published_arms_have_no_table_of_continual_backprop() -> None:
    results = analyse(small())
    assert not results.estimates.where("replacement")
    assert "e3-replacement" not in {table.label for table in results.tables}
