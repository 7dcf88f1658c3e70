"""Both rules keep the contract of learners, and agree with the options of the baselines."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from msgspec.structs import replace

from rulescope import learners
from rulescope.core import runtime, seeds
from rulescope.intervention_conformance import check_intervention
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.learners.learner import Learner, Rollout
from rulescope.learners.learner_base import ReturnScaling, UnitReplacement
from rulescope.learners.learner_conformance import check_learner
from rulescope.learners.plugin_rule import pin_rule
from rulescope.learners.return_statistics import ReturnStatistics
from rulescope.learners.unit_replacement import Replacement
from rulescope.lifetime import Lifetime
from rulescope.run_spec import Freeze, Intervention, Pin, PinSteps, RunSpec
from rulescope_continual.continual_backprop import ContinualBackprop
from rulescope_continual.return_scaled import ReturnScaled

OPTIONS: dict[str, dict[str, Any]] = {
    "continual-backprop": {"rate": 0.2, "maturity": 3},
    "return-scaled": {},
}
STEPS = 9


def lifetime(rule: str, **changes: Any) -> RunSpec:
    learner = replace(pin_rule(rule, OPTIONS[rule]), agent=NetworkSizes(hidden=(16, 12)))
    short = RunSpec(learner=learner, scale=0.1, iterations=8, log_every=2, steps=STEPS)
    return replace(short, **changes)


def make(rule: str) -> Learner:
    return learners.make(lifetime(rule).learner, (8, 8), 3, STEPS, seed=0)


def rollouts(count: int) -> list[Rollout]:
    rng = np.random.default_rng(0)
    return [
        Rollout(
            observations=rng.standard_normal((STEPS + 1, 2, 8, 8)).astype(np.float32),
            actions=rng.integers(3, size=(STEPS, 2)),
            rewards=rng.standard_normal((STEPS, 2)).astype(np.float32),
            terminals=rng.random((STEPS, 2)) < 0.2,
            began=np.zeros(2, np.bool_),
            behaviour={"logits": rng.standard_normal((STEPS, 2, 3)).astype(np.float32)},
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("rule", OPTIONS)
def test_the_rule_keeps_the_contract_of_learners(rule: str) -> None:
    runtime.single_threaded()
    check_learner(lambda: make(rule), (8, 8), 3, steps=STEPS)


@pytest.mark.parametrize("rule", OPTIONS)
@pytest.mark.parametrize("item", [Pin(carrier="recurrent"), Freeze(carrier="recurrent", at=3)])
def test_its_history_can_be_intervened_on(rule: str, item: Intervention) -> None:
    check_intervention(lifetime(rule, interventions=(item,)))


def test_pinned_after_every_step_no_unit_is_replaced() -> None:
    pinned = Lifetime(
        lifetime("continual-backprop", interventions=(PinSteps(carrier="recurrent"),))
    )
    pinned.run()
    learner = cast("ContinualBackprop", pinned.learner)
    first = seeds.pack(seeds.stream(learner.setup.seed, "replacement"))
    assert (seeds.pack(learner.streams["replacement"]) == first).all()  # nothing was ever drawn


def test_units_are_replaced_as_by_the_option_of_the_baselines() -> None:
    """After each step both get the same weights, activations, ages and random numbers."""
    runtime.single_threaded()
    learner = cast("ContinualBackprop", make("continual-backprop"))
    own, layout, replaced = learner.replace_units, learner.network.layout, []

    def both() -> None:
        flat, state = learner.params.clone(), learner.carriers["recurrent"].get()
        views = layout.views(flat)
        config = UnitReplacement(rate=0.2, maturity=3)
        other = Replacement(config, learner.network.hidden_layers(views))
        before = {key: state[key].astype(np.int64) for key in ("age.0", "age.1")}
        other.carrier.set({**state, **before, "replaced": np.array(0)})
        stream = seeds.unpack(seeds.pack(learner.streams["replacement"]))
        other.step_(learner.activations, stream)
        own()
        assert learner.params.allclose(flat, rtol=1e-6, atol=1e-7)
        after, expected = learner.carriers["recurrent"].get(), other.carrier.get()
        for name, array in after.items():
            np.testing.assert_allclose(array, expected[name], rtol=1e-4, atol=1e-7)
        replaced.append(int(expected["replaced"]))

    learner.after_step[:] = [both]
    for rollout in rollouts(3):
        learner.learn(rollout, measure=False)
    assert len(replaced) == 3 * 16
    assert sum(replaced) > 20


def test_sigma_is_that_of_the_option_of_the_baselines() -> None:
    learner = cast("ReturnScaled", make("return-scaled"))
    statistics = ReturnStatistics(ReturnScaling(), discount=0.997)
    for rollout in rollouts(6):
        learner.learn(rollout, measure=False)
        statistics.push(rollout)
        state = learner.carriers["recurrent"].get()
        sums = learner.start()["sums"].new_tensor(state["sums"])
        assert learner.sigma(sums) == pytest.approx(statistics.sigma, rel=1e-9)
