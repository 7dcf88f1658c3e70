"""Budgets of campaigns: what a store gives back is what was run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from rulescope.assays import ASSAYS, PRESETS, Selection, narrowed
from rulescope.assays.recorded_plans import record_plan, recorded_budgets
from rulescope.assays.subject import Subject, make_subject
from rulescope.learners.disco_config import SPROUT
from rulescope.learners.further_config import Lpg
from rulescope.learners.learner_config import Plugin
from rulescope.learners.open_config import Open
from rulescope.records import Store
from rulescope.records.plans import add_plan, read_plans

SCALE = ASSAYS["E1"]
SUBJECTS = [
    Subject(Plugin(rule="sized", source="a" * 64), None),
    Subject(msgspec.structs.replace(SPROUT, rule=f"sha256:{'c' * 64}"), "sprout-random:0", "mine"),
    Subject(Lpg(rule=f"sha256:{'c' * 64}", lifetime_inputs="raw"), "lpg-random-4-4-8:0", "mine"),
    make_subject("ta-lpg-random:2:lifetime_inputs=relative"),
    make_subject("dpo:alpha=1.0"),
]


@pytest.mark.parametrize("assay", ASSAYS.values(), ids=lambda assay: assay.id)
def test_budgets_of_every_preset_come_back(assay: object, tmp_path: Path) -> None:
    [found] = [each for each in ASSAYS.values() if each is assay]
    budgets = {found.budget(preset) for preset in PRESETS}
    store = Store(tmp_path)
    for budget in budgets:
        record_plan(store, found, budget)
    back = recorded_budgets(store)
    assert {budget for _, budget in back} == budgets
    assert all(each is found for each, _ in back)


@pytest.mark.parametrize("subject", SUBJECTS, ids=["plug-in", "file", "lpg", "ta-lpg", "dpo"])
def test_a_subject_that_no_name_selects_comes_back(subject: Subject, tmp_path: Path) -> None:
    budget = narrowed(
        SCALE,
        SCALE.budget("smoke"),
        Selection(subject=subject, arms=["live", "pin"] if subject.history else ["live"]),
    )
    record_plan(Store(tmp_path), SCALE, budget, "somewhere/rule.npz")
    assert recorded_budgets(Store(tmp_path)) == [(SCALE, budget)]
    [plan] = read_plans(Store(tmp_path))
    assert (plan.typed_rule, plan.rule) == ("somewhere/rule.npz", subject.rule)


def test_a_subject_that_its_name_selects_is_recorded_by_its_name(tmp_path: Path) -> None:
    store, sprout = Store(tmp_path), make_subject("sprout")
    usual = narrowed(SCALE, SCALE.budget("smoke"), Selection(subject=sprout))
    record_plan(store, SCALE, usual, "sprout")
    [plan] = read_plans(store)
    assert (plan.rule, plan.learner, plan.label, plan.null_rule) == ("sprout", None, "", None)
    written_out = msgspec.structs.replace(plan, learner=SPROUT, null_rule=sprout.null)
    add_plan(store, written_out)  # as earlier versions wrote it
    assert len(read_plans(store)) == 2
    assert recorded_budgets(store) == [(SCALE, usual)]


@pytest.mark.parametrize("rule", ["open", "open-multi", f"sha256:{'c' * 64}"])
def test_a_rule_of_open_comes_back_as_one(rule: str, tmp_path: Path) -> None:
    audit = ASSAYS["OPEN"]
    subject = Subject(Open(rule=rule)) if rule.startswith("sha256") else make_subject(rule)
    budget = narrowed(audit, audit.budget("smoke"), Selection(subject=subject))
    record_plan(Store(tmp_path), audit, budget, rule)
    [plan] = read_plans(Store(tmp_path))
    assert (plan.rule, plan.learner) == (rule, None)
    assert recorded_budgets(Store(tmp_path)) == [(audit, budget)]


@pytest.mark.parametrize(
    ("field", "value", "warning"),
    [
        ("assay", "E99", "no such assay"),
        ("arms", ("live", "unheard-of"), "no 'unheard-of'"),
        ("tasks", ("unheard-of",), "no 'unheard-of'"),
        ("conditions", ("unheard-of",), "no 'unheard-of'"),
        ("agent", "unheard-of", "no 'unheard-of'"),
        ("seeds", 999_999_999, "more than 1,000,000 runs"),
    ],
)
def test_a_plan_that_cannot_be_expanded_is_ignored_with_a_warning(
    field: str, value: object, warning: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path)
    record_plan(store, SCALE, SCALE.budget("smoke"))
    [plan] = read_plans(store)
    add_plan(store, msgspec.structs.replace(plan, **{field: value}))
    assert recorded_budgets(store) == [(SCALE, SCALE.budget("smoke"))]
    assert warning in caplog.text


def test_a_store_that_cannot_be_written_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "plans").touch()  # where the folder should be
    record_plan(Store(tmp_path), SCALE, SCALE.budget("smoke"))
    assert "plan of E1 not recorded" in caplog.text
