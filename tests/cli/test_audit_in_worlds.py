"""``rulescope audit --env`` and ``rulescope run --tasks`` in worlds that the user names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import invoke, invoke_json
from plugin_packages import example_installed
from rulescope.audit import profile
from rulescope.core.errors import SpecError

LAKE = "gymnasium:FrozenLake-v1?is_slippery=false"


@pytest.fixture
def places(tmp_path: Path) -> list[str | Path]:
    return ["--store", tmp_path / "store", "--out", tmp_path / "results"]


def test_an_audit_in_a_plugin_world_names_it_everywhere(
    tmp_path: Path, places: list[str | Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    smoke = ["sprout", "--preset", "smoke", "--workers", "1", "--only", "exposure,change"]
    with example_installed(tmp_path / "site", monkeypatch):
        shown = invoke("audit", *smoke, "--env", "echo", *places).stdout
    assert "left out: exposure natural: asked in a world without episodes" in shown
    assert "E-A5" not in shown  # it was not asked for
    assert "Final score, echo" in shown
    folder = tmp_path / "results" / "audit-sprout-smoke-in-echo"
    found = profile.read(folder / "profile.json")
    assert found.world == "echo"
    assert "0 is random play, 2 (exact), 1 is 8 (exact)" in found.references
    assert found.references in (folder / "README.md").read_text()
    assert any(note.startswith("left out: ") for note in found.notes)
    written = json.loads((folder / "exposure" / "results.json").read_text())
    assert written["worlds"]["echo"]["kind"] == "exact"


def test_an_assay_without_an_upper_reference_is_in_raw_units(places: list[str | Path]) -> None:
    pytest.importorskip("gymnasium")
    options = ["--preset", "smoke", "--arms", "rule", "--rule", "sprout", "--workers", "1"]
    body = invoke_json("run", "exposure", "--tasks", LAKE, *options, *places)
    known = json.loads((Path(body["folder"]) / "results.json").read_text())["worlds"][LAKE]
    assert known["best"] is None
    assert known["error"] > 0
    assert known["episodes"] == 200
    assert not any(key.startswith("fraction") for key in body["results"]["estimates"])
    stated = invoke_json(
        "run", "exposure", "--tasks", LAKE, "--reference-best", "1", *options, *places
    )
    assert stated["plan"]["missing"] == 0
    assert any(key.startswith("fraction") for key in stated["results"]["estimates"])


def test_a_reference_needs_its_world(places: list[str | Path]) -> None:
    with pytest.raises(SpecError, match="--reference-best: needs --env"):
        invoke("audit", "--reference-best", "1", "--plan", *places)
    with pytest.raises(SpecError, match="--env: no 'cach'; nearest: 'catch'"):
        invoke("audit", "--env", "cach", "--plan", *places)


def test_an_unknown_carrier_is_named_as_it_was_typed(places: list[str | Path]) -> None:
    with pytest.raises(SpecError, match=r"^'ppo@momets': 'ppo' has no carrier 'momets'"):
        invoke("audit", "ppo@momets", "--plan", *places)
    with pytest.raises(SpecError, match=r"^--history: 'ppo' has no carrier 'momets'"):
        invoke("audit", "ppo", "--history", "momets", "--plan", *places)
