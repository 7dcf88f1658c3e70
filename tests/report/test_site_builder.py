"""From a store to a folder: the same bytes twice, whole or not at all, nothing else touched."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import printed_tables
from made_up_records import fill, made_up
from report.site_samples import ASSAY, DONOR, MISSING, PLAN, RECIPIENT, gathered, stored
from rulescope import assays
from rulescope.assays import Selection, narrowed
from rulescope.assays.assay_run import folder_name
from rulescope.assays.plan import Plan
from rulescope.assays.subject import make_subject
from rulescope.audit import audit_plan
from rulescope.core.errors import RecordError
from rulescope.numerics.parity_table import NumericCheck, ParityLine
from rulescope.records import Store
from rulescope.report import (
    explorer_data,
    learning_curves,
    plan_selection,
    publication,
    report_inputs,
    site_builder,
)
from rulescope.report.assay_page import assay_page, figure_caption
from rulescope.report.provenance_page import provenance_page
from rulescope.report.publication import TABLES
from rulescope.report.site_builder import data_script
from rulescope.report.site_model import Site
from rulescope.stats import trimmed_mean


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_a_store_written_twice_gives_the_same_bytes(
    report: Path, results: Path, tmp_path: Path
) -> None:
    left = shutil.copytree(results, tmp_path / "results")
    site_builder.write(gathered(stored(tmp_path / "elsewhere"), left), tmp_path / "again")
    one, two = contents(report), contents(tmp_path / "again")
    assert one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name]] == []
    assert not [name for name, content in two.items() if str(tmp_path).encode() in content]


def test_a_report_is_replaced_and_nothing_else_ever_is(
    found: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publication, "write", lambda *_: {})
    out = tmp_path / "out"
    site_builder.write(found, out)
    (out / "stale.html").write_text("old")
    site_builder.write(found, out)
    assert not (out / "stale.html").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("precious")
    with pytest.raises(RecordError, match="no report"):
        site_builder.write(found, mine)
    assert (mine / "thesis.txt").read_text() == "precious"


def test_a_failure_leaves_the_old_report_as_it_was(
    found: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publication, "write", lambda *_: {})
    out = tmp_path / "out"
    site_builder.write(found, out)
    before = contents(out)

    def fails(*_: object) -> None:
        raise RecordError("no room")

    monkeypatch.setattr(publication, "write", fails)
    with pytest.raises(RecordError, match="no room"):
        site_builder.write(found, out)
    assert contents(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_damaged_record_is_left_out_and_listed(tmp_path: Path) -> None:
    store = stored(tmp_path)
    (store.folder(DONOR.id) / "log.npz").write_bytes(b"rubbish")
    found = gathered(store)
    [(run, reason)] = found.problems
    assert run == DONOR.id
    assert "sha256" in reason
    assert str(tmp_path) not in reason
    assert DONOR.id not in found.runs


def test_a_damaged_record_is_listed_again_until_its_run_has_a_record(tmp_path: Path) -> None:
    store = stored(tmp_path)
    whole = store.read(DONOR.id)
    (store.folder(DONOR.id) / "log.npz").write_bytes(b"rubbish")
    first, second = gathered(store), gathered(store)
    assert first.problems == second.problems
    assert provenance_page(first) == provenance_page(second)
    assert str(tmp_path) not in provenance_page(second)
    store.commit(whole)
    assert gathered(store).problems == ()
    store.save_checkpoint("0" * 64, {"a": np.zeros(1)})
    next((tmp_path / "checkpoints").iterdir()).write_bytes(b"rubbish")
    assert store.load_checkpoint("0" * 64) is None
    assert len(store.quarantined()) == 2
    assert gathered(store).problems == ()  # a checkpoint is no record


def test_only_budgets_that_the_store_has_are_shown() -> None:
    quick = ASSAY.budget("quick")
    plan = Plan.of(ASSAY, quick)
    [shown] = plan_selection.select_plans(dict(plan.runs))
    assert (shown.plan.assay.id, shown.plan.budget.iterations) == ("E-POP", 600)
    assert shown.plan.runs.keys() == plan.runs.keys()
    assert plan_selection.select_plans(dict(plan.runs), "smoke") == []
    assert plan_selection.select_plans({}) == []


def test_a_length_of_no_preset_is_shown_with_what_there_is_of_it() -> None:
    scale = assays.ASSAYS["E1"]
    budget = narrowed(
        scale,
        scale.budget("quick"),
        Selection(iterations=700, seeds=2, scales=[0.1, 1.0], tasks=["catch"]),
    )
    plan = Plan.of(scale, budget)
    [shown] = plan_selection.select_plans(dict(plan.runs))
    assert shown.plan.assay.id == "E1"
    assert shown.plan.runs.keys() == plan.runs.keys()


def test_another_rule_has_a_page_of_its_own_and_baselines_do_not_repeat() -> None:
    change = assays.ASSAYS["E3"]
    usual = Plan.of(change, change.budget("smoke"))
    other = Plan.of(
        change,
        narrowed(change, change.budget("smoke"), Selection(subject=make_subject("random:3"))),
    )
    both = plan_selection.select_plans({**usual.runs, **other.runs})
    rules = [(each.plan.assay.id, each.plan.budget.subject.rule) for each in both]
    assert sorted(name for name in rules if name[0] == "E3") == [
        ("E3", "disco103"),
        ("E3", "random:3"),
    ]
    alone = plan_selection.select_plans(dict(other.runs))
    assert [each.plan.budget.subject.rule for each in alone if each.plan.assay.id == "E3"] == [
        "random:3"
    ]


def test_an_audit_is_shown_as_what_it_was() -> None:
    asked = audit_plan.budgets(make_subject("disco103"), "quick", only=("E1", "E2"))
    plans = [Plan.of(assay, budget) for assay, budget in asked]
    runs = {key: run for plan in plans for key, run in {**plan.runs, **plan.donors}.items()}
    found = plan_selection.select_plans(runs)
    assert {each.plan.assay.id: each.plan.runs.keys() for each in found} == {
        plan.assay.id: plan.runs.keys() for plan in plans
    }


def test_an_assay_that_cannot_be_analysed_is_listed(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_plan: Plan, store: Store) -> None:
        raise RecordError(f"{store.root}/runs: too thin")

    monkeypatch.setattr(Plan, "analyse", fails)
    found = gathered(stored(tmp_path / "store"), results)
    assert found.unanalysed == (("E-POP", "runs: too thin"),)
    assert found.pages == ()
    assert "too thin" in provenance_page(found)


@pytest.mark.parametrize(("arms", "drawn"), [(["live", "pin"], True), (["live", "hold"], False)])
def test_the_scale_audit_is_drawn_where_its_two_arms_are(
    arms: list[str], drawn: bool, tmp_path: Path
) -> None:
    scale = assays.ASSAYS["E1"]
    plan = Plan.of(scale, narrowed(scale, scale.budget("smoke"), Selection(arms=arms)))
    store = Store(tmp_path / "store")
    fill(store, list(plan.runs.values()))
    [page] = [page for page in site_builder.gather(store, folder_name).pages if page.name == "E1"]
    assert (page.figures[0] == "scale-audit") is drawn
    assert page.figures[-len(scale.figures) :] == scale.figures
    assert "every seed" in figure_caption("scale-audit")


def test_control_arms_are_shown_where_there_are_any() -> None:
    scale = assays.ASSAYS["E1"]
    budget = narrowed(scale, scale.budget("smoke"), Selection(arms=["live", "placebo"]))
    plan = Plan.of(scale, budget)
    shown = next(s for s in plan_selection.select_plans(dict(plan.runs)) if s.plan.assay.id == "E1")
    assert plan.runs.keys() <= shown.plan.runs.keys()
    assert "null" not in {cell.labels["arm"] for cell in shown.plan.cells}


def test_curves_are_the_trimmed_means_of_the_logs(found: Site) -> None:
    [each] = found.pages
    panel = learning_curves.panels(each, found.runs)[-1]
    chunk = learning_curves.panel_data(panel)
    for arm in chunk["arms"]:
        logs = [found.runs[seed["run"]].log["score"] for seed in arm["seeds"]]
        wanted = trimmed_mean(logs, axis=0)
        assert arm["mid"]["score"] == [float(f"{value:.4g}") for value in wanted]


def test_long_logs_are_thinned_from_the_end() -> None:
    spec = next(run for run in PLAN.runs.values())
    record = made_up(type(spec)(iterations=2003, log_every=1))
    life = report_inputs.recorded_run(record, 0)
    assert life.every == 5
    assert life.log["iteration"][-1] == 2003
    assert len(life.log["iteration"]) <= report_inputs.ROWS
    assert {len(column) for column in life.log.values()} == {len(life.log["iteration"])}


def test_details_show_lineage_both_ways(found: Site) -> None:
    recipient = explorer_data.details(found, found.runs[RECIPIENT.id])
    assert [each[:2] for each in recipient["donors"]] == [[DONOR.id, True]]
    donor = explorer_data.details(found, found.runs[DONOR.id])
    assert [each[:2] for each in donor["recipients"]] == [[RECIPIENT.id, True]]
    assert recipient["manifest"]["inherited"] == {DONOR.id: "0" * 64}
    assert dict((name, norm) for name, _, norm in donor["terminal"])["recurrent/h"] > 0


def test_carriers_are_named_with_their_norms_whether_logged_or_not(found: Site) -> None:
    listed = {
        name: rest for name, *rest in explorer_data.details(found, found.runs[DONOR.id])["carriers"]
    }
    assert list(listed) == list(DONOR.learner.CARRIERS)
    state = made_up(DONOR).state
    whole = np.concatenate([state["recurrent/h"], state["recurrent/c"]]).astype(np.float64)
    assert listed["recurrent"] == [False, pytest.approx(np.linalg.norm(whole))]
    assert listed["params"] == [False, None]
    like = found.runs[DONOR.id]
    logged = replace(like, log={**like.log, "hidden_norm": np.ones_like(like.log["score"])})
    assert [name for name, known, _ in explorer_data.carriers(logged) if known] == ["recurrent"]
    unknown = replace(like, log={"hidden_norm": np.full_like(like.log["score"], np.nan)})
    assert not any(known for _, known, _ in explorer_data.carriers(unknown))


def test_every_column_about_state_is_about_a_carrier() -> None:
    assert explorer_data.CARRIER_OF.keys() == explorer_data.CARRIER_COLUMNS.keys()


def test_a_donor_that_the_store_lacks_is_named(tmp_path: Path) -> None:
    store = stored(tmp_path)
    store.delete(DONOR.id)
    found = gathered(store)
    listed = explorer_data.details(found, found.runs[RECIPIENT.id])["donors"]
    assert listed == [[DONOR.id, False, "not in this store"]]


def test_rows_of_the_explorer_have_the_values_of_the_specs(found: Site) -> None:
    rows = explorer_data.rows(found)
    values, places = rows["fields"]["scale"]
    for run, place in zip(rows["runs"], places, strict=True):
        assert values[place] == found.runs[run].spec.scale
    assert values == sorted(values)
    pages = [[rows["pages"][page] for page in each] for each in rows["assays"]]
    assert {run for run, names in zip(rows["runs"], pages, strict=True) if "E-POP" in names} == (
        PLAN.runs.keys() - {MISSING}
    )


def test_the_list_of_figures_names_files_hashes_and_runs(found: Site, report: Path) -> None:
    said = json.loads((report / "publication" / "figures.json").read_text())["published"]
    made = said["figures"]["v5:fig:app-baselines"]
    assert made["assays"] == ["E-LR", "E-POP"]
    assert made["made_from"] == ["E-POP"]
    assert {Path(name).suffix for name in made["files"]} == {".pdf", ".svg", ".png"}
    entries = [*said["figures"].values(), *said["tables"].values()]
    for name, digest in {k: v for entry in entries for k, v in entry["files"].items()}.items():
        assert hashlib.sha256((report / name).read_bytes()).hexdigest() == digest
    assert said["figures"]["fig:scale"]["status"] == "not run"
    assert said["figures"]["scale-audit"]["status"] == "not run"
    assert said["figures"]["scale-audit"]["assays"] == ["E1"]
    for schematic in ("fig:framework", "fig:interventions"):
        assert said["figures"][schematic]["status"] == "made"
        assert len(said["figures"][schematic]["files"]) == 3
    assert said["tables"]["tab:numeric"]["status"] == "made by rulescope check"
    for label in ("tab:axes", "tab:state-operations", "v5:tab:app-matrices"):
        assert said["tables"][label]["status"] == "made"
        assert {Path(name).suffix for name in said["tables"][label]["files"]} == {
            ".csv",
            ".md",
            ".tex",
        }
    runs = said["runs"]["E-POP"]
    assert runs == {
        run: found.runs[run].manifest.science_hash for run in sorted(PLAN.runs.keys() - {MISSING})
    }


def test_a_missing_figure_has_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = stored(tmp_path / "store")  # of E-POP, whose learners have no rule
    scale = assays.ASSAYS["E1"]
    asked = narrowed(
        scale,
        scale.budget("smoke"),
        Selection(subject=make_subject("random:3"), arms=["live"], tasks=["catch"]),
    )
    fill(store, list(Plan.of(scale, asked).runs.values()))
    monkeypatch.setattr(publication, "write_figure", lambda *_: [])
    publication.write(site_builder.gather(store, folder_name), tmp_path)
    said = json.loads((tmp_path / "publication" / "figures.json").read_text())
    other = said["E1-random-3".removeprefix("E1-")]
    lacking = other["tables"]["tab:unified-scores-catchdense"]
    assert (lacking["made_from"], lacking["status"]) == (["E1"], "cells not run")
    elsewhere = other["tables"]["v5:tab:app-popart"]
    assert (elsewhere["made_from"], elsewhere["status"]) == (["E-POP"], "see published")
    assert other["tables"]["tab:e3-all"]["status"] == "not run"


def test_every_published_table_of_results_is_in_the_list() -> None:
    printed = set(printed_tables.tables())
    assert printed <= TABLES.keys()
    assert {"tab:axes", "tab:state-operations", "v5:tab:app-matrices"} <= TABLES.keys()
    assert set(TABLES.values()) <= {*assays.ASSAYS, "rulescope check", "catalogue"}


def test_recorded_checks_are_tables_of_the_publication(tmp_path: Path) -> None:
    results = tmp_path / "results"
    line = ParityLine("Meta-gradient", "float32 / float32", 42, 42, 1e-9, 1e-4, True)
    (results / "check").mkdir(parents=True)
    (results / "check" / "check.json").write_bytes(
        NumericCheck((line,), ("random:20240",), {}, True).to_json()
    )
    (results / "worlds").mkdir()
    (results / "worlds" / "worlds.json").write_text("{}")
    tables, damaged = report_inputs.find_checks(results)
    assert [table.label for table in tables] == ["tab:numeric"]
    assert [name for name, _ in damaged] == ["worlds"]
    found = Site(runs={}, pages=(), checks=tables)
    publication.write(found, tmp_path)
    said = json.loads((tmp_path / "publication" / "figures.json").read_text())["published"]
    entry = said["tables"]["tab:numeric"]
    assert (entry["status"], entry["made_from"]) == ("made", ["rulescope check"])
    assert "| Meta-gradient |" in (tmp_path / "publication" / "tab-numeric.md").read_text()
    assert report_inputs.find_checks(tmp_path / "nowhere") == ((), ())


def test_the_capability_gate_precedes_the_contrasts_on_the_page(tmp_path: Path) -> None:
    asked = assays.ASSAYS["OPEN"]
    budget = narrowed(
        asked, asked.budget("paper"), Selection(seeds=2, tasks=["gymnax-breakout"], scales=[1])
    )
    fill(Store(tmp_path), list(Plan.of(asked, budget).missing.values()))
    found = site_builder.gather(Store(tmp_path), folder_name)
    (each,) = (page for page in found.pages if page.plan.assay.id == "OPEN")
    text = assay_page(found, each, [], {})
    places = [text.index(words) for words in ("Capability gate", "open-gate", "tab:open-0")]
    assert places == sorted(places)


def test_data_are_scripts_that_hand_it_over() -> None:
    text = data_script("runs/ab", {"x": "</script>"})
    assert text == 'rulescope.give("runs/ab",{"x":"\\u003c/script>"});\n'


def test_an_empty_store_has_a_report_too(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    fill(store, [DONOR])
    store.delete(DONOR.id)
    found = site_builder.gather(store, folder_name)
    site_builder.write(found, tmp_path / "out")
    assert "no lifetime of any assay" in (tmp_path / "out" / "index.html").read_text()
