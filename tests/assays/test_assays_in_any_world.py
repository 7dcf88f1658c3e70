"""Assays and audits in worlds that the user names."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from rulescope.assays import ASSAYS, Budget, Selection, find, gather, narrowed
from rulescope.assays.assay_run import folder_name
from rulescope.assays.comparison import compare
from rulescope.assays.plan import Plan
from rulescope.assays.recorded_plans import record_plan, recorded_budgets
from rulescope.assays.subject import make_subject
from rulescope.audit import evidence, history_answer, profile_axes
from rulescope.audit.atlas import rows_of
from rulescope.audit.audit_plan import budgets, describe_budget, plan_audit
from rulescope.audit.profile import Profile
from rulescope.core.errors import SpecError
from rulescope.envs.tasks import Task, find_task
from rulescope.envs.world_config import WORLDS
from rulescope.envs.world_references import WorldReferences
from rulescope.records import Store

pytest.importorskip("gymnasium")

POLE = "gymnasium:CartPole-v1"
SHARED = WorldReferences(
    measure="return", random=20.0, error=0.5, episodes=200, best=120.0, kind="stated"
)
RAW = WorldReferences(measure="return", random=20.0, error=0.5, episodes=200)


def task(references: WorldReferences = SHARED, world: str = "catch") -> Task:
    return Task(name="mine", world=WORLDS[world], references=references)


def budget_in(assay: str, one: Task, **fields: Any) -> Budget:
    found = find(assay)
    return narrowed(found, found.budget("smoke"), Selection(worlds=(one,), **fields))


class Made:
    """Records of every run, whose log has these values in every row."""

    def __init__(self, budget: Budget, assay: str, **columns: float) -> None:
        runs = [run for cell in find(assay).grid(budget) for run in cell.runs]
        self.specs, self.columns = {run.id: run for run in runs}, columns

    def __call__(self, key: str) -> Any:
        spec = self.specs[key]
        rows = np.arange(spec.log_every, spec.iterations + 1, spec.log_every, dtype=float)
        log = {name: np.full(len(rows), value) for name, value in self.columns.items()}
        return SimpleNamespace(log={"iteration": rows, **log}, state={}, spec=spec)


def results_in(assay: str, one: Task, **fields: Any) -> Any:
    budget = budget_in(assay, one, **fields)
    made = Made(
        budget, assay, mean_return=70.0, reward_rate=0.1, score=9.0, rate_score=9.0, episodes=500.0
    )
    found = find(assay)
    frame = gather(
        found.grid(budget),
        made,
        columns=found.columns,
        states=(),
        rule="sprout",
        agent="",
        worlds=budget.references,
    )
    return found.analyse(frame)


@pytest.mark.parametrize("assay", ["E1", "E2", "exposure", "E3"])
def test_scores_come_from_the_references_of_the_world(assay: str) -> None:
    quantity = "auc" if assay == "E3" else "score"
    for references, expected in ((SHARED, 0.5), (RAW, 50.0)):
        results = results_in(assay, task(references), seeds=3, subject=make_subject("sprout"))
        rows = [row for row in results.estimates.rows if row.quantity == quantity]
        assert rows
        assert all(row.estimate.value == pytest.approx(expected) for row in rows)
        assert results.worlds == {"mine": references}
        assert any("standard error 0.5, 200 episodes" in table.note for table in results.tables)
        assert results.budget.endswith(", in mine")
        assert not any("optimal" in table.note for table in results.tables)
        assert compare(results) == []


@pytest.mark.parametrize(
    ("assay", "quantities"),
    [
        ("E1", {"width", "contrast"}),
        ("exposure", {"steps", "fraction"}),
        ("E3", {"attained", "rmd"}),
    ],
)
def test_nothing_is_a_share_without_an_upper_reference(assay: str, quantities: set[str]) -> None:
    with_best = {row.quantity for row in results_in(assay, task()).estimates.rows}
    without = {row.quantity for row in results_in(assay, task(RAW)).estimates.rows}
    assert quantities <= with_best
    assert not quantities & without


@pytest.mark.parametrize("assay", ["E1", "E2", "exposure", "E3"])
def test_runs_in_a_known_world_have_the_ids_that_they_have_anyway(assay: str) -> None:
    found, one = find(assay), find_task("catch")
    usual = narrowed(found, found.budget("smoke"), Selection(tasks=("catch",)))
    named = narrowed(found, found.budget("smoke"), Selection(worlds=(one,)))
    expected = Plan.of(found, usual).runs.keys() | Plan.of(found, usual).donors.keys()
    plan = Plan.of(found, named)
    assert plan.runs.keys() | plan.donors.keys() == expected


def test_every_run_and_donor_is_in_the_world_that_was_named() -> None:
    one = find_task(POLE)
    for assay in ("E1", "E2", "exposure", "E3"):
        plan = Plan.of(find(assay), budget_in(assay, one))
        runs = [*plan.runs.values(), *plan.donors.values()]
        assert {run.environment for run in runs} == {one.world}


def test_worlds_stand_beside_the_tasks_of_an_assay() -> None:
    found = find("E1")
    budget = narrowed(found, found.budget("smoke"), Selection(tasks=("catch", POLE)))
    assert budget.tasks == ("catch", POLE)
    assert [each.name for each in budget.worlds] == [POLE]
    assert {cell.labels["task"] for cell in found.grid(budget)} == {"catch", POLE}
    assert folder_name(found, budget) == "E1-in-gymnasium-CartPole-v1"


def test_a_world_without_episodes_has_one_exposure() -> None:
    stream = WorldReferences(measure="rate", random=0.1, best=1.0, kind="exact")
    budget = budget_in("exposure", task(stream, "tracking"))
    cells = find("exposure").grid(budget)
    assert {cell.labels["condition"] for cell in cells} == {"natural"}


@pytest.mark.parametrize(
    ("assay", "selection", "message"),
    [
        ("F2", Selection(tasks=(POLE,)), f"--tasks: no '{POLE}' for F2: .*; valid: catch-big"),
        ("E1", Selection(tasks=("ctch",)), "--tasks: no 'ctch'; nearest: 'catch'"),
        ("E1", Selection(reference_best=3.0), "--tasks names 0"),
        ("E1", Selection(tasks=(POLE,), reference_best=3.0), "3 is not above random play"),
    ],
)
def test_what_is_impossible_is_named(assay: str, selection: Selection, message: str) -> None:
    found = find(assay)
    with pytest.raises(SpecError, match=message):
        narrowed(found, found.budget("smoke"), selection)


def test_a_change_that_a_world_cannot_have_is_no_cell() -> None:
    one = find_task(POLE)
    budget = budget_in("E3", one, conditions=("action-flip", "reward-move"))
    cells = find("E3").grid(budget)
    assert {cell.labels["condition"] for cell in cells} == {"action-flip"}
    assert {cell.labels["arm"] for cell in cells} == {"rule", "rule-freeze", "dqn", "dqn-cleared"}
    with pytest.raises(SpecError, match="--conditions: none of reward-move is possible"):
        find("E3").grid(budget_in("E3", one, conditions=("reward-move",)))


def test_a_plan_keeps_its_worlds_and_their_references(tmp_path: Path) -> None:
    store, one = Store(tmp_path / "store"), find_task(POLE)
    budget = budget_in("E1", one)
    record_plan(store, find("E1"), budget)
    usual = find("E1").budget("smoke")
    record_plan(store, find("E1"), usual)
    assert {budget for _, budget in recorded_budgets(store)} == {budget, usual}
    texts = [path.read_text() for path in (store.root / "plans").glob("*.json")]
    assert sorted('"worlds"' in text for text in texts) == [False, True]


def test_an_audit_says_what_it_leaves_out(tmp_path: Path) -> None:
    audit = plan_audit("sprout", Store(tmp_path), preset="standard", env=POLE)
    assert [plan.assay.id for plan in audit.plans] == ["exposure", "E1", "E2", "E3"]
    assert [line.partition(":")[0] for line in audit.left_out] == [
        "F2 (horizon)",
        "E-A3c (stream)",
        "E-A5 (exploration)",
        "exposure natural",
        "E3 reward-move",
    ]
    assert audit.folder_name == "audit-sprout-standard-in-gymnasium-CartPole-v1"
    assert {run.environment for run in audit.runs.values()} == {audit.plans[0].budget.world(POLE)}


@pytest.mark.parametrize(("references", "unit"), [(SHARED, "score"), (RAW, "raw")])
def test_an_atlas_has_the_scores_at_single_scales_in_a_named_world(
    references: WorldReferences, unit: str
) -> None:
    subject = make_subject("sprout")
    found = {
        name: results_in(name, task(references), seeds=3, subject=subject)
        for name in ("exposure", "E1")
    }
    compared = evidence.comparisons(found)
    axes = profile_axes.axes_of(found)
    answer = history_answer.answer(compared, has_history=True)
    made = Profile("sprout", "smoke", "", axes, answer=answer, world="mine")
    rows = {row.key: row for row in rows_of(made, "sprout")}
    scales = [key for key in rows if key.startswith(evidence.AT_SCALE)]
    assert len(scales) == len(found["E1"].axes["scale"])
    assert all(rows[key].result is not None for key in scales)  # the history is judged there
    for key in ("score", *scales):
        assert rows[key].unit == unit
        assert rows[key].value.value == pytest.approx(0.5 if unit == "score" else 50.0)
    assert {one.unit for one in compared} == {unit}
    assert not any(key.startswith("history/") for key in rows)  # every comparison has its line


def test_budgets_differ_where_references_or_the_code_of_a_world_differ() -> None:
    named = budget_in("E1", task())
    better = replace(SHARED, best=150.0)
    exact = replace(SHARED, kind="exact")
    easier = replace(SHARED, random=10.0)
    texts = [describe_budget(named, task(one)) for one in (SHARED, better, exact, easier, RAW)]
    assert len(set(texts)) == len(texts)
    pole = find_task(POLE)
    other = replace(pole, world=replace(pole.world, source="0" * 64))
    assert describe_budget(named, pole) != describe_budget(named, other)
    assert describe_budget(named, task()) == describe_budget(named, task(replace(SHARED)))


def test_what_was_not_asked_for_is_not_left_out(tmp_path: Path) -> None:
    audit = plan_audit("sprout", Store(tmp_path), preset="smoke", only=["scale"], env=POLE)
    assert [plan.assay.id for plan in audit.plans] == ["E1"]
    assert audit.left_out == ()
    change = plan_audit("sprout", Store(tmp_path), preset="standard", only=["E3"], env=POLE)
    assert [line.partition(":")[0] for line in change.left_out] == ["E3 reward-move"]


def test_an_assay_that_cannot_run_in_a_named_world_says_why(tmp_path: Path) -> None:
    why = f"--only: 'horizon' is not in this audit in {POLE}: it asks about a long lifetime"
    with pytest.raises(SpecError, match=why):
        plan_audit("sprout", Store(tmp_path), preset="standard", only=["horizon"], env=POLE)
    with pytest.raises(SpecError, match="--only: 'E2' is not in this audit: 'a2c' has no history"):
        plan_audit("a2c", Store(tmp_path), preset="smoke", only=["E2"], env=POLE)
    stream = find("stream")
    with pytest.raises(SpecError, match=f"--tasks: no '{POLE}' for E-A3c: .* never resets"):
        narrowed(stream, stream.budget("smoke"), Selection(tasks=(POLE,)))


def test_an_audit_of_open_stays_in_its_games() -> None:
    with pytest.raises(SpecError, match="--env: a rule of OPEN is audited in its games"):
        budgets(make_subject("open-breakout"), "smoke", task=task())


def test_only_assays_that_read_their_worlds_from_the_budget_take_any() -> None:
    assert {name for name, each in ASSAYS.items() if each.any_world} == {
        "E1",
        "E2",
        "E3",
        "exposure",
    }
