from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discover.tiny_discovery import TINY
from rulescope.cli.main import app
from rulescope.core.errors import SpecError
from rulescope.core.structs import expanded
from rulescope.discover.discovery_spec import Discovery, decode_discovery
from rulescope.rules.loading import read_disco

RUN = CliRunner()


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(expanded(TINY)))
    return path


def test_a_discovery_ends_in_a_rule(mine: Path, tmp_path: Path) -> None:
    words = ["discover", "--spec", str(mine), "--store", str(tmp_path / "store"), "--json"]
    found = RUN.invoke(app, words, catch_exceptions=False)
    assert found.exit_code == 0
    told = json.loads(found.stdout)
    assert told["id"] == TINY.id
    assert read_disco(Path(told["folder"]) / "rule.npz").parameter_count == told["parameters"]
    again = [*words[:-1], "--tensorboard", str(tmp_path / "events")]
    assert TINY.id in RUN.invoke(app, again, catch_exceptions=False).stdout
    [events] = tmp_path.glob("events/discovery-*/events.out.tfevents.*")
    assert b"gradient_norm" in events.read_bytes()


def test_a_shown_specification_can_be_read_back() -> None:
    shown = RUN.invoke(app, ["discover", "sprout", "--seed", "3", "--show-spec"])
    spec = decode_discovery(shown.stdout.encode(), "shown")
    assert isinstance(spec, Discovery)
    assert spec.seed == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sprot"], "sprot.*sprout"),
        (["--spec", "nowhere.json"], "nowhere.json: cannot be read"),
        (["smoke", "--meta-steps", "-1"], "meta_steps"),
        (["smoke", "--meta-steps", "0", "--warm-start", "0"], "meta_steps"),
    ],
)
def test_bad_input_is_told_before_anything_runs(words: list[str], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        RUN.invoke(app, ["discover", *words], catch_exceptions=False)
