"""Normalised inheritance: who inherits what of whom, and what scaling removes, within seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import msgspec
import numpy as np
import pytest

from report.figure_checks import clashes, said
from rulescope.assays import ASSAYS, Selection, narrowed
from rulescope.assays.figures import FIGURES
from rulescope.assays.frame import Floats
from rulescope.assays.inheritance.normalised_inheritance import (
    ARMS,
    RULE,
    SCALINGS,
    UNSCALED,
    analyse,
    grid,
)
from rulescope.assays.results import Results
from rulescope.assays.subject import find_subject, make_subject
from rulescope.core.errors import SpecError
from rulescope.learners.baseline_config import A2C
from rulescope.learners.disco_config import Disco
from rulescope.render.style import NothingToDrawError
from rulescope.run_spec import RunSpec, Transplant, checked

from .frames import bounds, drawn_seeds, trim
from .lives import Labels, lived

ASSAY = ASSAYS["normalised-inheritance"]
PAPER = ASSAY.budget("paper")
WHOLE = replace(PAPER, arms=tuple(ARMS))


def cells(budget: object = WHOLE) -> dict[tuple[str, str], tuple[RunSpec, ...]]:
    assert isinstance(budget, type(PAPER))
    return {
        (str(cell.labels["condition"]), str(cell.labels["arm"])): cell.runs for cell in grid(budget)
    }


def test_the_published_grid_has_the_arms_of_both_learners_and_controls_are_asked_for() -> None:
    assert len(PAPER.arms) == 5 + 9
    assert len(cells(PAPER)) == 3 * 10 + 2 * 4
    assert set(ARMS) - set(PAPER.arms) == {
        f"statistics-{source}-{mode}"
        for source in ("match", "cross")
        for mode in ("natural", "clamp")
    }
    assert (PAPER.iterations, PAPER.seeds, PAPER.scales) == (2000, 12, (1e-3,))


def test_lifetimes_of_the_rule_without_scaling_are_those_of_e2() -> None:
    e2 = ASSAYS["E2"]
    inherited = {
        str(cell.labels["arm"]): [run.id for run in cell.runs]
        for cell in e2.grid(e2.budget("paper"))
        if cell.labels["scale"] == 1e-3
    }
    for arm in RULE:
        assert [run.id for run in cells()[UNSCALED, arm]] == inherited[arm]


def test_recipients_and_their_donors_are_scaled_alike() -> None:
    for (condition, name), runs in cells().items():
        arm = ARMS[name]
        for run in runs[:2]:
            checked(run)
            assert isinstance(run.learner, A2C if arm.learner == "a2c" else Disco)
            assert run.learner.scaling == SCALINGS[condition]
            assert (run.scale, run.world_seed) == (1e-3, None)
            for donor in run.donors:
                assert donor.learner == run.learner
                assert (donor.iterations, donor.seed) == (400, run.seed)
                assert donor.scale == (1e-3 if arm.source == "match" else 1e3)
                assert donor.world_seed == run.seed + 1000


def test_what_is_inherited_is_the_history_or_the_statistics_too() -> None:
    for (_, name), runs in cells().items():
        arm, taken = ARMS[name], runs[0].interventions
        history = "moments" if arm.learner == "a2c" else "recurrent"
        expected = [history, "scaling"] if arm.statistics else [history]
        assert [item.carrier for item in taken] == (expected if arm.source else [])
        for item in taken:
            assert isinstance(item, Transplant)
            assert item.mode == arm.mode
            assert item.donor == runs[0].donors[0]


def test_arms_with_inherited_statistics_share_their_donors_with_those_without() -> None:
    made = cells()
    for prefix in ("", "a2c-"):
        for condition in ("fixed-floor", "reward-floor"):
            plain = made[condition, f"{prefix}cross-clamp"][3]
            more = made[condition, f"{prefix}statistics-cross-clamp"][3]
            assert plain.donors == more.donors


def test_without_scaling_there_are_no_statistics_to_inherit() -> None:
    assert not any(condition == UNSCALED and ARMS[arm].statistics for condition, arm in cells())
    alone = narrowed(
        ASSAY, PAPER, Selection(arms=["a2c-statistics-match-clamp"], conditions=[UNSCALED])
    )
    with pytest.raises(SpecError, match=r"--conditions: 'unscaled' has no statistics"):
        grid(alone)


def test_a_rule_without_that_option_is_refused_unless_only_a2c_is_asked_for() -> None:
    ppo = replace(PAPER, subject=make_subject("ppo"), agent="")
    with pytest.raises(SpecError, match="--rule: the learner of 'ppo' has no return-based scaling"):
        grid(ppo)
    assert grid(replace(ppo, arms=("a2c-cross-clamp",)))


def test_a_scale_of_one_has_no_wrong_donor() -> None:
    with pytest.raises(SpecError, match="choose a recipient scale other than 1"):
        grid(replace(PAPER, scales=(1.0,)))


def test_the_history_of_a_subject_can_be_another_carrier() -> None:
    subject, _ = find_subject("disco103@averages")
    runs = cells(replace(PAPER, subject=subject))["fixed-floor", "cross-natural"]
    assert [item.carrier for item in runs[0].interventions] == ["averages"]
    checked(runs[0])


@cache
def scores() -> Mapping[tuple[str, str], Floats]:
    rng = np.random.default_rng(5)
    return {(c, arm): rng.uniform(size=12) for c in SCALINGS for arm in ARMS}


def log(labels: Labels, seed: int, rows: Floats) -> Mapping[str, Floats]:
    value = scores()[str(labels["condition"]), str(labels["arm"])][seed]
    return {"score": np.where(rows >= 1600, value, -3.0)}


@cache
def analysed() -> Results:
    return analyse(lived(ASSAY, WHOLE, log))


def effect(condition: str, prefix: str, readout: str) -> list[float]:
    at = scores()
    if readout == "difference":
        pairs = zip(
            effect(condition, prefix, "clamp"), effect(condition, prefix, "natural"), strict=True
        )
        return [clamped - natural for clamped, natural in pairs]
    match = at[condition, f"{prefix}match-{readout}"]
    cross = at[condition, f"{prefix}cross-{readout}"]
    return [float(match[seed] - cross[seed]) for seed in range(12)]


@pytest.mark.parametrize("readout", ["natural", "clamp", "difference"])
@pytest.mark.parametrize("condition", ["fixed-floor", "reward-floor"])
@pytest.mark.parametrize(
    ("learner", "inherited", "prefix"),
    [
        ("rule", "history", ""),
        ("a2c", "history", "a2c-"),
        ("rule", "statistics", "statistics-"),
        ("a2c", "statistics", "a2c-statistics-"),
    ],
)
def test_the_interaction_is_taken_within_seeds(
    learner: str, inherited: str, prefix: str, condition: str, readout: str
) -> None:
    before = effect(UNSCALED, prefix.replace("statistics-", ""), readout)
    after = effect(condition, prefix, readout)
    removed = [a - b for a, b in zip(before, after, strict=True)]
    name = f"0.001/{learner}/{inherited}/{readout}/{condition}"
    found = analysed().estimates
    assert found[f"effect/{name}"].value == pytest.approx(trim(after))
    one = found[f"interaction/{name}"]
    assert one.value == pytest.approx(trim(removed))
    low, high = bounds([trim([removed[k] for k in block]) for block in drawn_seeds(12)])
    assert one.low <= low + 1e-12
    assert one.high >= high - 1e-12
    assert (one.n, one.family) == (12, 1)


def test_the_clamped_minus_natural_effect_without_scaling_is_the_interaction_of_e2() -> None:
    budget = narrowed(ASSAY, PAPER, Selection(arms=tuple(RULE), conditions=[UNSCALED]))
    ours = analyse(lived(ASSAY, budget, log)).estimates
    e2 = ASSAYS["E2"]
    narrow = narrowed(e2, e2.budget("paper"), Selection(arms=tuple(RULE), scales=[1e-3]))

    def plain(labels: Labels, seed: int, rows: Floats) -> Mapping[str, Floats]:
        return log({**labels, "condition": UNSCALED}, seed, rows)

    theirs = e2.analyse(lived(e2, narrow, plain)).estimates["interaction/0.001"]
    name = f"effect/0.001/rule/history/difference/{UNSCALED}"
    assert ours[name].value == pytest.approx(theirs.value)
    assert not [key for key in ours if key.startswith("interaction/")]


def test_a_missing_arm_leaves_its_contrasts_planned_and_unknown() -> None:
    few = narrowed(ASSAY, PAPER, Selection(arms=["match-clamp", "cross-clamp", "cross-natural"]))
    results = analyse(lived(ASSAY, few, log))
    name = "0.001/rule/history/{}/reward-floor"
    assert np.isfinite(results.estimates["interaction/" + name.format("clamp")].value)
    assert np.isnan(results.estimates["interaction/" + name.format("natural")].value)
    _, effects = results.tables
    assert {row[3] for row in effects.rows} == {"clamped"}


def test_tables_name_both_learners_and_what_they_inherit() -> None:
    table, effects = analysed().tables
    assert len(table.rows) == len(ARMS)
    assert {(row[1], row[2]) for row in effects.rows} == {
        (learner, inherited)
        for learner in ("Disco103", "A2C")
        for inherited in ("history", "history and statistics")
    }
    assert len(effects.rows) == 2 * (3 * 3 + 3 * 2)
    assert "donors run for 400 iterations" in effects.note


@pytest.mark.parametrize("seeds", [1, 2, 12])
@pytest.mark.parametrize("arms", [tuple(ARMS), tuple(RULE)])
def test_the_figure_can_be_read(arms: tuple[str, ...], seeds: int) -> None:
    few = narrowed(ASSAY, PAPER, Selection(arms=arms, seeds=seeds))
    results = analyse(lived(ASSAY, few, log))
    figure = FIGURES["normalised-inheritance"]({"normalised-inheritance": results})
    assert clashes(figure) == []
    assert f"n = {seeds} seed" in said(figure)


@pytest.mark.parametrize("arm", ["live", "a2c-match-clamp"])
def test_there_is_no_figure_without_donors_of_both_scales(arm: str) -> None:
    few = narrowed(ASSAY, PAPER, Selection(arms=[arm]))
    known = {"normalised-inheritance": analyse(lived(ASSAY, few, log))}
    assert not FIGURES["normalised-inheritance"].has_data(known)
    with pytest.raises(NothingToDrawError):
        FIGURES["normalised-inheritance"](known)


def test_presets_run_some_of_every_part() -> None:
    for preset in ASSAY.presets:
        budget = ASSAY.budget(preset)
        assert {ARMS[arm].learner for arm in budget.arms} == {"rule", "a2c"}
        assert UNSCALED in budget.conditions
        for cell in grid(budget):
            for run in cell.runs:
                assert msgspec.structs.replace(run, seed=0).iterations == budget.iterations
