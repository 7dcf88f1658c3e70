"""OPEN and its Adam live whole lifetimes like any learner: recorded, resumed, treated."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from learners.test_open_ppo import SMALL
from rulescope.cli.main import app
from rulescope.core.arrays import Arrays
from rulescope.core.errors import SpecError
from rulescope.core.structs import expanded
from rulescope.envs.world_config import WORLDS, Catch
from rulescope.intervention_conformance import check_intervention
from rulescope.learners.learner_config import VARIANTS, adapt_to_world
from rulescope.learners.open_config import Open, OpenAdam
from rulescope.lifetime import Lifetime
from rulescope.run_spec import (
    Ablate,
    Freeze,
    Hold,
    Intervention,
    Permute,
    Pin,
    PinSteps,
    Placebo,
    RandomState,
    Reset,
    RunSpec,
    Transplant,
    decode,
)

ITERATIONS = 4
QUICK = {name: msgspec.structs.replace(SMALL[name], epochs=1, minibatches=2) for name in SMALL}
CARRIERS = [(name, carrier) for name in ("small", "adam") for carrier in SMALL[name].CARRIERS]


def short(name: str, **changes: Any) -> RunSpec:
    base = RunSpec(
        learner=QUICK[name],
        environment=Catch(rows=5, columns=5),
        iterations=ITERATIONS,
        log_every=1,
        steps=4,
        keep=SMALL[name].CARRIERS,
    )
    return msgspec.structs.replace(base, **changes)


@cache
def terminal(spec: RunSpec) -> Arrays:
    life = Lifetime(spec)
    life.run()
    return life.record().state


def operations(name: str, carrier: str) -> list[Intervention]:
    """Return all operations for what the rule remembers, and some for the rest."""
    donors = tuple(short(name, seed=seed, iterations=2) for seed in (5, 6, 7))
    some: list[Intervention] = [
        PinSteps(carrier=carrier),
        Reset(carrier=carrier, at=2),
        Transplant(carrier=carrier, donor=donors[0], mode="clamp"),
        Placebo(carrier=carrier),
    ]
    if carrier != "recurrent":
        return some
    return [
        *some,
        Pin(carrier=carrier),
        Freeze(carrier=carrier, at=2),
        Hold(carrier=carrier),
        RandomState(carrier=carrier, donors=donors, mode="natural"),
        Permute(carrier=carrier, at=2, mode="clamp"),
        Ablate(carrier=carrier, donors=donors, components=1, which="principal", at=2, mode="clamp"),
    ]


@pytest.mark.parametrize(("name", "carrier"), CARRIERS)
def test_every_operation_works_on_every_carrier(name: str, carrier: str) -> None:
    for item in operations(name, carrier):
        spec = short(name, interventions=(item,))
        states = {donor.id: terminal(donor) for donor in spec.donors}
        check_intervention(spec, states)


@pytest.mark.parametrize("name", SMALL)
def test_a_spec_is_read_back_as_it_was(name: str) -> None:
    spec = short(name)
    assert decode(msgspec.json.encode(expanded(spec))) == spec


def test_a_game_gets_the_rule_that_was_trained_on_it() -> None:
    for game, rate in (("breakout", 1e-2), ("freeway", 1e-3)):
        for world in (WORLDS[f"minatar-{game}"], WORLDS[f"gymnax-{game}"]):
            assert adapt_to_world(Open(), world) == Open(rule=f"open-{game}")
            assert adapt_to_world(OpenAdam(), world) == OpenAdam(learning_rate=rate)
            multi = VARIANTS["open-multi"]
            assert adapt_to_world(multi, world) is multi


def test_convolutions_and_empty_minibatches_are_refused() -> None:
    channel = msgspec.structs.replace(Open().agent, torso="channel")
    for config in (Open(agent=channel), OpenAdam(agent=channel)):
        (problem,) = config.problems(lanes=64, steps=128)
        assert problem.startswith("agent.torso: the rule has no convolutions")
    (problem,) = Open(minibatches=9).problems(lanes=2, steps=4)
    assert problem.startswith("minibatches: 9 is more than an iteration has (8)")
    with pytest.raises(SpecError, match=r"learner\.agent\.torso"):
        decode('{"learner": {"kind": "open", "agent": {"torso": "channel"}}}')


def life(*options: object) -> str:
    result = CliRunner().invoke(app, ["life", *map(str, options)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_command_line_uses_its_usual_shape() -> None:
    shown = json.loads(life("--learner", "open", "--env", "gymnax-freeway", "--show-spec"))
    usual = Open().usual_shape
    assert (shown["lanes"], shown["steps"], shown["iterations"]) == usual[:3] == (64, 128, 56)
    assert shown["learner"]["rule"] == "open-freeway"
    own = ["--rule", "open-breakout", "--pin", "recurrent:step", "--pin", "moments"]
    shown = json.loads(life("--learner", "open", "--env", "gymnax-freeway", *own, "--show-spec"))
    assert shown["learner"]["rule"] == "open-breakout"
    pins = [(item["operation"], item["carrier"]) for item in shown["interventions"]]
    assert pins == [("pin-steps", "recurrent"), ("pin", "moments")]
    with pytest.raises(SpecError, match="--learning-rate: does not apply to the learner 'open'"):
        life("--learner", "open", "--learning-rate", "0.1")
    with pytest.raises(SpecError, match="--rule: does not apply to the learner 'open-adam'"):
        life("--learner", "open-adam", "--rule", "open-multi")
    with pytest.raises(SpecError, match=r"--pin: no 'stp'.*step"):
        life("--learner", "open", "--pin", "recurrent:stp")


def test_the_command_line_pauses_and_resumes(tmp_path: Path) -> None:
    small = ["--learner", "open", "--rule", "open-random:11", "--env", "catch", "--lanes", 2]
    small += ["--steps", 8, "--iterations", 4, "--json"]
    whole = json.loads(life(*small, "--store", tmp_path / "whole"))
    life(*small, "--store", tmp_path / "parts", "--stop-after", 2)
    parts = json.loads(life(*small, "--store", tmp_path / "parts"))
    assert parts["science_hash"] == whole["science_hash"]
