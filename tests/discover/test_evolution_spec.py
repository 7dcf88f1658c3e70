from __future__ import annotations

from typing import Any

import msgspec
import pytest

from discover.tiny_evolution import TINY_LPG, TINY_LPO, tiny_evolution
from rulescope.core.errors import SpecError
from rulescope.core.structs import expanded
from rulescope.discover.discovery_spec import World
from rulescope.discover.evolution_spec import (
    Evolution,
    Imitation,
    Lpo,
    decode_evolution,
    validate_evolution,
)
from rulescope.envs.world_config import CatchStream


@pytest.mark.parametrize("spec", [TINY_LPG, TINY_LPO, Evolution()])
def test_a_specification_survives_being_written_short_or_long(spec: Evolution) -> None:
    assert decode_evolution(spec.canonical(), "short") == spec
    assert decode_evolution(msgspec.json.encode(expanded(spec)), "long") == spec


def test_the_id_is_that_of_what_differs_from_the_defaults() -> None:
    assert Evolution().canonical() == b'{"method":"evolution"}'
    assert tiny_evolution(seed=1).id != TINY_LPG.id
    assert tiny_evolution(seed=0).id == TINY_LPG.id


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"worlds": (World(environment=CatchStream()),)}, r"worlds\[0\].environment.kind: 'catch-"),
        ({"worlds": (World(scales=()),)}, r"worlds\[0\].scales: empty"),
        ({"rule": Lpo(), "imitation": Imitation(lifetimes=1)}, "imitation.lifetimes: only an LPG"),
        ({"rule": Lpo(minibatches=99), "imitation": Imitation()}, "rule.minibatches: 99 are more"),
        ({"generations": -1}, "generations: expected"),
    ],
)
def test_an_invalid_specification_is_an_error_that_names_the_key(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(SpecError, match=f"^mine: {message}"):
        validate_evolution(tiny_evolution(**changes), "mine")


def test_an_unknown_key_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(SpecError, match=r"strategy.sigm: no such key; nearest: 'sigma"):
        decode_evolution(b'{"method":"evolution","strategy":{"sigm":1}}', "mine")
