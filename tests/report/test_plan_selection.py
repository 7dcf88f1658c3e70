"""Pages follow the plans in a store; only records without a plan are searched for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from made_up_records import fill
from rulescope import assays
from rulescope.assays import ASSAYS, Budget, Cell, Selection, narrowed
from rulescope.assays.assay_run import folder_name
from rulescope.assays.plan import Plan
from rulescope.assays.recorded_plans import record_plan
from rulescope.assays.subject import Subject, make_subject
from rulescope.audit import audit_plan
from rulescope.learners.learner_config import Plugin
from rulescope.records import Store
from rulescope.report import site_builder
from rulescope.report.plan_selection import SelectedPlan, select_plans
from rulescope.run_spec import RunSpec

MINATAR, SCALE, CHANGE = ASSAYS["M1"], ASSAYS["E1"], ASSAYS["E3"]
PLUGIN = Subject(Plugin(rule="sized", source="a" * 64), None)


def all_runs(*plans: Plan) -> dict[str, RunSpec]:
    return {key: run for plan in plans for key, run in {**plan.runs, **plan.donors}.items()}


def shown(found: list[SelectedPlan]) -> list[tuple[str, str, set[str]]]:
    return [
        (each.plan.assay.id, each.plan.budget.subject.rule, set(each.plan.runs)) for each in found
    ]


@pytest.fixture
def expanded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by the id of an assay whenever its grid is expanded."""
    found: list[str] = []

    def counting(assay: assays.Assay) -> assays.Assay:
        def grid(budget: Budget) -> list[Cell]:
            found.append(assay.id)
            return assay.grid(budget)

        return replace(assay, grid=grid)

    for name, assay in list(ASSAYS.items()):
        monkeypatch.setitem(ASSAYS, name, counting(assay))
    return found


def test_a_store_of_four_records_with_its_plan_expands_one_grid(
    tmp_path: Path, expanded: list[str]
) -> None:
    budget = MINATAR.budget("smoke")
    store = Store(tmp_path)
    fill(store, list(Plan.of(MINATAR, budget).runs.values()))
    assert len(list(store.ids())) == 4
    record_plan(store, MINATAR, budget)
    [page] = site_builder.gather(store, folder_name).pages
    assert (page.name, page.present, page.complete) == ("M1", 4, len(page.plan.cells))
    assert expanded == ["M1"]


def test_a_store_without_plans_shows_the_same_after_a_search(
    tmp_path: Path, expanded: list[str]
) -> None:
    budget = MINATAR.budget("smoke")
    store = Store(tmp_path)
    fill(store, list(Plan.of(MINATAR, budget).runs.values()))
    [searched] = site_builder.gather(store, folder_name).pages
    assert len(expanded) > 10
    record_plan(store, MINATAR, budget)
    [planned] = site_builder.gather(store, folder_name).pages
    assert planned.plan.cells == searched.plan.cells
    assert planned.plan.budget == searched.plan.budget
    assert planned.results.tables == searched.results.tables
    assert planned.name == searched.name


@pytest.mark.parametrize("subject", [make_subject("disco103"), PLUGIN], ids=["name", "plug-in"])
def test_an_audit_is_shown_as_it_was_planned(subject: Subject, expanded: list[str]) -> None:
    budgets = audit_plan.budgets(subject, "quick")
    plans = [Plan.of(assay, budget) for assay, budget in budgets]
    expanded.clear()
    found = select_plans(all_runs(*plans), recorded=budgets)
    assert sorted(expanded) == sorted(plan.assay.id for plan in plans)
    expected = [(plan.assay.id, subject.rule, set(plan.runs)) for plan in plans]
    assert sorted(shown(found), key=str) == sorted(expected, key=str)


def test_a_plan_of_which_nothing_was_run_has_no_page() -> None:
    plan = Plan.of(SCALE, SCALE.budget("smoke"))
    recorded = [(SCALE, plan.budget), (CHANGE, CHANGE.budget("smoke"))]
    assert [name for name, *_ in shown(select_plans(all_runs(plan), recorded=recorded))] == ["E1"]
    assert select_plans({}, recorded=recorded) == []


def test_part_of_a_published_plan_is_shown_as_the_published_grid() -> None:
    part = narrowed(
        SCALE, SCALE.budget("paper"), Selection(arms=["live", "pin"], tasks=["catch"], seeds=2)
    )
    runs = all_runs(Plan.of(SCALE, part))
    [planned] = select_plans(runs, recorded=[(SCALE, part)])
    searched = next(each for each in select_plans(runs) if each.plan.assay.id == "E1")
    assert planned.plan.cells == searched.plan.cells
    assert planned.plan.budget == SCALE.budget("paper")


def test_a_plan_beyond_the_published_seeds_hides_no_assay_that_shares_its_runs() -> None:
    asked: dict[str, Any] = {"arms": ["live"], "tasks": ["catch"]}
    more = narrowed(SCALE, SCALE.budget("paper"), Selection(seeds=14, **asked))
    runs = all_runs(Plan.of(SCALE, more), Plan.of(CHANGE, CHANGE.budget("smoke")))
    searched = {each.plan.assay.id for each in select_plans(runs)}
    assert len(searched) > 2
    found = select_plans(runs, recorded=[(SCALE, more)])
    assert {each.plan.assay.id for each in found} == searched
    [planned] = [each for each in found if each.plan.assay.id == "E1"]
    assert {run.seed for run in planned.plan.runs.values()} == set(range(14))


def test_scales_that_the_published_grid_lacks_are_shown_all_the_same() -> None:
    part = narrowed(SCALE, SCALE.budget("paper"), Selection(scales=[0.5], tasks=["catch"], seeds=2))
    plan = Plan.of(SCALE, part)
    [found] = select_plans(all_runs(plan), recorded=[(SCALE, part)])
    assert set(found.plan.runs) == set(plan.runs)


def test_plans_of_one_length_are_united_in_the_order_of_the_grid() -> None:
    usual = replace(SCALE.budget("smoke"), iterations=400)
    asked: dict[str, Any] = {"iterations": 400, "tasks": ["catch"]}
    later = narrowed(SCALE, usual, Selection(arms=["live"], scales=[0.1], seeds=2, **asked))
    sooner = narrowed(
        SCALE, usual, Selection(arms=["pin", "live"], scales=[0.1, 10.0], seeds=1, **asked)
    )
    plans = [Plan.of(SCALE, budget) for budget in (later, sooner)]
    both = [(SCALE, later), (SCALE, sooner)]
    [one] = select_plans(all_runs(*plans), recorded=both)
    [other] = select_plans(all_runs(*plans), recorded=both[::-1])
    assert one.plan.cells == other.plan.cells
    assert set(one.plan.runs) == set(all_runs(*plans))
    wide = narrowed(
        SCALE, usual, Selection(arms=["live", "pin"], scales=[0.1, 10.0], seeds=2, **asked)
    )
    order = [cell.labels for cell in SCALE.grid(wide)]
    assert [cell.labels for cell in one.plan.cells] == order


def test_records_that_no_plan_has_are_searched_for() -> None:
    planned = Plan.of(MINATAR, MINATAR.budget("smoke"))
    other = Plan.of(SCALE, SCALE.budget("smoke"))
    found = select_plans(all_runs(planned, other), recorded=[(MINATAR, planned.budget)])
    assert ("M1", planned.budget.subject.rule, set(planned.runs)) in shown(found)
    assert ("E1", other.budget.subject.rule, set(other.runs)) in shown(found)


def test_more_runs_of_a_planned_assay_are_shown_with_the_planned_ones() -> None:
    whole = Plan.of(SCALE, SCALE.budget("quick"))
    part = narrowed(SCALE, SCALE.budget("quick"), Selection(seeds=1, arms=["live"]))
    [found] = [
        each
        for each in select_plans(all_runs(whole), recorded=[(SCALE, part)])
        if each.plan.assay.id == "E1"
    ]
    assert set(found.plan.runs) == set(whole.runs)


def test_a_preset_that_is_asked_for_is_shown_whatever_was_planned() -> None:
    plan = Plan.of(MINATAR, MINATAR.budget("smoke"))
    recorded = [(MINATAR, plan.budget)]
    assert select_plans(all_runs(plan), "paper", recorded=recorded) == []
    found = select_plans(all_runs(plan), "smoke", recorded=recorded)
    assert ("M1", plan.budget.subject.rule, set(plan.runs)) in shown(found)
    assert found == select_plans(all_runs(plan), "smoke")


def test_rules_have_the_same_order_with_and_without_plans() -> None:
    rules = ("disco103", "random:3", "random:1")
    budgets = [
        narrowed(CHANGE, CHANGE.budget("smoke"), Selection(subject=make_subject(rule)))
        for rule in rules
    ]
    runs = all_runs(*(Plan.of(CHANGE, budget) for budget in budgets))
    searched = [each for each in shown(select_plans(runs)) if each[0] == "E3"]
    planned = select_plans(runs, recorded=[(CHANGE, budget) for budget in budgets])
    assert [rule for _, rule, _ in searched] == ["disco103", "random:1", "random:3"]
    assert shown(planned) == searched
