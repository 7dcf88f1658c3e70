from __future__ import annotations

import json

import msgspec
import pytest

from discover.tiny_discovery import TINY, tiny
from rulescope.core.errors import SpecError
from rulescope.core.structs import expanded
from rulescope.discover.discovery_spec import Discovery, decode_discovery, validate_discovery
from rulescope.discover.recipes import RECIPES


def test_the_id_depends_on_what_differs_from_the_defaults() -> None:
    assert Discovery().canonical() == b"{}"
    assert Discovery(seed=1).canonical() == b'{"seed":1}'
    assert TINY.id == validate_discovery(TINY).id != tiny(seed=1).id


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_is_valid_and_survives_json(name: str) -> None:
    recipe = RECIPES[name]
    assert decode_discovery(json.dumps(expanded(recipe)).encode(), "a") == recipe
    assert decode_discovery(recipe.canonical(), "b").id == recipe.id


def test_no_recipe_has_a_world_that_rules_are_tested_in() -> None:
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
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ('{"metasteps": 3}', "metasteps: no such key.*meta_steps"),
        ('{"worlds": [{"agents": 0}]}', r"worlds\[0\].agents"),
        ('{"worlds": [{"environment": {"kind": "catsh"}}]}', "catsh.*catch"),
        ('{"worlds": [{"scales": []}]}', r"worlds\[0\].scales"),
        ('{"lifetime": [9, 3]}', "lifetime: the shortest"),
    ],
)
def test_an_error_names_its_key(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        decode_discovery(text.encode(), "mine.json")
