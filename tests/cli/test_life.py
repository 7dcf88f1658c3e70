"""``rulescope life`` from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rulescope.cli.main import app
from rulescope.core.errors import SpecError

QUICK = ["life", "--rule", "random:20240", "--iterations", "20", "--log-every", "5"]


def invoke(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_lifetime_ends_in_one_object_of_json(tmp_path: Path) -> None:
    body = json.loads(invoke(*QUICK, "--store", tmp_path, "--json").splitlines()[-1])
    assert {"id", "science_hash", "score", "seconds"} <= body.keys()
    assert body["found"] is False
    again = json.loads(invoke(*QUICK, "--store", tmp_path, "--json"))
    assert again["found"] is True
    assert again["science_hash"] == body["science_hash"]


def test_people_see_a_curve_and_where_things_are(tmp_path: Path) -> None:
    figure = tmp_path / "curve.png"
    text = invoke(*QUICK, "--store", tmp_path / "store", "--plot", figure)
    assert "│" in text
    assert "score" in text
    assert str(figure) in text
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_stopping_and_going_on_gives_the_same_science(tmp_path: Path) -> None:
    whole = json.loads(invoke(*QUICK, "--store", tmp_path / "whole", "--json"))
    parts = [*QUICK, "--store", str(tmp_path / "parts"), "--json"]
    pause = json.loads(invoke(*parts, "--stop-after", "7"))
    assert pause == {"id": whole["id"], "finished": False, "iteration": 7}
    assert json.loads(invoke(*parts))["science_hash"] == whole["science_hash"]


def test_a_shown_spec_runs_as_the_options_did(tmp_path: Path) -> None:
    options = [*QUICK, "--scale", "0.01", "--terminals", "29", "--pin", "recurrent"]
    text = invoke(*options, "--agent", "legacy", "--interface", "linear", "--show-spec")
    path = tmp_path / "run.json"
    path.write_text(text)
    body = json.loads(invoke("life", "--spec", path, "--store", tmp_path, "--json"))
    record = json.loads(
        (tmp_path / "runs" / body["id"][:2] / body["id"] / "manifest.json").read_text()
    )
    assert record["spec"]["boundary"] == {"terminals": "synthetic", "interval": 29}
    assert record["spec"]["learner"]["conventions"]["retrace"] == "skip"


def test_a_baseline_lives_where_there_are_no_episodes(tmp_path: Path) -> None:
    options = ["--learner", "a2c", "--env", "tracking", "--iterations", "20"]
    body = json.loads(invoke("life", *options, "--store", tmp_path, "--json"))
    assert (body["score"], body["measure"]) == (None, "rate_score")
    assert -1 < body["value"] < 1
    text = invoke("life", *options, "--store", tmp_path)
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
def test_options_that_mean_nothing_to_a_learner_are_refused(
    tmp_path: Path, learner: str, option: str, value: str
) -> None:
    with pytest.raises(SpecError, match=f"{option}: does not apply to the learner '{learner}'"):
        invoke("life", "--learner", learner, option, value, "--store", tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "told"),
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
        (["--log-every", "99999"], "log_every"),
        (["--seed", "-1"], "seed"),
        (["--stop-after", "5000"], "--stop-after"),
        (["--learning-rate", "-1"], "learning_rate"),
        (["--change", "acton-flip@5"], "--change: no 'acton-flip'; nearest: 'action-flip'"),
        (["--change", "action-flip"], "does not name an iteration"),
        (["--change", "action-flip@2000"], "change.at: 2000 is not before the last iteration"),
    ],
)
def test_bad_options_are_refused_before_anything_is_written(
    arguments: list[str], told: str, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    command = ["life", *arguments, "--store", str(store)]
    with pytest.raises(SpecError) as fault:
        CliRunner().invoke(app, command, catch_exceptions=False)
    assert told in str(fault.value)
    assert not store.exists()


def test_a_spec_file_takes_no_options_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("{}")
    with pytest.raises(SpecError, match="--seed"):
        CliRunner().invoke(
            app, ["life", "--spec", str(path), "--seed", "3"], catch_exceptions=False
        )


def test_a_missing_spec_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere\.json"):
        CliRunner().invoke(
            app, ["life", "--spec", str(tmp_path / "nowhere.json")], catch_exceptions=False
        )
