"""Masking in Breakout: effects within seeds, contrasts of effects, printed values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import printed_tables
from assays.frames import bounds, drawn_seeds, our_name, trim
from assays.lives import Labels, lived
from rulescope.assays import ASSAYS, Budget, Selection, narrowed, published
from rulescope.assays.comparison import compare
from rulescope.assays.frame import Floats
from rulescope.envs.world_config import WORLDS, Boundary
from rulescope.learners.disco_config import Disco
from rulescope.run_spec import RunSpec
from rulescope.stats import Estimate

MASKING = ASSAYS["masking"]
ARMS = ("rule", "a2c", "ppo", "dqn")
KNOWN = published.estimates("masking")
UNIT = 1 / (4000 * 20 * 10)
"""One reward, in the mean over a window, 20 rows and the ten seeds that trimming keeps of 18."""


def runs_of(budget: Budget) -> list[RunSpec]:
    return [run for cell in MASKING.grid(budget) for run in cell.runs]


def test_the_paper_preset_has_the_published_size() -> None:
    made = runs_of(MASKING.budget("paper"))
    assert len({run.id for run in made}) == len(made) == 144
    assert {(run.iterations, run.log_every, run.interactions) for run in made} == {
        (8000, 40, 464_000)
    }
    assert {run.environment for run in made} == {WORLDS["minatar-breakout"]}
    assert {run.boundary for run in made} == {Boundary(), Boundary(terminals="masked")}
    for run in made:
        torso = run.learner.agent.torso  # type: ignore[union-attr]
        assert torso == "channel"
    assert isinstance(made[0].learner, Disco)


def test_conditions_of_a_seed_differ_in_the_boundary_alone() -> None:
    cells = {(c.labels["condition"], c.labels["arm"]): c.runs for c in MASKING.grid(small())}
    for arm in ARMS:
        for one, other in zip(cells["episodic", arm], cells["masked", arm], strict=True):
            assert one.learner == other.learner
            assert one.seed == other.seed
            assert one.boundary != other.boundary


def small(seeds: int = 6, iterations: int = 800) -> Budget:
    return replace(MASKING.budget("paper"), seeds=seeds, iterations=iterations)


def rates(labels: Labels, seed: int, rows: Floats) -> dict[str, float | Floats] | None:
    if (labels["condition"], labels["arm"], seed) == ("masked", "ppo", 2):
        return None
    place = ARMS.index(str(labels["arm"])) + 10 * (labels["condition"] == "masked")
    return {"reward_rate": np.random.default_rng([seed, place]).uniform(0.05, 0.1, len(rows))}


def test_effects_are_taken_within_seeds_and_contrasts_of_effects_too() -> None:
    frame = lived(MASKING, small(), rates)
    results = MASKING.analyse(frame)
    log = frame.columns["reward_rate"]
    # 2 of 20 rows
    mean = [[[float(log[i, j, s, -2:].mean()) for s in range(6)] for j in range(4)] for i in (0, 1)]
    there = [s for s in range(6) if s != 2]
    effects = {
        arm: {s: mean[1][j][s] - mean[0][j][s] for s in (there if arm == "ppo" else range(6))}
        for j, arm in enumerate(ARMS)
    }
    for j, arm in enumerate(ARMS):
        episodic = results.estimates[f"rate/episodic/{arm}"]
        assert episodic.value == pytest.approx(trim(mean[0][j]))
        check(results.estimates[f"effect/{arm}"], effects[arm])
        if arm != "rule":
            more = {s: effects["rule"][s] - value for s, value in effects[arm].items()}
            check(results.estimates[f"contrast/{arm}"], more)
    assert "contrast/rule" not in results.estimates
    assert "1 of 48 lifetimes are missing" in results.notes[0]
    first, second = results.tables
    assert [row[:2] for row in first.rows] == [
        ("Disco103", 6),
        ("A2C", 6),
        ("PPO", 5),
        ("DQN", 6),
    ]
    assert [row[1] for row in second.rows] == [6, 5, 6]


def check(ours: Estimate, values: dict[int, float]) -> None:
    assert ours.value == pytest.approx(trim(values.values()))
    draws = [[values[i] for i in block if i in values] for block in drawn_seeds(6, 1000)]
    assert (ours.low, ours.high) == pytest.approx(bounds([trim(draw) for draw in draws]))
    assert ours.n == len(values)


def test_a_difference_of_trimmed_means_is_another_number() -> None:
    """As in the printed table, whose effect is not the difference of its rates."""
    printed = KNOWN["rate/masked/rule"].value - KNOWN["rate/episodic/rule"].value
    assert printed == pytest.approx(-0.00339)
    assert KNOWN["effect/rule"].value == -0.0041612
    results = MASKING.analyse(lived(MASKING, small(), rates)).estimates
    marginal = results["rate/masked/a2c"].value - results["rate/episodic/a2c"].value
    assert results["effect/a2c"].value != pytest.approx(marginal, rel=1e-3)


def test_printed_effects_come_back_as_they_are() -> None:
    def log(labels: Labels, _seed: int, _rows: Floats) -> dict[str, float | Floats]:
        effect = KNOWN[f"effect/{labels['arm']}"].value
        return {"reward_rate": 0.08 + (effect if labels["condition"] == "masked" else 0.0)}

    results = MASKING.analyse(lived(MASKING, MASKING.budget("paper"), log))
    compared = {one.key: one for one in compare(results)}
    assert set(compared) == set(KNOWN)
    assert len(KNOWN) == 4 * 3 + 3
    for key, one in compared.items():
        assert one.same_budget, key
        if key.startswith("effect/"):
            assert one.ours.value == pytest.approx(one.published.value, abs=1e-12)
            assert one.verdict == "reproduced", key
    for table in results.tables:
        theirs = printed_tables.tables()[table.label]
        assert len(table.rows) == len(theirs.rows)
        assert [row[1] for row in table.rows] == [row[1] for row in theirs.rows]
    names = [str(row[0]).replace(" − ", " -") for row in results.tables[1].rows]
    printed = [row[0] for row in printed_tables.tables()[results.tables[1].label].rows]
    assert [name.lower() for name in names] == [our_name(name).lower() for name in printed]


@pytest.mark.parametrize(
    ("key", "units"),
    [
        ("effect/rule", -3329),
        ("effect/a2c", -5757),
        ("effect/ppo", -2398),
        ("effect/dqn", -1892),
        ("contrast/a2c", 2937),
        ("contrast/ppo", -732),
        ("contrast/dqn", -1139),
    ],
)
def test_printed_effects_are_whole_rewards_in_20_rows_of_ten_seeds(key: str, units: int) -> None:
    assert KNOWN[key].value == pytest.approx(units * UNIT, abs=5.1e-8)


def test_without_both_conditions_there_is_no_effect() -> None:
    budget = narrowed(MASKING, small(), Selection(conditions=["masked"]))
    results = MASKING.analyse(lived(MASKING, budget, rates))
    assert {key.split("/")[0] for key in results.estimates} == {"rate"}
    assert [table.label for table in results.tables] == ["v5:tab:app-minatar-masking"]
    assert results.tables[0].rows[0][-1] is None


def test_without_disco_there_is_no_contrast() -> None:
    budget = narrowed(MASKING, small(), Selection(arms=["a2c", "dqn"]))
    results = MASKING.analyse(lived(MASKING, budget, rates))
    assert {key.split("/")[0] for key in results.estimates} == {"rate", "effect"}
