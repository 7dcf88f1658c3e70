"""Carriers that are chosen as the history of a subject: names, interventions, errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from rulescope.assays import ASSAYS, Selection, narrowed
from rulescope.assays.recorded_plans import record_plan, recorded_budgets
from rulescope.assays.subject import Subject, find_subject, make_subject, name_history
from rulescope.audit.audit_plan import budgets
from rulescope.core.errors import SpecError
from rulescope.learners.baseline_config import DQN, PPO
from rulescope.records import Store
from rulescope.run_spec import Freeze, Pin, RunSpec, Transplant, checked


def grid(subject: Subject, assay: str, *arms: str) -> dict[str, RunSpec]:
    """Return the first run of each arm at the first scale of the smoke preset."""
    known = ASSAYS[assay]
    budget = narrowed(known, known.budget("smoke"), Selection(arms=arms, subject=subject))
    found: dict[str, RunSpec] = {}
    for cell in known.grid(budget):
        found.setdefault(str(cell.labels["arm"]), cell.runs[0])
    return found


def test_a_baseline_is_a_subject_without_history_until_one_is_chosen() -> None:
    plain, _ = find_subject("ppo")
    assert (plain.learner, plain.history, plain.name) == (PPO(), (), "ppo")
    chosen, _ = find_subject("ppo@moments")
    assert (chosen.learner, chosen.history, chosen.name) == (PPO(), ("moments",), "ppo@moments")


def test_the_declared_history_needs_no_other_name() -> None:
    assert make_subject("disco103@recurrent") == make_subject("disco103")


def test_a_pinned_carrier_is_restored_to_its_initial_value() -> None:
    runs = grid(make_subject("ppo@moments"), "E1", "live", "pin")
    assert runs["live"].interventions == ()
    assert runs["pin"].interventions == (Freeze(carrier="moments", at=0),)
    assert runs["pin"].learner == PPO()


def test_every_chosen_carrier_is_acted_on() -> None:
    runs = grid(make_subject("a2c@moments+params"), "E1", "pin")
    assert [item.carrier for item in runs["pin"].interventions] == ["moments", "params"]


def test_the_recurrent_state_is_pinned_to_zero_as_before() -> None:
    runs = grid(make_subject("sprout"), "E1", "pin")
    assert runs["pin"].interventions == (Pin(carrier="recurrent"),)


def test_donors_keep_the_chosen_carriers() -> None:
    run = grid(make_subject("dqn@replay"), "E2", "match-clamp")["match-clamp"]
    [item] = run.interventions
    assert isinstance(item, Transplant)
    assert (item.carrier, item.donor.keep, item.donor.learner) == ("replay", ("replay",), DQN())
    assert checked(run) == run


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a2c@moment", "'a2c@moment': 'a2c' has no carrier 'moment'; nearest: 'moments'"),
        ("a2c@moments+moments", "'a2c@moments+moments': 'moments' is named twice"),
        ("open@recurrent", "'open@recurrent': an audit of OPEN acts on its carry"),
    ],
)
def test_a_wrong_history_is_refused_with_the_option(name: str, problem: str) -> None:
    with pytest.raises(SpecError) as fault:
        find_subject(name)
    assert str(fault.value).startswith(problem)


def test_a_history_is_named_once() -> None:
    with pytest.raises(SpecError, match="names its history already"):
        name_history("ppo@moments", ["params"])


def test_an_audit_without_history_has_no_arm_that_acts_on_one() -> None:
    planned = budgets(make_subject("ppo"), "quick")
    runs = [run for assay, b in planned for cell in assay.grid(b) for run in cell.runs]
    assert "E2" not in {assay.id for assay, _ in planned}
    assert all(item.carrier == "replay" for run in runs for item in run.interventions)


def test_a_plan_is_read_back_with_its_history(tmp_path: Path) -> None:
    store = Store(tmp_path)
    subject = make_subject("disco103@averages")
    budget = narrowed(ASSAYS["E1"], ASSAYS["E1"].budget("smoke"), Selection(subject=subject))
    record_plan(store, ASSAYS["E1"], budget, subject.name)
    assert recorded_budgets(store) == [(ASSAYS["E1"], budget)]
