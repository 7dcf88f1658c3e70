"""M1: printed rates and retentions, usable scales, and ratios within seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import printed_tables
from rulescope.assays import ASSAYS, published
from rulescope.assays.budget import Budget
from rulescope.assays.frame import Floats
from rulescope.assays.minatar.scale_minatar import SCALES, TASKS, analyse
from rulescope.assays.results import Results, scale_label
from rulescope.learners.disco_config import Disco
from rulescope.run_spec import Hold, Pin

from .frames import bounds, drawn_seeds, trim
from .lives import Labels, lived

ASSAY = ASSAYS["M1"]
PAPER = ASSAY.budget("paper")
KNOWN = published.estimates("M1")
UNIT = (0.08, 0.09, 0.1, 0.085, 0.095, 0.088, 0.092, 0.07)
SCALED = (0.08, 0.081, 0.11, 0.0425, 0.095, 0.0968, 0.046, 0.07)


def name_of(labels: Labels) -> str:
    return f"{labels['task']}/{labels['arm']}/{scale_label(float(labels['scale']))}"


def printed(labels: Labels, _seed: int, rows: Floats) -> Mapping[str, Floats]:
    """Earn the printed retention of the printed unit rate in the last 20 of 200 rows."""
    unit = KNOWN[f"rate/{labels['task']}/{labels['arm']}/1"].value
    kept = KNOWN.get(f"retention/{name_of(labels)}")
    return {"reward_rate": np.where(rows > 7200, unit * (kept.value if kept else 1.0), 9.0)}


@pytest.fixture(scope="module")
def results() -> Results:
    return analyse(lived(ASSAY, PAPER, printed))


def test_published_retentions_give_every_published_usable_scale(results: Results) -> None:
    usable = {key: value for key, value in KNOWN.items() if key.startswith("usable")}
    assert len(usable) == 3 * 7
    for key, value in usable.items():
        assert results.estimates[key].value == pytest.approx(value.value), key
    for key, value in KNOWN.items():
        if key.startswith("retention/"):
            assert results.estimates[key].value == pytest.approx(value.value), key


def test_what_was_never_learned_cannot_be_retained(results: Results) -> None:
    """Pinned Disco in Freeway earns about 0.0001 at scale 1."""
    for kind in ("usable", "usable-low", "usable-high"):
        assert math.isnan(results.estimates[f"{kind}/minatar-freeway/rule-pin"].value)
    for scale in SCALES:
        key = f"minatar-freeway/rule-pin/{scale_label(scale)}"
        assert math.isnan(results.estimates[f"retention/{key}"].value)
        assert f"retention/{key}" not in KNOWN
        assert results.estimates[f"rate/{key}"].value == pytest.approx(1.063e-4)


def test_tables_have_the_printed_rows(results: Results) -> None:
    retention, usable = results.tables
    theirs = printed_tables.tables()[retention.label]
    for row, printed_row in zip(retention.rows, theirs, strict=True):
        assert printed_row["group"].startswith(f"{row[0]} / {row[1]};")
        assert (float(str(row[2])), row[3]) == (printed_row["Scale"], 8)
        assert (row[6] or "N/A") == printed_row["Passing"]
    for row, printed_row in zip(usable.rows, printed_tables.tables()[usable.label], strict=True):
        assert f"minatar_{str(row[0]).lower()}" == printed_row["Environment"]
        for ours, column in ((row[3], "Low scale"), (row[4], "High scale")):
            assert (ours or "N/A") == str(printed_row[column])


def narrow(**changes: object) -> Budget:
    return replace(PAPER, tasks=TASKS[:1], arms=("a2c",), **changes)  # type: ignore[arg-type]


def rates(labels: Labels, seed: int, _rows: Floats) -> Mapping[str, float]:
    return {"reward_rate": (UNIT if labels["scale"] == 1.0 else SCALED)[seed]}


def test_ratios_are_taken_within_seeds() -> None:
    found = analyse(lived(ASSAY, narrow(scales=(1.0, 10.0)), rates)).estimates
    kept = found["retention/minatar-breakout/a2c/10"]
    assert kept.value == pytest.approx(0.975)  # the ratio of trimmed means would be 0.918
    ratios = [b / a for a, b in zip(UNIT, SCALED, strict=True)]
    every = [trim(ratios[i] for i in block) for block in drawn_seeds(8, draws=4000)]
    assert (kept.low, kept.high) == pytest.approx(bounds(every))
    same = found["retention/minatar-breakout/a2c/1"]
    assert (same.value, same.low, same.high) == (1.0, 1.0, 1.0)
    assert found["rate/minatar-breakout/a2c/10"].value == pytest.approx(trim(SCALED))
    assert found["usable/minatar-breakout/a2c"].value == 2


def test_n_counts_the_seeds_with_a_finite_ratio() -> None:
    """As for frozen averages in Freeway: a seed that earned nothing at scale 1 has no ratio."""

    def one_without(labels: Labels, seed: int, rows: Floats) -> Mapping[str, float]:
        idle = seed == 3 and labels["scale"] == 1.0
        return {"reward_rate": 0.0} if idle else rates(labels, seed, rows)

    found = analyse(lived(ASSAY, narrow(scales=(1.0, 10.0)), one_without))
    assert [row[3] for row in found.tables[0].rows] == [7, 7]
    assert found.estimates["rate/minatar-breakout/a2c/10"].n == 8
    alone = analyse(lived(ASSAY, narrow(scales=(10.0,)), rates))
    assert [row[3] for row in alone.tables[0].rows] == [8]  # no pairs: n is that of the rate


def test_other_scales_are_told_apart_and_unit_scale_is_needed() -> None:
    coarse = analyse(lived(ASSAY, narrow(scales=(1.0, 10.0)), rates))
    assert coarse.other_grid == {
        f"{kind}/minatar-breakout/a2c" for kind in ("usable", "usable-low", "usable-high")
    }
    without = analyse(lived(ASSAY, narrow(scales=(10.0,)), rates))
    assert math.isnan(without.estimates["retention/minatar-breakout/a2c/10"].value)
    assert without.tables[0].rows[0][-1] is None


def test_an_arm_that_lacks_a_scale_is_told_apart_from_one_that_does_not() -> None:
    def partly(labels: Labels, seed: int, rows: Floats) -> Mapping[str, float] | None:
        gone = (labels["arm"], labels["scale"]) == ("a2c", 0.01)
        return None if gone else rates(labels, seed, rows)

    budget = replace(narrow(), arms=("rule", "a2c"))
    found = analyse(lived(ASSAY, budget, partly))
    assert {key.rpartition("/")[2] for key in found.other_grid} == {"a2c"}
    assert len(found.other_grid) == 3
    counts = [found.estimates[f"usable/minatar-breakout/{arm}"] for arm in budget.arms]
    assert [(one.value, one.n) for one in counts] == [(5, 8), (4, 8)]


def test_a_seed_without_a_finite_rate_is_left_out() -> None:
    def one_gone(_labels: Labels, seed: int, _rows: Floats) -> Mapping[str, float]:
        return {"reward_rate": math.nan if seed == 3 else 0.05}

    found = analyse(lived(ASSAY, narrow(), one_gone))
    assert found.estimates["retention/minatar-breakout/a2c/0.1"].n == 7
    assert found.estimates["usable/minatar-breakout/a2c"].n == 7
    assert found.estimates["usable/minatar-breakout/a2c"].value == 5


def test_printed_small_rates_are_counts_of_rewards() -> None:
    """Of 4,000 interactions a row, 20 rows, and the 4 of 8 (or 5 of 7) seeds that are kept."""
    small = {key: value for key, value in KNOWN.items() if "rate/" in key and value.value < 2e-4}
    assert len(small) == 9
    for key, value in small.items():
        rewards = value.value * 4000 * 20 * (4 if value.n == 8 else 5)
        assert rewards == pytest.approx(round(rewards), rel=5e-4), key


def test_arms_are_what_their_names_say() -> None:
    cells = {tuple(cell.labels.values()): cell.runs for cell in ASSAY.grid(PAPER)}
    assert sum(len(runs) for runs in cells.values()) == 320
    pin = cells["minatar-freeway", "rule-pin", 0.01][0]
    assert pin.interventions == (Pin(carrier="recurrent"),)
    assert cells["minatar-breakout", "rule-hold", 100.0][0].interventions == (
        Hold(carrier="averages"),
    )
    assert isinstance(pin.learner, Disco)
    assert pin.learner.agent.torso == "channel"
    assert (pin.iterations, pin.log_every) == (8000, 40)
