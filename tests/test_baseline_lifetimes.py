"""Baselines live whole lifetimes like any learner: recorded, resumed, treated."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest

from learners.baseline_cases import SMALL
from rulescope.core.arrays import Arrays
from rulescope.core.errors import SpecError
from rulescope.core.structs import expanded
from rulescope.envs.world_config import ActionFlip, Catch, DeepSea, Tracking
from rulescope.intervention_conformance import check_intervention
from rulescope.learners.baseline_config import A2C, RandomPolicy
from rulescope.lifetime import Lifetime
from rulescope.records import Record
from rulescope.run_spec import (
    Freeze,
    Hold,
    Intervention,
    Permute,
    Pin,
    Placebo,
    RandomState,
    Reset,
    RunSpec,
    Transplant,
    checked,
    decode,
)

ALL = {**SMALL, "random": RandomPolicy()}
ITERATIONS = 8


def short(name: str, **changes: Any) -> RunSpec:
    base = RunSpec(
        learner=ALL[name],
        environment=Catch(rows=5, columns=5),
        iterations=ITERATIONS,
        log_every=2,
        steps=5,
    )
    return msgspec.structs.replace(base, **changes)


def completed(spec: RunSpec) -> Lifetime:
    life = Lifetime(spec)
    life.run()
    return life


def science(spec: RunSpec) -> str:
    return completed(spec).record().manifest.science_hash


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("stop", [0, 1, 3, 5, 7])
def test_stopped_and_resumed_is_uninterrupted(name: str, stop: int) -> None:
    spec = short(name, change=ActionFlip(at=4))
    first = Lifetime(spec)
    first.run(until=stop)
    again = Lifetime(spec)
    again.load(first.save())
    again.run()
    assert again.record().manifest.science_hash == science(spec)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("world", [DeepSea(depth=4), Tracking(columns=5)], ids=repr)
def test_other_worlds_resume_too(name: str, world: Any) -> None:
    spec = short(name, environment=world)
    first = Lifetime(spec)
    first.run(until=5)
    again = Lifetime(spec)
    again.load(first.save())
    again.run()
    assert again.record().manifest.science_hash == science(spec)


@pytest.mark.parametrize("name", ALL)
def test_the_log_before_a_change_does_not_depend_on_it(name: str) -> None:
    plain, changed = (completed(short(name, change=it)).log() for it in (None, ActionFlip(at=4)))
    for column, values in plain.items():
        np.testing.assert_array_equal(changed[column][:2], values[:2], err_msg=column)


@pytest.mark.parametrize("name", ALL)
def test_a_spec_is_read_back_as_it_was(name: str) -> None:
    spec = short(name)
    assert decode(msgspec.json.encode(expanded(spec))) == spec


def record(name: str, **changes: Any) -> Record:
    return completed(short(name, **changes)).record()


@pytest.mark.parametrize(("name", "kept"), [("a2c", set()), ("a2c-popart", {"averages"})])
def test_of_what_is_usually_kept_a_record_has_what_the_learner_has(
    name: str, kept: set[str]
) -> None:
    assert {key.partition("/")[0] for key in record(name).state} == kept


def test_a_carrier_that_is_asked_for_by_name_must_exist() -> None:
    with pytest.raises(SpecError, match="keep: no carrier 'recurrent'"):
        checked(short("a2c", keep=("recurrent",)))


def test_a_baseline_has_no_rule() -> None:
    assert record("a2c").manifest.rule is None
    with pytest.raises(SpecError, match="rule"):
        decode('{"learner": {"kind": "a2c", "rule": "disco103"}}')


def test_dqn_explores_over_its_share_of_the_lifetime() -> None:
    # 20 % of 20 iterations of 10 interactions: epsilon is down at interaction 40.
    log = completed(short("dqn", iterations=20, log_every=1)).log()
    assert log["epsilon"][0] == pytest.approx(1 - 0.95 * 10 / 40)
    np.testing.assert_allclose(log["epsilon"][3:], 0.05)
    assert (log["epsilon"][:3] > 0.06).all()


def donors(name: str) -> tuple[RunSpec, ...]:
    return tuple(
        short(name, seed=seed, keep=ALL[name].CARRIERS, scale=scale)
        for seed, scale in ((10, 0.1), (11, 1.0), (12, 10.0))
    )


@cache
def states(name: str) -> dict[str, Arrays]:
    return {donor.id: completed(donor).record().state for donor in donors(name)}


def treatments(name: str, carrier: str) -> list[Intervention]:
    some: list[Intervention] = [
        Pin(carrier=carrier),
        Freeze(carrier=carrier, at=4),
        Hold(carrier=carrier),
        Reset(carrier=carrier, at=4),
        Transplant(carrier=carrier, donor=donors(name)[0], mode="natural"),
        Transplant(carrier=carrier, donor=donors(name)[2], mode="clamp"),
        Placebo(carrier=carrier),
    ]
    if carrier != "replay":
        some.append(Permute(carrier=carrier, at=4, mode="natural"))
    if carrier not in ("replay", "moments"):  # a negative second moment has no root
        some.append(RandomState(carrier=carrier, donors=donors(name), mode="natural"))
    return some


CASES = [
    (name, carrier, turn)
    for name, learner in SMALL.items()
    for carrier in learner.CARRIERS
    for turn in range(len(treatments(name, carrier)))
]


@pytest.mark.parametrize(("name", "carrier", "turn"), CASES)
def test_every_carrier_of_every_baseline_can_be_treated(name: str, carrier: str, turn: int) -> None:
    item = treatments(name, carrier)[turn]
    check_intervention(short(name, interventions=(item,)), states(name))


def test_clearing_the_replay_leaves_the_schedule_and_the_network() -> None:
    spec = short("dqn", interventions=(Reset(carrier="replay", at=4),))
    cleared, kept = Lifetime(spec), Lifetime(short("dqn"))
    cleared.run(until=4)
    kept.run(until=4)
    assert cleared.learner.carriers["replay"].get()["actions"].size == 0
    for name in ("params", "target", "moments", "schedule"):
        for key, array in kept.learner.carriers[name].get().items():
            np.testing.assert_array_equal(cleared.learner.carriers[name].get()[key], array)


def test_a_learning_rate_is_part_of_the_identity() -> None:
    ids = {RunSpec(learner=A2C(learning_rate=rate)).id for rate in (1e-4, 7e-4)}
    assert len(ids) == 2
