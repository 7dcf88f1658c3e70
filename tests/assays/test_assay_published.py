"""Published values under our keys, and our estimates beside them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import printed_tables
from rulescope.assays import ASSAYS, published
from rulescope.assays.comparison import compare
from rulescope.assays.frame import Floats
from rulescope.assays.published import Published
from rulescope.assays.published_agreement import JUDGED
from rulescope.assays.scale.scale import analyse

from .frames import constant_frame
from .lives import Labels, lived

AXES = {"task": ("catch",), "arm": ("live", "pin"), "scale": (1e-3, 1.0)}


def test_every_table_is_there_with_cells_for_its_columns() -> None:
    tables = printed_tables.tables()
    assert len(tables) == 39  # 38 of results and one of budgets
    for label, table in tables.items():
        assert table.rows, label
        for row in table.rows:
            assert len(row) == len(table.columns), label


@pytest.mark.parametrize(
    ("assay", "key", "expected"),
    [
        ("E1", "score/catch/live/0.001", Published(0.828, 0.553, 0.931)),
        ("E1", "width/catch-dense/hold/half-best", Published(5, 4, 5)),
        ("E1", "width/catch-long/live/0.8", Published(3, 3, 4)),
        ("E1", "contrast/catch-long/half-best", Published(3, 0, 4, family=11)),
        ("E1", "contrast/catch/0.8", Published(3, 2, 3, family=11)),
        ("E1", "displacement/catch/live/1000/c", Published(37.95, 25.28, 70.7)),
        ("E1", "between/catch-long/hold/hc", Published(0.997, 0.996, 0.999)),
        ("E2", "score/0.001/cross-clamp", Published(0.01651, 0.00372, 0.06758)),
        ("E2", "score/1000/freeze", Published(0.99256, 0.98966, 0.99401)),
        ("E2", "interaction/0.001", Published(0.39265, 0.07896, 0.86094, family=11)),
        ("E-IF", "bins/linear", Published(1.4692, 1.4151, 1.5199)),
        ("P1", "effect/support30/0.001", Published(0.9615, 0.822, 0.9828)),
        ("P1", "interaction/linear/1000/family", Published(0.0048, -0.0037, 0.0142, family=15)),
    ],
)
def test_values_have_the_keys_of_our_estimates(assay: str, key: str, expected: Published) -> None:
    assert published.estimates(assay)[key] == expected


def test_what_is_printed_without_an_interval_has_none() -> None:
    for assay, key, value in (
        ("E1", "threshold/catch/live", 0.498),
        ("E1", "radius/catch/live/c", 1.372),
        ("E-IF", "difference/linear", 0.0025397),
    ):
        printed = published.estimates(assay)[key]
        assert printed.value == value
        assert math.isnan(printed.low)
        assert math.isnan(printed.high)


def test_the_two_tables_of_the_same_scores_agree() -> None:
    """E2 is printed twice, with four and with five decimals."""
    names = {"init": "natural", "ownfreeze400": "freeze"}
    for row in printed_tables.tables()["tab:e2-arms"]:
        arm = "-".join(names.get(word, word) for word in row["Condition"].split())
        for scale, column in (("0.001", "1e-3"), ("1000", "1e3")):
            long = published.estimates("E2")[f"score/{scale}/{arm}"].value
            assert row[column] == pytest.approx(long, abs=5.1e-5)


FED = (
    "score",
    "rate_score",
    "mean_return",
    "reward_rate",
    "effective_bins",
    "success",
    "floor_margin",
)


@pytest.mark.parametrize("name", [name for name in ASSAYS if published.estimates(name)])
def test_every_published_value_is_an_estimate_of_the_paper_grid(name: str) -> None:
    assay = ASSAYS[name]
    generator = np.random.default_rng(0)

    def log(_: Labels, __: int, rows: Floats) -> dict[str, float | Floats]:
        found: dict[str, float | Floats] = {column: generator.uniform(0.75, 1) for column in FED}
        goal = {"goals": 9.0, "first_goal_interaction": 4000.0, "first_goal_episode": 300.0}
        return {**found, **goal, "steps": 58 * rows, "episodes": 8 * rows}

    frame = lived(assay, assay.budget("paper"), log)
    shape = frame.completed.shape
    states = {key: generator.normal(size=(*shape, 2)) for key in assay.states}
    results = assay.analyse(replace(frame, states=states))
    known = published.estimates(name)
    assert set(known) <= set(results.estimates)
    compared = compare(results)
    assert {one.key for one in compared} == set(known)
    for one in compared:
        assert one.same_budget or one.key in OTHER_N, one.key
        assert one.ours.family == one.published.family, one.key
        if one.verdict == "no published interval":
            assert math.isnan(one.published.low), one.key
        else:
            assert one.verdict in (*JUDGED, "exact by construction"), one.key
            assert one.agreement.margin > 0 or one.verdict == "exact by construction", one.key


OTHER_N = {
    f"{kind}/minatar-freeway/rule-hold{end}"
    for kind in ("rate", "retention", "usable", "usable-low", "usable-high")
    for end in ("", "/0.01", "/0.1", "/1", "/10", "/100")
}
"""Published with one lifetime fewer: one was not finite."""


def test_assays_without_published_values() -> None:
    assert {name for name in ASSAYS if not published.estimates(name)} == {
        "horizon-factorial",
        "ladder",
        "normalised-inheritance",
        "agent-identity",
    }


def test_comparison_tells_agreement_and_budget() -> None:
    values = np.empty((1, 2, 2, 12))
    values[0, 0], values[0, 1] = 0.85, 0.0
    found = {one.key: one for one in compare(analyse(constant_frame(AXES, values)))}
    inside = found["score/catch/live/0.001"]
    assert (inside.verdict, inside.same_budget) == ("undecided", True)
    assert found["score/catch/live/1"].verdict == "contradicted"
    assert found["threshold/catch/live"].verdict == "other grid"
    assert "contrast/catch-long/0.8" not in found  # planned, but nothing was run
    shorter = compare(analyse(constant_frame(AXES, values, iterations=600)))
    fewer = compare(analyse(constant_frame(AXES, values[..., :4])))
    assert not any(one.same_budget for one in (*shorter, *fewer))


def test_an_assay_without_published_values_has_none() -> None:
    assert published.estimates("E99") == {}


@pytest.mark.parametrize("assay", ASSAYS)
def test_the_published_rows_are_the_printed_numbers(assay: str) -> None:
    rows, printed = published.estimates(assay), printed_tables.estimates(assay)
    assert list(rows) == list(printed)
    for name, row in rows.items():
        assert row == pytest.approx(printed[name], nan_ok=True), name
