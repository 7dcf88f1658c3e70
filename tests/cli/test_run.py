"""``rulescope run``, ``status``, ``list``, ``compare`` and ``records``."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from command_line import invoke, invoke_json
from made_up_records import fill
from rulescope import assays
from rulescope.assays import Results
from rulescope.assays.plan import Plan
from rulescope.core import arrays
from rulescope.core.errors import RecordError, SpecError
from rulescope.records import Store

NULL = ["--rule", "random:0", "--preset", "smoke", "--iterations", "20", "--workers", "1"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with made-up records of part of some assays at the published budget."""
    root = tmp_path_factory.mktemp("filled")
    for name in ("E1", "E2", "E-IF", "P1"):
        put(root, assays.ASSAYS[name], seeds=4, tasks=["catch"])
    return root


def put(root: Path, assay: assays.Assay, **part: Any) -> None:
    """Make up records of a part of ``assay``."""
    plan = Plan.of(assay, assays.narrowed(assay, assay.budget("paper"), assays.Selection(**part)))
    fill(Store(root), [*plan.donors.values(), *plan.runs.values()])


def test_an_assay_is_run_written_and_resumed(tmp_path: Path) -> None:
    places: list[str | Path] = ["--store", tmp_path / "store", "--out", tmp_path / "results"]
    command = ["run", "scale", *NULL, "--scales", "0.1,1", "--arms", "live,placebo"]
    command += ["--iterations", "40"]  # of which the last nine learn
    first = invoke_json(*command, *places)
    assert first["failed"] == {}
    assert (first["plan"]["runs"], first["plan"]["missing"]) == (4, 4)
    assert first["plan"]["seconds"] > 0
    again = invoke(*command, *places)
    assert "all runs are in the store" in again.stdout
    assert "Scores in Catch by reward scale" in again.stdout
    assert "n = 1 seed; random:0, agent published, 40 iterations" in again.stdout
    folder = tmp_path / "results" / "E1-random-0"
    written = {path.name for path in folder.iterdir()}
    assert {"README.md", "results.json", "tab-e1-all.md", "fig-scale.png"} <= written
    assert "estimates.parquet" in written
    assert {f"tab-unified-scores-catch.{ending}" for ending in ("md", "csv", "tex")} <= written
    data = json.loads((folder / "results.json").read_text())
    assert set(data["runs"]) == set(Store(tmp_path / "store").ids())
    scores = {
        name: {key: value for key, value in row.items() if key != "labels"}
        for name, row in data["estimates"].items()
    }
    assert scores["score/catch/live/1"] == scores["score/catch/placebo/1"]
    # The runs of live and placebo are identical, at each of the two scales.
    hashes = invoke_json("records", "hashes", *places[:2])
    assert sorted(Counter(hashes.values()).values()) == [2, 2]
    plain = invoke("records", "hashes", *places[:2]).stdout.split()
    assert dict(zip(plain[::2], plain[1::2], strict=True)) == hashes


def test_the_plan_is_shown_without_running(tmp_path: Path) -> None:
    command: list[str | Path] = [
        "run",
        "E2",
        *NULL,
        "--iterations",
        "60",
        "--plan",
        "--store",
        tmp_path / "store",
    ]
    shown = invoke(*command).stdout
    assert "E2 inheritance" in shown
    assert "4 to run" not in shown
    assert "6 to run" in shown
    assert "about" in shown
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("assay", "sizes"),
    [
        ("conventions", "27 cells × 12 to 18 seeds = 378 lifetimes of 2,000 to 20,000 iterations"),
        ("E1", "84 cells × 12 seeds = 1,008 lifetimes of 2,000 iterations"),
    ],
)
def test_the_plan_shows_the_numbers_and_lengths_of_runs(
    assay: str, sizes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rulescope.cli.run.seconds_left", lambda *_: 1.0)
    command = ["run", assay, "--preset", "paper", "--rule", "random:0", "--plan"]
    assert sizes in invoke(*command, "--store", tmp_path / "store").stdout


def test_donors_are_run_and_named_in_the_manifest(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    places: list[str | Path] = ["--store", store.root, "--out", tmp_path / "results"]
    command = ["run", "E2", *NULL, "--scales", "0.1", "--arms", "match-clamp,cross-natural"]
    body = invoke_json(*command, *places)
    assert (body["plan"]["runs"], body["plan"]["donors"]) == (2, 2)
    parents = [store.read(run).manifest.parents for run in store.ids()]
    assert sorted(map(len, parents)) == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["scael"], "no assay 'scael'; nearest: 'scale'"),
        (["E1", "--preset", "papre"], "--preset: no 'papre'; nearest: 'paper'"),
        (["E1", "--arms", "live,pinn"], "--arms: no 'pinn'; nearest: 'pin'"),
        (["E1", "--tasks", "cathc"], "--tasks: no 'cathc'; nearest: 'catch'"),
        (["E1", "--scales", "1,big"], "--scales: 'big' is not a number"),
        (["E1", "--scales", "-1"], "--scales: -1 is not between 0 and 1e+12"),
        (["E1", "--seeds", "0"], "--seeds: 0 is not"),
        (["E1", "--iterations", "5"], "--iterations: 5 is less than one log row"),
        (["E1", "--iterations", "30"], "--iterations: 30 has no log row (every 20) in its last fi"),
        (["E1", "--arms", "live,,pin"], "--arms: 'live,,pin' has an empty name"),
        (["E2", "--scales", "1e-13"], "--scales: the reciprocal of 1e-13, for donors, is more"),
        (["E2", "--scales", "1"], "--scales: at 1 a donor of the reciprocal scale"),
        (["E1", "--agent", "refrence"], "--agent: no 'refrence'; nearest: 'reference'"),
        (["exposure", "--conditions", "maskd"], "--conditions: no 'maskd'; nearest: 'masked'"),
        (
            ["E3", "--tasks", "catch-long", "--arms", "dqn"],
            "--tasks: baselines run in 'catch'",
        ),
        (["conventions", "--arms", "a2c"], "--conditions: no comparison is left"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    for verb in ("run", "status", "compare"):
        with pytest.raises(SpecError) as caught:
            invoke(verb, *arguments, "--store", tmp_path / "store")
        assert str(caught.value).startswith(message)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("option", ["--store", "--out"])
def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(
    option: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    places = {"--store": tmp_path / "store", "--out": tmp_path / "out"}
    places[option] = tmp_path / "file"
    with pytest.raises(RecordError, match="file: cannot be written"):
        invoke("run", "E1", *NULL, *(part for pair in places.items() for part in pair))
    assert not any((tmp_path / "store").rglob("manifest.json"))


def test_if_every_run_fails_the_causes_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rulescope.engine import local_engine

    def failing(specs: Any, *_: Any, **__: Any) -> Any:
        failed = {item.id: "DivergedError: not finite" for item in specs}
        return local_engine.Campaign(total=0, failed=failed)

    monkeypatch.setattr(local_engine, "run_all", failing)
    places: list[str | Path] = ["--store", tmp_path / "store", "--out", tmp_path / "results"]
    result = invoke("run", "E1", *NULL, *places, "--json", code=3)
    assert len(json.loads(result.stdout)["failed"]) == 4
    assert "failed: DivergedError" in result.stderr


def test_a_failed_index_does_not_hide_failed_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index can be made at any time; the causes of failures are printed only now."""
    from rulescope.engine import local_engine
    from rulescope.records.index import Index

    def failing(specs: Any, *_: Any, **__: Any) -> Any:
        return local_engine.Campaign(total=0, failed={item.id: "OSError: away" for item in specs})

    def refuse(*_: Any) -> Any:
        raise RecordError("store/index: cannot be written (No space left on device)")

    monkeypatch.setattr(local_engine, "run_all", failing)
    monkeypatch.setattr(Index, "refresh", refuse)
    places: list[str | Path] = ["--store", tmp_path / "store", "--out", tmp_path / "results"]
    result = invoke("run", "E1", *NULL, *places, code=3)
    assert "failed: OSError: away" in result.stderr
    assert "warning: not indexed: store/index" in result.stderr


def test_a_failed_run_is_reported_and_the_rest_is_analysed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rulescope.engine import local_engine

    def failing(specs: Any, *rest: Any, **options: Any) -> Any:
        specs = list(specs)
        campaign = real(specs[1:], *rest, **options)
        campaign.failed[specs[0].id] = "DivergedError: not finite"
        return campaign

    real = local_engine.run_all
    monkeypatch.setattr(local_engine, "run_all", failing)
    places: list[str | Path] = ["--store", tmp_path / "store", "--out", tmp_path / "results"]
    result = invoke("run", "E1", *NULL, "--scales", "0.1,1", *places, code=3)
    assert "failed: DivergedError" in result.stderr
    assert "1 of 4 lifetimes" in result.stdout


def test_status_counts_runs_cell_by_cell(filled: Path) -> None:
    command: list[str | Path] = [
        "status",
        "E1",
        "--preset",
        "paper",
        "--tasks",
        "catch",
        "--store",
        filled,
    ]
    shown = invoke(*command).stdout
    assert "112/336" in shown
    assert "4/12" in shown
    body = invoke_json(*command)
    assert (body[0]["runs"], body[0]["done"], len(body[0]["missing"])) == (336, 112, 224)


def test_status_without_an_assay_shows_all(filled: Path) -> None:
    body = invoke_json("status", "--store", filled)
    assert len(body) == 4 * len(assays.ASSAYS)
    done = {(row["assay"], row["preset"]): row["done"] for row in body}
    assert done["E1", "standard"] == 112
    assert done["E2", "paper"] == 64
    assert done["E1", "smoke"] == 0


def test_list_shows_the_cost_of_each_preset() -> None:
    body = {row["id"]: row for row in invoke_json("list")}
    assert body["E1"]["presets"]["paper"]["runs"] == 1008
    assert body["E1"]["presets"]["paper"]["interactions"] == 116_928_000
    assert body["E2"]["presets"]["paper"]["donors"] == 24
    short = body["conventions"]["presets"]["smoke"]
    assert (short["shortest"], short["iterations"]) == (40, 60)
    assert body["E3"]["conditions"] == ["action-flip", "reward-move", "none"]
    shown = invoke("list").stdout
    assert "1008 lifetimes" in shown
    assert "cross-clamp" in shown
    assert "action-flip, reward-move, none" in shown
    assert "375 lifetimes of 1,655 to 3,310 iterations" in shown


@pytest.mark.parametrize("name", ["E1", "E2", "E-IF", "P1"])
def test_compare_prints_our_estimate_and_the_published_one(name: str, filled: Path) -> None:
    shown = invoke("compare", name, "--store", filled).stdout
    assert "published" in shown
    assert "undecided" in shown  # four of a published twelve
    assert "overlap" not in shown
    body = invoke_json("compare", name, "--store", filled)
    assert body["comparisons"]
    assert body["agreement"]["undecided"] > 0
    assert body["agreement"]["reproduced"] == 0
    for row in body["comparisons"].values():
        assert "overlap" not in row
        assert row["agreement"] not in ("reproduced", "contradicted")
        assert row["n"] <= 4
        assert not row["same_budget"]


def test_draws_are_saved_beside_the_results(filled: Path, tmp_path: Path) -> None:
    part = ("E1", "--preset", "paper", "--arms", "live", "--tasks", "catch")
    places = ("--store", filled, "--out", tmp_path)
    body = invoke_json("compare", *part, *places, "--save-draws")
    path = tmp_path / "E1" / "draws.npz"
    assert body["draws"] == str(path)
    found = arrays.read(path)
    assert found["score/catch/live/1"].shape == (10_000,)
    assert found["blocks/10000"].shape == (10_000, len(found["seeds"]))
    path.unlink()
    narrow = ("--seeds", str(len(found["seeds"])), "--scales", "1")
    invoke("run", *part, *narrow, *places, "--save-draws")
    assert arrays.read(path)["score/catch/live/1"].shape == (10_000,)
    assert "draws.npz" in json.loads((tmp_path / "E1" / "results.json").read_text())["files"]
    invoke("run", *part, *narrow, *places)  # what is left from before would be of other results
    assert not path.exists()


def test_compare_of_an_unpublished_assay_is_empty(tmp_path: Path) -> None:
    put(tmp_path, assays.ASSAYS["ladder"], seeds=1, tasks=["deep-sea-4"], arms=["a2c"])
    body = invoke_json("compare", "ladder", "--store", tmp_path)
    assert body["comparisons"] == {}


def test_compare_can_be_narrowed_to_some_estimates(filled: Path) -> None:
    command: list[str | Path] = ["compare", "E1", "--store", filled, "--only", "contrast", "--json"]
    keys = invoke_json(*command)["comparisons"]
    assert set(keys) == {"contrast/catch/half-best", "contrast/catch/0.8"}
    assert keys["contrast/catch/half-best"]["published"] == [3.0, 2.0, 3.0]


def test_compare_names_the_nearest_key(filled: Path) -> None:
    with pytest.raises(SpecError, match=r"--only: no estimate has 'contrat'.*nearest: 'contrast'"):
        invoke("compare", "E1", "--store", filled, "--only", "contrat")


def test_damaged_records_are_listed_and_the_others_hashed(tmp_path: Path) -> None:
    put(tmp_path, assays.ASSAYS["E-IF"], seeds=1)
    run, *others = Store(tmp_path).ids()
    path = tmp_path / "runs" / run[:2] / run / "state.npz"
    path.write_bytes(path.read_bytes()[:-1])
    result = invoke("records", "hashes", "--store", tmp_path, "--json", code=1)
    assert set(json.loads(result.stdout)) == set(others)
    assert run in result.stderr


def test_printed_numbers_are_the_estimates(filled: Path, tmp_path: Path) -> None:
    invoke("run", "P1", "--preset", "paper", "--seeds", "4", "--store", filled, "--out", tmp_path)
    store = Store(filled)
    assay = assays.find("P1")
    budget = assays.narrowed(assay, assay.budget("paper"), assays.Selection(seeds=4))
    results: Results = Plan.of(assay, budget, store).analyse(store)
    with (tmp_path / "P1" / "tab-p1-complete.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    printed = {cell for row in rows for cell in row}
    for key in ("effect/default/0.001", "interaction/linear/1000"):
        assert repr(results.estimates[key].value) in printed, key


def test_agents_are_planned_one_by_one(tmp_path: Path) -> None:
    command: list[str | Path] = [
        "status",
        "E1",
        "--agent",
        "published,reference",
        "--store",
        tmp_path,
        "--json",
    ]
    body = invoke_json(*command)
    assert [each["agent"] for each in body] == ["published", "reference"]
    assert not set(body[0]["missing"]) & set(body[1]["missing"])
