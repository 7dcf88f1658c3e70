"""``rulescope atlas``, and ``rulescope audit`` of several rules."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from command_line import invoke, invoke_json
from rulescope.audit import profile
from rulescope.core.errors import RecordError, SpecError
from rulescope.engine import local_engine
from rulescope.records import Store
from rulescope.rules.embedded import EMBEDDED

Places = list[str | Path]

TINY = ["--preset", "smoke", "--only", "E1", "--workers", "1"]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the audits of two rules, made by one command."""
    folder = tmp_path_factory.mktemp("audited")
    places: Places = ["--store", folder / "store", "--out", folder / "results"]
    result = invoke("audit", "a2c", "ppo@moments", *TINY, "--seeds", "2", *places)
    (folder / "printed").write_text(result.stdout)
    return folder


def test_several_rules_have_their_profiles_and_an_atlas(audited: Path) -> None:
    results = audited / "results"
    assert {path.name for path in results.iterdir()} == {
        "audit-a2c-smoke",
        "audit-ppo-moments-smoke",
        "atlas",
    }
    for name, rule in (("audit-a2c-smoke", "a2c"), ("audit-ppo-moments-smoke", "ppo@moments")):
        found = profile.read(results / name / "profile.json")
        assert found.rule == rule
        assert found.budgets == {"E1": "60 iterations, scales 0.001, 1"}
        assert (results / name / "E1" / "results.json").is_file()
    text = (audited / "printed").read_text()
    assert text.index("a2c History: none.") < text.index("What the history of each rule is worth")
    data = json.loads((results / "atlas" / "atlas.json").read_bytes())
    assert [rule["label"] for rule in data["rules"]] == ["a2c", "ppo@moments"]
    assert data["reference"] == "a2c"
    text = (results / "atlas" / "atlas.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    scores = [row for row in rows if row["key"] == "score/1"]
    own, other = (
        [float(value) for value in row["by_seed"].split()]
        for row in sorted(scores, key=lambda row: row["rule"], reverse=True)
    )
    [compared] = [row for row in scores if row["rule"] == "ppo@moments"]
    apart = [a - b for a, b in zip(own, other, strict=True)]
    assert float(compared["difference"]) == pytest.approx(sum(apart) / 2)
    assert compared["difference_interval"] == "range"


def test_profiles_are_those_of_one_audit_at_a_time(audited: Path, tmp_path: Path) -> None:
    places: Places = ["--store", audited / "store", "--out", tmp_path]
    invoke("audit", "ppo@moments", *TINY, "--seeds", "2", *places)
    name = "audit-ppo-moments-smoke/profile.json"
    assert (tmp_path / name).read_bytes() == (audited / "results" / name).read_bytes()
    assert not (tmp_path / "atlas").exists()


def test_all_that_several_audits_lack_is_run_in_one_campaign_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaigns: list[list[str]] = []

    def run_all(specs: Any, _: Any, **_options: Any) -> local_engine.Campaign:
        ids = [spec.id for spec in specs]
        campaigns.append(ids)
        return local_engine.Campaign(total=0, failed=dict.fromkeys(ids, "none"))

    monkeypatch.setattr(local_engine, "run_all", run_all)
    places: Places = ["--store", tmp_path / "store", "--out", tmp_path / "results"]
    options: Places = ["--preset", "smoke", "--only", "exposure", "--seeds", "1", *places]
    plans = {
        rule: invoke_json("audit", rule, *options, "--plan")["runs"] for rule in ("a2c", "sprout")
    }
    plan = invoke_json("audit", "a2c", "sprout", *options, "--plan")
    assert campaigns == []
    assert [body["runs"] for body in plan["audits"]] == list(plans.values())
    body = invoke_json("audit", "a2c", "sprout", *options, code=3)
    [ids] = campaigns
    assert set(Counter(ids).values()) == {1}
    assert len(ids) == plan["missing"] == len(body["failed"])
    assert len(ids) < sum(plans.values())  # the lifetimes of A2C are shared


def test_rules_from_files_are_run_beside_others(tmp_path: Path) -> None:
    mine = tmp_path / "mine.npz"
    shutil.copy(EMBEDDED["sprout"].path, mine)
    places: Places = ["--store", tmp_path / "store", "--out", tmp_path / "results"]
    body = invoke_json("audit", str(mine), "a2c", *TINY, "--seeds", "1", *places)
    assert body["failed"] == {}
    assert [rule["label"] for rule in body["atlas"]["rules"]] == ["mine", "a2c"]


def test_a_rule_that_is_named_twice_or_refuses_an_option_is_named_in_the_error(
    tmp_path: Path,
) -> None:
    places: Places = ["--store", tmp_path / "store", "--out", tmp_path / "results"]
    with pytest.raises(SpecError, match="'a2c': named twice"):
        invoke("audit", "a2c", "sprout", "a2c", *TINY, *places)
    with pytest.raises(SpecError, match=r"--only: 'E2' is not .* \(audit of 'a2c'\)"):
        invoke("audit", "sprout", "a2c", "--preset", "smoke", "--only", "E2", *places)
    assert not (tmp_path / "store").exists()


def test_the_atlas_of_written_profiles_is_that_of_the_audit(audited: Path, tmp_path: Path) -> None:
    made = invoke_json("atlas", "--results", audited / "results", "--out", tmp_path / "mine")
    written = json.loads((audited / "results" / "atlas" / "atlas.json").read_bytes())
    assert {key: made[key] for key in written} == written
    assert (tmp_path / "mine" / "atlas.png").is_file()
    folders: Places = [
        audited / "results" / f"audit-{name}-smoke" for name in ("ppo-moments", "a2c")
    ]
    text = invoke(
        "atlas", *folders, "--out", tmp_path / "two", "--reference", "ppo@moments", "--sort", "rule"
    ).stdout
    assert "− ppo@moments" in text
    lines = (tmp_path / "two" / "atlas.csv").read_text().splitlines()[1:]
    rules = [line.partition(",")[0] for line in lines]
    assert rules == sorted(rules)


def test_lifetimes_of_a_store_are_counted_if_their_results_are_equal(
    audited: Path, tmp_path: Path
) -> None:
    options: Places = ["--results", audited / "results", "--out", tmp_path / "atlas"]
    made = invoke_json("atlas", *options, "--store", audited / "store")
    names = ("audit-a2c-smoke", "audit-ppo-moments-smoke")
    runs = {name: profile.read(audited / "results" / name / "profile.json").runs for name in names}
    assert made["in_store"] == {name: len(found) for name, found in runs.items()}
    other = tmp_path / "store"
    shutil.copytree(audited / "store", other)
    lost = next(iter(runs["audit-a2c-smoke"]))
    [folder] = other.rglob(lost)
    shutil.rmtree(folder)
    fewer = invoke_json("atlas", *options, "--store", other)
    assert fewer["in_store"]["audit-a2c-smoke"] == len(runs["audit-a2c-smoke"]) - 1
    assert sorted(Store(audited / "store").ids())  # untouched


def test_wrong_names_are_refused_before_anything_is_written(audited: Path, tmp_path: Path) -> None:
    options: Places = ["--results", audited / "results", "--out", tmp_path / "atlas"]
    with pytest.raises(SpecError, match="--sort: no column 'valu'; nearest: 'value'"):
        invoke("atlas", *options, "--sort", "valu")
    with pytest.raises(SpecError, match="--reference: no profile of 'a3c'; nearest: 'a2c'"):
        invoke("atlas", *options, "--reference", "a3c")
    with pytest.raises(RecordError, match="nowhere: does not exist"):
        invoke("atlas", tmp_path / "nowhere", *options)
    assert not (tmp_path / "atlas").exists()
