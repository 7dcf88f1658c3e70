"""Worlds as data: names, tags, and identities that must never change."""

from __future__ import annotations

import msgspec
import pytest

from rulescope.envs.world_config import (
    WORLDS,
    Boundary,
    Catch,
    Change,
    DeepSea,
    EnvironmentSpec,
    MinAtar,
)
from rulescope.run_spec import RunSpec, canonical

CATCH_CANONICAL = {
    "catch": {"schema": 1},
    "catch-dense": {"environment": {"dense": True, "kind": "catch"}, "schema": 1},
    "catch-long": {"environment": {"columns": 16, "kind": "catch", "rows": 16}, "schema": 1},
    "catch-big": {"environment": {"columns": 24, "kind": "catch", "rows": 24}, "schema": 1},
}


@pytest.mark.parametrize("name", CATCH_CANONICAL)
def test_new_worlds_leave_the_identity_of_catch_alone(name: str) -> None:
    assert (
        msgspec.json.decode(canonical(RunSpec(environment=WORLDS[name]))) == CATCH_CANONICAL[name]
    )


def test_the_identity_of_the_default_run_is_that_of_version_one() -> None:
    assert RunSpec().id == "67d6291b301412df4a6ca7808aeafac9d0587b06ece3c68e72bab0157cd9d52c"


@pytest.mark.parametrize("name", WORLDS)
def test_named_worlds_are_read_back(name: str) -> None:
    world = WORLDS[name]
    assert msgspec.convert(msgspec.to_builtins(world), EnvironmentSpec) == world


def test_the_published_worlds_have_names() -> None:
    depths = {depth: WORLDS[f"deep-sea-{depth}"] for depth in (4, 6, 8, 10, 12, 14, 16, 20, 24, 30)}
    assert all(world == DeepSea(depth=depth) for depth, world in depths.items())
    assert WORLDS["minatar-breakout"] == MinAtar(game="breakout", sticky=0.1, actions="full")
    assert WORLDS["gymnax-freeway"] == MinAtar(
        game="freeway", sticky=0.0, actions="minimal", limit=2500
    )


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ({"kind": "catch-stream", "drift": 0.6}, EnvironmentSpec),
        ({"kind": "tracking", "columns": 1}, EnvironmentSpec),
        ({"kind": "deep-sea", "depth": 1}, EnvironmentSpec),
        ({"kind": "deep-sea", "mapping": -1}, EnvironmentSpec),
        ({"kind": "minatar"}, EnvironmentSpec),
        ({"kind": "minatar", "game": "asterix"}, EnvironmentSpec),
        ({"kind": "minatar", "game": "breakout", "limit": 0}, EnvironmentSpec),
        ({"kind": "gymnasium", "id": ""}, EnvironmentSpec),
        ({"kind": "action-flip"}, Change),
        ({"kind": "action-flip", "at": -1}, Change),
        ({"kind": "reward-sign", "at": 1, "map": "mirror"}, Change),
    ],
)
def test_impossible_data_are_refused(data: dict[str, object], kind: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(data, kind)


def test_parts_can_be_keys() -> None:
    """They are compared and hashed by value, as the references' cache does."""
    assert len({Catch(), Catch(), DeepSea(), Boundary(), Boundary()}) == 3
