"""Budgets of campaigns: what a store gives back is what was run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from rulescope.assays import ASSAYS, PRESETS, narrowed
from rulescope.assays.recorded_plans import record_plan, recorded_budgets
from rulescope.assays.subject import Subject, named
from rulescope.learners.disco_config import SPROUT
from rulescope.learners.learner_config import Plugin
from rulescope.records import Store
from rulescope.records.plans import add_plan, read_plans

SCALE = ASSAYS["E1"]
SUBJECTS = [
    Subject(Plugin(rule="sized", source="a" * 64), None),
    Subject(msgspec.structs.replace(SPROUT, rule=f"sha256:{'c' * 64}"), "sprout-random:0", "mine"),
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


@pytest.mark.parametrize("subject", SUBJECTS, ids=["plug-in", "file"])
def test_a_subject_that_no_name_selects_comes_back(subject: Subject, tmp_path: Path) -> None:
    budget = narrowed(SCALE, SCALE.budget("smoke"), subject=subject, arms=["live", "pin"])
    record_plan(Store(tmp_path), SCALE, budget, "somewhere/rule.npz")
    assert recorded_budgets(Store(tmp_path)) == [(SCALE, budget)]
    [plan] = read_plans(Store(tmp_path))
    assert (plan.typed_rule, plan.rule) == ("somewhere/rule.npz", subject.learner.rule)


def test_a_subject_that_its_name_selects_is_the_same_as_none(tmp_path: Path) -> None:
    usual = narrowed(SCALE, SCALE.budget("smoke"), rule="sprout")
    record_plan(Store(tmp_path), SCALE, usual)
    record_plan(Store(tmp_path), SCALE, replace(usual, subject=named("sprout")), "sprout")
    assert recorded_budgets(Store(tmp_path)) == [(SCALE, usual)]


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
