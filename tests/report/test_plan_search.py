"""Rules that a store is searched for: also plug-ins and files that are not installed here."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rulescope import assays
from rulescope.assays import Selection, narrowed
from rulescope.assays.plan import Plan
from rulescope.assays.subject import PLUGIN_NULL, Subject
from rulescope.audit import audit_plan
from rulescope.envs.world_config import Argument
from rulescope.learners.disco_config import SPROUT
from rulescope.learners.learner_config import Plugin
from rulescope.report import plan_selection
from rulescope.report.plan_search import PUBLISHED, variants
from rulescope.rules import disco_format
from rulescope.rules.rule_weights import null_rule_name
from rulescope.run_spec import RunSpec

PLUGIN = Subject(Plugin(rule="sized", source="a" * 64), None)
"""A plug-in that is installed nowhere."""
EDITED = Subject(Plugin(rule="sized", source="b" * 64), None)
CHOSEN = Subject(replace(PLUGIN.learner, options=(Argument(name="alpha", value=2.0),)), PLUGIN_NULL)
"""The same with an option, and with random weights in its null arm."""
SMALL = Subject(
    replace(SPROUT, rule=f"sha256:{'c' * 64}"),
    null_rule_name(disco_format.SPROUT._replace(predictions=12)),
)
"""The rule of a file that is not here."""


def audited(subject: Subject, preset: str) -> list[Plan]:
    budgets = audit_plan.budgets(subject, preset)
    return [Plan.of(assay, budget) for assay, budget in budgets]


def all_runs(plans: list[Plan]) -> dict[str, RunSpec]:
    return {key: run for plan in plans for key, run in {**plan.runs, **plan.donors}.items()}


@pytest.mark.parametrize("preset", ["smoke", "quick"])
@pytest.mark.parametrize("subject", [PLUGIN, CHOSEN, SMALL], ids=["plug-in", "options", "file"])
def test_an_audit_of_a_rule_without_a_name_is_shown_as_it_was_planned(
    subject: Subject, preset: str
) -> None:
    plans = audited(subject, preset)
    found = plan_selection.select_plans(all_runs(plans))
    assert {each.plan.assay.id: each.plan.runs.keys() for each in found} == {
        plan.assay.id: plan.runs.keys() for plan in plans
    }
    assert {each.plan.budget.subject.rule for each in found} == {subject.rule}


def test_an_edited_plug_in_is_another_rule() -> None:
    plans = [plan for subject in (PLUGIN, EDITED) for plan in audited(subject, "smoke")]
    found = [
        each for each in plan_selection.select_plans(all_runs(plans)) if each.plan.assay.id == "E1"
    ]
    assert [each.tag for each in found] == ["a" * 8, "b" * 8]
    held = [{run.learner for run in each.plan.runs.values()} for each in found]
    assert held == [{PLUGIN.learner}, {EDITED.learner}]


def test_other_options_of_a_plug_in_are_another_rule() -> None:
    plans = [plan for subject in (PLUGIN, CHOSEN) for plan in audited(subject, "smoke")]
    found = [
        each for each in plan_selection.select_plans(all_runs(plans)) if each.plan.assay.id == "E1"
    ]
    assert [each.plan.budget.subject for each in found] == [PLUGIN, CHOSEN]
    assert [each.tag for each in found] == ["", ""]


def test_other_learning_rates_and_torsos_of_a_plug_in_are_no_other_rule() -> None:
    learner = PLUGIN.learner
    assert isinstance(learner, Plugin)
    game = replace(learner, agent=replace(learner.agent, torso="channel"))
    faster = replace(learner, learning_rate=0.1)
    seeds = {learner: 2, game: 1, faster: 2}
    specs = [RunSpec(learner=each, seed=seed) for each, n in seeds.items() for seed in range(n)]
    assert variants(specs) == [PUBLISHED, variants([RunSpec(learner=learner)])[1]]


def test_a_plug_in_and_the_published_rule_have_pages_beside_each_other() -> None:
    scale = assays.ASSAYS["E1"]
    usual = Plan.of(scale, scale.budget("smoke"))
    found = plan_selection.select_plans({**usual.runs, **all_runs(audited(PLUGIN, "smoke"))})
    named = [each.plan.budget.subject.rule for each in found if each.plan.assay.id == "E1"]
    assert named == ["disco103", "sized"]


def test_arms_that_a_plug_in_cannot_have_are_not_planned() -> None:
    change = assays.ASSAYS["E3"]
    plan = Plan.of(
        change,
        narrowed(
            change, change.budget("paper"), Selection(subject=PLUGIN, arms=["rule", "rule-freeze"])
        ),
    )
    [shown] = [s for s in plan_selection.select_plans(dict(plan.runs)) if s.plan.assay.id == "E3"]
    arms = {cell.labels["arm"] for cell in shown.plan.cells}
    assert {"rule", "rule-freeze", "dqn"} <= arms
    assert "rule-no-aux" not in arms
