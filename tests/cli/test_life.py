"""``rulescope life``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import invoke, invoke_json
from rulescope.core.errors import SpecError

QUICK = ["life", "--rule", "random:20240", "--iterations", "20", "--log-every", "5"]


def test_a_lifetime_ends_in_one_object_of_json(tmp_path: Path) -> None:
    body = invoke_json(*QUICK, "--store", tmp_path)
    assert {"id", "science_hash", "score", "seconds"} <= body.keys()
    assert body["found"] is False
    again = invoke_json(*QUICK, "--store", tmp_path)
    assert again["found"] is True
    assert again["science_hash"] == body["science_hash"]


def test_the_curve_and_the_paths_are_printed(tmp_path: Path) -> None:
    figure = tmp_path / "curve.png"
    text = invoke(*QUICK, "--store", tmp_path / "store", "--plot", figure).stdout
    assert "│" in text
    assert "score" in text
    assert str(figure) in text
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_a_stopped_and_resumed_run_has_the_same_science_hash(tmp_path: Path) -> None:
    whole = invoke_json(*QUICK, "--store", tmp_path / "whole")
    parts = [*QUICK, "--store", str(tmp_path / "parts")]
    pause = invoke_json(*parts, "--stop-after", "7")
    assert pause == {"id": whole["id"], "finished": False, "iteration": 7}
    assert invoke_json(*parts)["science_hash"] == whole["science_hash"]


def test_a_shown_spec_runs_as_the_options_did(tmp_path: Path) -> None:
    options = [*QUICK, "--scale", "0.01", "--terminals", "29", "--pin", "recurrent"]
    text = invoke(*options, "--agent", "legacy", "--interface", "linear", "--show-spec").stdout
    path = tmp_path / "run.json"
    path.write_text(text)
    body = invoke_json("life", "--spec", path, "--store", tmp_path)
    record = json.loads(
        (tmp_path / "runs" / body["id"][:2] / body["id"] / "manifest.json").read_text()
    )
    expected = {"terminals": "synthetic", "interval": 29, "truncation": "terminal"}
    assert record["spec"]["boundary"] == expected
    assert record["spec"]["learner"]["conventions"]["retrace"] == "skip"


def test_a_baseline_runs_in_a_world_without_episodes(tmp_path: Path) -> None:
    options = ["--learner", "a2c", "--env", "tracking", "--iterations", "20"]
    body = invoke_json("life", *options, "--store", tmp_path)
    assert (body["score"], body["measure"]) == (None, "rate_score")
    assert -1 < body["value"] < 1
    text = invoke("life", *options, "--store", tmp_path).stdout
    assert "a2c, live, Tracking 8" in text
    assert "score of the reward rate" in text


@pytest.mark.parametrize(
    ("learner", "option", "value"),
    [
        ("a2c", "--rule", "disco103"),
        ("dqn", "--agent", "legacy"),
        ("random", "--learning-rate", "1"),
    ],
)
def test_options_that_do_not_apply_to_a_learner_are_refused(
    tmp_path: Path, learner: str, option: str, value: str
) -> None:
    with pytest.raises(SpecError, match=f"{option}: does not apply to the learner '{learner}'"):
        invoke("life", "--learner", learner, option, value, "--store", tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--env", "ctch"], "--env: no 'ctch'; nearest: 'catch'"),
        (["--learner", "disk"], "--learner: no 'disk'"),
        (["--agent", "refrence"], "nearest: 'reference'"),
        (["--interface", "lin"], "--interface"),
        (["--pin", "recurent"], "nearest: 'recurrent'"),
        (["--terminals", "maskd"], "nearest: 'masked'"),
        (["--scale", "0"], "scale"),
        (["--scale", "nan"], "scale"),
        (["--iterations", "0"], "iterations"),
        (["--log-every", "99999"], "--log-every"),
        (["--seed", "-1"], "seed"),
        (["--stop-after", "5000"], "--stop-after"),
        (["--learning-rate", "-1"], "--learning-rate"),
        (["--change", "acton-flip@5"], "--change: no 'acton-flip'; nearest: 'action-flip'"),
        (["--change", "action-flip"], "does not name an iteration"),
        (["--change", "action-flip@2000"], "--change: 2000 is not before the last iteration"),
    ],
)
def test_bad_options_are_refused_before_anything_is_written(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    with pytest.raises(SpecError) as fault:
        invoke("life", *arguments, "--store", store)
    assert message in str(fault.value)
    assert not store.exists()


def test_a_spec_file_cannot_be_combined_with_options(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("{}")
    with pytest.raises(SpecError, match="--seed"):
        invoke("life", "--spec", path, "--seed", "3")


def test_a_missing_spec_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere\.json"):
        invoke("life", "--spec", tmp_path / "nowhere.json")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--truncation", "bootstrap"], "--truncation: the learner 'disco' takes every end"),
        (["--iterations", "5"], r"--log-every: 20 is more than iterations \(5\)"),
        (["--change", "action-flip@99999"], "--change: 99999 is not before the last iteration"),
        (["--pin", "recurent"], "--pin: no carrier 'recurent'; nearest: 'recurrent'"),
        (["--learning-rate", "-1"], "--learning-rate: expected"),
    ],
)
def test_an_impossible_run_names_the_option_as_typed(
    given: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecError, match=f"^{message}"):
        invoke("life", *given, "--store", tmp_path)
