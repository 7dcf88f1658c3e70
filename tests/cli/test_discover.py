from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import invoke, invoke_json
from discover.tiny_discovery import TINY
from rulescope.core.errors import SpecError
from rulescope.core.structs import expanded
from rulescope.discover.discovery_spec import Discovery, decode_discovery
from rulescope.rules.rule_weights import read_disco


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(expanded(TINY)))
    return path


def test_a_discovery_ends_in_a_rule(mine: Path, tmp_path: Path) -> None:
    words = ["discover", "--spec", str(mine), "--store", str(tmp_path / "store")]
    body = invoke_json(*words)
    assert body["id"] == TINY.id
    assert read_disco(Path(body["folder"]) / "rule.npz").parameter_count == body["parameters"]
    again = [*words, "--tensorboard", str(tmp_path / "events")]
    assert TINY.id in invoke(*again).stdout
    [events] = tmp_path.glob("events/discovery-*/events.out.tfevents.*")
    assert b"gradient_norm" in events.read_bytes()


def test_a_shown_specification_can_be_read_back() -> None:
    shown = invoke("discover", "sprout", "--seed", "3", "--show-spec")
    spec = decode_discovery(shown.stdout.encode(), "shown")
    assert isinstance(spec, Discovery)
    assert spec.seed == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sprot"], "sprot.*sprout"),
        (["--spec", "nowhere.json"], "nowhere.json: cannot be read"),
        (["smoke", "--meta-steps", "-1"], "meta_steps"),
        (["smoke", "--meta-steps", "0", "--warm-start", "0"], "meta_steps"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(words: list[str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        invoke("discover", *words)
