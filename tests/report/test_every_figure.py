"""Every figure of every assay from made-up lifetimes of 1, 2 and 6 seeds: readable and honest."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from matplotlib.figure import Figure

from assays.lives import Labels, lived
from report.figure_checks import (
    bands,
    capped_bars,
    dotted_bars,
    draw_checked,
    meanings,
    published_marks,
    said,
    single_seeds,
)
from rulescope.assays import ASSAYS
from rulescope.assays.figure_data import cell, is_range
from rulescope.assays.figures import FIGURES, SCHEMATICS
from rulescope.assays.frame import Floats
from rulescope.assays.panels import ALONE, FRAMED, PRINTED
from rulescope.assays.results import Results
from rulescope.run_spec import RunSpec

SEEDS = (1, 2, 6)
DRAWN = sorted(set(FIGURES) - set(SCHEMATICS))
FED_BY = {
    label: [name for name, assay in ASSAYS.items() if label in assay.figures] or ["E1"]
    for label in DRAWN
}
RATES = {"gymnax-breakout": 0.05, "gymnax-freeway": 0.01}


def draw_numbers(seed: int, labels: Labels) -> np.random.Generator:
    """Return numbers that are those of a seed and a cell."""
    return np.random.default_rng([seed, zlib.crc32(repr(sorted(labels.items())).encode())])


def log(labels: Labels, seed: int, rows: Floats) -> dict[str, Floats]:
    """Return every column that any assay reads; one lifetime in six does not learn."""
    draw = draw_numbers(seed, labels)
    best = 0.0 if seed == 4 else draw.uniform(0.85, 0.99)
    score = best * (1 - np.exp(-6 * rows / rows[-1])) + draw.normal(0, 0.01, len(rows))
    task = str(labels.get("task", ""))
    depth = int(task.rpartition("-")[2]) if task.startswith("deep-sea") else 8
    episodes = 58.0 * rows // depth
    first = draw.integers(1, 200)
    goals = np.maximum(episodes - first + 1, 0)
    return {
        "score": score,
        "rate_score": score,
        "mean_return": score.clip(min=0),
        "reward_rate": RATES.get(task, 0.03) * score.clip(min=0),
        "effective_bins": 2 + score,
        "floor_margin": np.full_like(rows, 1e-5),
        "stored": 58.0 * rows,
        "episodes": episodes,
        "goals": goals,
        "success": (goals > 0).astype(float) * 0.9,
        "first_goal_episode": np.where(goals > 0, first, np.nan),
        "first_goal_interaction": np.where(goals > 0, first * depth, np.nan),
    }


def state(labels: Labels, run: RunSpec) -> Mapping[str, Floats]:
    """Return the terminal arrays that any assay reads."""
    draw = draw_numbers(run.seed, labels)
    found = {f"recurrent/{name}": draw.normal(np.log10(run.scale), 1, 16) for name in "hc"}
    if run.evaluation is not None:
        rate = RATES.get(str(labels["task"]), 0.03) * run.evaluation.steps
        for policy, level in (("terminal", 1.0), ("initial", 0.3), ("random", 0.2)):
            found[f"evaluation.{policy}/reward"] = rate * level * draw.uniform(0.9, 1.1, 32)
    return found


@cache
def results_of(name: str, seeds: int) -> Results:
    """Return the results of all cells of an assay; as long as published, where that is short."""
    assay = ASSAYS[name]
    budget = replace(assay.budget("paper"), seeds=seeds)
    if budget.episodes is None:
        budget = replace(budget, log_every=max(budget.log_every, budget.iterations // 50))
    return assay.analyse(lived(assay, budget, log, state))


@cache
def drawn(label: str, seeds: int) -> Figure:
    figure = draw_checked(FIGURES[label], {name: results_of(name, seeds) for name in FED_BY[label]})
    assert figure is not None
    return figure


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("label", DRAWN)
def test_no_axes_are_empty_no_words_clash_and_all_is_named(label: str, seeds: int) -> None:
    assert f"n = {seeds}" in said(drawn(label, seeds))
    assert "not run" not in said(drawn(label, seeds)).replace("grey: not planned or not run", "")


@pytest.mark.parametrize("label", DRAWN)
def test_six_seeds_have_intervals_and_are_drawn_one_by_one(label: str) -> None:
    figure = drawn(label, 6)
    assert single_seeds(figure) >= 6
    assert dotted_bars(figure) == []
    assert capped_bars(figure) or bands(figure) or "[" in said(figure)


@pytest.mark.parametrize("label", DRAWN)
def test_two_seeds_have_dotted_ranges_but_no_intervals_besides_those_of_shares(label: str) -> None:
    figure = drawn(label, 2)
    assert single_seeds(figure) >= 2
    shares = any(
        row.estimate.method == "wilson"
        for name in FED_BY[label]
        for row in results_of(name, 2).estimates.rows
    )
    assert shares or (capped_bars(figure) == [] and bands(figure) == [])
    heat_map = label == "v5:fig:recovery-overview"  # cells have the range in words
    assert heat_map or label == "change-streams" or dotted_bars(figure) or shares


@pytest.mark.parametrize("label", sorted({*DRAWN} - {"deepsea-discovery"}))
def test_one_seed_has_no_interval_at_all(label: str) -> None:
    """But random play of DeepSea, which costs nothing, is always run more often."""
    figure = drawn(label, 1)
    assert capped_bars(figure) == []
    assert dotted_bars(figure) == []
    assert bands(figure) == []
    assert single_seeds(figure) == 0 or label == "v5:fig:recovery-overview"


def test_published_values_stand_beside_ours_where_they_can_be_compared() -> None:
    for label in ("fig:scale", "v5:fig:recovery-catch", "interface-state", "open-carry"):
        figure = drawn(label, 6)
        assert published_marks(figure), label
        assert PRINTED in said(figure)
    e1 = results_of("E1", 6)
    other = {"E1": replace(e1, rule="random:1")}
    beside = draw_checked(FIGURES["fig:scale"], other)
    assert beside is not None
    assert published_marks(beside) == []


def test_a_bimodal_cell_is_framed_and_named() -> None:
    e1 = results_of("E1", 6)
    row = e1.estimates.find("score", task="catch", arm="live", scale=1.0)
    assert row is not None
    assert row.seeds is not None
    split = np.array([0.0, 0.01, 0.02, 0.97, 0.98, 0.99])
    e1.estimates.add("score", row.estimate, row.labels, seeds=split)
    try:
        figure = draw_checked(FIGURES["scale-audit"], {"E1": e1})
    finally:
        e1.estimates.add("score", row.estimate, row.labels, seeds=row.seeds)
    assert figure is not None
    assert f"{FRAMED}: E1 score/catch/live/1 (3 of 6 learned)." in said(figure)


def test_a_single_lifetime_is_explained_and_a_range_is_none_of_one() -> None:
    from matplotlib.lines import Line2D

    assert ALONE in set(meanings(drawn("fig:scale", 1), Line2D))
    one = cell(results_of("E1", 1), "score", task="catch", arm="live", scale=1.0)
    two = cell(results_of("E1", 2), "score", task="catch", arm="live", scale=1.0)
    assert one is not None
    assert two is not None
    assert (is_range(one), is_range(two)) == (False, True)
