from __future__ import annotations

from pathlib import Path

import pytest

from command_line import invoke, invoke_json
from plugin_packages import example_installed
from rulescope.core.errors import SpecError, WeightsError
from rulescope.mechanism.view_folder import read_view
from rulescope.records import Store


def test_a_view_ends_in_a_folder_and_is_not_observed_twice(tmp_path: Path) -> None:
    words = ["mechanism", "trajectory", "--rule", "sprout-random:0", "--scales", "10,0.1"]
    words += ["--seeds", "1", "--iterations", "20", "--store", str(tmp_path / "store")]
    words += ["--out", str(tmp_path / "results")]
    body = invoke_json(*words)
    assert body["folder"] == str(tmp_path / "results" / "mechanism-trajectory-sprout-random-0")
    assert body["made"]["scales"] == [0.1, 10.0]
    for run in body["made"]["runs"].values():
        assert (
            Store(tmp_path / "store").read(run["id"]).manifest.science_hash == run["science_hash"]
        )
    assert read_view(Path(body["folder"])).name == "trajectory"
    again = invoke(*words)
    assert "Path of the rule's recurrent state" in again.stdout
    assert "80/80" in again.stderr
    assert "it/s" not in again.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trajectori"], "trajectori.*nearest: 'trajectory'"),
        (["targets", "--scales", "1,x"], "--scales: 'x' is not a number"),
        (["targets", "--scales", "0"], "--scales: 0 is not between"),
        (["trajectory", "--scales", "0.1234567,10"], "--scales: .* nearest: 0.123457"),
        (["targets", "--scales", "1,1.0000001"], "--scales: 1.0000001 .* nearest: 1"),
        (["targets", "--iterations", "10"], "--iterations: 10 .* nearest: 34"),
        (["replay", "--scales", "0.1"], "--scales"),
        (["replay", "--seeds", "0"], "--seeds: 0"),
        (["targets", "--agent", "refrence"], "--agent: no 'refrence'; nearest: 'reference'"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(
    words: list[str], message: str, tmp_path: Path
) -> None:
    home = ["--rule", "random:0", "--store", str(tmp_path / "s"), "--out", str(tmp_path / "o")]
    with pytest.raises(SpecError, match=message):
        invoke("mechanism", *words, *home)
    assert list(tmp_path.iterdir()) == []


def test_an_agent_is_refused_for_a_rule_with_a_learner_of_its_own(tmp_path: Path) -> None:
    words = ["mechanism", "targets", "--rule", "sprout", "--agent", "legacy"]
    with pytest.raises(SpecError, match="--agent: 'sprout' has a learner"):
        invoke(*words, "--out", str(tmp_path / "o"))
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_rule_is_refused_before_anything_runs(tmp_path: Path) -> None:
    words = ["mechanism", "targets", "--rule", "disco104", "--out", str(tmp_path / "o")]
    with pytest.raises(WeightsError, match=r"disco104.*nearest: 'disco103'"):
        invoke(*words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["sized", "open-breakout", "sproud"])
def test_a_rule_that_is_not_of_disco_is_refused_with_the_names_that_are_valid(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with example_installed(tmp_path / "site", monkeypatch):
        words = ["mechanism", "targets", "--rule", name, "--out", str(tmp_path / "o")]
        with pytest.raises(WeightsError) as caught:
            invoke(*words)
    message = str(caught.value)
    assert message.startswith("--rule: ")
    assert repr(name) in message
    valid = message.partition("valid: ")[2].split(", ")
    assert {"disco103", "sprout", "random:SEED"} <= set(valid)
    assert not any(each.startswith("open") for each in valid)
