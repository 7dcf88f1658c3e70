"""A rule of another package as data: strict, and readable where the rule is not installed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rulescope import run_spec
from rulescope.core.errors import SpecError
from rulescope.engine import resources
from rulescope.envs.world_config import WORLDS
from rulescope.learners.learner_config import adapt_to_world
from rulescope.learners.plugin_config import Plugin
from rulescope.run_spec import Pin, PinSteps, RunSpec, Transplant

SOURCE = "0123456789abcdef" * 4
RULE = Plugin(rule="not-installed", source=SOURCE)


def data(**learner: Any) -> dict[str, Any]:
    return {"learner": {"kind": "plugin", "rule": "mine", "source": SOURCE} | learner}


def test_a_spec_is_read_back_where_the_rule_is_not_installed() -> None:
    run = RunSpec(learner=RULE, interventions=(Pin(carrier="recurrent"),))
    assert run_spec.decode(run_spec.canonical(run)) == run
    assert run.kept == ("recurrent",)
    assert "CARRIERS" not in msgspec.to_builtins(RULE)


def test_another_source_is_another_run() -> None:
    other = msgspec.structs.replace(RULE, source=SOURCE[::-1])
    assert RunSpec(learner=other).id != RunSpec(learner=RULE).id


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        ({"source": "abc"}, "learner.source"),
        ({"rule": ""}, "learner.rule"),
        ({"carriers": []}, "learner.carriers"),
        ({"carriers": ["a/b"]}, "learner.carriers"),
        ({"carriers": ["params", "params"]}, "learner.carriers: 'params' is named twice"),
        ({"learning_rate": 0.0}, "learner.learning_rate"),
        ({"rle": "x"}, "learner.rle: no such key; nearest: 'rule'"),
    ],
)
def test_faults_name_the_key(learner: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as fault:
        run_spec.convert(data(**learner))
    assert message in str(fault.value)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (Pin(carrier="recurrent"), "no carrier 'recurrent'; valid: params .*'not-installed' has"),
        (Pin(carrier="parms"), "no carrier 'parms'; nearest: 'params'; valid: params$"),
        (PinSteps(carrier="params"), "the learner 'plugin' can be pinned after iterations only"),
    ],
)
def test_an_intervention_on_what_is_not_there_is_refused(item: Pin, message: str) -> None:
    rule = msgspec.structs.replace(RULE, carriers=("params",))
    with pytest.raises(SpecError, match=rf"interventions\[0\]\..*{message}"):
        run_spec.checked(RunSpec(learner=rule, interventions=(item,)))


def test_a_donor_must_keep_a_history_too() -> None:
    donor = RunSpec(learner=msgspec.structs.replace(RULE, carriers=("params",)))
    item = Transplant(carrier="recurrent", donor=donor, mode="natural")
    with pytest.raises(SpecError, match=r"donor\.keep: a donor must keep its 'recurrent'"):
        run_spec.checked(RunSpec(learner=RULE, interventions=(item,)))


def test_it_has_the_defaults_of_other_learners() -> None:
    channels = adapt_to_world(RULE, WORLDS["minatar-breakout"])
    assert isinstance(channels, Plugin)
    assert channels.agent.torso == "channel"
    assert adapt_to_world(RULE, WORLDS["catch"]) == RULE
    assert RULE.usual_shape.steps == 29
    assert not RULE.stepwise
    assert RULE.first_update(2, 29) == 1
    assert resources.estimate(RunSpec(learner=RULE)).memory > resources.PROCESS
