"""Which assays make an audit."""

from __future__ import annotations

import pytest

from rulescope.assays import PRESETS
from rulescope.assays.subject import Subject, make_subject
from rulescope.audit import audit_plan
from rulescope.audit.history_answer import LEAST_SEEDS
from rulescope.core.errors import SpecError
from rulescope.learners.disco_config import Disco
from rulescope.learners.learner_config import Plugin
from rulescope.learners.open_config import Open
from rulescope.run_spec import with_donors

FIVE = {"exposure", "E1", "E2", "E-A3c", "E3", "E-A5"}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_asks_along_every_axis_and_of_no_other_rule(preset: str) -> None:
    chosen = audit_plan.budgets(make_subject("sprout"), preset)
    assert {assay.id for assay, _ in chosen} >= FIVE
    runs = [run for assay, budget in chosen for cell in assay.grid(budget) for run in cell.runs]
    rules = {
        run.learner.rule for run in with_donors(runs).values() if isinstance(run.learner, Disco)
    }
    assert rules == {"sprout", "sprout-random:0"}
    small = {run.learner.agent.hidden for run in runs if isinstance(run.learner, Disco)}
    assert small == {(64, 64)}


@pytest.mark.parametrize("preset", ["quick", "standard", "paper"])
def test_a_preset_has_seeds_enough_for_an_answer(preset: str) -> None:
    """OPEN and 24×24 had three seeds at the preset standard, so they could decide nothing."""
    chosen = audit_plan.budgets(make_subject("sprout"), preset) + audit_plan.budgets(
        make_subject("open"), preset
    )
    few = {assay.id: budget.seeds for assay, budget in chosen if budget.seeds < LEAST_SEEDS}
    assert not few


def test_a_rule_without_history_is_audited_without_interventions_on_it() -> None:
    mine = Subject(Plugin("mine", "0" * 64, carriers=("params",)), None)
    for preset in PRESETS:
        chosen = audit_plan.budgets(mine, preset)
        assert "E2" not in {assay.id for assay, _ in chosen}
        runs = [run for assay, budget in chosen for cell in assay.grid(budget) for run in cell.runs]
        assert not any(each.carrier == "recurrent" for run in runs for each in run.interventions)
    assert not audit_plan.has_history(mine)
    assert audit_plan.has_history(make_subject("sprout"))
    with pytest.raises(SpecError, match="--only: 'E2' is not in this audit"):
        audit_plan.budgets(mine, "quick", only=["E2"])


def test_a_plug_in_is_audited_without_a_null_rule() -> None:
    mine = Subject(Plugin("mine", "0" * 64), None)
    chosen = audit_plan.budgets(mine, "quick")
    runs = [run for assay, budget in chosen for cell in assay.grid(budget) for run in cell.runs]
    assert any(isinstance(run.learner, Plugin) for run in runs)
    assert not any(isinstance(run.learner, Disco) for run in runs)


def test_an_optimiser_is_audited_in_its_own_games() -> None:
    ((assay, budget),) = audit_plan.budgets(make_subject("open"), "quick")
    assert (assay.id, budget.subject.rule) == ("OPEN", "open")
    assert budget.seeds == LEAST_SEEDS
    ((_, budget),) = audit_plan.budgets(make_subject("open-multi"), "quick", seeds=1)
    assert (budget.subject.rule, budget.seeds) == ("open-multi", 1)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("rule", ["open", "open-breakout", "open-multi", f"sha256:{'0' * 64}"])
def test_an_optimiser_drives_every_rule_of_its_audit(rule: str, preset: str) -> None:
    subject = make_subject(rule) if rule.startswith("open") else Subject(Open(rule=rule))
    chosen = audit_plan.budgets(subject, preset)
    runs = [run for assay, budget in chosen for cell in assay.grid(budget) for run in cell.runs]
    rules = {run.learner.rule for run in runs if isinstance(run.learner, Open)}
    assert rules == {rule} if rule != "open" else rules <= {"open-breakout", "open-freeway"}
    assert not any(isinstance(run.learner, Disco) for run in runs)


def test_only_is_of_assays_in_the_audit() -> None:
    ((assay, _),) = audit_plan.budgets(make_subject("sprout"), "smoke", only=["scale"])
    assert assay.id == "E1"
    with pytest.raises(SpecError, match="--only: 'P1' is not in this audit"):
        audit_plan.budgets(make_subject("sprout"), "smoke", only=["P1"])
