"""Plans: what a grid needs, what a store lacks, and what can be said of a part of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from learners.small import small_spec
from made_up_records import fill, made_up
from rulescope import assays
from rulescope.assays import Assay, Budget, Selection, narrowed
from rulescope.assays.plan import (
    Plan,
    companions,
    interactions,
    iteration_seconds,
    seconds_left,
    write,
)
from rulescope.assays.scale.scale import SCALES
from rulescope.core.errors import RecordError
from rulescope.records import Store
from rulescope.stats import trimmed_mean, window_widths

SCALE, INHERITANCE = assays.find("E1"), assays.find("E2")


def part(assay: Assay, **options: object) -> Budget:
    return narrowed(assay, assay.budget("paper"), Selection(**options))  # type: ignore[arg-type]


def scales(count: int = 4) -> Budget:
    return part(SCALE, seeds=count, arms=["live", "pin"], tasks=["catch"])


def test_nothing_is_present_without_a_store() -> None:
    plan = Plan.of(INHERITANCE, part(INHERITANCE, scales=[1e-3], seeds=2))
    assert len(plan.runs) == 16
    # Two matched and two crossed donors, and those of seeds 2 and 3 for the random states.
    assert len(plan.donors) == 8
    assert list(plan.missing) == list(dict.fromkeys(plan.missing))
    assert len(plan.missing) == 24
    order = list(plan.missing)
    for key, run in plan.missing.items():
        assert all(order.index(donor.id) < order.index(key) for donor in run.donors)


def test_what_the_store_has_is_not_missing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    plan = Plan.of(SCALE, scales(), store)
    fill(store, list(plan.cells[0].runs[:3]))
    plan = Plan.of(SCALE, scales(), store)
    assert plan.done(plan.cells[0]) == 3
    assert len(plan.missing) == len(plan.runs) - 3
    assert interactions(plan.missing.values()) == 116_000 * (2 * 7 * 4 - 3)


def test_a_donor_is_missing_only_if_somebody_needs_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    budget = part(INHERITANCE, scales=[1e-3], seeds=1, arms=["live", "match-clamp"])
    plan = Plan.of(INHERITANCE, budget, store)
    assert len(plan.missing) == 3
    fill(store, list(plan.runs.values()))
    plan = Plan.of(INHERITANCE, budget, store)
    assert len(plan.donors) == 1
    assert not plan.missing


def test_labels_and_seeds_without_a_lifetime_are_left_out(tmp_path: Path) -> None:
    store = Store(tmp_path)
    plan = Plan.of(SCALE, SCALE.budget("paper"), store)
    chosen = [
        cell.runs[seed]
        for cell in plan.cells
        for seed in (0, 2, 5, 7)
        if cell.labels["task"] == "catch" and cell.labels["scale"] in (1e-3, 1.0, 1e3)
        if cell.labels["arm"] in ("live", "pin")
    ]
    fill(store, chosen[1:])
    results = Plan.of(SCALE, SCALE.budget("paper"), store).analyse(store)
    assert results.seeds == 4
    assert results.axes == {
        "task": ("catch",),
        "arm": ("live", "pin"),
        "scale": (1e-3, 1.0, 1e3),
    }
    assert results.estimates["score/catch/live/0.001"].n == 3
    assert results.estimates["score/catch/pin/1"].n == 4
    assert any("1 of 24 lifetimes" in note for note in results.notes)
    assert results.notes[0].startswith("not run: task catch-dense, catch-long; arm hold, both; sca")
    assert results.budget.startswith("disco103, agent published, 3 to 4 seeds, 2,000 iter")


def test_an_empty_store_has_nothing_to_say(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="holds no lifetime of this grid of E1"):
        Plan.of(SCALE, scales(), Store(tmp_path)).analyse(Store(tmp_path))


def test_all_damage_is_told_of_at_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    plan = Plan.of(SCALE, scales(1), store)
    runs = list(plan.runs)[:3]
    fill(store, [plan.runs[key] for key in runs])
    for key in runs[:2]:
        path = tmp_path / "runs" / key[:2] / key / "log.npz"
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(RecordError, match="2 damaged: run the assay again") as caught:
        Plan.of(SCALE, scales(1), store).analyse(store)
    assert all(key in str(caught.value) for key in runs[:2])
    assert len(store.quarantined()) == 2


def test_files_of_an_earlier_grid_do_not_stay(tmp_path: Path) -> None:
    store, folder = Store(tmp_path / "store"), tmp_path / "results"
    both = part(SCALE, seeds=1, arms=["live"], scales=[1.0], tasks=["catch", "catch-long"])
    fill(store, list(Plan.of(SCALE, both).runs.values()))
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "mine.txt").write_text("kept")
    for budget in (both, part(SCALE, seeds=1, arms=["live"], scales=[1.0], tasks=["catch"])):
        plan = Plan.of(SCALE, budget, store)
        write(plan, plan.analyse(store), store, folder, figures=())
    names = {path.name for path in folder.iterdir()}
    assert "tab-unified-scores-catch.md" in names
    assert "tab-unified-scores-catchlong.md" not in names
    assert "mine.txt" in names


def test_time_is_estimated_from_real_iterations() -> None:
    short, long = small_spec(iterations=24), small_spec(iterations=2400, seed=1)
    assert 0.0 < iteration_seconds(short) < 1.0
    one, two = seconds_left([short, long], workers=1), seconds_left([short, long], workers=2)
    assert one > two > 0.0
    assert seconds_left([], workers=2) == 0.0


def test_companions_share_a_figure() -> None:
    assert {assay.id for assay in companions(SCALE)} == {"E2", "E-IF"}


def test_panels_of_others_are_of_the_preset_whose_length_a_part_has(tmp_path: Path) -> None:
    """One sea is not as long as the deepest, but as long as it is in the preset."""
    store, sea, stream = Store(tmp_path / "s"), assays.find("E-A5"), assays.find("E-A3c")
    one = narrowed(sea, sea.budget("quick"), Selection(seeds=1, arms=["a2c"], tasks=["deep-sea-8"]))
    other = narrowed(stream, stream.budget("quick"), Selection(seeds=1, arms=["a2c"]))
    for assay, budget in ((sea, one), (stream, other)):
        fill(store, list(Plan.of(assay, budget).runs.values()))
    plan = Plan.of(sea, one, store)
    paths = write(plan, plan.analyse(store), store, tmp_path / "r", figures=("fig:behavior",))
    drawn = next(path for path in paths if path.suffix == ".svg").read_text()
    assert "CatchStream" in drawn


def test_made_up_records_are_reproducible_and_say_what_they_are() -> None:
    spec = Plan.of(SCALE, scales(1)).cells[0].runs[0]
    one, two = made_up(spec), made_up(spec)
    assert one.manifest.science_hash == two.manifest.science_hash
    assert one.manifest.source["version"] == "made up"


def test_draws_of_curves_and_windows_are_those_behind_the_intervals(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store, list(Plan.of(SCALE, scales()).missing.values()))
    plan = Plan.of(SCALE, scales(), store)
    results = plan.analyse(store, draws=True)
    assert results.draws["seeds"].tolist() == [0, 1, 2, 3]
    blocks = results.draws["blocks/10000"]
    assert blocks.shape == (10_000, 4)
    for key, one in results.estimates.items():
        if one.method == "bootstrap":
            samples = results.draws[key]
            assert samples.shape == (10_000,)
            tail = 0.025 / one.family
            assert np.nanquantile(samples, [tail, 1 - tail]) == pytest.approx([one.low, one.high])
    curve = np.stack([results.draws[f"score/catch/live/{scale:g}"] for scale in SCALES], axis=1)
    assert curve.shape == (10_000, 7)
    widths = window_widths(SCALES, curve, 0.8)
    assert results.draws["width/catch/live/0.8"].tolist() == widths.tolist()
    values = results.by_seed("score/catch/live/1")
    assert values is not None
    seeds = values[blocks[17]]
    assert results.draws["score/catch/live/1"][17] == pytest.approx(float(trimmed_mean(seeds)))
    assert plan.analyse(store).draws == {}
