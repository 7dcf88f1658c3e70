"""Which agent an assay is run with."""

from __future__ import annotations

import pytest

from rulescope.assays import ASSAYS, PRESETS, Selection, narrowed
from rulescope.assays.subject import find_subject
from rulescope.audit import audit_plan
from rulescope.learners.disco_config import AGENTS, Conventions, Disco
from rulescope.run_spec import RunSpec, with_donors

REFERENCE_INDEXED = {"E1", "E2", "E3", "P1", "E-IF", "F2", "E-A4x", "E-A4m", "E-A5", "E-A3c"}
EARLIER = {"exposure", "synthetic", "masking", "M1", "minatar-context", "conventions", "F1"}
"""As the published audit lists its matrices."""


def agents_of(name: str, preset: str) -> set[Conventions]:
    assay = ASSAYS[name]
    runs = [run for cell in assay.grid(assay.budget(preset)) for run in cell.runs[:1]]
    learners = [run.learner for run in with_donors(runs).values()]
    return {who.conventions for who in learners if isinstance(who, Disco)}


@pytest.mark.parametrize("name", sorted(REFERENCE_INDEXED))
@pytest.mark.parametrize("preset", PRESETS)
def test_reference_indexed_cohorts_have_independent_actions(name: str, preset: str) -> None:
    assert agents_of(name, preset) == {AGENTS["published"]}
    assert AGENTS["published"].action_model == "independent"


@pytest.mark.parametrize("name", sorted(EARLIER))
def test_earlier_cohorts_have_chained_actions_and_stored_alignment(name: str) -> None:
    found = agents_of(name, "smoke")
    assert {(each.action_model, each.alignment) for each in found} == {("chained", "stored")}


@pytest.mark.parametrize("name", ASSAYS)
def test_every_assay_says_why_it_has_its_agent(name: str) -> None:
    cohort = ASSAYS[name].cohort
    assert cohort.evidence.endswith(".")
    has_disco = bool(agents_of(name, "smoke")) and name != "agent-identity"
    assert (cohort.agent in AGENTS) == has_disco


def test_agent_can_be_chosen_instead() -> None:
    assay = ASSAYS["exposure"]
    budget = narrowed(assay, assay.budget("smoke"), Selection(agent="published"))
    made = {run.learner for cell in assay.grid(budget) for run in cell.runs}
    conventions = {who.conventions for who in made if isinstance(who, Disco)}
    assert conventions == {AGENTS["published"]}


def test_defaults_of_a_spec_are_the_historical_agent_for_ever() -> None:
    """Ids hash only what differs from the defaults, and hundreds of records were made with them."""
    assert RunSpec().learner == Disco(conventions=AGENTS["historical"])
    assert AGENTS["historical"] == Conventions()
    assert RunSpec().id.startswith("67d6291b301412df")


@pytest.mark.parametrize("agent", [None, "historical"])
def test_an_audit_has_one_agent_in_all_its_assays(agent: str | None) -> None:
    subject, _ = find_subject("disco103")
    chosen = audit_plan.budgets(subject, "smoke", agent=agent)
    assert {budget.agent for _, budget in chosen} == {agent or "published"}
