"""Three words by a stated rule: contradicted, undecided, reproduced."""

from __future__ import annotations

import math

import numpy as np
import pytest

from named_rows import rows
from rulescope.assays import ASSAYS, published, published_agreement
from rulescope.assays.estimates import Floats
from rulescope.assays.published import Published
from rulescope.assays.published_agreement import (
    AGREEMENT_RULE,
    JUDGED,
    ORDER,
    Agreement,
    rounding,
)
from rulescope.stats import Estimate

PINNED = "score/catch/pin/1000"
PRINTED = published.estimates("E1")[PINNED]  # 0.995 [0.989, 0.997], 12 seeds
SEEDS = np.array([0.0, 0.001, 0.0, 0.98, 0.99, 0.0, 1.0, -0.002])
OURS = Estimate(0.2531, -0.002449, 0.9956, 8)


def judge(
    assay: str,
    name: str,
    ours: Estimate,
    printed: Published,
    seeds: Floats | None = None,
    rounded: float = 0.0,
) -> Agreement:
    known = {} if seeds is None else {f"seeds/{name}": seeds}
    row = rows(assay, {name: ours}, known).row(name)
    return published_agreement.judge(assay, row, printed, rounded)


def margin(assay: str, name: str, printed: Published) -> float:
    return published_agreement.margin(assay, rows(assay, {name: OURS}).row(name), printed)


def test_a_wide_interval_that_holds_the_published_value_is_no_agreement() -> None:
    found = judge("E1", PINNED, OURS, PRINTED)
    assert OURS.low < PRINTED.value < OURS.high
    assert found.verdict == "undecided"


def test_a_two_humped_cell_is_compared_by_how_many_learned() -> None:
    found = judge("E1", PINNED, OURS, PRINTED, seeds=SEEDS)
    assert found.verdict == "contradicted"
    assert found.words == "contradicted (two-humped: 3 of 8 learned, published 11 to 12 of 12)"
    like_theirs = Published(0.48, 0.1, 0.9, 12)
    assert judge("E1", PINNED, OURS, like_theirs, seeds=SEEDS).verdict == "undecided"


def test_a_difference_whose_interval_excludes_zero_contradicts() -> None:
    printed = Published(0.9, 0.88, 0.92, 12)
    for value in (0.8, 1.0):
        ours = Estimate(value, value - 0.05, value + 0.05, 12)
        assert judge("E1", PINNED, ours, printed).verdict == "contradicted"


def test_only_a_difference_within_the_margin_reproduces() -> None:
    printed = Published(0.9, 0.88, 0.92, 12)
    narrow, wide = Estimate(0.91, 0.88, 0.94, 12), Estimate(0.91, 0.70, 0.97, 12)
    assert judge("E1", PINNED, narrow, printed).verdict == "reproduced"
    assert judge("E1", PINNED, wide, printed).verdict == "undecided"


@pytest.mark.parametrize(("family", "least"), [(1, 6), (11, 9)])
def test_fewer_than_the_least_number_of_seeds_can_never_tell(family: int, least: int) -> None:
    key = "interaction/0.001"
    printed = Published(0.9, 0.89, 0.91, 12, family)
    for value, word in ((0.2, "contradicted"), (0.9, "reproduced")):
        enough = Estimate(value, value - 0.01, value + 0.01, least, family=family)
        fewer = Estimate(value, value - 0.01, value + 0.01, least - 1, family=family)
        assert judge("E2", key, enough, printed).verdict == word
        assert judge("E2", key, fewer, printed).verdict == "undecided"


def test_a_reference_compared_with_itself_is_not_counted() -> None:
    nothing, printed = Estimate(0.0, 0.0, 0.0, 12), Published(0.0, 0.0, 0.0, 12)
    found = judge("E1", "displacement/catch/live/1/h", nothing, printed)
    assert found.verdict == "exact by construction"
    assert found.verdict not in JUDGED
    one = Estimate(1.0, 1.0, 1.0, 8), Published(1.0, 1.0, 1.0, 8)
    assert judge("M1", "retention/minatar-breakout/a2c/1", *one).verdict == found.verdict


def test_shares_are_told_apart_by_fishers_test_at_any_number_of_seeds() -> None:
    printed = Published(1.0, n=15)
    words = [
        judge("E-A5", "solved/a2c/8", Estimate(0.0, 0.0, 0.8, n, method="wilson"), printed).verdict
        for n in (1, 2, 3)
    ]
    # Of one lifetime against fifteen p is 1/16, of two 1/136.
    assert words == ["undecided", "contradicted", "contradicted"]
    same = Estimate(1.0, 0.8, 1.0, 15, method="wilson")
    assert judge("E-A5", "solved/a2c/8", same, printed).verdict == "reproduced"


def test_rounding_of_printed_numbers_is_no_difference() -> None:
    printed = Published(0.0, 0.0, 0.0, 100)
    ours = Estimate(0.0006, 0.0005, 0.0008, 100)
    assert judge("discovery", "success/random/12", ours, printed).verdict == "contradicted"
    near = judge("discovery", "success/random/12", ours, printed, rounded=0.0005)
    assert near.verdict == "reproduced"


def test_rounding_is_that_of_the_most_precise_number_of_a_kind() -> None:
    assert rounding([Published(0.5, 0.0, 1.0), Published(0.125, 0.1, 0.2)]) == 0.0005
    assert rounding([Published(1e-05, -2.5e-06, 0.1)]) == pytest.approx(5e-8)
    assert rounding([Published(3.0, 2.0, 3.0)]) == 0.0


@pytest.mark.parametrize("name", ASSAYS)
def test_every_printed_interval_has_a_margin(name: str) -> None:
    for key, printed in published.estimates(name).items():
        if not math.isnan(printed.low):
            allowed = margin(name, key, printed)
            assert allowed > 0 or printed.value == 0, key


@pytest.mark.parametrize(
    ("assay", "key", "expected"),
    [
        ("E1", "score/catch/live/1", 0.1),
        ("E1", "width/catch/live/0.8", 0.5),
        ("E1", "contrast/catch/0.8", 0.5),
        ("E3", "contrast/action-flip/100k", 0.1),
        ("E-A4m", "auc/action-flip/rule", 0.5373),
        ("F2", "difference/mastery/a2c", 58_000.0),
        ("F2", "difference/endpoint/a2c", 0.1),
        ("OPEN", "live-minus-zero/gymnax-freeway/1", 0.001),
        ("masking", "effect/rule", 0.004),
        ("conventions", "gap/catch-1000/legacy", 175.0),
        ("discovery", "found/a2c/12", 0.25),
        ("exposure", "steps/natural/dqn", 5684.0),
    ],
)
def test_margins_are_in_the_units_of_the_estimate(assay: str, key: str, expected: float) -> None:
    printed = published.estimates(assay)[key]
    assert margin(assay, key, printed) == pytest.approx(expected)


def test_the_rule_names_the_words_and_disagreements_come_first() -> None:
    assert ORDER[:3] == JUDGED == ("contradicted", "undecided", "reproduced")
    for word in JUDGED:
        assert word in AGREEMENT_RULE.lower()
    assert "overlap" not in AGREEMENT_RULE
