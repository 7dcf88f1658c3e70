"""``import rulescope``: every public name, used as a user would use it."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rulescope as rs
from learners.small import small_spec
from plugin_packages import RULE, Site
from rulescope.engine import local_engine
from rulescope.learners.open_config import Open

PACKAGE = Path(rs.__file__).parent


def run_python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_importing_the_package_imports_little() -> None:
    heavy = {"torch", "matplotlib", "numpy", "msgspec", "typer", "rich", "rulescope.assays"}
    code = f"import sys, rulescope; print(*({heavy!r} & set(sys.modules)))"
    assert run_python(code).split() == []


def test_the_source_is_hashed_before_other_modules_are_imported() -> None:
    code = "import sys, rulescope; print(*(m for m in sys.modules if m.startswith('rulescope.')))"
    assert run_python(code).split() == [
        "rulescope.core",
        "rulescope.core.source_hash",
    ]
    assert rs.source_hash.PROGRAM is not None


def test_every_public_name_exists_and_is_documented() -> None:
    assert len(set(rs.__all__)) == len(rs.__all__)
    for name in rs.__all__:
        value = getattr(rs, name)
        assert name in dir(rs)
        assert f"``{name}``" in str(rs.__doc__), name
        if name != "ASSAYS":
            assert inspect.getdoc(value), name


@pytest.mark.parametrize("name", ["Pin", "Store", "ASSAYS", "load_rule", "run", "audit_rule"])
def test_a_name_is_imported_without_torch(name: str) -> None:
    heavy = {"torch", "matplotlib"}
    code = f"import sys; from rulescope import {name}; print(*({heavy!r} & set(sys.modules)))"
    assert run_python(code).split() == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'RunSpek'"):
        _ = rs.RunSpek  # type: ignore[attr-defined]  # mypy knows the names too


def test_the_docstring_is_the_table_of_contents() -> None:
    for folder in PACKAGE.iterdir():
        if (folder / "__init__.py").is_file():
            assert f"* ``{folder.name}``:" in str(rs.__doc__), folder.name


def test_a_spec_becomes_a_record_and_is_not_run_twice(tmp_path: Path) -> None:
    spec = small_spec(interventions=(rs.Pin(carrier="recurrent"),))
    assert isinstance(spec, rs.RunSpec)
    iterations: list[int] = []
    record = rs.run(
        spec, tmp_path / "store", report=lambda progress: iterations.append(progress.iteration)
    )
    assert isinstance(record, rs.Record)
    assert iterations[-1] == spec.iterations
    assert (record.spec, record.manifest.id) == (spec, spec.id)
    iterations.clear()
    again = rs.run(spec, rs.Store(tmp_path / "store"), report=lambda _: iterations.append(0))
    assert again.manifest.science_hash == record.manifest.science_hash
    assert iterations == []


DONOR = small_spec(seed=1)
OTHER = small_spec(seed=2)


@pytest.mark.parametrize(
    "intervention",
    [
        rs.Pin(carrier="recurrent"),
        rs.Freeze(carrier="recurrent", at=4),
        rs.Hold(carrier="recurrent"),
        rs.Reset(carrier="recurrent", at=4),
        rs.Transplant(carrier="recurrent", donor=DONOR, mode="natural"),
        rs.RandomState(carrier="recurrent", donors=(DONOR, OTHER), mode="clamp"),
        rs.Permute(carrier="recurrent", at=4, mode="natural"),
        rs.Ablate(
            carrier="recurrent",
            donors=(DONOR, OTHER),
            components=1,
            which="principal",
            at=4,
            mode="clamp",
        ),
    ],
    ids=lambda each: str(each.operation),
)
def test_every_intervention_changes_a_run(intervention: Any, tmp_path: Path) -> None:
    plain = rs.run(small_spec(), tmp_path)
    changed = rs.run(small_spec(interventions=(intervention,)), tmp_path)
    assert changed.manifest.science_hash != plain.manifest.science_hash


def test_a_placebo_changes_nothing(tmp_path: Path) -> None:
    plain = rs.run(small_spec(), tmp_path)
    placebo = rs.run(small_spec(interventions=(rs.Placebo(carrier="recurrent"),)), tmp_path)
    assert placebo.manifest.science_hash == plain.manifest.science_hash


def test_a_spec_is_made_from_names() -> None:
    spec = rs.make_spec(rule="sprout", scale=10.0, interventions=(rs.Pin(carrier="recurrent"),))
    assert spec.interventions == (rs.Pin(carrier="recurrent"),)
    stepwise = rs.make_spec(
        "open", "gymnax-breakout", interventions=(rs.PinSteps(carrier="recurrent"),)
    )
    assert stepwise.learner == Open(rule="open-breakout")
    with pytest.raises(rs.RulescopeError, match="--learner: no 'ac2'; nearest: 'a2c'"):
        rs.make_spec("ac2")
    with pytest.raises(rs.RulescopeError, match="--rule: does not apply to the learner 'a2c'"):
        rs.make_spec("a2c", rule="sprout")


def test_assays_are_listed_and_found() -> None:
    assert isinstance(rs.ASSAYS["E1"], rs.Assay)
    assert rs.find_assay("scale") is rs.ASSAYS["E1"]


def test_an_assay_returns_results(tmp_path: Path) -> None:
    finished: list[int] = []
    results = rs.run_assay(
        "scale",
        rule="sprout",
        preset="smoke",
        seeds=1,
        iterations=20,
        arms=["live", "pin"],
        scales=[1.0],
        store=tmp_path,
        workers=1,
        report=lambda campaign: finished.append(campaign.finished),
    )
    assert isinstance(results, rs.Results)
    assert results.assay == "E1"
    assert {"score/catch/live/1", "score/catch/pin/1"} <= set(results.estimates)
    assert finished[-1] == 2


def test_runs_that_fail_are_an_error_with_the_causes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(specs: Any, *_: Any, **__: Any) -> local_engine.Campaign:
        return local_engine.Campaign(total=0, failed={spec.id: "not finite" for spec in specs})

    monkeypatch.setattr(local_engine, "run_all", fail)
    with pytest.raises(rs.RulescopeError, match=r"4 of 4 runs failed\nrun .*: not finite"):
        rs.run_assay("E1", rule="sprout", preset="smoke", store=tmp_path)


def test_an_audit_returns_a_profile(tmp_path: Path) -> None:
    profile = rs.audit_rule("sprout", preset="smoke", only=["E1"], store=tmp_path, workers=1)
    assert isinstance(profile, rs.Profile)
    assert (profile.rule, profile.preset, len(profile.runs)) == ("sprout", "smoke", 4)
    assert profile.answer is not None


def test_rules_are_loaded_by_name_and_from_a_file() -> None:
    sprout = rs.load_rule("sprout")
    path = PACKAGE / "rules" / "embedded" / "sprout" / "rule.npz"
    assert rs.load_rule(path).content == sprout.content
    assert rs.load_rule("random:0").parameter_count > sprout.parameter_count


def test_a_rule_of_ones_own_learns_and_is_intervened_on(site: Site, tmp_path: Path) -> None:
    assert inspect.isabstract(rs.UpdateRule)
    source = RULE.replace("rulescope.learners.update_rule", "rulescope")
    assert source != RULE
    site.rule(source)
    spec = rs.make_spec("counted", iterations=4, log_every=2, steps=5)
    record = rs.run(spec, tmp_path / "store")
    assert record.state["recurrent/count"].tolist() == [4.0, 4.0]
    pinned = rs.make_spec(
        "counted", iterations=4, log_every=2, steps=5, interventions=(rs.Pin(carrier="recurrent"),)
    )
    assert rs.run(pinned, tmp_path / "store").state["recurrent/count"].tolist() == [0.0, 0.0]
