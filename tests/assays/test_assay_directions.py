"""Directions: prefixes and branches of seeds of their own, contrasts within seeds, one count."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest

from learners.small import small_spec
from report.figure_checks import clashes, draw_checked, said
from rulescope.assays import ASSAYS, Selection, narrowed, published
from rulescope.assays.comparison import compare
from rulescope.assays.figures import FIGURES
from rulescope.assays.frame import Floats
from rulescope.assays.inheritance.directions import (
    ARMS,
    CONTRASTS,
    SCALES,
    TRAINING_SCALES,
    analyse,
    grid,
    prefixes,
)
from rulescope.assays.results import Results
from rulescope.records import Store
from rulescope.run_spec import Ablate
from rulescope.runner import Paused, find_or_make

from .frames import bounds, drawn_seeds, trim
from .lives import Labels, lived

ASSAY = ASSAYS["directions"]
PAPER = ASSAY.budget("paper")


def test_there_are_48_prefixes_and_96_branches_with_eight_contrasts() -> None:
    made = [run for cell in grid(PAPER) for run in cell.runs]
    assert len({run.id for run in made}) == len(made) == 96
    donors = {donor.id for run in made for donor in run.donors}
    assert donors == {prefix.id for prefix in prefixes(PAPER)}
    assert len(donors) == 48
    assert len(SCALES) * len(CONTRASTS) == 8


def test_directions_come_from_other_seeds_and_the_age_at_which_they_are_taken_out() -> None:
    tested = {run.seed for cell in grid(PAPER) for run in cell.runs}
    for donor in prefixes(PAPER):
        assert donor.seed not in tested
        assert donor.world_seed is None  # so that its world is its own, too
        assert donor.iterations * donor.lanes * donor.steps == 23_200
    assert {donor.scale for donor in prefixes(PAPER)} == set(TRAINING_SCALES)
    for cell in grid(PAPER):
        for run in cell.runs:
            for item in run.interventions:
                assert isinstance(item, Ablate)
                assert (item.at, item.components, item.mode) == (400, 2, "clamp")
                assert item.carrier == "recurrent"


def test_arms_differ_in_what_is_taken_out_only() -> None:
    cells = {str(cell.labels["arm"]): cell.runs[0] for cell in grid(PAPER)}
    kinds = {
        arm: [item.which for item in run.interventions if isinstance(item, Ablate)]
        for arm, run in cells.items()
    }
    assert kinds == {
        "live": [],
        "without-principal": ["principal"],
        "without-random": ["random"],
        "only-principal": ["complement"],
    }
    bare = {msgspec.structs.replace(run, interventions=()) for run in cells.values()}
    assert bare == {cells["live"]}


def test_live_branches_are_lifetimes_of_the_scale_assay() -> None:
    e1 = {run.id for cell in ASSAYS["E1"].grid(ASSAYS["E1"].budget("paper")) for run in cell.runs}
    live = [run.id for cell in grid(PAPER) if cell.labels["arm"] == "live" for run in cell.runs]
    assert set(live) <= e1


def test_identities_do_not_depend_on_what_is_run_beside() -> None:
    whole = {run.id for cell in grid(PAPER) for run in cell.runs}
    few = narrowed(ASSAY, PAPER, Selection(seeds=2, arms=["only-principal"], scales=[1e3]))
    assert {run.id for cell in grid(few) for run in cell.runs} <= whole


@cache
def scores() -> Floats:
    return np.random.default_rng(11).uniform(size=(2, 4, 12))


def log(labels: Labels, seed: int, rows: Floats) -> Mapping[str, Floats]:
    i, j = SCALES.index(float(labels["scale"])), list(ARMS).index(str(labels["arm"]))
    tail = rows >= 1600
    return {"score": np.where(tail, scores()[i, j, seed], -3.0)}


@cache
def analysed() -> Results:
    return analyse(lived(ASSAY, PAPER, log))


def test_contrasts_are_taken_within_seeds() -> None:
    for i, scale in enumerate(("0.001", "1000")):
        for name, (one, other) in CONTRASTS.items():
            pairs = zip(
                scores()[i, list(ARMS).index(one)],
                scores()[i, list(ARMS).index(other)],
                strict=True,
            )
            each = [a - b for a, b in pairs]
            every = [trim([each[k] for k in block]) for block in drawn_seeds(12)]
            ours = analysed().estimates[f"contrast/{scale}/{name}"]
            assert ours.value == pytest.approx(trim(each))
            assert (ours.low, ours.high) == pytest.approx(bounds(every))
            assert (ours.n, ours.family) == (12, 1)
    value = analysed().estimates["score/1000/live"].value
    assert value == pytest.approx(trim(scores()[1, 0]))


def test_the_count_is_of_intervals_with_zero_in_them() -> None:
    results = analysed()
    spans = [
        one.low <= 0 <= one.high
        for key, one in results.estimates.items()
        if key.startswith("contrast/")
    ]
    assert len(spans) == 8
    assert results.estimates["spanning"].value == sum(spans)
    (compared,) = compare(results)
    assert compared.published == published.estimates("directions")["spanning"]
    assert (compared.same_budget, compared.same_grid) == (True, True)


def test_of_a_part_of_the_grid_the_count_is_another() -> None:
    few = narrowed(ASSAY, PAPER, Selection(arms=["live", "without-random"], scales=[1e-3]))
    results = analyse(lived(ASSAY, few, log))
    assert results.other_grid == {"spanning"}
    assert results.estimates["spanning"].value in (0, 1)
    assert math.isnan(results.estimates["contrast/0.001/necessary"].value)
    scores_table, contrasts = results.tables
    assert [row[1] for row in scores_table.rows] == ["Live", "Without random directions"]
    assert [row[1] for row in contrasts.rows] == ["control"]
    pair = analyse(lived(ASSAY, narrowed(ASSAY, few, Selection(seeds=2)), log))
    assert math.isnan(pair.estimates["spanning"].value)  # a range is no interval


def test_tables_tell_where_the_directions_are_from() -> None:
    for table in analysed().tables:
        assert "the first 2 principal ones of 48 prefixes of 400 iterations" in table.note
        assert len(table.rows) == 8


@pytest.mark.parametrize("arms", [tuple(ARMS), ("live",), ("live", "only-principal")])
@pytest.mark.parametrize("seeds", [1, 2, 12])
def test_the_figure_can_be_read(arms: tuple[str, ...], seeds: int) -> None:
    few = narrowed(ASSAY, PAPER, Selection(arms=arms, seeds=seeds))
    figure = FIGURES["directions"]({"directions": analyse(lived(ASSAY, few, log))})
    assert clashes(figure) == []
    assert f"n = {seeds} seed" in said(figure)


def test_without_contrasts_there_is_no_figure() -> None:
    assert draw_checked(FIGURES["directions"], {}) is None


def test_a_branch_parts_from_the_live_lifetime_when_directions_are_taken_out(
    tmp_path: Path,
) -> None:
    """Really lived, by a small learner, stopped in the middle and continued."""
    donors = tuple(small_spec(seed=2000 + i, iterations=4, scale=10.0**i) for i in range(3))
    item = Ablate(
        carrier="recurrent", donors=donors, components=1, which="random", at=8, mode="clamp"
    )
    spec, store = small_spec(interventions=(item,)), Store(tmp_path / "one")
    with pytest.raises(Paused):
        find_or_make(spec, store, stop_after=14)
    branch = find_or_make(spec, store)
    assert set(branch.manifest.parents) == {donor.id for donor in donors}
    assert all(donor.id in store for donor in donors)
    again = find_or_make(spec, Store(tmp_path / "two"))
    assert branch.manifest.science_hash == again.manifest.science_hash
    live = find_or_make(small_spec(), store)
    before = live.log["iteration"] <= 8
    for name, values in live.log.items():
        np.testing.assert_array_equal(branch.log[name][before], values[before])
    assert any((branch.state[name] != live.state[name]).any() for name in live.state)
