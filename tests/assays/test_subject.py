"""Arms that would not be what they say are refused."""

from __future__ import annotations

import pytest

from rulescope.assays import Selection, find, narrowed
from rulescope.assays.subject import Subject, make_subject
from rulescope.core.errors import SpecError
from rulescope.learners.learner_config import Plugin

MINE = Subject(Plugin("mine", "0" * 64), None)
MULTI = make_subject("open-multi")


@pytest.mark.parametrize("name", ["interface", "interface-state"])
def test_a_plug_in_has_no_value_interface_to_change(name: str) -> None:
    assay = find(name)
    with pytest.raises(SpecError, match="'mine' has no value interface to be 'support30'"):
        assay.grid(narrowed(assay, assay.budget("paper"), Selection(subject=MINE)))


@pytest.mark.parametrize("subject", [MINE, make_subject("sprout")], ids=["plugin", "sprout"])
@pytest.mark.parametrize("name", ["conventions", "F1"])
def test_who_has_a_learner_of_its_own_has_no_legacy_indexing(name: str, subject: Subject) -> None:
    assay = find(name)
    with pytest.raises(SpecError, match="learner of its own, without a legacy indexing"):
        assay.grid(narrowed(assay, assay.budget("smoke"), Selection(subject=subject)))


@pytest.mark.parametrize("assay", ["E1", "minatar-context"])
def test_a_rule_of_open_is_not_given_to_disco(assay: str) -> None:
    with pytest.raises(SpecError, match="--rule: 'open-multi' is a rule of OPEN"):
        narrowed(find(assay), find(assay).budget("smoke"), Selection(subject=MULTI))


def test_an_arm_that_ignores_the_rule_does_not_go_by_its_name() -> None:
    context = find("minatar-context")
    with pytest.raises(SpecError, match="does not drive this part of minatar-context"):
        narrowed(context, context.budget("smoke"), Selection(arms=["open"], subject=MULTI))
    budget = narrowed(find("OPEN"), find("OPEN").budget("smoke"), Selection(subject=MULTI))
    assert budget.subject.rule == "open-multi"
