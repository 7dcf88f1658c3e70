"""Grids: published counts, identities that narrowing leaves alone, and what is refused."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import replace

import msgspec
import pytest

from rulescope.assays import ASSAYS, PRESETS, Budget, Selection, find, narrowed
from rulescope.assays.assay import Assay
from rulescope.assays.comparison_families import (
    INTERFACE_STATE,
    MINATAR_CONTEXT,
    OPEN_CARRY,
    PRIMARY,
)
from rulescope.assays.inheritance.inheritance import donor, panel, reciprocal
from rulescope.assays.subject import make_subject
from rulescope.core.errors import SpecError
from rulescope.learners.disco_config import AGENTS, Disco
from rulescope.run_spec import (
    Freeze,
    Hold,
    Permute,
    Pin,
    Placebo,
    RandomState,
    RunSpec,
    Transplant,
    checked,
)

CORES = 2
SECONDS = 0.1
"""Of one iteration on one core."""


def runs_of(assay: Assay, budget: Budget) -> list[RunSpec]:
    return [run for cell in assay.grid(budget) for run in cell.runs]


def donors_of(runs: list[RunSpec]) -> set[str]:
    return {donor.id for run in runs for donor in run.donors}


def everything(assay: Assay) -> Budget:
    return replace(assay.budget("paper"), arms=assay.arms)


@pytest.mark.parametrize(
    ("name", "runs", "interactions", "donors"),
    [
        ("E1", 1008, 116_928_000, 0),
        ("E2", 192, 22_272_000, 24),
        ("E-IF", 36, 4_176_000, 0),
        ("P1", 216, 25_056_000, 0),
        ("E3", 486, 84_564_000, 0),
        ("F2", 84, 84 * 1_160_000, 0),
        ("E-LR", 144, 144 * 1_160_000, 0),
        ("E-POP", 84, 84 * 116_000, 0),  # twelve to watch the floor at every update
        ("E-A4x", 108, 108 * 174_000, 0),
        ("E-A4m", 144, 144 * 464_000, 0),
        ("E-A3c", 36, 36 * 348_000, 0),
        ("E-A5", 375, 15 * 5 * 58 * (1655 + 2069 + 2483 + 2897 + 3310), 0),
        ("exposure", 216, 216 * 348_000, 0),
        ("synthetic", 108, 108 * 348_000, 0),
        ("masking", 144, 144 * 464_000, 0),
        ("M1", 320, 320 * 464_000, 0),
        ("F1", 90, 15 * 3 * 58 * (2483 + 2897), 0),
        ("discovery", 435, 145 * 58 * (2483 + 2897 + 3310), 0),
    ],
)
def test_the_paper_preset_has_the_published_size(
    name: str, runs: int, interactions: int, donors: int
) -> None:
    made = runs_of(ASSAYS[name], ASSAYS[name].budget("paper"))
    assert len(made) == runs
    assert sum(run.iterations * run.lanes * run.steps for run in made) == interactions
    assert len(donors_of(made)) == donors


def test_donors_live_for_23200_interactions_in_worlds_of_their_own() -> None:
    assay = ASSAYS["E2"]
    for made in runs_of(assay, assay.budget("paper")):
        for giver in made.donors:
            assert giver.iterations * giver.lanes * giver.steps == 23_200
            assert giver.world_seed == giver.seed + 1000
            assert giver.learner == made.learner
            assert "recurrent" in giver.keep
            assert giver.donors == ()


def test_replications_that_exist_already_are_part_of_the_paper_grid() -> None:
    assay = ASSAYS["E1"]
    chosen = narrowed(assay, assay.budget("paper"), Selection(agent="historical"))
    ids = {made.id for made in runs_of(assay, chosen)}
    assert RunSpec(scale=0.1, seed=0).id in ids
    assert RunSpec(scale=1e3, seed=11, interventions=(Pin(carrier="recurrent"),)).id in ids


def test_assays_share_the_lifetimes_they_have_in_common() -> None:
    made = {
        name: {run.id for run in runs_of(assay, assay.budget("paper"))}
        for name, assay in ASSAYS.items()
    }
    assert len(made["E1"] & made["P1"]) == 2 * 3 * 12
    assert len(made["E1"] & made["E2"]) == 2 * 12
    assert made["E-IF"] <= made["P1"]


@pytest.mark.parametrize("assay", ASSAYS.values(), ids=ASSAYS)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_run_of_every_preset_is_valid_and_its_own(assay: Assay, preset: str) -> None:
    made = runs_of(assay, assay.budget(preset))
    assert len({run.id for run in made}) == len(made)
    for item in {*made, *(giver for run in made for giver in run.donors)}:
        assert checked(item) == item


@pytest.mark.parametrize("assay", ASSAYS.values(), ids=ASSAYS)
def test_controls_are_runs_of_their_own_too(assay: Assay) -> None:
    made = runs_of(assay, everything(assay))
    assert len({run.id for run in made}) == len(made)


@pytest.mark.parametrize(("preset", "hours"), [("smoke", 0.02), ("quick", 0.2), ("standard", 6.0)])
@pytest.mark.parametrize("assay", ASSAYS.values(), ids=ASSAYS)
def test_presets_keep_to_their_time_on_two_cores(assay: Assay, preset: str, hours: float) -> None:
    made = runs_of(assay, assay.budget(preset))
    whole = {*made, *(giver for run in made for giver in run.donors)}
    assert sum(run.iterations for run in whole) * SECONDS / CORES < hours * 3600


@pytest.mark.parametrize("assay", ASSAYS.values(), ids=ASSAYS)
def test_identities_do_not_depend_on_how_a_grid_was_narrowed(assay: Assay) -> None:
    budget = everything(assay)
    whole = {run.id for run in runs_of(assay, budget)}
    for arm in assay.arms:
        small = narrowed(assay, budget, Selection(seeds=2, arms=[arm], scales=budget.scales[:1]))
        try:
            made = runs_of(assay, small)
        except SpecError:  # a cell of one arm may be no cell, such as a gap between two
            continue
        assert made
        assert {run.id for run in made} <= whole
        assert max(run.seed for run in made) <= 1 or assay.id in ("discovery", "directions")


@pytest.mark.parametrize("assay", ASSAYS.values(), ids=ASSAYS)
def test_cells_have_places_of_their_own_and_seeds_from_zero(assay: Assay) -> None:
    budget = assay.budget("paper")
    cells = assay.grid(budget)
    places = [tuple(cell.labels.values()) for cell in cells]
    assert len(set(places)) == len(places)
    assert len({tuple(cell.labels) for cell in cells}) == 1
    for cell in cells:
        assert [run.seed for run in cell.runs] == list(range(len(cell.runs)))
        scales = {run.scale for run in cell.runs}
        assert len(scales) == 1
        assert scales == {cell.labels.get("scale", next(iter(scales)))}
    assert max(len(cell.runs) for cell in cells) >= budget.seeds


@pytest.mark.parametrize("name", ["E1", "E2", "E-IF", "P1", "E-A4x", "exposure", "E-A5", "M1"])
def test_cells_are_a_full_grid_in_the_order_of_their_axes(name: str) -> None:
    cells = ASSAYS[name].grid(ASSAYS[name].budget("paper"))
    places = [tuple(cell.labels.values()) for cell in cells]
    axes = [list(dict.fromkeys(values)) for values in zip(*places, strict=True)]
    assert places == list(itertools.product(*axes))


def test_arms_of_the_scale_assay_differ_in_their_interventions_only() -> None:
    assay = ASSAYS["E1"]
    budget = narrowed(
        assay,
        everything(assay),
        Selection(seeds=1, scales=[0.1], tasks=["catch-long"], iterations=200),
    )
    made = {str(cell.labels["arm"]): cell.runs[0] for cell in assay.grid(budget)}
    pin, hold = Pin(carrier="recurrent"), Hold(carrier="averages")
    assert {arm: run.interventions for arm, run in made.items()} == {
        "live": (),
        "pin": (pin,),
        "hold": (hold,),
        "both": (pin, hold),
        "placebo": (Placebo(carrier="recurrent"),),
        "null": (),
    }
    assert made["null"].learner == Disco(rule="random:0", conventions=AGENTS["published"])
    assert len({run.environment for run in made.values()}) == 1


def test_arms_of_the_inheritance_assay() -> None:
    assay = ASSAYS["E2"]
    budget = narrowed(assay, everything(assay), Selection(seeds=1, scales=[0.01]))
    made = {str(cell.labels["arm"]): cell.runs[0] for cell in assay.grid(budget)}
    assert made["freeze"].interventions == (Freeze(carrier="recurrent", at=400),)
    assert made["permute-clamp"].interventions == (
        Permute(carrier="recurrent", at=400, mode="clamp"),
    )
    for arm, scale in (("match", 0.01), ("cross", 100.0)):
        for mode in ("clamp", "natural"):
            (item,) = made[f"{arm}-{mode}"].interventions
            assert isinstance(item, Transplant)
            assert (item.mode, item.donor.scale) == (mode, scale)
    (drawn,) = made["random-natural"].interventions
    assert isinstance(drawn, RandomState)
    assert [(giver.scale, giver.seed) for giver in drawn.donors] == [
        (scale, seed) for scale in (0.01, 100.0) for seed in range(4)
    ]


def test_the_panel_is_the_same_from_either_end_and_made_of_transplant_donors() -> None:
    budget = ASSAYS["E2"].budget("paper")
    assert panel(budget, 1e-3) == panel(budget, 1e3)
    assert donor(budget, 1e3, 2) in panel(budget, 1e-3)
    for scale in (1e-3, 1e-5, 0.3, 7.0, 49.0, 1e6):
        assert reciprocal(reciprocal(scale)) == scale


def test_a_recipient_scale_of_one_is_refused() -> None:
    assay = ASSAYS["E2"]
    with pytest.raises(SpecError, match="recipient scale other than 1"):
        assay.grid(narrowed(assay, assay.budget("quick"), Selection(scales=[1.0])))


def test_conventions_and_rule_reach_learners_and_donors() -> None:
    assay = ASSAYS["E2"]
    budget = narrowed(
        assay, assay.budget("smoke"), Selection(agent="reference", subject=make_subject("random:7"))
    )
    for made in runs_of(assay, budget):
        for item in (made, *made.donors):
            assert isinstance(item.learner, Disco)
            assert item.learner.rule == "random:7"
            assert item.learner.conventions.action_model == "independent"


@pytest.mark.parametrize("iterations", [20, 40, 60, 200])
def test_a_short_budget_can_be_run_too(iterations: int) -> None:
    assay = ASSAYS["E2"]
    budget = narrowed(assay, everything(assay), Selection(seeds=1, iterations=iterations))
    for made in runs_of(assay, budget):
        for item in (made, *made.donors):
            assert checked(item) == item


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Selection(arms=["pinned"]), "--arms: no 'pinned'; nearest: 'pin'"),
        (Selection(tasks=["catch-lnog"]), "nearest: 'catch-long'"),
        (Selection(agent="publish"), "--agent: no 'publish'; nearest: 'published'"),
        (Selection(seeds=0), "--seeds: 0"),
        (Selection(iterations=19), "--iterations: 19 is less than one log row"),
        (Selection(scales=[0.0]), "--scales: 0 is not between"),
        (Selection(scales=[float("nan")]), "--scales: nan is not between"),
        (Selection(episodes=100), "--episodes: lifetimes of E1 are counted in --iterations"),
        (Selection(conditions=["none"]), "--conditions: no 'none'"),
    ],
)
def test_narrowing_refuses_what_is_unknown(wrong: Selection, message: str) -> None:
    assay = ASSAYS["E1"]
    with pytest.raises(SpecError, match=message):
        narrowed(assay, assay.budget("quick"), wrong)


@pytest.mark.parametrize("name", ["E-LR", "E-POP"])
@pytest.mark.parametrize(
    "selection", [Selection(agent="reference"), Selection(subject=make_subject("random:0"))]
)
def test_rules_and_their_conventions_are_refused_where_no_learner_has_one(
    name: str, selection: Selection
) -> None:
    with pytest.raises(SpecError, match=r"has a rule|comes as several agents"):
        narrowed(ASSAYS[name], ASSAYS[name].budget("smoke"), selection)


@pytest.mark.parametrize("name", ["F1", "conventions"])
def test_legacy_arms_differ_in_the_retrace_index_alone(name: str) -> None:
    assay = ASSAYS[name]
    for bundle in ("published", "reference"):
        budget = narrowed(assay, assay.budget("smoke"), Selection(agent=bundle))
        made = {run.learner for run in runs_of(assay, budget) if isinstance(run.learner, Disco)}
        every = {learner.conventions for learner in made}
        expected = AGENTS[bundle]
        old = msgspec.structs.replace(expected, retrace="skip")
        assert every == {expected, old}


def test_narrowing_keeps_the_order_of_the_catalogue() -> None:
    assay = ASSAYS["E1"]
    budget = narrowed(
        assay, assay.budget("paper"), Selection(arms=["pin", "live"], scales=[1, 0.1, 1])
    )
    assert budget.arms == ("live", "pin")
    assert budget.scales == (0.1, 1.0)
    assert budget.seeds == 12


def test_assays_are_found_by_id_or_name_in_any_case() -> None:
    assert list(ASSAYS)[:3] == ["E1", "E2", "E3"]
    assert len(ASSAYS) == 26
    names = [name.lower() for assay in ASSAYS.values() for name in {assay.id, assay.name}]
    assert len(set(names)) == len(names)
    for assay in ASSAYS.values():
        for name in (assay.id, assay.name, assay.id.lower(), assay.name.upper()):
            assert find(name) is assay
    with pytest.raises(SpecError, match="no assay 'inheritence'; nearest: 'inheritance'"):
        find("inheritence")
    with pytest.raises(SpecError, match="--preset: no 'papre'; nearest: 'paper'"):
        ASSAYS["E1"].budget("papre")


def test_families_have_their_planned_sizes() -> None:
    assert PRIMARY.size == 11
    assert INTERFACE_STATE.size == 15
    assert OPEN_CARRY.size == 34
    assert MINATAR_CONTEXT.size == 30


def test_importing_the_assays_does_not_import_torch() -> None:
    code = "import sys, rulescope.assays.comparison; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_second_narrowing_keeps_the_rule_of_the_first() -> None:
    assay, sprout = ASSAYS["E1"], make_subject("sprout")
    budget = narrowed(assay, assay.budget("smoke"), Selection(subject=sprout))
    again = narrowed(assay, budget, Selection(arms=["live"]))
    assert (again.subject, again.agent, again.arms) == (sprout, "", ("live",))


def test_every_explained_arm_is_an_arm_of_its_assay() -> None:
    for assay in ASSAYS.values():
        assert set(assay.arm_words) <= set(assay.arms)
        assert all(words and not words.endswith(".") for words in assay.arm_words.values())
    assert set(ASSAYS["E1"].arm_words) == set(ASSAYS["E1"].arms) - {"live"}
