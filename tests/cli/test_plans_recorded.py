"""Commands that run lifetimes write their plan into the store, and plans alone do not."""

from __future__ import annotations

from pathlib import Path

from command_line import invoke
from made_up_records import fill
from rulescope.assays import ASSAYS
from rulescope.assays.plan import Plan
from rulescope.assays.recorded_plans import recorded_budgets
from rulescope.assays.subject import make_subject
from rulescope.audit import audit_plan
from rulescope.records import Store
from rulescope.records.plans import read_plans

MINATAR = ASSAYS["M1"]


def test_a_run_writes_its_plan(tmp_path: Path) -> None:
    store, budget = Store(tmp_path / "store"), MINATAR.budget("smoke")
    fill(store, list(Plan.of(MINATAR, budget).runs.values()))
    command = ("run", "M1", "--preset", "smoke", "--store", store.root, "--out", tmp_path / "out")
    invoke(*command, "--plan")
    assert recorded_budgets(store) == []
    invoke(*command)
    invoke(*command)
    assert recorded_budgets(store) == [(MINATAR, budget)]
    invoke("verify", "--store", store.root, "--read-only")


def test_an_audit_writes_the_plan_of_each_assay(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    budgets = audit_plan.budgets(make_subject("sprout"), "smoke", only=("E1", "E3"))
    for assay, budget in budgets:
        plan = Plan.of(assay, budget)
        fill(store, [*plan.runs.values(), *plan.donors.values()])
    command = ("audit", "sprout", "--preset", "smoke", "--only", "E1,E3")
    invoke(*command, "--store", store.root, "--out", tmp_path / "out")
    found = recorded_budgets(store)
    assert {assay.id for assay, _ in found} == {"E1", "E3"}
    runs = [set(Plan.of(assay, budget).runs) for assay, budget in budgets]
    assert all(set(Plan.of(assay, budget).runs) in runs for assay, budget in found)
    assert {plan.typed_rule for plan in read_plans(store)} == {"sprout"}
