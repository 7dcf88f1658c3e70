"""The comparison in MinAtar: one number of interactions, windows of each learner's own log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import printed_tables
from rulescope.assays import ASSAYS, Selection, narrowed, published
from rulescope.assays.comparison_families import MINATAR_CONTEXT
from rulescope.assays.frame import Floats
from rulescope.assays.minatar.minatar_context import ARMS, SCALES, analyse, rates
from rulescope.assays.open.open_carry import TASKS, make_open_runs
from rulescope.assays.results import Results, scale_label
from rulescope.core.errors import SpecError
from rulescope.stats import Estimate

from .frames import trim
from .lives import Labels, lived

ASSAY = ASSAYS["minatar-context"]
PAPER = ASSAY.budget("paper")
KNOWN = published.estimates("minatar-context")
ADAM = {"gymnax-breakout": 0.0838, "gymnax-freeway": 0.0129}


def level(labels: Labels) -> float:
    """Return a rate that has the printed difference from Adam's, and from OPEN's."""
    end = f"{labels['task']}/{scale_label(float(labels['scale']))}"
    found = ADAM[str(labels["task"])]
    if labels["arm"] != "open-adam":
        found += KNOWN[f"open-minus-open-adam/{end}"].value
    if labels["arm"] == "rule":
        found += KNOWN[f"rule-minus-open/{end}"].value
    return found


def printed(labels: Labels, _seed: int, rows: Floats) -> Mapping[str, Floats]:
    """Earn the level in the last 20 of 200 rows, or the last 5 of 56, and much before."""
    kept = 20 if labels["arm"] == "rule" else 5
    return {"reward_rate": np.where(np.arange(len(rows)) >= len(rows) - kept, level(labels), 9.0)}


@pytest.fixture(scope="module")
def results() -> Results:
    return analyse(lived(ASSAY, PAPER, printed))


def test_every_lifetime_has_the_published_interactions() -> None:
    made = [run for cell in ASSAY.grid(PAPER) for run in cell.runs]
    assert len(made) == 240
    assert {run.interactions for run in made} == {464_000}
    assert {(run.lanes, run.steps, run.iterations, run.remainder) for run in made} == {
        (2, 29, 8000, 0),
        (64, 128, 56, 82),
    }


def test_lifetimes_of_the_audit_are_not_lived_twice() -> None:
    carry = ASSAYS["OPEN"]
    theirs = {run.id for cell in carry.grid(carry.budget("paper")) for run in cell.runs}
    ours = {run.id for cell in ASSAY.grid(PAPER) for run in cell.runs}
    assert len(ours & theirs) == 48 + 16
    assert make_open_runs(PAPER, "live", task=TASKS[0], scale=1.0)[0].id in ours


def test_disco_as_in_m1_is_a_control() -> None:
    m1 = ASSAYS["M1"]
    theirs = {run.id for cell in m1.grid(m1.budget("paper")) for run in cell.runs}
    cells = ASSAY.grid(replace(PAPER, arms=("rule", "rule-minatar")))
    for cell in cells:
        assert all((run.id in theirs) == (cell.labels["arm"] != "rule") for run in cell.runs)


def test_printed_levels_give_every_printed_difference(results: Results) -> None:
    assert len(KNOWN) == MINATAR_CONTEXT.size == 30
    for key, value in KNOWN.items():
        ours = results.estimates[key]
        assert ours.value == pytest.approx(value.value, abs=1.1e-5), key  # sums of rounded terms
        assert (ours.n, ours.family) == (8, 30)


def test_the_table_has_the_printed_rows(results: Results) -> None:
    table = results.tables[0]
    for row, theirs in zip(table.rows, printed_tables.tables()[table.label], strict=True):
        assert row[0] == theirs["group"]
        assert float(str(row[1])) == theirs["Scale"]
        for ours, column in zip(
            row[2:], ("OPEN - Adam", "Disco - OPEN", "Disco - Adam"), strict=True
        ):
            assert isinstance(ours, Estimate)
            assert ours.value == pytest.approx(theirs[column][0], abs=1.1e-5)


def test_lengths_are_told_in_both_units(results: Results) -> None:
    assert results.iterations == 8000
    assert results.budget == (
        "disco103, agent historical, 8 seeds, 56 to 8,000 iterations (464,000 interactions) "
        "a lifetime"
    )
    fewer = analyse(lived(ASSAY, replace(PAPER, arms=ARMS[1:3]), printed))
    assert fewer.iterations == 8000
    assert fewer.budget == "8 seeds, 56 iterations (464,000 interactions) a lifetime"
    assert fewer.estimates["rule-minus-open/gymnax-freeway/1"].n == 0


def test_differences_are_of_marginal_trimmed_means() -> None:
    first = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    second = [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]

    def log(labels: Labels, seed: int, _rows: Floats) -> Mapping[str, float]:
        return {"reward_rate": (first if labels["arm"] == "open" else second[::-1])[seed]}

    budget = replace(PAPER, arms=ARMS[1:3], tasks=TASKS[:1], scales=(1.0,))
    found = analyse(lived(ASSAY, budget, log)).estimates["open-minus-open-adam/gymnax-breakout/1"]
    assert found.value == trim(first) - trim(second) == -0.25  # trimmed differences: otherwise


def test_each_learner_is_read_by_its_own_log() -> None:
    def rising(_labels: Labels, _seed: int, rows: Floats) -> Mapping[str, Floats]:
        return {"reward_rate": rows / rows[-1]}

    frame = lived(ASSAY, replace(PAPER, seeds=1, scales=SCALES[:1]), rising)
    found = rates(frame)
    assert found["gymnax-breakout", "rule", 0.01] == pytest.approx(
        np.mean(np.arange(181, 201)) / 200
    )
    assert found["gymnax-breakout", "open", 0.01] == pytest.approx(np.mean(np.arange(52, 57)) / 56)
    assert frame.part(arm="open").interactions == 464_000


def test_lifetimes_without_an_iteration_of_open_are_refused() -> None:
    budget = narrowed(ASSAY, PAPER, Selection(iterations=120))
    with pytest.raises(SpecError, match=r"less than 1 of open's \(8,192 each\); nearest: 142"):
        ASSAY.grid(budget)
