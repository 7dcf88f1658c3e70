"""What a rule and a world must keep to be audited. Copy this, and change the two names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from rulescope import envs, learners
from rulescope.core import runtime
from rulescope.envs.plugin_world import pin_plugin_world
from rulescope.envs.world_config import Boundary
from rulescope.intervention_conformance import check_intervention
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.learners.learner_conformance import check_learner
from rulescope.learners.plugin_rule import pin_rule
from rulescope.lifetime import Lifetime
from rulescope.run_spec import Freeze, Intervention, Pin, RunSpec, Transplant

RULE, WORLD = "sized", "echo"
ITERATIONS = 8
STEPS = 9


def lifetime(**changes: Any) -> RunSpec:
    """Return a short lifetime of the rule in Catch, with a small network."""
    learner = replace(pin_rule(RULE), agent=NetworkSizes(hidden=(16, 16)))
    short = RunSpec(learner=learner, scale=0.1, iterations=ITERATIONS, log_every=2, steps=STEPS)
    return replace(short, **changes)


def completed(spec: RunSpec, **donors: Any) -> Lifetime:
    life = Lifetime(spec, **donors)
    life.run()
    return life


def test_the_rule_keeps_the_contract_of_learners() -> None:
    runtime.single_threaded()
    config = lifetime().learner
    check_learner(lambda: learners.make(config, (8, 8), 3, STEPS, seed=0), (8, 8), 3, steps=STEPS)


@pytest.mark.parametrize(
    "item",
    [
        Pin(carrier="recurrent"),
        Freeze(carrier="recurrent", at=3),
        Transplant(carrier="recurrent", donor=RunSpec(), mode="natural"),
        Transplant(carrier="recurrent", donor=RunSpec(), mode="clamp"),
    ],
    ids=["pin", "freeze", "transplant-natural", "transplant-clamp"],
)
def test_its_history_can_be_intervened_on(item: Intervention) -> None:
    if not isinstance(item, Transplant):
        check_intervention(lifetime(interventions=(item,)))
        return
    donor = lifetime(seed=7, scale=10.0)
    state = completed(donor).record().state
    recipient = lifetime(interventions=(replace(item, donor=donor),))
    check_intervention(recipient, {donor.id: state})


def test_its_history_matters() -> None:
    live = completed(lifetime()).learner.carriers["params"].get()
    pinned = completed(lifetime(interventions=(Pin(carrier="recurrent"),)))
    assert any(
        not np.array_equal(array, live[name])
        for name, array in pinned.learner.carriers["params"].get().items()
    )


def test_the_world_keeps_the_contract_of_worlds() -> None:
    world = pin_plugin_world(WORLD)
    envs.check_env(lambda: envs.make(world, Boundary(), scale=1.0, lanes=2))


def test_the_references_are_what_play_earns() -> None:
    world = envs.make(pin_plugin_world(WORLD), Boundary(), scale=1.0, lanes=8)
    rng = np.random.default_rng(0)
    for rate, oracle in (
        (world.references.oracle_rate, True),
        (world.references.random_rate, False),
    ):
        shown, earned = world.reset(seed=1), []
        for _ in range(1000):
            actions = shown.argmax(axis=1) if oracle else rng.integers(world.actions, size=8)
            step = world.step(actions)
            shown = step.observation
            earned.append(step.payoff.mean())
        assert np.mean(earned) == pytest.approx(rate, abs=0.02)
