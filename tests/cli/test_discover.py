from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from command_line import invoke, invoke_json
from discover.tiny_discovery import TINY
from discover.tiny_evolution import TINY_LPO
from rulescope.assays.subject import find_subject
from rulescope.core.errors import SpecError
from rulescope.core.structs import expanded
from rulescope.discover.discovery_spec import Discovery, decode_discovery
from rulescope.discover.evolution_spec import decode_evolution
from rulescope.learners.further_config import Lpg
from rulescope.rules.rule_weights import read_any, read_disco


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


def test_an_evolution_ends_in_a_rule_that_an_audit_knows(tmp_path: Path) -> None:
    body = invoke_json(
        "discover", "--method", "evolution", "--store", str(tmp_path), "--workers", "1"
    )
    assert body["spec"]["method"] == "evolution"
    weights = read_any(Path(body["folder"]) / "rule.npz")
    assert weights.parameter_count == body["parameters"]
    subject, path = find_subject(body["folder"], None)
    assert isinstance(subject.learner, Lpg)
    assert subject.learner.rule == f"sha256:{weights.content}"
    assert path == Path(body["folder"]) / "rule.npz"
    printed = invoke("discover", "lpg-smoke", "--store", str(tmp_path)).stdout
    assert body["id"] in printed
    assert "on test seeds" in printed


def test_an_evolution_in_a_file_needs_no_method(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(expanded(TINY_LPO)))
    shown = invoke("discover", "--spec", str(path), "--generations", "2", "--show-spec").stdout
    assert decode_evolution(shown.encode(), "shown") == replace(TINY_LPO, generations=2)


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
        (["lpg-smok"], "'lpg-smok'.*nearest: 'lpg-smoke'"),
        (["--method", "evolution", "sprout"], "no recipe of evolution is called 'sprout'"),
        (["--method", "gradient", "lpg-small"], "no recipe of gradient is called 'lpg-small'"),
        (["lpg-small", "--meta-steps", "3"], "--meta-steps: a discovery by evolution has no such"),
        (["smoke", "--generations", "3"], "--generations: a discovery by gradient has no such"),
        (["lpg-small", "--generations", "-1"], "generations"),
        (["lpg-small", "--device", "meta"], "--device: 'meta'"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(words: list[str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        invoke("discover", *words)
