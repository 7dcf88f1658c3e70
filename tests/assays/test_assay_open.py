"""OPEN: the published ledger, printed contrasts from printed levels, and what is not estimable."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

import printed_tables
from made_up_records import fill
from rulescope.assays import ASSAYS, Selection, narrowed, published
from rulescope.assays.budget import Budget
from rulescope.assays.comparison import compare
from rulescope.assays.comparison import table as comparison_table
from rulescope.assays.comparison_families import OPEN_CARRY
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.open.open_carry import SCALES, TASKS, analyse, rates
from rulescope.assays.plan import Plan
from rulescope.assays.results import Results, scale_label
from rulescope.assays.subject import make_subject
from rulescope.core.errors import SpecError
from rulescope.learners.open_config import Open, OpenAdam
from rulescope.records import Store
from rulescope.render.tables import markdown
from rulescope.run_spec import Pin, PinSteps, Reset, RunSpec, checked
from rulescope.stats import Estimate

from .lives import Labels, lived

ASSAY = ASSAYS["OPEN"]
PAPER = ASSAY.budget("paper")
KNOWN = published.estimates("OPEN")
PRINTED = {key: value for key, value in KNOWN.items() if not key.startswith("gate/")}
RANDOM = {"gymnax-breakout": 0.0404, "gymnax-freeway": 0.00015}
LANES = 32


def runs_of(budget: Budget) -> dict[tuple[object, ...], tuple[RunSpec, ...]]:
    return {tuple(cell.labels.values()): cell.runs for cell in ASSAY.grid(budget)}


def tried(
    budget: Budget,
    levels: Mapping[str, float],
    gone: frozenset[int] = frozenset(),
    idle: frozenset[int] = frozenset(),
) -> Frame:
    """Return lifetimes whose policies earn ``levels`` (by arm/game/scale) in the end.

    Seeds ``idle`` of the live arm earn what the random policy earns.
    """

    def log(labels: Labels, seed: int, _rows: Floats) -> Mapping[str, float] | None:
        return None if labels["arm"] == "zero" and seed in gone else {}

    def state(labels: Labels, run: RunSpec) -> Mapping[str, Floats]:
        assert run.evaluation is not None
        end = f"{labels['task']}/{scale_label(float(labels['scale']))}"
        own = "random" if labels["arm"] == "live" and run.seed in idle else labels["arm"]
        arms = {"terminal": own, "initial": "initial", "random": "random"}
        shares = np.linspace(0.5, 1.5, LANES) * run.evaluation.steps  # lanes differ, their mean not
        return {
            f"evaluation.{policy}/reward": shares * levels.get(f"{arm}/{end}", 0.0)
            for policy, arm in arms.items()
        }

    return lived(ASSAY, budget, log, state)


def printed_levels() -> dict[str, float]:
    """Return levels of every arm that have the printed differences."""
    found: dict[str, float] = {}
    for task in TASKS:
        for scale in map(scale_label, SCALES):
            end = f"{task}/{scale}"
            live = RANDOM[task] + KNOWN[f"live-minus-random/{end}"].value
            found[f"random/{end}"] = RANDOM[task]
            found[f"live/{end}"] = live
            found[f"initial/{end}"] = live - KNOWN[f"live-minus-initial/{end}"].value
            found[f"zero/{end}"] = live - KNOWN[f"live-minus-zero/{end}"].value
            found[f"reset/{end}"] = live + KNOWN[f"reset-minus-live/{end}"].value
    return found


@pytest.fixture(scope="module")
def results() -> Results:
    return analyse(tried(PAPER, printed_levels()))


def test_the_ledger_is_the_published_one() -> None:
    made = [run for runs in runs_of(PAPER).values() for run in runs]
    adam = [run for run in made if isinstance(run.learner, OpenAdam)]
    assert (len(made), len(adam)) == (160, 16)
    assert {run.scale for run in adam} == {1.0}
    assert {run.interactions for run in made} == {464_000}
    resets = [run for run in made if run.interventions == (Reset(carrier="recurrent", at=28),)]
    assert len(resets) == 48
    for run in resets:
        assert 28 * run.lanes * run.steps == 229_376
        assert msgspec.structs.replace(run, interventions=()) in made  # its live run
    for run in made:
        assert run.evaluation is not None
        assert (run.evaluation.lanes, run.evaluation.steps) == (32, 4096)
        assert run.iterations == 56


def test_arms_are_what_their_names_say() -> None:
    cells = runs_of(replace(PAPER, arms=ASSAY.arms))
    at = {arm: cells["gymnax-freeway", arm, 1.0][3] for arm in ASSAY.arms}
    assert at["zero"].interventions == (PinSteps(carrier="recurrent"),)
    assert at["zero-update"].interventions == (Pin(carrier="recurrent"),)
    assert at["live"].interventions == ()
    assert at["live"].marks == ()  # its record has no state to fork from: 3.6 MB a lifetime
    assert at["reset"].donors == ()
    assert {run.seed for run in at.values()} == {3}
    assert at["zero"].learner == Open(rule="open-freeway")
    assert at["adam"].learner == OpenAdam(learning_rate=1e-3)


@pytest.mark.parametrize("iterations", [283, 300, 1430, 4000, 8000, 16000])
def test_the_reset_is_half_way_and_trials_are_never_longer_than_published(iterations: int) -> None:
    budget = narrowed(ASSAY, PAPER, Selection(seeds=1, iterations=iterations, scales=[1.0]))
    for (run,) in runs_of(budget).values():
        assert checked(run) == run
        assert 0 <= 58 * iterations - run.interactions < 64
        once = [item.at for item in run.interventions if isinstance(item, Reset)]
        assert once in ([], [run.iterations // 2])
        assert run.evaluation is not None
        assert run.evaluation.steps == min(4096, 4096 * run.iterations // 56)


def test_printed_levels_give_every_printed_contrast(results: Results) -> None:
    assert len(PRINTED) == 28
    for key, value in PRINTED.items():
        ours = results.estimates[key]
        rounding = 2.1e-6 if key.startswith("interaction/") else 1e-12  # sums of rounded terms
        assert ours.value == pytest.approx(value.value, abs=rounding), key
        assert (ours.n, ours.family, ours.draws) == (8, 34, 200_000)


def test_initial_and_random_policies_know_no_scale() -> None:
    """What live gains on one and on the other differs by as much at every printed scale."""
    for task in TASKS:
        apart = [
            KNOWN[f"live-minus-initial/{task}/{scale_label(scale)}"].value
            - KNOWN[f"live-minus-random/{task}/{scale_label(scale)}"].value
            for scale in SCALES
        ]
        assert max(apart) - min(apart) < 1.5e-6


def test_six_planned_contrasts_stay_in_the_family_without_a_value(results: Results) -> None:
    early = [key for key in results.estimates if key.startswith("early-reset/")]
    assert len(early) == 6
    for key in early:
        assert math.isnan(results.estimates[key].value)
        assert results.estimates[key].family == 34
        assert key not in KNOWN
    planned = {member.removeprefix("OPEN:") for member in OPEN_CARRY.members}
    assert planned == {*PRINTED, *early}
    assert any("6 of 34" in note for note in results.notes)


def test_tables_have_the_printed_rows(results: Results) -> None:
    for table in results.tables[1:3]:
        theirs = printed_tables.tables()[table.label]
        assert len(table.rows) == len(theirs.rows)
        for row, printed in zip(table.rows, theirs, strict=True):
            contrast, game, scale, ours = row
            assert str(contrast).replace(" ", "").replace("−", "-") == printed["Contrast"].replace(
                " ", ""
            )
            assert str(game).lower() == printed["Game"]
            shown = printed["Scale"]
            assert str(scale).replace(" − ", "-") == (
                shown if isinstance(shown, str) else f"{shown:g}"
            )
            assert isinstance(ours, Estimate)
            assert ours.value == pytest.approx(printed["Estimate"], abs=2.1e-6)
    levels = results.tables[3]
    assert [column.heading for column in levels.columns[2:]] == [
        "Live",
        "Zero",
        "Reset",
        "Adam",
        "Initial",
        "Random",
    ]


def test_published_budgets_are_known_as_such(results: Results) -> None:
    compared = compare(results)
    assert {one.key for one in compared} == set(KNOWN)
    assert all(one.same_budget for one in compared)
    assert results.budget == "open, 8 seeds, 56 iterations (464,000 interactions) a lifetime"
    short = narrowed(ASSAY, PAPER, Selection(iterations=4000))
    other = compare(analyse(tried(short, printed_levels())))
    assert not any(one.same_budget for one in other)


def test_small_differences_can_be_told_apart_beside_the_published(results: Results) -> None:
    shown = markdown(comparison_table(results, compare(results)))
    assert "| live-minus-zero/gymnax-freeway/1 | 8 | 0.000099 [" in shown
    assert "| 0.000099 [−0.000380, 0.000843] |" in shown


def test_the_capability_gate_precedes_the_contrasts(results: Results) -> None:
    labels = [table.label for table in results.tables]
    assert labels == ["open-gate", "tab:open-1", "tab:open-0", "open-levels"]
    assert next(iter(results.estimates)).startswith("gate/")
    assert results.notes[0].startswith("capability gate passed in 6 of 6 cells")
    for task in TASKS:
        for scale in map(scale_label, SCALES):
            gate = results.estimates[f"gate/{task}/{scale}"]
            assert (gate.value, gate.n, gate.method) == (1.0, 8, "wilson")
            assert KNOWN[f"gate/{task}/{scale}"].value == 1.0
    assert [row[2:] for row in results.tables[0].rows] == [("8/8", "8/8", "8/8", "passed")] * 6


def test_a_seed_that_is_not_above_both_references_fails_the_gate() -> None:
    levels = printed_levels() | {"initial/gymnax-breakout/1": 0.0001}  # below the random policy
    budget = narrowed(ASSAY, PAPER, Selection(tasks=[TASKS[0]], scales=[1.0]))
    results = analyse(tried(budget, levels, idle=frozenset({2, 5})))
    gate = results.estimates["gate/gymnax-breakout/1"]
    assert (gate.value, gate.n) == (6 / 8, 8)
    assert results.tables[0].rows == (("Breakout", "1", "8/8", "6/8", "6/8", "failed"),)
    assert "not passed in Breakout, scale 1 (6 of 8)" in results.notes[0]


def test_without_the_live_arm_there_is_no_gate() -> None:
    budget = narrowed(
        ASSAY, PAPER, Selection(seeds=2, arms=["zero"], tasks=[TASKS[0]], scales=[1.0])
    )
    results = analyse(tried(budget, printed_levels()))
    assert not any(key.startswith("gate/") for key in results.estimates)
    assert all(table.label != "open-gate" for table in results.tables)
    assert not any("gate" in note for note in results.notes)


def test_a_rate_is_reward_per_interaction_of_all_lanes() -> None:
    budget = narrowed(
        ASSAY, PAPER, Selection(seeds=2, iterations=300, tasks=[TASKS[0]], scales=[1.0])
    )
    frame = tried(budget, {"live/gymnax-breakout/1": 0.25})
    assert frame.trial == 4096 * 2 // 56
    assert rates(frame)["live", "gymnax-breakout", 1.0] == pytest.approx([0.25, 0.25])


def test_the_control_has_contrasts_of_its_own_if_it_was_run(results: Results) -> None:
    assert not any("zero-update" in key for key in results.estimates)
    budget = narrowed(
        ASSAY, PAPER, Selection(seeds=3, arms=["live", "zero-update"], tasks=[TASKS[0]])
    )
    levels = {**printed_levels(), "zero-update/gymnax-breakout/10": 0.05}
    found = analyse(tried(budget, levels)).estimates
    live = levels["live/gymnax-breakout/10"]
    assert found["live-minus-zero-update/gymnax-breakout/10"].value == pytest.approx(live - 0.05)
    assert found["live-minus-zero/gymnax-breakout/10"].n == 0


def test_seeds_that_are_missing_are_told() -> None:
    budget = narrowed(ASSAY, PAPER, Selection(tasks=[TASKS[1]]))
    results = analyse(tried(budget, printed_levels(), gone=frozenset({1, 4})))
    assert results.estimates["live-minus-zero/gymnax-freeway/1"].n == 6
    assert results.estimates["interaction/gymnax-freeway/10"].n == 6
    assert results.estimates["reset-minus-live/gymnax-freeway/1"].n == 8
    assert results.estimates["live-minus-zero/gymnax-breakout/1"].n == 0
    assert results.notes[1].startswith("6 of 80 lifetimes are missing")


def test_records_are_read_from_a_store(tmp_path: Path) -> None:
    budget = narrowed(ASSAY, PAPER, Selection(seeds=3, scales=[1.0], tasks=[TASKS[0]]))
    store = Store(tmp_path)
    fill(store, list(Plan.of(ASSAY, budget).missing.values()))
    found = Plan.of(ASSAY, budget, store).analyse(store).estimates
    for arm in ("live", "zero", "reset", "adam", "initial", "random"):
        level = found[f"rate/gymnax-breakout/{arm}/1"]
        assert level.value == pytest.approx(0.05, abs=0.005)
        assert level.n == 3


def test_another_rule_can_be_audited() -> None:
    budget = narrowed(ASSAY, PAPER, Selection(seeds=1, subject=make_subject("open-multi")))
    made = {
        run.learner.rule for (run,) in runs_of(budget).values() if isinstance(run.learner, Open)
    }
    assert made == {"open-multi"}
    results = analyse(tried(budget, printed_levels()))
    assert (results.rule, results.agent) == ("open-multi", "")
    assert not any(one.same_budget for one in compare(results))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Selection(iterations=282), r"less than 2 of open's \(8,192 each\); nearest: 283"),
        (Selection(arms=["adam"], scales=[10.0]), "Adam runs at reward scale 1 alone"),
        (Selection(subject=make_subject("disco103")), "'disco103' is no OPEN rule"),
        (Selection(subject=make_subject("open-breakout")), "add --tasks gymnax-breakout"),
        (Selection(agent="reference"), "comes as several agents"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: Selection, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        ASSAY.grid(narrowed(ASSAY, PAPER, wrong))
