"""Each rule keeps the contract of learners, and its lifetimes can be audited."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from rulescope import learners
from rulescope.core import runtime
from rulescope.intervention_conformance import check_intervention
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.learners.learner_conformance import check_learner
from rulescope.learners.plugin_rule import pin_rule
from rulescope.lifetime import Lifetime
from rulescope.run_spec import Freeze, Pin, RunSpec, Transplant

HISTORIES = {
    "two-networks": "recurrent",
    "lstm-policy": "agent",
    "learned-optimiser": "recurrent",
    "sized-jax": "recurrent",
}
"""The carrier of each rule that holds its memory."""
STEPS = 9

pytestmark = pytest.mark.parametrize("rule", HISTORIES)


def lifetime(rule: str, **changes: Any) -> RunSpec:
    """Return a short lifetime of a rule in Catch, with a small network."""
    learner = replace(pin_rule(rule), agent=NetworkSizes(hidden=(16, 16)))
    short = RunSpec(learner=learner, scale=0.1, iterations=6, log_every=2, steps=STEPS)
    return replace(short, **changes)


def completed(spec: RunSpec) -> Lifetime:
    life = Lifetime(spec)
    life.run()
    return life


def test_it_keeps_the_contract_of_learners(rule: str) -> None:
    runtime.single_threaded()
    config = lifetime(rule).learner
    check_learner(lambda: learners.make(config, (8, 8), 3, STEPS, seed=0), (8, 8), 3, steps=STEPS)


def test_its_memory_can_be_pinned_frozen_and_transplanted(rule: str) -> None:
    carrier = HISTORIES[rule]
    for item in (Pin(carrier=carrier), Freeze(carrier=carrier, at=2)):
        check_intervention(lifetime(rule, interventions=(item,)))
    donor = lifetime(rule, seed=7, scale=10.0, keep=(carrier,))
    state = completed(donor).record().state
    transplant = Transplant(carrier=carrier, donor=donor, mode="natural")
    check_intervention(lifetime(rule, interventions=(transplant,)), {donor.id: state})


def test_its_memory_matters(rule: str) -> None:
    live = completed(lifetime(rule))
    pinned = completed(lifetime(rule, interventions=(Pin(carrier=HISTORIES[rule]),)))
    params = pinned.learner.carriers["params"].get()
    assert any(
        not np.array_equal(array, params[name])
        for name, array in live.learner.carriers["params"].get().items()
    )
