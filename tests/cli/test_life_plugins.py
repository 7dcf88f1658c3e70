"""Plug-ins on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import invoke, invoke_json
from learners.test_plugin_rule import RULES
from plugin_packages import RULE, Site, example_installed
from rulescope.core.errors import SpecError
from rulescope.core.plugin_source import hash_module

SHORT = ("--iterations", "4", "--log-every", "2", "--steps", "9")


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with example_installed(tmp_path / "site", monkeypatch):
        yield


@pytest.mark.usefixtures("example")
def test_a_plug_in_rule_learns_in_a_plug_in_world(tmp_path: Path) -> None:
    options = [
        "--learner",
        "sized",
        "--env",
        "echo",
        "--pin",
        "recurrent",
        "--learning-rate",
        "0.02",
    ]
    body = invoke_json("life", *options, *SHORT, "--store", tmp_path / "store")
    [path] = (tmp_path / "store").glob(f"runs/*/{body['id']}/manifest.json")
    manifest = json.loads(path.read_text())
    assert manifest["spec"]["learner"]["learning_rate"] == 0.02
    assert manifest["rule"]["name"] == "sized"
    assert manifest["rule"]["sha256"] == manifest["spec"]["learner"]["source"]
    assert manifest["spec"]["environment"]["source"] == hash_module("rulescope_example.world")
    text = invoke("life", *options, *SHORT, "--store", tmp_path / "store").stdout
    assert "sized, pin recurrent, echo" in text


@pytest.mark.usefixtures("example")
def test_a_shown_spec_names_the_source_and_runs(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(invoke("life", "--learner", "sized", *SHORT, "--show-spec").stdout)
    store = tmp_path / "store"
    assert invoke_json("life", "--spec", path, "--store", store)["found"] is False
    edited = json.loads(path.read_text())
    edited["learner"]["source"] = "0" * 64
    path.write_text(json.dumps(edited))
    with pytest.raises(SpecError, match=r"learner\.source: the rule 'sized' of rulescope-example"):
        invoke("life", "--spec", path, "--store", tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.usefixtures("example")
def test_list_shows_the_plug_ins_of_other_packages() -> None:
    shown = invoke("list").stdout
    assert "rule sized of rulescope-example 1.0: rulescope life --learner sized" in shown
    assert "world echo of rulescope-example 1.0: rulescope life --env echo" in shown
    rows = {(row["kind"], row["id"]): row for row in invoke_json("list")}
    assert rows["rule", "sized"]["package"] == "rulescope-example 1.0"
    assert rows["world", "echo"]["value"] == "rulescope_example.world:Echo"
    assert rows["assay", "E1"]["name"] == "scale"


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--learner", "szed"), "--learner: no 'szed'; nearest: 'sized'"),
        (("--env", "eco"), "--env: no 'eco'; nearest: 'echo'"),
        (("--learner", "sized", "--rule", "disco103"), "--rule: does not apply"),
        (("--learner", "sized", "--agent", "legacy"), "--agent: does not apply"),
        (("--learner", "sized", "--pin", "averages"), "no carrier 'averages'"),
        (("--learner", "sized", "--option", "a=1"), "option 'a': the rule 'sized' has no options"),
        (("--learner", "sized", "--option", "a"), "--option: 'a' is not NAME=VALUE"),
        (("--learner", "ppo", "--option", "a=1"), "--option: does not apply to the learner 'ppo'"),
    ],
)
def test_bad_options_are_refused(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as fault:
        invoke("life", *arguments, "--store", tmp_path / "store")
    assert message in str(fault.value)
    assert not (tmp_path / "store").exists()


def test_an_ambiguous_name_is_refused(site: Site) -> None:
    site.rule(RULE, name="a2c")
    with pytest.raises(SpecError, match="--learner: 'a2c' is also the name of a plug-in"):
        invoke("life", "--learner", "a2c", "--show-spec")


def test_options_are_typed_and_belong_to_the_run(site: Site, tmp_path: Path) -> None:
    site.rule(RULES, "mine", "Stateless")
    store = ("--store", tmp_path / "store")

    def run(*options: str) -> str:
        return str(invoke_json("life", "--learner", "mine", *options, *SHORT, *store)["id"])

    plain, other = run(), run("--option", "alpha=0.5", "--option", "beta=3")
    assert plain == run("--option", "alpha=1") != other
    assert other == run("--option", "beta=3", "--option", "alpha=0.5")
    with pytest.raises(SpecError, match=r"option 'alhpa': .*nearest: 'alpha'; valid: alpha, beta"):
        run("--option", "alhpa=2")
    with pytest.raises(SpecError, match=r"option 'beta' of the rule 'mine': '0.5' is not valid"):
        run("--option", "beta=0.5")
    given = ("--learner", "mine", "--option", "alpha=0.5", *SHORT)
    assert "mine:alpha=0.5, live, Catch" in invoke("life", *given, *store).stdout
    path = tmp_path / "run.json"
    path.write_text(invoke("life", *given, "--show-spec").stdout)
    assert invoke_json("life", "--spec", path, *store)["found"]
    text = path.read_text()
    assert '"alpha"' in text
    path.write_text(text.replace('"alpha"', '"alpah"'))
    for also in ((), ("--plan",)):
        with pytest.raises(SpecError, match=r"option 'alpah': .*nearest: 'alpha'"):
            invoke("life", "--spec", path, *also, *store)
