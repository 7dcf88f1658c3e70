"""``rulescope replicate``: a queue with reasons, and a campaign that follows it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from claims.made_up_evidence import claim_of, scored
from command_line import invoke, invoke_json
from rulescope.claims import replication
from rulescope.cli.run import SOME_FAILED
from rulescope.core.errors import RulescopeError, SpecError
from rulescope.records import Store
from rulescope.run_spec import RunSpec

COLD = claim_of("matched-prior-beats-a-cold-start")


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Replace the engine by one that makes records up; return the seeds whose runs fail."""
    seeds: set[int] = set()

    def run_missing(
        missing: Collection[RunSpec], store: Store, *_: Any, **__: Any
    ) -> dict[str, str]:
        for spec in missing:
            if spec.seed not in seeds:
                store.commit(scored(spec, 0.9 if spec.interventions else 0.5))
        return {spec.id: "made up" for spec in missing if spec.seed in seeds}

    monkeypatch.setattr(replication, "run_missing", run_missing)
    monkeypatch.setattr(replication, "require_runnable", lambda *_: None)
    return seeds


def _campaign(option: str, value: str, folder: Path) -> list[str]:
    store = str(folder / "store")
    return ["replicate", option, value, "--claims", COLD.id, "--store", store]


def test_a_campaign_needs_an_end() -> None:
    with pytest.raises(SpecError, match=r"--hours: .*--until decided.*--why"):
        invoke("replicate", "--claims", COLD.id)


def test_a_campaign_goes_on_until_decided_and_no_other_word() -> None:
    with pytest.raises(SpecError, match=r"--until: no 'done'; nearest: decided"):
        invoke("replicate", "--until", "done")


def test_an_unknown_claim_is_an_error_that_names_the_option_and_the_nearest() -> None:
    with pytest.raises(RulescopeError, match=r"--claims: no 'headlin'; nearest: 'headline'"):
        invoke("replicate", "--claims", "headlin", "--why")


def test_the_queue_is_shown_with_its_reasons_and_nothing_is_written(tmp_path: Path) -> None:
    store = tmp_path / "store"
    words = ["replicate", "--why", "--claims", "E2", "--store", str(store)]
    steps = invoke_json(*words)
    assert not store.exists()
    prices = [step["minutes_per_decision"] for step in steps]
    assert prices == sorted(prices)
    assert COLD.id in {step["claim"] for step in steps}
    for step in steps:
        assert step["claim"] in step["claims"]
        assert step["seeds"] == 0 < step["look"]
        assert step["core_minutes"] > 0
        assert len(set(step["lifetimes"])) == len(step["lifetimes"]) > 0
    output = invoke(*words).output
    assert "What to run next" in output
    assert not store.exists()


@pytest.mark.usefixtures("fails")
def test_a_campaign_ends_when_its_claims_are_decided(tmp_path: Path) -> None:
    words = _campaign("--until", "decided", tmp_path)
    found = invoke_json(*words)
    assert found == {"complete": True, "verdicts": {COLD.id: "reproduced"}, "failed": {}}
    assert len(list(Store(tmp_path / "store").ids())) == 3 * 6
    output = " ".join(invoke(*words).output.split())
    assert "lifetimes" not in output  # nothing is left to run


@pytest.mark.usefixtures("fails")
def test_a_campaign_says_what_it_runs_and_what_came_of_it(tmp_path: Path) -> None:
    words = _campaign("--hours", "1", tmp_path)
    output = " ".join(invoke(*words).output.split())
    assert f"{COLD.id}: 18 lifetimes up to 6 seeds, about" in output
    assert "1 claim: 1 reproduced." in output


def test_failed_runs_are_named_and_change_the_exit_code(tmp_path: Path, fails: set[int]) -> None:
    fails.add(2)
    words = _campaign("--hours", "1", tmp_path)
    result = invoke(*words, code=SOME_FAILED)
    assert result.output.count("failed: made up") == 3  # two arms and a donor


@pytest.mark.usefixtures("fails")
def test_no_hours_run_nothing(tmp_path: Path) -> None:
    words = _campaign("--hours", "0", tmp_path)
    found = invoke_json(*words)
    assert found["complete"] is False
    assert not (tmp_path / "store").exists()
