from __future__ import annotations

import json

import msgspec
import pytest

from discover.specs import TINY, tiny
from rulescope.core.errors import SpecError
from rulescope.core.structs import expanded
from rulescope.discover.discovery_spec import Discovery, checked, decode
from rulescope.discover.recipes import RECIPES


def test_the_id_is_that_of_what_differs_from_the_defaults() -> None:
    assert Discovery().canonical() == b"{}"
    assert Discovery(seed=1).canonical() == b'{"seed":1}'
    assert TINY.id == checked(TINY).id != tiny(seed=1).id


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_is_valid_and_survives_json(name: str) -> None:
    recipe = RECIPES[name]
    assert decode(json.dumps(expanded(recipe)).encode(), "a") == recipe
    assert decode(recipe.canonical(), "b").id == recipe.id


def test_what_rules_are_tested_in_is_in_no_recipe() -> None:
    for recipe in RECIPES.values():
        for world in recipe.worlds:
            kind = msgspec.to_builtins(world.environment)["kind"]
            side = getattr(world.environment, "columns", 0)
            depth = getattr(world.environment, "depth", 0)
            assert (kind, side < 8, depth <= 4) in {
                ("catch", True, True),
                ("tracking", True, True),
                ("deep-sea", True, True),
            }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not valid JSON"),
        ('{"metasteps": 3}', "metasteps: no such key.*meta_steps"),
        ('{"worlds": [{"agents": 0}]}', r"worlds\[0\].agents"),
        ('{"worlds": [{"environment": {"kind": "catsh"}}]}', "catsh.*catch"),
        ('{"worlds": [{"scales": []}]}', r"worlds\[0\].scales"),
        ('{"lifetime": [9, 3]}', "lifetime: the shortest"),
    ],
)
def test_a_fault_names_its_key(text: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        decode(text.encode(), "mine.json")
