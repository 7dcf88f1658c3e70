"""``rulescope audit``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import invoke, invoke_json
from learners.test_plugin_rule import RULES
from plugin_packages import Site, example_installed
from rulescope.audit import profile
from rulescope.core.errors import RulescopeError, SpecError
from rulescope.engine import local_engine


@pytest.fixture
def places(tmp_path: Path) -> list[str | Path]:
    return ["--store", tmp_path / "store", "--out", tmp_path / "results"]


def test_the_audit_of_the_embedded_rule_writes_one_profile_and_every_assay(
    tmp_path: Path, places: list[str | Path]
) -> None:
    smoke = ["--preset", "smoke", "--workers", "1", "--only", "scale,exposure"]
    result = invoke("audit", *smoke, *places)
    assert "Competence and pace" in result.stdout
    assert "Final score, Catch 8×8" in result.stdout
    folder = tmp_path / "results" / "audit-sprout-smoke"
    names = {path.name for path in folder.iterdir()}
    assert {"README.md", "profile.json", "profile.md", "profile.csv", "profile.tex"} <= names
    assert {"profile.png", "profile.svg", "profile.pdf", "E1", "exposure"} <= names
    found = profile.read(folder / "profile.json")
    assert (found.rule, found.preset) == ("sprout", "smoke")
    assert found.answer is not None
    assert found.answer.sentence == (
        "History: undecided: too few seeds (competence: 1; at least 4 are needed: --seeds 4)."
    )
    assert result.stdout.splitlines()[-1] == found.answer.sentence
    assert found.answer.sentence in (folder / "README.md").read_text()
    estimates = json.loads((folder / "E1" / "results.json").read_text())
    widths = {key for key in estimates["estimates"] if key.startswith("width/")}
    assert set(estimates["windows"]) == widths
    assert {one["kind"] for one in estimates["windows"].values()} == {"none"}
    by_name = {axis.name: axis for axis in found.axes}
    assert by_name["Reward scale"].measures
    assert by_name["Exploration"].measures == ()
    columns = by_name["Competence and pace"].measures[0].figures
    assert set(columns) == {"rule", "pinned", "null rule", "A2C"}
    body = invoke_json("audit", *smoke, *places)
    assert (body["missing"], body["failed"]) == (0, {})
    assert body["profile"]["rule"] == "sprout"
    assert len(body["profile"]["runs"]) == body["runs"]


def test_an_agent_can_be_named_where_the_rule_has_several(places: list[str | Path]) -> None:
    with pytest.raises(SpecError, match="--agent: 'sprout' has a learner of its own"):
        invoke("audit", "--agent", "reference", "--plan", *places)
    with pytest.raises(SpecError, match="--agent: no 'refrence'; nearest: 'reference'"):
        invoke("audit", "random:0", "--agent", "refrence", "--preset", "smoke", "--plan", *places)


def test_a_plug_in_is_audited_by_the_same_command(
    tmp_path: Path, places: list[str | Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with example_installed(tmp_path / "site", monkeypatch):
        invoke("audit", "sized", "--preset", "smoke", "--only", "E1,E2", *places)
    found = profile.read(tmp_path / "results" / "audit-sized-smoke" / "profile.json")
    axes = {axis.name: axis for axis in found.axes}
    widths = axes["Reward scale"].measures[0].figures
    assert set(widths) == {"rule", "pinned"}
    assert [m.key for m in axes["Inheritance"].measures][-1] == "interaction/10"


def test_a_rule_without_history_is_audited_without_the_arms_that_need_one(
    site: Site, tmp_path: Path, places: list[str | Path]
) -> None:
    site.rule(RULES, "mine", "Stateless")
    smoke = ("--preset", "smoke", "--workers", "1", "--option", "alpha=0.5")
    planned = invoke_json("audit", "mine", *smoke, "--plan", *places)
    assert planned["rule"] == "mine:alpha=0.5"
    body = invoke_json("audit", "mine", *smoke, "--only", "exposure", *places)
    assert body["failed"] == {}
    assert body["profile"]["answer"]["verdict"] == "no history"
    found = profile.read(tmp_path / "results" / "audit-mine-alpha-0.5-smoke" / "profile.json")
    axes = {axis.name: axis for axis in found.axes}
    assert set(axes["Competence and pace"].measures[0].figures) == {"rule", "A2C"}
    again = invoke_json("audit", "mine:alpha=0.5", *smoke[:4], "--only", "exposure", *places)
    assert again["missing"] == 0
    with pytest.raises(SpecError, match=r"--only: 'E2' is not in this audit"):
        invoke("audit", "mine", *smoke, "--only", "E2", *places)
    for plan in ((), ("--plan",)):
        with pytest.raises(SpecError, match=r"no 'pin' of E1 is possible: 'mine' has no history"):
            invoke("run", "E1", "--rule", "mine", "--preset", "smoke", *plan, *places)
    live = ("run", "E1", "--rule", "mine:alpha=0.5", "--arms", "live", "--preset", "smoke")
    assert invoke_json(*live, "--plan", *places)["plan"]["runs"] == 2
    with pytest.raises(SpecError, match="--option: give the plug-in whose option it is"):
        invoke("run", "E1", "--option", "alpha=2", "--preset", "smoke", "--plan", *places)
    with pytest.raises(SpecError, match="--option: 'mine:beta=3' names its options already"):
        invoke("audit", "mine:beta=3", *smoke, "--plan", *places)


def test_a_plug_in_that_makes_null_weights_has_a_null_arm(
    site: Site, tmp_path: Path, places: list[str | Path]
) -> None:
    site.rule(RULES, "mine", "Weighted")
    body = invoke_json("audit", "mine", "--preset", "smoke", "--only", "exposure", *places)
    assert body["failed"] == {}
    found = profile.read(tmp_path / "results" / "audit-mine-smoke" / "profile.json")
    axes = {axis.name: axis for axis in found.axes}
    assert set(axes["Competence and pace"].measures[0].figures) == {"rule", "null rule", "A2C"}


def test_a_plan_runs_nothing(tmp_path: Path, places: list[str | Path]) -> None:
    result = invoke("audit", "--preset", "smoke", "--only", "E1", "--plan", *places)
    assert "4 to run" in result.stdout
    assert not (tmp_path / "store").exists()


def test_limits_are_passed_on_as_by_run(
    places: list[str | Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    def run_all(specs: Any, _: Any, **options: Any) -> local_engine.Campaign:
        given.update(options)
        return local_engine.Campaign(total=0, failed={item.id: "none" for item in specs})

    monkeypatch.setattr(local_engine, "run_all", run_all)
    options = ["--preset", "smoke", "--only", "E1", "--time-limit", "9", "--force"]
    invoke("audit", "sprout", *options, *places, code=3)
    assert (given["timeouts"].run, given["force"]) == (9.0, True)


def test_unknown_names_are_refused_before_anything_runs(
    tmp_path: Path, places: list[str | Path]
) -> None:
    with pytest.raises(RulescopeError, match="nearest: 'sprout'"):
        invoke("audit", "sprouts", *places)
    with pytest.raises(SpecError, match="--preset: no 'quik'; nearest: 'quick'"):
        invoke("audit", "--preset", "quik", *places)
    with pytest.raises(SpecError, match="--only: 'P1' is not in this audit"):
        invoke("audit", "--only", "P1", *places)
    assert not (tmp_path / "store").exists()
