"""Named learners, and what their configurations tell."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from learners.baseline_cases import SMALL
from learners.small import small_disco
from rulescope import run_spec
from rulescope.core.errors import SpecError
from rulescope.engine import resources
from rulescope.envs.world_config import WORLDS, Catch
from rulescope.learners.baseline_config import A2C, DQN, PPO, RandomPolicy
from rulescope.learners.disco_config import Disco
from rulescope.learners.learner_config import VARIANTS, LearnerSpec, Plugin, adapt_to_world
from rulescope.learners.open_config import Open, OpenAdam
from rulescope.lifetime import Lifetime
from rulescope.run_spec import Pin, PinSteps, RunSpec, Transplant


def test_every_name_is_another_learner() -> None:
    assert len(set(VARIANTS.values())) == len(VARIANTS) == 22


@pytest.mark.parametrize("name", VARIANTS)
def test_minatar_is_seen_in_channels_and_a_board_is_not(name: str) -> None:
    learner = VARIANTS[name]
    assert adapt_to_world(learner, Catch()) is learner
    games = adapt_to_world(learner, WORLDS["minatar-breakout"])
    if isinstance(games, RandomPolicy):
        assert games is learner
    else:
        flat = isinstance(games, Open | OpenAdam)
        assert games.agent.torso == ("grid" if flat else "channel")


@pytest.mark.parametrize(
    "learner", [small_disco(), *SMALL.values()], ids=lambda learner: type(learner).__name__
)
def test_first_update_is_when_parameters_first_change(learner: LearnerSpec) -> None:
    spec = RunSpec(learner=learner, environment=Catch(5, 5), iterations=12, log_every=1, steps=3)
    life = Lifetime(spec)
    initial = life.learner.carriers["params"].get()["flat"]
    changed = []
    for _ in range(12):
        life.advance()
        changed.append(bool((life.learner.carriers["params"].get()["flat"] != initial).any()))
    assert changed.index(True) + 1 == learner.first_update(spec.lanes, spec.steps)


@pytest.mark.parametrize(
    ("learner", "problem"),
    [
        (Disco(batch=65, capacity=64), "batch: 65 is more than learner.capacity (64)"),
        (DQN(start=200, capacity=100), "start: 200 is more than learner.capacity (100)"),
        (DQN(start=1, capacity=1), "capacity: 1 has no room for one transition of each lane (2)"),
        (PPO(minibatches=59), "minibatches: 59 is more than an iteration has (58)"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_a_learner_that_could_never_learn_is_reported(learner: LearnerSpec, problem: str) -> None:
    (found,) = learner.problems(lanes=2, steps=29)
    assert found.startswith(problem)


@pytest.mark.parametrize("learner", [*VARIANTS.values(), A2C(learning_rate=1e-4)], ids=repr)
def test_usual_learners_fit_usual_rollouts(learner: LearnerSpec) -> None:
    assert not list(learner.problems(lanes=2, steps=29))


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
        (
            PinSteps(carrier="params"),
            "the learner 'not-installed' can be pinned after iterations only",
        ),
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
