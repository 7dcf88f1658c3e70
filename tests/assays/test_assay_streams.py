"""Exposure, synthetic terminals and CatchStream: grids, printed tables in and out, plain loops."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import printed_tables
from assays.frames import bounds, drawn_seeds, our_name, trim
from assays.lives import Labels, lived
from made_up_records import fill
from rulescope.assays import ASSAYS, Budget, Selection, narrowed, published
from rulescope.assays.assay import Assay
from rulescope.assays.comparison import compare
from rulescope.assays.frame import Floats
from rulescope.assays.plan import Plan, write
from rulescope.core.errors import SpecError
from rulescope.envs.world_config import WORLDS, Boundary
from rulescope.episode_stats import RATE_WINDOW
from rulescope.records import Store
from rulescope.render.display_names import canonical_arm
from rulescope.run_spec import RunSpec
from rulescope.stats import Estimate

EXPOSURE, SYNTHETIC, STREAM = (ASSAYS[name] for name in ("exposure", "synthetic", "E-A3c"))
EVERY = 2320
"""Interactions between two log rows: 40 iterations of 58."""


def runs_of(assay: Assay, budget: Budget) -> list[RunSpec]:
    return [run for cell in assay.grid(budget) for run in cell.runs]


@pytest.mark.parametrize(
    ("name", "runs", "seeds", "iterations"),
    [("exposure", 216, 18, 6000), ("synthetic", 108, 18, 6000), ("E-A3c", 36, 12, 6000)],
)
def test_the_paper_preset_has_the_published_size(
    name: str, runs: int, seeds: int, iterations: int
) -> None:
    made = runs_of(ASSAYS[name], ASSAYS[name].budget("paper"))
    assert len({run.id for run in made}) == len(made) == runs
    assert {run.seed for run in made} == set(range(seeds))
    assert {(run.iterations, run.log_every) for run in made} == {(iterations, 40)}
    assert {run.interactions for run in made} == {348_000}


def test_exposures_are_worlds_and_the_ends_signalled_in_them() -> None:
    made = {
        str(cell.labels["condition"]): cell.runs[0]
        for cell in EXPOSURE.grid(EXPOSURE.budget("paper"))
    }
    masked = Boundary(terminals="masked")
    assert {name: (run.environment, run.boundary) for name, run in made.items()} == {
        "episodic": (WORLDS["catch"], Boundary()),
        "masked": (WORLDS["catch"], masked),
        "natural": (WORLDS["tracking"], Boundary()),
    }
    signalled = {str(cell.labels["condition"]): cell.runs[0] for cell in SYNTHETIC.grid(paper())}
    assert {name: run.boundary.interval for name, run in signalled.items()} == {
        "synth7": 7,
        "synth29": 29,
        "synth100": 100,
    }
    assert {run.boundary.terminals for run in signalled.values()} == {"synthetic"}
    assert {run.environment for run in signalled.values()} == {WORLDS["catch"]}


def paper() -> Budget:
    return SYNTHETIC.budget("paper")


@pytest.mark.parametrize(("name", "task"), [("E-A3c", "catch-stream"), ("exposure", "tracking")])
def test_lifetimes_of_the_replication_are_part_of_the_paper_grid(name: str, task: str) -> None:
    chosen = narrowed(ASSAYS[name], ASSAYS[name].budget("paper"), Selection(agent="historical"))
    ids = {run.id for run in runs_of(ASSAYS[name], chosen)}
    for seed in range(12):
        known = RunSpec(environment=WORLDS[task], iterations=6000, log_every=40, seed=seed)
        assert known.id in ids


def test_narrowing_by_world_takes_the_exposures_in_it() -> None:
    budget = EXPOSURE.budget("paper")
    in_catch = narrowed(EXPOSURE, budget, Selection(tasks=["catch"], seeds=1))
    assert {cell.labels["condition"] for cell in EXPOSURE.grid(in_catch)} == {"episodic", "masked"}
    nowhere = narrowed(EXPOSURE, budget, Selection(tasks=["tracking"], conditions=["masked"]))
    with pytest.raises(SpecError, match="--tasks: none of masked is in tracking"):
        EXPOSURE.grid(nowhere)


@pytest.mark.parametrize("name", ["exposure", "synthetic", "E-A3c", "masking"])
def test_reward_scales_are_refused(name: str) -> None:
    assay = ASSAYS[name]
    with pytest.raises(SpecError, match="--scales"):
        assay.grid(narrowed(assay, assay.budget("smoke"), Selection(scales=[0.1])))


# Printed tables in, printed summaries out


def kept(reached: int) -> int:
    """Return how many of ``reached`` times a trimmed mean is over."""
    return math.ceil(3 * reached / 4) - reached // 4


def crossing_rows(steps: float, reached: int) -> list[int]:
    """Return log rows (from 1) at which so many lifetimes cross, for the printed trimmed mean."""
    middle = kept(reached)
    total = round(steps * middle / EVERY)
    low, more = divmod(total, middle)
    centre = [low] * (middle - more) + [low + 1] * more
    below = reached // 4
    return [low] * below + centre + [low + 1] * (reached - middle - below)


def as_printed(assay: Assay) -> dict[tuple[str, str], list[Floats]]:
    """Return for each cell a log of every lifetime that has its printed readouts."""
    made = {}
    label = {"exposure": "exposures", "synthetic": "synthetic"}[assay.id]
    for row in printed_tables.tables()[f"v5:tab:app-streams-{label}"]:
        score, steps = row["Reward-rate score [95% CI]"][0], row["Threshold steps [95% CI]"]
        reached = round(row["Fraction reaching threshold"] * row["n"])
        logs = [np.full(150, score) for _ in range(row["n"])]
        for log, first in zip(
            logs, crossing_rows(steps[0], reached) if steps else [], strict=False
        ):
            log[: first - 1] = 0.0
            log[first - 1] = max(score, 0.8)
        made[row["Exposure"], canonical_arm(row["Algorithm"])] = logs
    return made


@pytest.mark.parametrize("assay", [EXPOSURE, SYNTHETIC], ids=["exposure", "synthetic"])
def test_printed_exposures_come_back_as_they_are(assay: Assay) -> None:
    logs = as_printed(assay)

    def log(labels: Labels, seed: int, _rows: Floats) -> dict[str, float | Floats]:
        return {"rate_score": logs[str(labels["condition"]), str(labels["arm"])][seed]}

    results = assay.analyse(lived(assay, assay.budget("paper"), log))
    known = published.estimates(assay.id)
    for key, value in known.items():
        ours = results.estimates[key]
        assert ours.value == pytest.approx(value.value, rel=2.5e-5, abs=1e-9), key
        assert (ours.n, ours.family) == (18, 1)
    compared = compare(results)
    assert {one.key for one in compared} == set(known)
    assert all(one.same_budget for one in compared)
    never = {key for key in results.estimates if key not in known}
    assert all(key.startswith("steps/") and results.estimates[key].missing for key in never)
    (table,) = results.tables
    theirs = printed_tables.tables()[table.label]
    assert [row[:3] for row in table.rows] == [
        (row[0], our_name(row[1]), row[2]) for row in theirs.rows
    ]
    assert "1,000 seed-block draws" in table.note


def test_printed_streams_come_back_as_they_are() -> None:
    known = published.estimates("E-A3c")

    def log(labels: Labels, _seed: int, rows: Floats) -> dict[str, float | Floats]:
        column = np.full(len(rows), known[f"score/{labels['arm']}"].value)
        column[40] = max(column[40], 0.8 * known[f"ever/{labels['arm']}"].value)
        return {"rate_score": column}

    results = STREAM.analyse(lived(STREAM, STREAM.budget("paper"), log))
    assert {key: results.estimates[key].value for key in known} == pytest.approx(
        {key: value.value for key, value in known.items()}
    )
    assert all(one.same_budget for one in compare(results))
    (table,) = results.tables
    assert [row[:2] for row in table.rows] == [
        (our_name(row[0]), row[1]) for row in printed_tables.tables()[table.label].rows
    ]
    assert "CatchStream 0 ends, 0 paddle resets, 0 ball jumps" in table.note


def printed_values(label: str) -> int:
    """Return how many numbers, apart from n, are printed in a table."""
    table = printed_tables.tables()[label]
    return sum(cell is not None for row in table for head, cell in row.items() if head in READ)


READ = {
    "Reward-rate score [95% CI]",
    "Threshold steps [95% CI]",
    "Fraction reaching threshold",
    "Ever reaches 0.8",
}


@pytest.mark.parametrize(
    ("assay", "label", "values"),
    [
        ("exposure", "v5:tab:app-streams-exposures", 12 + 9 + 12),
        ("synthetic", "v5:tab:app-streams-synthetic", 6 + 5 + 6),
        ("E-A3c", "v5:tab:app-resetfree", 3 + 3),
    ],
)
def test_printed_values_and_keys_are_one_to_one(assay: str, label: str, values: int) -> None:
    assert len(published.estimates(assay)) == printed_values(label) == values


def test_some_printed_values_have_their_keys() -> None:
    exposure, synthetic = published.estimates("exposure"), published.estimates("synthetic")
    assert exposure["score/masked/ppo"][:4] == (0.73837, 0.60321, 0.85316, 18)
    assert exposure["steps/natural/rule"][:3] == (284_900, 207_380, 325_760)
    assert exposure["fraction/natural/rule"].value == 0.5
    assert "steps/masked/a2c" not in exposure
    assert synthetic["steps/synth29/a2c"][:4] == (103_470, 94_656, 129_000, 18)
    assert published.estimates("E-A3c")["score/dqn"][:4] == (0.76918, 0.76285, 0.77705, 12)


def test_what_disco_is_told_by_two_boundaries_alike_was_printed_alike() -> None:
    exposure, synthetic = published.estimates("exposure"), published.estimates("synthetic")
    for kind in ("score", "steps"):
        for mine, theirs in (
            ("episodic/rule", "synth7/rule"),
            ("episodic/a2c", "synth7/a2c"),
            ("masked/rule", "synth29/rule"),
        ):
            assert exposure[f"{kind}/{mine}"] == synthetic[f"{kind}/{theirs}"]
    assert synthetic["score/synth29/a2c"].value > 0.99
    assert exposure["score/masked/a2c"].value < 0.01


# What is printed could not be otherwise


@pytest.mark.parametrize(("reached", "middle"), [(18, 10), (11, 7), (9, 5)])
def test_so_many_times_are_kept(reached: int, middle: int) -> None:
    assert kept(reached) == middle


@pytest.mark.parametrize(
    ("steps", "reached", "rows"), [(22_272, 18, 96), (225_040, 11, 679), (284_896, 9, 614)]
)
def test_printed_times_are_whole_rows_over_the_kept_lifetimes(
    steps: int, reached: int, rows: int
) -> None:
    assert steps * kept(reached) == rows * EVERY
    assert trim([EVERY * row for row in crossing_rows(steps, reached)]) == steps


@pytest.mark.parametrize("assay", ["exposure", "synthetic"])
def test_every_printed_time_and_bound_is_a_count_of_rows(assay: str) -> None:
    """A bound from 1,000 draws lies .975 or .025 of the way between two counts (up to 3 apart).

    Also where not all lifetimes reach the threshold: the draws were of those that do.
    """
    known = published.estimates(assay)
    for key, value in known.items():
        if not key.startswith("steps/"):
            continue
        reached = round(known[key.replace("steps/", "fraction/")].value * 18)
        unit = EVERY / kept(reached)
        rounding = 5.1 if value.value >= 1e5 else 0.51  # five digits are printed
        rows = value.value / unit
        assert abs(rows - round(rows)) <= rounding / unit, key
        for bound in (value.low, value.high):
            part = bound / unit % 1
            near = min(abs(part - exact / 40) for exact in (0, 1, 2, 3, 37, 38, 39, 40))
            assert near <= (5.1 if bound >= 1e5 else 0.51) / unit, key


def test_printed_scores_are_whole_catches_in_our_window_and_tail() -> None:
    """With 4,000 interactions and 23 rows the two smallest Catch scores are counts of catches."""
    rows = 40 * np.arange(1, 151)
    tail = rows[rows >= 0.85 * 6000]
    assert len(tail) == 23
    lane = RATE_WINDOW // 2
    ends = int(sum(2 * (29 * i // 7 - (29 * i - lane) // 7) for i in tail.tolist()))
    for key, assay in (("score/masked/a2c", "exposure"), ("score/synth100/a2c", "synthetic")):
        score = published.estimates(assay)[key].value
        rewards = (score / 4 - 0.75 / 7) * RATE_WINDOW * len(tail) * 10
        catches = (rewards + 10 * ends) / 2
        assert abs(catches - round(catches)) < 1e-3, key


# Plain loops


def noisy(labels: Labels, seed: int, rows: Floats) -> dict[str, float | Floats] | None:
    """Return a lifetime that rises at a time of its own, or never; one is missing."""
    if labels == {"condition": "masked", "arm": "a2c"} and seed == 3:
        return None
    name = sum(str(label).encode()[0] for label in labels.values())
    draw = np.random.default_rng([seed, name])
    onset = draw.uniform(0.2, 1.6) * rows[-1]
    return {"rate_score": np.where(rows < onset, 0.1, 0.85) + draw.normal(0, 0.1, len(rows))}


def budget_of(assay: Assay, seeds: int = 7, iterations: int = 1200) -> Budget:
    return replace(assay.budget("paper"), seeds=seeds, iterations=iterations)


def test_exposures_are_those_of_plain_loops() -> None:
    frame = lived(EXPOSURE, budget_of(EXPOSURE), noisy)
    results = EXPOSURE.analyse(frame)
    rows = frame.iteration.tolist()
    tail = [i for i, row in enumerate(rows) if row >= 1020]
    assert len(tail) == 5  # one more than 15 % of 30 rows
    for i, condition in enumerate(("episodic", "masked", "natural")):
        for j, arm in enumerate(("rule", "a2c", "ppo", "dqn")):
            logs = {
                seed: frame.columns["rate_score"][i, j, seed].tolist()
                for seed in range(7)
                if frame.completed[i, j, seed]
            }
            scores = {seed: sum(log[k] for k in tail) / len(tail) for seed, log in logs.items()}
            times = {
                seed: 58 * rows[first]
                for seed, log in logs.items()
                if (first := next((k for k, v in enumerate(log) if v >= 0.8), None)) is not None
            }
            name = f"{condition}/{arm}"
            check(results.estimates[f"score/{name}"], scores)
            check_times(results.estimates[f"steps/{name}"], list(times.values()))
            share = results.estimates[f"fraction/{name}"]
            assert share.value == pytest.approx(len(times) / len(logs))
            assert (share.n, share.method) == (len(logs), "wilson")
            assert results.estimates[f"steps/{name}"].n == len(logs)
    assert "1 of 84 lifetimes are missing" in results.notes[0]


def check(ours: Estimate, values: dict[int, float]) -> None:
    """Compare with the trimmed mean and bootstrap of ``values`` by seed."""
    assert ours.value == pytest.approx(trim(values.values()))
    draws = [[values[i] for i in block if i in values] for block in drawn_seeds(7, 1000)]
    assert (ours.low, ours.high) == pytest.approx(bounds([trim(draw) for draw in draws if draw]))
    assert ours.method == "bootstrap"


def check_times(ours: Estimate, times: list[float]) -> None:
    """Compare with the trimmed mean of ``times``, and with a bootstrap of them by themselves."""
    assert ours.value == pytest.approx(trim(times))
    if len(times) < 3:
        assert (ours.low, ours.high, ours.method) == (min(times), max(times), "range")
        return
    draws = [trim([times[i] for i in block]) for block in drawn_seeds(len(times), 1000)]
    assert (ours.low, ours.high) == pytest.approx(bounds(draws))


def test_a_stream_is_read_by_15_percent_of_its_rows_and_by_whether_it_ever_got_there() -> None:
    frame = lived(STREAM, budget_of(STREAM, iterations=6000), noisy)
    results = STREAM.analyse(frame)
    for i, arm in enumerate(("rule", "a2c", "dqn")):
        logs = frame.columns["rate_score"][i].tolist()
        check(results.estimates[f"score/{arm}"], {s: sum(x[-22:]) / 22 for s, x in enumerate(logs)})
        reached = sum(max(log) >= 0.8 for log in logs)
        assert results.estimates[f"ever/{arm}"].value == pytest.approx(reached / 7)


def test_learning_curves_have_a_band_for_every_log_row() -> None:
    frame = lived(EXPOSURE, budget_of(EXPOSURE), noisy)
    series = EXPOSURE.analyse(frame).series
    assert series["steps"].tolist() == [58.0 * row for row in frame.iteration]
    band = series["trajectory/natural/dqn"]
    values = frame.columns["rate_score"][2, 3, :, 11]
    every = [trim([values[i] for i in block]) for block in drawn_seeds(7, 1000)]
    assert band.shape == (3, 30)
    assert band[:, 11] == pytest.approx([trim(values), *bounds(every)])


def test_nobody_at_the_threshold_is_a_dash_and_not_an_error() -> None:
    frame = lived(SYNTHETIC, budget_of(SYNTHETIC), lambda *_: {"rate_score": 0.5})
    results = SYNTHETIC.analyse(frame)
    assert results.estimates["steps/synth7/rule"].missing
    assert results.estimates["fraction/synth7/rule"].value == 0.0
    assert results.estimates["fraction/synth7/rule"].high > 0.0


@pytest.mark.parametrize("name", ["exposure", "synthetic", "E-A3c", "masking"])
def test_records_in_a_store_become_results(name: str, tmp_path: Path) -> None:
    assay, store = ASSAYS[name], Store(tmp_path)
    budget = replace(assay.budget("smoke"), seeds=3)
    fill(store, runs_of(assay, budget))
    results = Plan.of(assay, budget, store).analyse(store)
    assert results.notes == ()
    assert {e.n for e in results.estimates.values() if not e.missing} == {3}
    for table in results.tables:
        assert table.label in printed_tables.tables()
        assert table.rows


def test_a_folder_has_table_and_figure(tmp_path: Path) -> None:
    store, budget = Store(tmp_path / "store"), replace(SYNTHETIC.budget("smoke"), seeds=2)
    fill(store, runs_of(SYNTHETIC, budget))
    plan = Plan.of(SYNTHETIC, budget, store)
    paths = write(plan, plan.analyse(store), store, tmp_path / "out")
    names = {path.name for path in paths}
    assert {"README.md", "synthetic-terminals.png"} <= names
    assert any(name.endswith("app-streams-synthetic.csv") for name in names)
