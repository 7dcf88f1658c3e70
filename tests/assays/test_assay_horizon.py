"""F2 and E-LR: level and pace in long lifetimes, and the baselines' learning rates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import printed_tables
from rulescope import learners
from rulescope.assays import ASSAYS, published
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.frame import Floats
from rulescope.assays.horizon.horizon import REFERENCES, early
from rulescope.assays.horizon.learning_rate import RATES, usual_rate
from rulescope.assays.results import Results
from rulescope.core.errors import SpecError
from rulescope.envs.references import catch_references
from rulescope.envs.world_config import WORLDS
from rulescope.learners.baseline_config import A2C
from rulescope.learners.disco_config import Disco
from rulescope.run_spec import Freeze, Pin
from rulescope.stats import Estimate

from .frames import bounds, drawn_seeds, our_name, trim
from .lives import Labels, lived

F2, E_LR = ASSAYS["F2"], ASSAYS["E-LR"]
SPAN = catch_references(WORLDS["catch-big"])
PAPER = F2.budget("paper")


def drawn(budget: Budget, seed: int = 0) -> tuple[dict[str, list[float]], dict[str, list[int]]]:
    """Levels of every arm and seed, and the row (from 1) at which each is reached."""
    generator = np.random.default_rng(seed)
    levels = {arm: generator.uniform(0.5, 1, budget.seeds).tolist() for arm in budget.arms}
    rows = {arm: generator.integers(1, 380, budget.seeds).tolist() for arm in budget.arms}
    return levels, rows


def horizon(budget: Budget = PAPER) -> Results:
    """Every lifetime scores 0, then (from a row of its own on) what it ends with."""
    levels, rows = drawn(budget)

    def log(labels: Labels, seed: int, iterations: Floats) -> Mapping[str, Floats]:
        arm = str(labels["arm"])
        return {"score": np.where(iterations >= 50 * rows[arm][seed], levels[arm][seed], 0.0)}

    return F2.analyse(lived(F2, budget, log))


def test_level_and_pace_are_those_of_plain_loops() -> None:
    budget = replace(PAPER, arms=F2.arms)
    results = horizon(budget).estimates
    levels, rows = drawn(budget)
    for arm in F2.arms:
        assert results[f"endpoint/{arm}"].value == pytest.approx(trim(levels[arm]))
        assert results[f"mastery/{arm}"].value == pytest.approx(trim(2900 * r for r in rows[arm]))
    for kind, (reference, others) in REFERENCES.items():
        for arm in others:
            pairs: dict[str, list[float]] = {
                "endpoint": [a - b for a, b in zip(levels[reference], levels[arm], strict=True)],
                "mastery": [
                    2900 * (a - b) for a, b in zip(rows[reference], rows[arm], strict=True)
                ],
            }
            for readout, each in pairs.items():
                ours = results[f"{kind}/{readout}/{arm}"]
                every = [trim(each[i] for i in block) for block in drawn_seeds(12, draws=1000)]
                assert ours.value == pytest.approx(trim(each))
                assert (ours.low, ours.high) == pytest.approx(bounds(every))


def test_the_table_has_the_printed_rows_in_thousands() -> None:
    results = horizon()
    table = next(table for table in results.tables if table.label == "v5:tab:app-f2-paired")
    printed = printed_tables.tables()[table.label]
    assert [row[1] for row in table.rows] == [our_name(row["Comparator"]) for row in printed]
    for row, theirs in zip(table.rows, printed, strict=True):
        assert str(row[0]) in our_name(theirs["group"])
    last = table.rows[-1][5]
    assert isinstance(last, Estimate)
    assert last.value == results.estimates["difference-lr3e4/mastery/dqn"].value / 1000


def test_printed_values_are_of_the_sizes_that_the_definitions_allow() -> None:
    """Six of twelve seeds are kept; a score moves by 0.02 of return, a time by 2,900."""
    step = 0.02 / (SPAN.oracle_return - SPAN.random_return) / 6
    for key, value in published.estimates("F2").items():
        unit, digits = (step, 1e-4) if "endpoint" in key else (2900 / 6, 100)
        if "difference" in key:
            digits = 10.0 ** (math.floor(math.log10(abs(value.value))) - 3)
        assert abs(value.value - unit * round(value.value / unit)) <= 0.51 * digits, key
    exact = printed_tables.scalars()["F2_disco_lr3e4"]
    assert exact["endpoint"] == pytest.approx(step * round(exact["endpoint"] / step), abs=5e-6)
    assert exact["mastery_steps"] * 6 % 2900 == 0


def test_arms_are_what_their_names_say() -> None:
    made = {str(cell.labels["arm"]): cell.runs[0] for cell in F2.grid(PAPER)}
    assert made["rule-pin"].interventions == (Pin(carrier="recurrent"),)
    assert made["rule-freeze"].interventions == (Freeze(carrier="recurrent", at=400),)
    slow = made["rule-lr3e4"].learner
    assert isinstance(slow, Disco)
    assert slow.learning_rate == 3e-4
    assert {run.environment for run in made.values()} == {WORLDS["catch-big"]}
    assert {(run.iterations, run.log_every, run.interactions) for run in made.values()} == {
        (20_000, 50, 1_160_000)
    }
    assert len(F2.grid(PAPER)) * PAPER.seeds == 84


def test_the_published_capture_points_are_0_40_and_400() -> None:
    every = replace(PAPER, arms=F2.arms)
    made = {str(cell.labels["arm"]): cell.runs for cell in F2.grid(every)}
    assert made["rule-freeze-40"][0].interventions == (Freeze(carrier="recurrent", at=40),)
    assert made["rule-freeze"][0].interventions == (Freeze(carrier="recurrent", at=400),)
    fresh = learners.make(Disco(rule="random:0"), (8, 8), 3, 29, seed=0).carriers["recurrent"].get()
    assert not any(array.any() for array in fresh.values())  # captured at 0, it is a pin
    in_preset = {run.id for cell in F2.grid(PAPER) for run in cell.runs}
    assert len(in_preset) == 84
    assert not in_preset & {run.id for run in made["rule-freeze-40"]}


def test_the_freeze_at_40_has_estimates_and_rows_beside_the_published_arms() -> None:
    results = horizon(replace(PAPER, arms=("rule", "rule-freeze-40")))
    assert results.estimates["difference/endpoint/rule-freeze-40"].n == 12
    for table in results.tables:
        assert any("Frozen 40" in row for row in table.rows)


def test_a_state_is_frozen_once_there_is_one() -> None:
    assert [early(n) for n in (20_000, 10_000, 1000, 40, 2)] == [400, 200, 40, 39, 1]


def test_without_disco_there_are_no_differences() -> None:
    results = horizon(replace(PAPER, arms=("a2c", "ppo")))
    assert {key.partition("/")[0] for key in results.estimates} == {"endpoint", "mastery"}
    assert [table.label for table in results.tables] == ["tab:f2-levels"]
    assert "disco103" not in results.budget


LAST_ROW = 6.0
"""By how much the last of 60 rows differs from their mean (the other 59 make up for it)."""


def swept(budget: Budget, scores: dict[tuple[str, str], list[float]]) -> Results:
    """The mean of the last 60 of 400 rows is as given, the last one 6 more; those before are 9."""

    def log(labels: Labels, seed: int, iterations: Floats) -> Mapping[str, Floats]:
        mean = scores[str(labels["arm"]), str(labels["rate"])][seed]
        tail = np.where(iterations == 20_000, mean + LAST_ROW, mean - LAST_ROW / 59)
        return {"score": np.where(iterations > 17_000, tail, 9.0)}

    return E_LR.analyse(lived(E_LR, budget, log))


def test_the_best_rate_is_that_of_the_largest_trimmed_mean() -> None:
    budget = replace(E_LR.budget("paper"), seeds=6)
    generator = np.random.default_rng(3)
    scores = {
        (arm, rate): generator.uniform(size=6).tolist() for arm in budget.arms for rate in RATES
    }
    results = swept(budget, scores)
    for arm in budget.arms:
        means = {rate: trim(scores[arm, rate]) for rate in RATES}
        best = max(means, key=lambda rate: means[rate])
        assert results.estimates[f"rate/{arm}"].value == float(best)
        assert results.estimates[f"selected/{arm}"].value == pytest.approx(means[best])
        for rate in RATES:
            own, last = (
                scores[arm, rate],
                [LAST_ROW + s for s in scores[arm, f"{usual_rate(arm):g}"]],
            )
            ours = results.estimates[f"difference/{arm}/{rate}"]
            assert ours.value == pytest.approx(trim(own) - trim(last))
            every = [
                trim(own[i] for i in block) - trim(last[i] for i in block)
                for block in drawn_seeds(6, draws=1000)
            ]
            assert (ours.low, ours.high) == pytest.approx(bounds(every))
    marked = [str(row[-1]) for row in results.tables[0].rows]
    assert sum("usual" in mark for mark in marked) == 3
    assert sum("selected" in mark for mark in marked) == 3
    assert results.other_grid == frozenset()


def test_differences_are_from_the_endpoint_that_the_horizon_assay_reports() -> None:
    def log(labels: Labels, seed: int, iterations: Floats) -> Mapping[str, Floats]:
        pace = {"a2c": 3000.0, "ppo": 9000.0, "dqn": 6000.0}[str(labels["arm"])] * (1 + seed / 7)
        return {"score": 1 - np.exp(-iterations / pace)}

    budget = replace(E_LR.budget("paper"), conditions=RATES)
    rates = E_LR.analyse(lived(E_LR, budget, log)).estimates
    ends = F2.analyse(lived(F2, replace(PAPER, arms=tuple(E_LR.arms)), log)).estimates
    for arm in E_LR.arms:
        assert rates[f"horizon/{arm}"] == ends[f"endpoint/{arm}"]
        for rate in RATES:
            level = rates[f"score/{arm}/{rate}"].value - ends[f"endpoint/{arm}"].value
            assert rates[f"difference/{arm}/{rate}"].value == pytest.approx(level)
            assert level < 0  # the tail of a rising curve is below its end


def test_selection_from_fewer_rates_is_told_apart() -> None:
    budget = replace(E_LR.budget("paper"), seeds=1, arms=("a2c",), conditions=RATES[:2])
    results = swept(budget, {("a2c", rate): [0.5] for rate in RATES})
    assert results.other_grid == {"rate/a2c", "selected/a2c"}
    assert "difference/a2c/0.0001" not in results.estimates  # its usual rate was not run


def test_selection_is_told_apart_where_an_arm_lacks_a_rate() -> None:
    budget = replace(E_LR.budget("paper"), seeds=3, arms=("a2c", "ppo"))

    def partly(labels: Labels, _seed: int, _rows: Floats) -> Mapping[str, float] | None:
        return None if labels == {"arm": "ppo", "rate": "0.001"} else {"score": 0.5}

    results = E_LR.analyse(lived(E_LR, budget, partly))
    assert results.other_grid == {"rate/ppo", "selected/ppo"}


def test_only_the_rate_is_overridden_and_the_usual_ones_are_those_of_the_horizon() -> None:
    cells = E_LR.grid(E_LR.budget("paper"))
    assert sum(len(cell.runs) for cell in cells) == 144
    for cell in cells:
        if cell.labels["arm"] == "a2c":
            assert cell.runs[0].learner == A2C(learning_rate=float(cell.labels["rate"]))
    swept_runs = {run.id for cell in cells for run in cell.runs}
    long_runs = {run.id for cell in F2.grid(PAPER) for run in cell.runs}
    assert len(swept_runs & long_runs) == 3 * 12


@pytest.mark.parametrize("assay", [F2, E_LR], ids=["F2", "E-LR"])
def test_reward_scales_are_refused(assay: Assay) -> None:
    with pytest.raises(SpecError, match="reward scale 1 alone"):
        assay.grid(replace(assay.budget("paper"), scales=(0.1,)))
