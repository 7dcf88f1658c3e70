"""DPO, LPO and LPG on the command line: runs, files of weights, audits, and their check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import invoke, invoke_json
from rulescope.audit import profile
from rulescope.audit.audit_plan import plan_audit
from rulescope.core import arrays
from rulescope.core.errors import SpecError
from rulescope.learners.further_config import Lpg
from rulescope.numerics import further_parity
from rulescope.numerics.tolerances import Comparison
from rulescope.records import Store
from rulescope.rules import rule_weights

SHORT = ["--iterations", "2", "--log-every", "1"]
SMALL = "lpg-random-4-4-8:0"


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "mine.npz"
    path.write_bytes(arrays.pack(rule_weights.load("ta-lpg-random-4-4-8:5").arrays))
    return path


@pytest.mark.parametrize("learner", ["dpo", "lpo", "lpg", "ta-lpg", "ta-lpg-relative"])
def test_every_learner_runs_by_its_name(learner: str, tmp_path: Path) -> None:
    body = invoke_json("life", "--learner", learner, *SHORT, "--store", tmp_path)
    assert {"id", "science_hash", "score"} <= body.keys()


def test_a_file_of_weights_decides_whether_the_rule_is_temporally_aware(weights: Path) -> None:
    def spec(*options: str | Path) -> tuple[str, str]:
        learner = json.loads(invoke("life", *options, "--show-spec").stdout)["learner"]
        return learner["rule"], learner["lifetime_inputs"]

    mine = rule_weights.name_of(weights)
    assert spec("--learner", "lpg", "--rule", weights) == (mine, "raw")
    assert spec("--learner", "ta-lpg-relative", "--rule", weights) == (mine, "relative")
    assert spec("--learner", "ta-lpg", "--rule", SMALL) == (SMALL, "none")


def test_a_rule_of_another_kind_and_an_unknown_option_are_refused(tmp_path: Path) -> None:
    for learner, rule in (("lpg", "lpo-random:0"), ("lpo", "sprout")):
        with pytest.raises(SpecError, match=f"'{rule}' is not a rule of {learner.upper()}"):
            invoke("life", "--learner", learner, "--rule", rule, "--store", tmp_path)
    with pytest.raises(SpecError, match="--rule: does not apply to the learner 'dpo'"):
        invoke("life", "--learner", "dpo", "--rule", "sprout", "--store", tmp_path)
    shown = invoke("life", "--learner", "dpo", "--option", "alpha=1", "--show-spec").stdout
    assert json.loads(shown)["learner"]["alpha"] == 1.0
    with pytest.raises(SpecError, match=r"'alfa'.*nearest: 'alpha'"):
        invoke("life", "--learner", "dpo", "--option", "alfa=1", "--store", tmp_path)


@pytest.mark.parametrize("subject", ["dpo", SMALL])
def test_an_audit_has_no_arms_on_a_history(subject: str, tmp_path: Path) -> None:
    places: list[str | Path] = ["--store", tmp_path / "store", "--out", tmp_path / "results"]
    options = ["--preset", "smoke", "--workers", "1", "--only", "E-A3c"]
    text = invoke("audit", subject, *options, *places).stdout
    [folder] = (tmp_path / "results").iterdir()
    found = profile.read(folder / "profile.json")
    assert found.rule == subject
    assert found.answer is not None
    assert found.answer.verdict == "no history"
    assert text.splitlines()[-1] == found.answer.sentence
    figures = {name for axis in found.axes for each in axis.measures for name in each.figures}
    assert figures == {"rule", "A2C"}


def test_an_audit_of_a_file_has_a_null_arm(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(weights.parent)
    places: list[str | Path] = ["--store", tmp_path / "store", "--out", tmp_path / "results"]
    runs = plan_audit("mine.npz", Store(tmp_path / "store"), preset="smoke").runs.values()
    rules = {run.learner.rule for run in runs if isinstance(run.learner, Lpg)}
    assert rules == {rule_weights.name_of(weights), "ta-lpg-random-4-4-8:0"}
    plan = invoke("audit", "mine.npz", "--preset", "smoke", "--plan", *places).stdout
    assert f"{len(runs)} to run" in plan


def test_the_check_of_these_rules_is_written_and_fails_on_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = invoke_json("check", "rules", "--out", tmp_path)
    assert body["passed"] is True
    text = (tmp_path / "further-rules" / "further-rules.md").read_text()
    assert "| TA-LPG | gradient | float64 |" in text
    wrong = Comparison(further_parity.VALUE, "float64", "DPO/drift: loss", 1.0, 1.0, 1e-12)
    monkeypatch.setattr(further_parity, "compare_further", lambda: iter([wrong]))
    assert "FAILED" in invoke("check", "rules", "--out", tmp_path, code=1).stdout
