"""Estimates are rows: found by quantity and labels, printed under one name."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rulescope.assays.estimates import Estimates, place
from rulescope.assays.results import Results, as_data
from rulescope.core.errors import RulescopeError
from rulescope.stats import Estimate

HIGH, LOW = Estimate(0.9, 0.8, 1.0, 3), Estimate(0.1, 0.0, 0.2, 3)
UNKNOWN = Estimate(math.nan, math.nan, math.nan, 0, method="none")


def some() -> Estimates:
    found = Estimates()
    found.add("score", HIGH, {"arm": "live", "scale": 1.0}, seeds=np.array([0.9, math.nan]))
    found.add("score", LOW, {"arm": "pin", "scale": 1.0})
    found.add("score", UNKNOWN, {"arm": "pin", "scale": 0.001})
    found.add("spanning", LOW, {})
    return found


def test_a_row_is_found_by_its_labels_in_any_order() -> None:
    found = some()
    assert found.at("score", scale=1.0, arm="live") is HIGH
    assert found.lookup("score", arm="live", scale=10.0) is None
    assert found.lookup("score", arm="live") is None, "all labels of a row must be given"
    assert found.at("spanning") is LOW
    with pytest.raises(RulescopeError, match="no estimate of 'score' at arm hold, scale 1"):
        found.at("score", arm="hold", scale=1.0)


def test_some_labels_find_all_rows_that_have_them() -> None:
    found = some()
    assert [row.estimate for row in found.where("score", scale=1.0)] == [HIGH, LOW]
    assert found.labels("score", "scale", arm="pin") == [1.0]
    assert found.labels("score", "scale", arm="pin", planned=True) == [1.0, 0.001]
    assert found.quantities == ("score", "spanning")


def test_names_are_how_rows_are_printed_in_the_order_of_adding() -> None:
    found = some()
    assert list(found) == ["score/live/1", "score/pin/1", "score/pin/0.001", "spanning"]
    assert found["score/pin/1"] is LOW
    assert place("score", arm="live").replaced(scale=1.0).row(found) is found.row("score/live/1")


def test_values_of_lifetimes_go_with_their_row() -> None:
    found = some()
    assert found.row("score/live/1").finite_seeds == (0.9,)
    assert place("score", arm="pin", scale=1.0).seeds(found) is None


def test_as_data_a_row_has_its_columns() -> None:
    data = as_data(Results("E1", "", {}, 2, some(), ()))["estimates"]
    row = data["score/live/1"]
    assert (row["quantity"], row["labels"]) == ("score", {"arm": "live", "scale": 1.0})
    assert (row["value"], row["seeds"]) == (0.9, [0.9, None])
    assert data["score/pin/0.001"]["value"] is None
