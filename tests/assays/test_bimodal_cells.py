"""The seeds behind every level, and cells in which some lifetimes learned and others did not."""

from __future__ import annotations

import numpy as np
import pytest

from rulescope.assays import ASSAYS
from rulescope.assays.analysis import missing_estimate
from rulescope.assays.bimodal_cells import LEVELS, bimodal_cells, describe_cells
from rulescope.assays.estimates import Estimates
from rulescope.assays.frame import Floats
from rulescope.assays.scale.scale import analyse
from rulescope.stats import exact_iqm, finite_mean, trimmed_mean
from rulescope.stats.agreement import Counts

from .frames import constant_frame
from .lives import Labels, lived

KINDS = (*LEVELS, "rate", "bins", "mastery", "pre", "trough", "effect", "time")
AXES = {"task": ("catch",), "arm": ("live", "pin"), "scale": (0.001, 1000.0)}
UNDRAWN = (("E3", "pre"), ("masking", "effect"))
"""Assay and kind of levels whose seeds are in no figure."""
HUMPED = [0.0, 0.01, 0.0, 0.99, 1.0, 0.0, 0.98, 0.0]


@pytest.mark.parametrize("name", [name for name in ASSAYS if name != "conventions"])
def test_every_level_has_the_values_of_its_seeds(name: str) -> None:
    assay, generator = ASSAYS[name], np.random.default_rng(1)

    def log(_: Labels, __: int, rows: Floats) -> dict[str, Floats]:
        levels = {key: np.full(len(rows), generator.uniform(0.1, 0.9)) for key in assay.columns}
        return levels | {"episodes": 8 * rows, "steps": 58 * rows}

    results = assay.analyse(lived(assay, assay.budget("quick"), log))
    levels = {
        key: found
        for key, found in results.estimates.items()
        if key.partition("/")[0] in KINDS and found.n and name != "E-LR"
    } | {key: found for key, found in results.estimates.items() if key.startswith("score/")}
    for key, found in levels.items():
        if key.endswith("/family") or (name, key.partition("/")[0]) in UNDRAWN:
            continue
        centre = exact_iqm if name == "OPEN" else trimmed_mean
        centre = finite_mean if key.startswith("time/") else centre
        seeds = results.estimates.row(key).seeds
        assert seeds is not None, key
        assert np.isfinite(seeds).sum() == found.n, key
        assert float(centre(seeds)) == pytest.approx(found.value, nan_ok=True), key
    assert levels or name in ("discovery", "OPEN")


def test_two_humped_cells_are_named_in_notes_and_below_the_tables_that_show_them() -> None:
    values = np.full((1, 2, 2, 8), 0.95)
    values[0, 1, 1] = HUMPED
    results = analyse(constant_frame(AXES, values))
    words = "two-humped cells, whose mean no lifetime had: score/catch/pin/1000 (3 of 8 learned)"
    assert words in results.notes
    below = {table.label: table.note for table in results.tables}
    assert f"T{words[1:]}." in below["tab:unified-scores-catch"]
    assert "wo-humped" not in below["tab:e1-all"]  # widths


def test_cells_of_one_group_are_not_named() -> None:
    results = analyse(constant_frame(AXES, np.full((1, 2, 2, 8), 0.95)))
    assert not any("two-humped" in note for note in results.notes)
    assert describe_cells({}) == ""


def test_returns_without_a_known_optimum_have_no_humps() -> None:
    returns = level("endpoint", {"condition": "none", "arm": "a2c"}, 10.0)
    assert bimodal_cells("E-A4m", returns) == {}
    assert bimodal_cells("F2", level("endpoint", {"arm": "a2c"})) == {
        "endpoint/a2c": Counts(3, 3, 8)
    }
    assert bimodal_cells("E-IF", level("bins", {"arm": "default"})) == {}


def level(quantity: str, labels: Labels, scale: float = 1.0) -> Estimates:
    """Return one row, of lifetimes that fall into two groups."""
    found = Estimates()
    found.add(quantity, missing_estimate(), labels, seeds=scale * np.array(HUMPED))
    return found
